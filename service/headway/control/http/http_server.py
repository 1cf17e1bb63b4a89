"""The server of the HTTP API, inside a loop that is running already."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import uvicorn

from headway.control.http.app import App
from headway.control.http.connections import Connections
from headway.control.http.strict_framing import strict
from headway.control.http.tls_handshakes import TlsHandshakes
from headway.control.listen_address import ListenAddress
from headway.errors import Misconfigured
from headway.local.throttle import Throttle

SETTING = "HEADWAY_HTTP_ADDRESS"
HTTP_SERVER_GRACE_S = 2  # for answers under way when it is asked to stop
BACKLOG = 1024
UVICORN_LOG = logging.getLogger("uvicorn.error")


class _Rarely(logging.Filter):
    """Lets a warning pass once a minute, with how often it came meanwhile: bytes that are no request cause one each."""

    def __init__(self) -> None:
        super().__init__()
        self._throttle = Throttle()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        if record.levelno != logging.WARNING:
            return True
        left_out = self._throttle.due(str(record.msg))
        if left_out:
            record.msg = f"{record.msg} ({left_out} more since the last line)"
        return left_out is not None


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the loop, and bounds the handshakes of TLS."""

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections of ``sockets``."""
        tls = self.config.ssl
        if tls is None:
            await super().startup(sockets)
            return
        # Uvicorn itself needs no start and no end of the app's: ``lifespan`` is off.
        serving = partial(
            cast("Any", self.config.http_protocol_class),
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        servers = [
            TlsHandshakes(each, tls=tls, connections=self._connections, serving=serving) for each in sockets or ()
        ]
        self.servers = cast("list[Any]", servers)
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves an app at an address, from ``start`` until ``stop``."""

    def __init__(
        self,
        app: App,
        *,
        address: ListenAddress,
        tls: ssl.SSLContext | None = None,
        connections: Connections | None = None,
    ) -> None:
        """``connections`` counts and bounds those of this server; ``None``: by the default bound."""
        self._app = app
        self._address = address
        config = uvicorn.Config(
            app,
            http="h11",  # whatever else is installed: it bounds headers, and ``Connections`` reads its state
            access_log=False,
            log_config=None,
            log_level="warning",
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,  # else whoever calls from loopback writes its own address: X-Forwarded-For
            timeout_graceful_shutdown=HTTP_SERVER_GRACE_S,
        )
        config.load()
        self._connections = connections or Connections()
        config.http_protocol_class = self._connections.bounded(strict(config.http_protocol_class))
        config.ssl = tls  # ours, and not of files: a renewed certificate is loaded into it
        self._server = _Server(config, self._connections)
        self._rarely = _Rarely()
        self._serving: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self.port = address.port
        """The port that is served, once it is."""

    async def start(self) -> None:
        """Bind the address; return when requests are taken.

        Raises:
            Misconfigured: the address cannot be bound.
        """
        bound = _bound(self._address)
        UVICORN_LOG.addFilter(self._rarely)
        self.port = bound.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=[bound]), name="http")
        self._sweeping = asyncio.create_task(self._connections.sweep_for_ever(), name="http connections")
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Take no more requests, let those under way end for a moment, then cut them off."""
        UVICORN_LOG.removeFilter(self._rarely)
        await self._app.close()
        self._server.should_exit = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._serving is not None:
            await self._serving


def _bound(address: ListenAddress) -> socket.socket:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            # Without this, a restart would have to wait for the last connections to be forgotten.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise Misconfigured(
            f"{SETTING}={address}: cannot listen there ({error.strerror or error}): "
            "stop what uses that port, or choose another"
        ) from error
    return listener
