"""What every request passes first: where it came from, who makes it and whether that may, the size of its body.

Every answer gets its headers.

Without a token only this machine can reach the server, and then a page of any site that this machine's browser shows is
the danger: by a name that resolves to 127.0.0.1 (its Host is foreign) or by a form it sends here (its Origin is).
"""

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.control.auth.authenticator import Authenticator, Caller
from headway.control.auth.failed_sign_ins import address_of
from headway.control.http.dashboard import is_page
from headway.control.http.permissions import allows, needed_for
from headway.control.http.problems import TooLarge, nothing_at, problem_response
from headway.control.http.session_cookie import (
    SESSION_PATH,
    is_own_page,
    require_own_page,
    session_cleared,
    session_shown,
)
from headway.errors import Forbidden, HeadwayError, NotFound, Refused, Unauthenticated
from headway.local.https import is_loopback

BODY_BYTES_MAX = 1024 * 1024
TELEMETRY_BYTES_MAX = 8 * 1024 * 1024  # some 40,000 events
TELEMETRY_PATH = "/v1/telemetry"
SIGN_IN_BYTES_MAX = 4 * 1024  # strangers send these

PATH_SHOWN_CHARS = 100
CALLER = "headway.caller"  # the scope's key
HELD_BACK = frozenset({400, 401, 403, 413, 422, 429})  # whoever is answered so is refused by its own doing
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC_PATHS = frozenset({"/v1/health", "/v1/health/live"})  # and the dashboard's pages
PUBLIC_PREFIX = "/static/"

SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
HSTS = ("Strict-Transport-Security", "max-age=31536000")
"""A browser that has it asks for no page of this host name without TLS for a year. Subdomains are not this server's."""


class RequestGuard:
    """ASGI middleware that refuses what must not reach the app."""

    def __init__(self, app: ASGIApp, *, callers: Authenticator, bound_host: str) -> None:
        self._app = app
        self._callers = callers
        self._bound_host = bound_host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        began_s = time.monotonic()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
                if scope["scheme"] == "https":  # of this very connection: no header of a proxy is read
                    MutableHeaders(scope=message).append(*HSTS)
                if _has_two_lengths(Headers(scope=scope)):
                    MutableHeaders(scope=message)["Connection"] = "close"  # what follows may be of the body
                if message["status"] in HELD_BACK:
                    who = _who(scope.get(CALLER), scope)
                    took_s = time.monotonic() - began_s
                    await self._callers.throttle.hold(who, took_s=took_s, port="http", status=str(message["status"]))
            await send(message)

        try:
            caller = await self._checked(scope)
        except HeadwayError as error:
            answer = problem_response(error)
            if isinstance(error, Unauthenticated):
                for cookie in session_cleared(scope):
                    answer.headers.append("Set-Cookie", cookie)
            await answer(scope, receive, send_with_headers)
            return
        scope[CALLER] = caller
        sending = send_with_headers if caller is None else self._while_valid(caller, send_with_headers)
        await self._app(scope, _bounded(receive, scope["path"]), sending)

    def _while_valid(self, caller: Caller, send: Send) -> Send:
        """``send`` that ends an answer which is longer under way than its caller's token is valid."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body" and message.get("more_body"):
                try:
                    await self._callers.recheck(caller)
                except HeadwayError as error:
                    raise ConnectionAbortedError(str(error)) from error  # to the framework, a client that hung up
            await send(message)

        return sending

    async def _checked(self, scope: Scope) -> Caller | None:
        """Who makes the request; ``None`` where nobody is asked."""
        headers, caller = Headers(scope=scope), None
        if _has_two_lengths(headers):
            raise Refused("Content-Length and Transfer-Encoding contradict each other: send one")
        if self._callers.is_open:
            self._check_way(scope["method"], headers)
        elif not _is_public(scope):
            what = f"{scope['method']} {scope['path'][:PATH_SHOWN_CHARS]}"
            caller = await self._caller(scope, headers, what)
            needed = needed_for(scope["method"], scope["path"])
            if not allows(caller.role, needed):
                if not _is_there(scope):  # no token would help
                    raise NotFound(nothing_at(scope["path"]))
                why = f"that takes the role {needed}, and its role is {caller.role}"
                raise await self._callers.refusal(caller, why=why, subject=what)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > _bytes_max(scope["path"]):
            raise _too_large(scope["path"])
        return caller

    async def _caller(self, scope: Scope, headers: Headers, what: str) -> Caller:
        """Who shows a token, or else the cookie of a session."""
        session = None if "authorization" in headers else session_shown(scope)
        if session is None:
            return await self._callers.signed_in(_shown(headers), address=address_in(scope), what=what)
        caller = await self._callers.by_session(session, address=address_in(scope), what=what)
        # A browser sends the cookie with whatever any page asks of this address: only a page of ours may ask.
        require_own_page(headers, session, is_write=scope["method"] not in SAFE_METHODS)
        return caller

    def _check_way(self, method: str, headers: Headers) -> None:
        host = headers.get("host", "")
        name = (urlsplit(f"//{host}").hostname or "") if _is_host(host) else ""
        if name != self._bound_host and not is_loopback(name):
            raise Forbidden(
                f"Host {host!r} is not a name of this machine: open http://127.0.0.1, or bind another address with "
                "HEADWAY_TOKEN set"
            )
        if method not in SAFE_METHODS and not is_own_page(headers):
            raise Forbidden(f"a page of {headers.get('origin', 'another site')!r} may not change anything here")


def address_in(scope: Scope) -> str:
    """The address of whoever makes the request; empty where that is not known."""
    return address_of(scope["client"][0] if scope.get("client") else "")


def _who(caller: Caller | None, scope: Scope) -> str:
    """Whose refusals are counted together."""
    return address_in(scope) if caller is None else caller.paced_as(address_in(scope))


def _shown(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    # Headers are bytes that were read as Latin-1.
    return token.strip().encode("latin-1").decode(errors="surrogateescape") if scheme.lower() == "bearer" else None


def _is_public(scope: Scope) -> bool:
    # Whatever the method: these paths take only those that read, and say so to anybody who tries another one.
    path = scope["path"]
    if path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX) or is_page(path):
        return True
    return (scope["method"], path) == ("POST", SESSION_PATH)  # its body has the token


def _is_there(scope: Scope) -> bool:
    """Whether the app has anything at the path, whatever the method."""
    return any(route.matches(scope)[0] is not Match.NONE for route in scope["app"].routes)


def _has_two_lengths(headers: Headers) -> bool:
    """Whether a proxy in front may have taken the body to be of another length, and its rest for a request."""
    return "transfer-encoding" in headers and "content-length" in headers


def _is_host(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").netloc == host and "@" not in host
    except ValueError:
        return False


def _bounded(receive: Receive, path: str) -> Receive:
    """``receive`` that refuses a body of unstated length once it has grown too large."""
    taken_bytes = 0

    async def bounded() -> Message:
        nonlocal taken_bytes
        message = await receive()
        taken_bytes += len(message.get("body", b""))
        if taken_bytes > _bytes_max(path):
            raise _too_large(path)
        return message

    return bounded


def _bytes_max(path: str) -> int:
    return {TELEMETRY_PATH: TELEMETRY_BYTES_MAX, SESSION_PATH: SIGN_IN_BYTES_MAX}.get(path, BODY_BYTES_MAX)


def _too_large(path: str) -> TooLarge:
    return TooLarge(f"the body is larger than the {_bytes_max(path)} bytes that {path} takes: send less at once")
