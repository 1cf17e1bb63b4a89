"""A port before a server that does to its answers what a test says: late, in pieces, never, or encrypted."""

import select
import socket
import ssl
import threading
import time
from contextlib import suppress

from support.valkeys import HOST

PIECE_BYTES = 65_536
CONNECT_S = 5.0


class FaultyProxy:
    """Whoever connects is connected to the server at ``port``. What is set, holds at once, also of open connections."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self.late_s = 0.0
        """By how much each answer is late."""
        self.byte_s: float | None = None
        """The answers come byte by byte, so far apart."""
        self.is_silent = False
        """Nothing comes back any more."""
        self.to = port
        """Where the next connections lead."""
        self.tls = tls
        """Whose certificate the next connections see."""
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._ended = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def hang_up(self) -> None:
        """End the connections that are open."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # who accepts would wait on
        self._listener.close()
        self.hang_up()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self.tls is not None:
                client = self.tls.wrap_socket(client, server_side=True)
            server = socket.create_connection((HOST, self.to), CONNECT_S)
            server.settimeout(None)
        except OSError:  # it does not trust the certificate, or the server is away
            client.close()
            return
        client.settimeout(None)
        self._open += [client, server]
        with suppress(OSError):
            self._carry(client, server)
        for each in (client, server):
            each.close()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        """Until one of them hangs up. By one thread: an encrypted connection is no two threads'."""
        while True:
            readable, _, _ = select.select([client, server], [], [])
            if client in readable:
                data = client.recv(PIECE_BYTES)  # more than what TLS decrypts at once, so that nothing is left unseen
                if not data:
                    return
                server.sendall(data)
            if server in readable:
                data = server.recv(PIECE_BYTES)
                if not data:
                    return
                self._answer(client, data)

    def _answer(self, sink: socket.socket, data: bytes) -> None:
        self._ended.wait(self.late_s)
        if self.is_silent:
            return
        sent = 0
        while self.byte_s is not None and sent < len(data):
            sink.sendall(data[sent : sent + 1])
            sent += 1
            time.sleep(self.byte_s)
        sink.sendall(data[sent:])
