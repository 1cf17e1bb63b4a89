"""Writes that are sent again: the first answer again, for the header ``Idempotency-Key``."""

import asyncio
import hashlib
import logging
import time
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.control.auth.authenticator import LOCAL, Caller
from headway.control.http.middleware import CALLER, SAFE_METHODS, TELEMETRY_PATH
from headway.control.http.problems import declared, problem_response
from headway.control.http.session_cookie import SESSION_PATH
from headway.errors import Conflict, HeadwayError, Invalid, Overloaded
from headway.store.access.idempotency_keys import Answer, Asked, Claim, claim, give_back, keep_answer
from headway.store.engine import Engine

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEY_CHARS_MAX = 255
ANSWER_BYTES_MAX = 32 * 1024  # with as many keys as a caller may have, 64 MB
WAIT_S = 10.0  # for who carries the same write out: as long as Postgres lets anybody wait for a lock
POLL_S = 0.05
TOKENS_PATH = "/v1/tokens"
KEYLESS = frozenset({("POST", path) for path in (TOKENS_PATH, SESSION_PATH, TELEMETRY_PATH)})
"""Answers with a secret, which is kept nowhere, and what is known by its sequence."""
KEPT_HEADERS = frozenset({b"content-type", b"etag"})
SENT_WITH = ("if-match", "if-none-match")  # they say what is asked for, as the body does

PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX},
    "description": "Drawn by you: for 24 h the same request with the same key is answered as it was first, and is not "
    "done again.",
}

log = logging.getLogger(__name__)


def takes_key(method: str, path: str) -> bool:
    """Whether a request is a write that the header makes idempotent."""
    return method not in SAFE_METHODS and (method, path) not in KEYLESS


def describe(paths: dict[str, dict[str, Any]]) -> None:
    """Add the header, and what is answered because of it, to the described operations that take it."""
    refusals = declared(Invalid, Conflict, Overloaded)
    for path, methods in paths.items():
        for method, operation in methods.items():
            if takes_key(method.upper(), path):
                operation["parameters"] = [*operation.get("parameters", ()), PARAMETER]
                for status in (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS):
                    operation["responses"].setdefault(str(int(status)), refusals[int(status)])


class IdempotentWrites:
    """ASGI middleware that carries a write with a key out once. Its callers are known, and may do it."""

    def __init__(self, app: ASGIApp, *, engine: Engine) -> None:
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or not takes_key(scope["method"], scope["path"])
            or HEADER not in Headers(scope=scope)
            or not _has_route(scope)
        ):
            await self._app(scope, receive, send)
            return
        try:
            key = _key(scope)
            body = await _body(receive)
            if body is None:  # nobody is there to be answered
                return
            found = await self._claimed(_asked(scope, key, body))
            if isinstance(found, Answer) and found.body is None:
                raise Conflict(f"this was done and answered {found.status}, with more than is kept: read what is there")
        except HeadwayError as error:
            await problem_response(error)(scope, receive, send)
            return
        if isinstance(found, Answer):
            await _send_again(found, send)
            return
        await self._carried_out(found, scope, body, send)

    async def _claimed(self, asked: Asked) -> Claim | Answer:
        until_s = time.monotonic() + WAIT_S
        while (found := await claim(self._engine, asked)) is None:
            if time.monotonic() > until_s:
                raise Conflict("a request with this Idempotency-Key is still being carried out: send it again later")
            await asyncio.sleep(POLL_S)
        return found

    async def _carried_out(self, mine: Claim, scope: Scope, body: bytes, send: Send) -> None:
        """Have the app answer, and keep the answer before anybody sees it."""
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        try:
            await self._app(scope, _whole(body), collect)
        except Exception:
            await self._settled(mine, None)
            raise
        await self._settled(mine, _answer(messages))
        for message in messages:
            await send(message)

    async def _settled(self, mine: Claim, answer: Answer | None) -> None:
        try:
            if answer is None:
                await give_back(self._engine, mine)
            else:
                await keep_answer(self._engine, mine, answer)
        except HeadwayError as error:  # it is carried out all the same; the claim ends by itself
            log.warning("the answer to an idempotent write is not kept: %s", error)


def _has_route(scope: Scope) -> bool:
    """Whether anything can be done: what no route takes is refused as ever, and uses no key up."""
    return any(route.matches(scope)[0] is Match.FULL for route in scope["app"].routes)


def _key(scope: Scope) -> str:
    keys = Headers(scope=scope).getlist(HEADER)
    if len(keys) > 1 or not 1 <= len(keys[0]) <= KEY_CHARS_MAX:
        raise Invalid(f"{HEADER}: expected one, of 1 to {KEY_CHARS_MAX} characters")
    return keys[0]


def _asked(scope: Scope, key: str, body: bytes) -> Asked:
    caller: Caller = scope.get(CALLER) or LOCAL
    headers = Headers(scope=scope)
    said = [scope["method"], scope["path"], scope["query_string"].decode("latin-1")]
    said += [headers.get(name, "") for name in SENT_WITH]
    request = hashlib.sha256(repr(said).encode())
    request.update(body)
    return Asked(
        identity=caller.sha256 or caller.name,
        key_sha256=hashlib.sha256(key.encode()).hexdigest(),
        request_sha256=request.hexdigest(),
    )


async def _body(receive: Receive) -> bytes | None:
    """The whole body; ``None`` where the connection ended before it had come."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _whole(body: bytes) -> Receive:
    is_given = False

    async def receive() -> Message:
        nonlocal is_given
        if is_given:  # who waits for more waits for the end of the connection, which changes nothing here
            await asyncio.Event().wait()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _answer(messages: list[Message]) -> Answer | None:
    """What is kept; ``None`` of an answer that settles nothing, so that the same may be tried again."""
    start, *rest = messages
    status: int = start["status"]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        return None
    body = b"".join(message.get("body", b"") for message in rest)
    headers = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"] if name in KEPT_HEADERS]
    return Answer(status=status, headers=tuple(headers), body=body if len(body) <= ANSWER_BYTES_MAX else None)


async def _send_again(answer: Answer, send: Send) -> None:
    body = answer.body or b""
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers]
    headers.append((REPLAYED.lower().encode(), b"true"))
    if answer.status != HTTPStatus.NO_CONTENT:
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
