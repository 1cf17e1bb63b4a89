"""TLS at the HTTP port, in both of asyncio's loops: a control plane runs in uvloop's."""

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headway.control.certificates import Certificates
from headway.control.http.connections import Connections
from headway.control.http.handshake import Handshake
from headway.control.keys import make_ca, make_server, write_pair


class Answers(asyncio.Protocol):
    """Answers whatever comes, as uvicorn's protocol does requests."""

    cycle = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"heard " + data)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_packet_that_is_there_before_the_connection_is_taken_is_not_lost(tmp_path: Path, run: Any) -> None:
    """A control plane that is busy for a moment takes a connection when its client has long said the first word."""
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    write_pair(make_server(make_ca("x"), ["x"]), certificate=certificate, key=key, is_replacing=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)

    def step(act: Any, connection: socket.socket) -> Any:
        while True:
            try:
                done = act()
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
            else:
                connection.sendall(outgoing.read())
                return done

    def talk(connection: socket.socket) -> bytes:
        step(client.do_handshake, connection)
        client.write(b"hello")
        return bytes(step(client.read, connection))

    async def serve() -> bytes:
        tls, connections = Certificates(certificate, key).context, Connections(10)
        await asyncio.get_running_loop().create_server(
            lambda: Handshake(Answers(), tls=tls, connections=connections), sock=listener
        )
        return await asyncio.to_thread(talk, connection)

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=20) as connection,
    ):
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        connection.sendall(outgoing.read())
        assert run(serve()) == b"heard hello"
