"""Signing in and out of the dashboard, and who is signed in."""

from typing import Annotated, Literal, Self

from fastapi import Request, Response, status
from pydantic import Field

from headway.control.auth.authenticator import Authenticator, Caller
from headway.control.auth.sessions import sign_in, sign_out
from headway.control.http.dependencies import WithContext, body_of, model_of, operations, taking
from headway.control.http.middleware import address_in
from headway.control.http.problems import declared
from headway.control.http.schemas.requests import TEXT_LENGTH_MAX, Taken
from headway.control.http.schemas.schema_base import Given
from headway.control.http.session_cookie import (
    SESSION_PATH,
    csrf_of,
    is_own_page,
    session_cleared,
    session_set,
    session_shown,
)
from headway.errors import Conflict, Forbidden, Invalid, Overloaded
from headway.store.access.sessions import SESSION_S

router = operations(prefix="/v1", tags=["account"])

JSON = "application/json"
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


@router.post(
    SESSION_PATH.removeprefix("/v1"),
    summary="Sign in",
    status_code=status.HTTP_201_CREATED,
    **taking(SessionBody, Conflict, Overloaded),
)
async def create_session(context: WithContext, request: Request, response: Response) -> AccountOut:
    """Sign a browser in with a token: the answer sets a cookie that only the browser reads, valid for eight hours.

    The session may do what the token may and ends with it. Programs send their token with each call instead.
    """
    # A form of another site could sign its visitor in as somebody else: it sends no JSON, and its origin is not ours.
    if not is_own_page(request.headers):
        raise Forbidden(f"a page of {request.headers.get('origin', 'another site')!r} may not sign anybody in here")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Invalid(f"body: send JSON, as Content-Type: {JSON}")
    token = await body_of(request, lambda body: model_of(SessionBody, body).token)
    caller, secret = await sign_in(context.callers, context.engine, token.strip(), address=address_in(request.scope))
    response.headers.append("Set-Cookie", session_set(request.scope, secret, for_s=SESSION_S))
    response.headers["Cache-Control"] = "no-store"
    return AccountOut.of(caller, context.callers, csrf=csrf_of(secret))


@router.delete(
    SESSION_PATH.removeprefix("/v1"),
    summary="Sign out",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=declared(Conflict),
)
async def delete_session(context: WithContext, request: Request) -> Response:
    """End the session whose cookie is shown, on every control plane. The token stays valid."""
    if not context.callers.is_open:
        await sign_out(context.callers, context.engine, context.caller)
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    for cookie in session_cleared(request.scope):
        response.headers.append("Set-Cookie", cookie)
    return response


@router.get("/account", summary="Read who is asking", responses=declared())
async def get_account(context: WithContext, request: Request, response: Response) -> AccountOut:
    """Whom the call is made as, with which role, and until when. Where no token is configured: `open`."""
    secret = session_shown(request.scope) if context.caller.session else None
    response.headers["Cache-Control"] = "no-store"
    return AccountOut.of(context.caller, context.callers, csrf=secret and csrf_of(secret))
