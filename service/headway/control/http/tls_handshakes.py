"""Accepting connections that begin with TLS: each counts, and has its time, from the moment it is accepted.

A server of ``loop.create_server`` shows a connection to nobody before its handshake has ended, and waits a minute for
that: descriptors that no bound counts. Here the listening socket is read, and the loop is handed what was accepted.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headway.control.http.connections import HEADERS_S, Connections

HANDSHAKES_AT_ONCE = 16  # before whoever else waits for the loop has a turn
PAUSE_S = 1.0  # without a descriptor left, as asyncio's own servers do
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger(__name__)


class TlsHandshakes:
    """Agrees on TLS with whoever connects, from its creation until ``close``. Uvicorn takes it for a server."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        tls: ssl.SSLContext,
        connections: Connections,
        serving: Callable[[], Any],
    ) -> None:
        self._listener = listener
        self._tls = tls
        self._connections = connections
        self._serving = serving
        """Makes the protocol of a connection. A renewed certificate is loaded into ``tls``."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._pausing: asyncio.TimerHandle | None = None
        listener.settimeout(0.0)
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept no more, and end the handshakes under way. The listening socket stays open."""
        if self._pausing is not None:
            self._pausing.cancel()
        self._loop.remove_reader(self._listener)
        for task in self._under_way:
            task.cancel()

    async def wait_closed(self) -> None:
        """Return when no handshake is under way. Call ``close`` before."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    def _accept(self) -> None:
        for _ in range(HANDSHAKES_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # nobody is there any longer
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                log.warning("no connection accepted for %g s: %s", PAUSE_S, error.strerror)
                self._loop.remove_reader(self._listener)
                self._pausing = self._loop.call_later(PAUSE_S, self._loop.add_reader, self._listener, self._accept)
                return
            self._begin(accepted)

    def _begin(self, accepted: socket.socket) -> None:
        accepted.settimeout(0.0)
        protocol = self._serving()
        task = self._loop.create_task(self._agree(accepted, protocol))
        self._under_way.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._under_way.discard(task)
            if protocol.transport is None:  # no agreement: a task that was ended before it began has closed nothing
                accepted.close()
                self._connections.lost(protocol)

        task.add_done_callback(ended)
        self._connections.accepted(protocol, end=task.cancel)

    async def _agree(self, accepted: socket.socket, protocol: Any) -> None:
        with suppress(OSError):  # of TLS, of time, of the connection: there is nobody to answer
            await self._loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._tls, ssl_handshake_timeout=HEADERS_S
            )
