"""Unary gRPC calls over HTTP/2 for a crowd of callers in one process, at a tenth of what a gRPC client would take.

A crowd must not be what is measured. So a call here is a frame of headers, written once a connection and then named by
an index as gRPC's own clients do, and a frame of data; of an answer only the message and the status are read.
"""

import asyncio
import random
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from grpc import StatusCode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 0x1
END_HEADERS = 0x4
INITIAL_WINDOW_BYTES = 65_535
LARGEST = 2**31 - 1
MAX_CONCURRENT_STREAMS = 3  # of the settings
REFUSED_STREAM, CANCEL = 7, 8
STATUSES = {code.value[0]: code for code in StatusCode}
# gRPC's own pauses between tries to connect, with the agent's bounds.
CONNECT_PAUSE_S, CONNECT_PAUSE_MAX_S, CONNECT_FACTOR, CONNECT_JITTER = 0.2, 4.0, 1.6, 0.2
CONNECT_WITHIN_S = 20.0  # gRPC's own bound, from the first packet to the server's settings


class Failed(Exception):
    """A call that brought no answer."""

    def __init__(self, code: StatusCode, details: str = "") -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code


class NotTaken(Exception):
    """A call that the server refused before it did anything for it: it may be made again."""


class Call:
    """One call that is under way."""

    __slots__ = ("answer", "message", "timer")

    def __init__(self, answer: asyncio.Future[bytes]) -> None:
        self.answer = answer
        self.message = b""
        self.timer: asyncio.TimerHandle | None = None


class Channel:
    """The connections to one server: one more is made whenever the server allows no further call on those there are.

    While a try to connect has just failed, calls that would need a new connection fail immediately.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._wires: list[Wire] = []
        self._connecting: asyncio.Task[None] | None = None
        self._pause_s, self._next_try_s = CONNECT_PAUSE_S, 0.0

    @property
    def connections(self) -> int:
        """How many connections take calls now."""
        return sum(not wire.is_closed for wire in self._wires)

    async def call(self, path: str, message: bytes, *, timeout_s: float) -> bytes:
        """The answer to ``message``. Raises ``Failed``."""
        refused: list[Wire] = []
        while True:
            wire = next((wire for wire in self._wires if wire.has_room and wire not in refused), None)
            if wire is None:
                await self._connected()
                continue
            try:
                return await wire.call(path, message, timeout_s=timeout_s)
            except NotTaken:  # a busy server counts a call for a while after its answer has come
                refused.append(wire)

    def close(self) -> None:
        """Hang up."""
        for wire in self._wires:
            wire.transport.close()

    async def _connected(self) -> None:
        """Return once there is one more connection, which calls that wait for the same share."""
        loop = asyncio.get_running_loop()
        if self._connecting is None:
            if loop.time() < self._next_try_s:
                raise Failed(StatusCode.UNAVAILABLE, "connecting failed just now")
            self._connecting = loop.create_task(self._connect())
        try:
            await asyncio.shield(self._connecting)
        except OSError as error:
            raise Failed(StatusCode.UNAVAILABLE, str(error)) from error

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                wire = await self._ready_wire()
        except OSError:
            self._next_try_s = loop.time() + self._pause_s * random.uniform(1 - CONNECT_JITTER, 1 + CONNECT_JITTER)
            self._pause_s = min(CONNECT_PAUSE_MAX_S, self._pause_s * CONNECT_FACTOR)
            raise
        finally:
            self._connecting = None
        self._pause_s = CONNECT_PAUSE_S
        self._wires = [*(each for each in self._wires if not each.is_lost), wire]

    async def _ready_wire(self) -> "Wire":
        host, port = self._address.split(":")
        _, wire = await asyncio.get_running_loop().create_connection(lambda: Wire(self._address), host, int(port))
        try:
            await wire.wait_ready()
        except (OSError, asyncio.CancelledError):  # the latter is what a timeout is here
            wire.transport.close()
            raise
        return wire


class Frame(NamedTuple):
    """A frame as it came."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class Wire(asyncio.Protocol):
    """One HTTP/2 connection. No call may be made before the server's first settings have come."""

    def __init__(self, authority: str) -> None:
        self.is_closed = self.is_lost = False
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._streams_max = LARGEST
        self._headers = HeaderTable(authority)
        self._calls: dict[int, Call] = {}
        self._stream = 1
        self._buffer = b""
        self._window_bytes = INITIAL_WINDOW_BYTES
        self._waiting: deque[bytes] = deque()

    @property
    def has_room(self) -> bool:
        """Whether the server takes one more call on this connection."""
        return not self.is_closed and len(self._calls) < self._streams_max

    async def wait_ready(self) -> None:
        """Return once the server has said how many calls it takes. Raises ``ConnectionError`` if it takes none."""
        await self._ready
        if self._streams_max < 1:
            raise ConnectionRefusedError("the server allows no call on a connection")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say how we want to be spoken to: headers in full each time, and as much at once as there is."""
        self.transport: Any = transport  # uvloop's is none of asyncio's classes
        settings = struct.pack(">HIHIHI", 1, 0, 2, 0, 4, LARGEST)
        window = struct.pack(">I", LARGEST - INITIAL_WINDOW_BYTES)
        self.transport.write(PREFACE + frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, window))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what waits for an answer."""
        self.is_closed = self.is_lost = True
        if not self._ready.done():
            self._ready.set_exception(ConnectionResetError(f"the connection broke: {exc}"))
        for stream in list(self._calls):
            self._fail(stream, StatusCode.UNAVAILABLE, f"the connection broke: {exc}")

    async def call(self, path: str, message: bytes, *, timeout_s: float) -> bytes:
        """The answer to ``message``. Raises ``Failed`` or ``NotTaken``."""
        stream, self._stream = self._stream, self._stream + 2
        call = self._calls[stream] = Call(self._loop.create_future())
        call.timer = self._loop.call_later(timeout_s, self._expire, stream)
        headers = frame(HEADERS, END_HEADERS, stream, self._headers.block(path, timeout_s=timeout_s))
        body = frame(DATA, END_STREAM, stream, struct.pack(">BI", 0, len(message)) + message)
        if self._waiting or len(body) > self._window_bytes:
            self._waiting.append(body)
            self.transport.write(headers)
        else:
            self._window_bytes -= len(body)
            self.transport.write(headers + body)
        return await call.answer

    def data_received(self, data: bytes) -> None:
        """Take in whole frames; what is left of one waits for the rest."""
        answers = b"".join([self._answer_to(each) for each in self._frames(data)])
        if answers:
            self.transport.write(answers)

    def _answer_to(self, came: Frame) -> bytes:
        """What is to be sent because of a frame."""
        if came.kind == DATA:
            if came.stream in self._calls:
                self._calls[came.stream].message += came.payload
        elif came.kind == HEADERS:
            if came.flags & END_STREAM:
                self._ended(came.stream, came.payload)
        elif came.kind == RST_STREAM:
            self._reset(came.stream, *struct.unpack(">I", came.payload))
        elif came.stream == 0:
            return self._of_connection(came)
        return b""

    def _of_connection(self, came: Frame) -> bytes:
        if came.kind == WINDOW_UPDATE:
            self._window_bytes += struct.unpack(">I", came.payload)[0]
            return self._allowed()
        if came.kind == GOAWAY:
            self.is_closed = True
        if came.flags & ACK or came.kind not in {PING, SETTINGS}:
            return b""
        if came.kind == SETTINGS:
            self._take_settings(came.payload)
        return frame(came.kind, ACK, 0, came.payload if came.kind == PING else b"")

    def _take_settings(self, payload: bytes) -> None:
        for name, value in struct.iter_unpack(">HI", payload):
            if name == MAX_CONCURRENT_STREAMS:
                self._streams_max = value
        if not self._ready.done():
            self._ready.set_result(None)

    def _frames(self, data: bytes) -> Iterator[Frame]:
        buffer = self._buffer + data if self._buffer else data
        at, size = 0, len(buffer)
        while size - at >= 9:
            end = at + 9 + int.from_bytes(buffer[at : at + 3], "big")
            if end > size:
                break
            stream = int.from_bytes(buffer[at + 5 : at + 9], "big")
            yield Frame(buffer[at + 3], buffer[at + 4], stream, buffer[at + 9 : end])
            at = end
        self._buffer = buffer[at:]

    def _allowed(self) -> bytes:
        allowed = b""
        while self._waiting and len(self._waiting[0]) <= self._window_bytes:
            self._window_bytes -= len(self._waiting[0])
            allowed += self._waiting.popleft()
        return allowed

    def _ended(self, stream: int, trailers: bytes) -> None:
        _, _, rest = trailers.partition(b"grpc-status")
        code = int(rest[1 : 1 + rest[0]]) if rest else StatusCode.UNKNOWN.value[0]
        if code != 0:
            self._fail(stream, STATUSES[code], repr(trailers))
        elif (call := self._end(stream)) is not None:
            call.answer.set_result(call.message[5:])

    def _expire(self, stream: int) -> None:
        self.transport.write(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))
        self._fail(stream, StatusCode.DEADLINE_EXCEEDED, "no answer in time")

    def _reset(self, stream: int, reason: int) -> None:
        if reason == REFUSED_STREAM:
            self._raise(stream, NotTaken())
        else:
            self._fail(stream, StatusCode.CANCELLED if reason == CANCEL else StatusCode.UNAVAILABLE, "reset")

    def _fail(self, stream: int, code: StatusCode, details: str) -> None:
        self._raise(stream, Failed(code, details))

    def _raise(self, stream: int, error: Exception) -> None:
        if (call := self._end(stream)) is not None:
            call.answer.set_exception(error)

    def _end(self, stream: int) -> Call | None:
        """The call of the stream, if somebody still waits for it."""
        call = self._calls.pop(stream, None)
        if call is None:
            return None
        if call.timer is not None:
            call.timer.cancel()
        return None if call.answer.done() else call


class HeaderTable:
    """The headers of requests on one connection: each sent in full the first time, later by its number."""

    def __init__(self, authority: str) -> None:
        self._sent_fields: dict[tuple[bytes, bytes], int] = {}
        self._same = (
            (b":authority", authority.encode()),
            (b"content-type", b"application/grpc"),
            (b"user-agent", b"grpc-python-asyncio/benchmark"),
            (b"te", b"trailers"),
            (b"grpc-accept-encoding", b"identity, deflate, gzip"),
        )

    def block(self, path: str, *, timeout_s: float) -> bytes:
        """The headers of one request."""
        fields = [b"\x83\x86", self._field((b":path", path.encode()))]  # POST and http have numbers of their own
        fields += [self._field(each) for each in self._same]
        fields.append(b"\x00" + _text(b"grpc-timeout") + _text(f"{timeout_s:.0f}S".encode()))
        return b"".join(fields)

    def _field(self, field: tuple[bytes, bytes]) -> bytes:
        if field in self._sent_fields:  # the newest has the number 62
            return bytes([0x80 | (62 + len(self._sent_fields) - 1 - self._sent_fields[field])])
        self._sent_fields[field] = len(self._sent_fields)
        return b"\x40" + _text(field[0]) + _text(field[1])


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def _text(value: bytes) -> bytes:
    assert len(value) < 127
    return bytes([len(value)]) + value
