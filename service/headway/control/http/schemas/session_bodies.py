"""Signing in, as the HTTP API takes and gives it."""

from typing import Annotated, Literal, Self

from pydantic import Field

from headway.control.auth.authenticator import Authenticator, Caller
from headway.control.http.schemas.requests import TEXT_LENGTH_MAX, Taken
from headway.control.http.schemas.schema_base import Given

Way = Literal["session", "token", "open"]


class SessionBody(Taken):
    """A token to sign in with."""

    token: Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH_MAX)]


class AccountOut(Given):
    """Who asks, and what that may do."""

    name: str
    """Of the token; `HEADWAY_TOKEN`, or `local` where nobody is asked for a token."""
    role: Literal["viewer", "operator", "admin", "auditor", "ingest", "host"]
    way: Way
    """`session`: by the cookie of a sign-in; `token`: by a token; `open`: this control plane asks nobody."""
    csrf: str | None
    """Of a session: what each request that changes something sends as `X-Headway-CSRF`."""
    expires_s: float | None
    """In how many seconds the session or the token ends; null: it has no date."""

    @classmethod
    def of(cls, caller: Caller, callers: Authenticator, *, csrf: str | None) -> Self:
        """``caller`` as it is shown."""
        way: Way = "open" if callers.is_open else "token" if caller.session is None else "session"
        return cls(name=caller.name, role=caller.role.value, way=way, csrf=csrf, expires_s=caller.expires_in_s)  # type: ignore[arg-type]
