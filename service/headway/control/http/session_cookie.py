"""The cookie of a session, and how a request of our own page differs from one that another site's page made with it.

A cookie does not know ports: the name carries the port, so that two control planes of one machine do not sign each
other out. Under TLS the name begins with `__Host-`, and then no other host name and no unencrypted page can set it.
"""

import hmac
from collections.abc import Iterator
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from headway.errors import Forbidden, Unauthenticated

SESSION_PATH = "/v1/session"
CSRF_HEADER = "X-Headway-CSRF"
COOKIE = "headway_session"
SECURE_PREFIX = "__Host-"
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


def session_shown(scope: Scope) -> str | None:
    """The secret of the session that a request shows.

    Raises:
        Unauthenticated: it shows two. One of them was put there by somebody else.
    """
    headers = Headers(scope=scope)
    plain = _name(headers)
    shown = dict.fromkeys((SECURE_PREFIX + plain, plain)) if scope["scheme"] != "https" else [SECURE_PREFIX + plain]
    for name in shown:
        values = [value for key, value in _cookies(headers) if key == name]
        if len(values) > 1:
            raise Unauthenticated("the request shows two sessions: delete this site's cookies, and sign in again")
        if values:
            return values[0]
    return None


def session_set(scope: Scope, secret: str, *, for_s: float) -> str:
    """The value of `Set-Cookie` that gives a browser its session."""
    name, is_secure = _name(Headers(scope=scope)), _is_secure(scope)
    named = f"{SECURE_PREFIX if is_secure else ''}{name}={secret}; Max-Age={int(for_s)}{_ATTRIBUTES}"
    return f"{named}; Secure" if is_secure else named


def session_cleared(scope: Scope) -> list[str]:
    """The values of `Set-Cookie` that take away each session that the request shows."""
    headers = Headers(scope=scope)
    plain = _name(headers)
    names = {name for name, _ in _cookies(headers)} & {plain, SECURE_PREFIX + plain}
    return [
        f"{name}=; Max-Age=0{_ATTRIBUTES}{'; Secure' if name.startswith(SECURE_PREFIX) else ''}"
        for name in sorted(names)
    ]


def csrf_of(secret: str) -> str:
    """What a page of ours sends beside the cookie with what changes something. It does not reveal the session."""
    return hmac.new(secret.encode(errors="surrogateescape"), b"csrf", "sha256").hexdigest()


def require_own_page(headers: Headers, secret: str, *, is_write: bool) -> None:
    """Return if our own page made the request that shows the session ``secret``. Raises ``Forbidden``."""
    if not is_own_page(headers):
        raise Forbidden(
            f"a page of {headers.get('origin', 'another site')!r} may not use a session of {headers.get('host')!r}: a "
            "proxy in front passes the Host header on as it is"
        )
    shown = headers.get(CSRF_HEADER, "").encode("latin-1")
    if is_write and not hmac.compare_digest(shown, csrf_of(secret).encode()):
        raise Forbidden(
            f"what changes something needs the header {CSRF_HEADER} beside a session's cookie, with `csrf` of "
            "GET /v1/account"
        )


def is_own_page(headers: Headers) -> bool:
    """Whether no page of another origin made the request, as far as its browser says."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host", ""):
        return False
    return headers.get("sec-fetch-site", "none") in {"same-origin", "none"}


def _name(headers: Headers) -> str:
    try:
        port = urlsplit(f"//{headers.get('host', '')}").port
    except ValueError:
        port = None
    return COOKIE if port is None else f"{COOKIE}_{port}"


def _cookies(headers: Headers) -> Iterator[tuple[str, str]]:
    for header in headers.getlist("cookie"):
        for pair in header.split(";"):
            name, _, value = pair.partition("=")
            yield name.strip(), value.strip()


def _is_secure(scope: Scope) -> bool:
    """Whether the browser speaks TLS, with this server or with a proxy in front: its Origin says so."""
    return bool(scope["scheme"] == "https") or Headers(scope=scope).get("origin", "").startswith("https://")
