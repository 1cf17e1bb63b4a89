"""What every request passes first: where it came from, its token, the size of its body. Every answer gets its headers.

Without a token only this machine can reach the door, and then a page of any site that this machine's browser shows is
the danger: by a name that resolves to 127.0.0.1 (its Host is foreign) or by a form it sends here (its Origin is).
"""

import hmac
import ipaddress
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.control.http.problems import TooLarge, problem_response
from headway.errors import Forbidden, HeadwayError, Unauthenticated

BODY_BYTES_MAX = 1024 * 1024
TELEMETRY_BYTES_MAX = 8 * 1024 * 1024  # some 40,000 events
TELEMETRY_PATH = "/v1/telemetry"

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC_PATHS = frozenset({"/", "/v1/health", "/v1/health/live"})
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


class Guard:
    """ASGI middleware that refuses what must not reach the app."""

    def __init__(self, app: ASGIApp, *, token: str | None, bound_host: str) -> None:
        self._app = app
        self._digest = sha256(token.encode()).digest() if token else None
        self._bound_host = bound_host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        try:
            self._check(scope)
        except HeadwayError as error:
            await problem_response(error)(scope, receive, send_with_headers)
            return
        await self._app(scope, _bounded(receive, scope["path"]), send_with_headers)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self._digest is None:
            self._check_way(scope["method"], headers)
        elif not _is_public(scope):
            self._check_token(headers, self._digest)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > _bytes_max(scope["path"]):
            raise _too_large(scope["path"])

    def _check_way(self, method: str, headers: Headers) -> None:
        host = headers.get("host", "")
        name = (urlsplit(f"//{host}").hostname or "") if _is_host(host) else ""
        if name != self._bound_host and not _is_loopback(name):
            raise Forbidden(
                f"Host {host!r} is not a name of this machine: open http://127.0.0.1, or bind another address with "
                "HEADWAY_TOKEN set"
            )
        origin = headers.get("origin")
        if method not in SAFE_METHODS and origin is not None and origin.partition("://")[2] != host:
            raise Forbidden(f"a page of {origin!r} may not change anything here")

    def _check_token(self, headers: Headers, digest: bytes) -> None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(
                "this control plane asks for a token: send `Authorization: Bearer` with HEADWAY_TOKEN"
            )
        # Headers are bytes that were read as Latin-1. Comparing digests takes the same time however much is right.
        if not hmac.compare_digest(sha256(token.strip().encode("latin-1")).digest(), digest):
            raise Unauthenticated("the token is not this control plane's HEADWAY_TOKEN")


def _is_public(scope: Scope) -> bool:
    path = scope["path"]
    return scope["method"] in SAFE_METHODS and (path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX))


def _is_host(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").netloc == host and "@" not in host
    except ValueError:
        return False


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
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
    return TELEMETRY_BYTES_MAX if path == TELEMETRY_PATH else BODY_BYTES_MAX


def _too_large(path: str) -> TooLarge:
    return TooLarge(f"the body is larger than the {_bytes_max(path)} bytes that {path} takes: send less at once")
