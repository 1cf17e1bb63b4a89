"""TLS at the HTTP port, agreed by connections that count from their first packet.

Where asyncio or uvloop agrees on it by themselves, a connection is known to nobody until that is done, and takes a
descriptor meanwhile: for a minute, if its client says nothing.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

from headway.control.http.connections import Connections

PIECE_BYTES = 16_384


class Handshake(asyncio.Protocol):
    """A connection that has not agreed on TLS yet. ``serving`` takes its place when it has."""

    cycle = None
    """As of a protocol of uvicorn's that has no request: what is waited for is the headers of one, by its time."""

    def __init__(self, serving: asyncio.Protocol, *, tls: ssl.SSLContext, connections: Connections) -> None:
        self._serving = serving
        self._tls = tls
        self._connections = connections
        self._early = bytearray()
        """What has come before somebody was there to take it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.pause_reading()  # until TLS reads
        self._agreeing = asyncio.get_running_loop().create_task(self._agree())
        self._connections.made(self)

    def data_received(self, data: bytes) -> None:
        # The client's first packet, where it was there before the connection was taken: uvloop reads it in spite of the
        # pause. Or a request in the packet that ends the handshake, before whoever waits for that goes on.
        self._early += data

    async def _agree(self) -> None:
        secured: Any = None
        first, self._early = bytes(self._early), bytearray()
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):  # of TLS, of time, of the connection: there is nobody to answer
                agreeing = loop.create_task(loop.start_tls(self.transport, self, self._tls, server_side=True))
                if first:
                    await self._told(first)
                secured = await agreeing
        finally:
            self._connections.lost(self)
        if secured is None or secured.is_closing() or self.transport.is_closing():
            self.transport.abort()
            return
        secured.set_protocol(self._serving)
        self._serving.connection_made(secured)
        if self._early:
            self._serving.data_received(bytes(self._early))

    async def _told(self, first: bytes) -> None:
        """Hand TLS what was read before it had the connection: else both ends would wait for the other."""
        agrees: Any = self
        while agrees is self and not self.transport.is_closing():
            await asyncio.sleep(0)
            agrees = self.transport.get_protocol()
        await asyncio.sleep(0)  # it is told of the connection first
        for at in range(0, len(first), PIECE_BYTES):
            piece = first[at : at + PIECE_BYTES]
            agrees.get_buffer(len(piece))[: len(piece)] = piece
            agrees.buffer_updated(len(piece))
