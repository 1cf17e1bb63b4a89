"""A connection that can be cut as a network is: nobody notices that the other is gone."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PIECE_BYTES = 65_536
POLL_S = 0.2


class Proxy:
    """Passes on what comes to ``address``, until it is cut: then it takes everything and passes on nothing."""

    def __init__(self, towards: tuple[str, int]) -> None:
        self._towards = towards
        self._whole = threading.Event()
        self._whole.set()
        self._over = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"

    def cut(self) -> None:
        """From now on nothing comes through, in either direction."""
        self._whole.clear()

    def mend(self) -> None:
        """New connections come through; those from before stay dead, as after a long partition."""
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()
        self._whole.set()

    def run(self) -> None:
        """Take connections until it is closed."""
        while not self._over.is_set():
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self._sockets.append(near)
            if not self._whole.is_set():
                continue
            try:
                far = socket.create_connection(self._towards, timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            self._sockets.append(far)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def close(self) -> None:
        self._over.set()
        self._whole.set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for each in self._sockets:
            each.close()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := one.recv(PIECE_BYTES):
                if not self._whole.is_set():
                    self._over.wait()  # it has taken the piece, as a network does that loses it
                    return
                other.sendall(piece)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)


@contextmanager
def proxy(towards: tuple[str, int]) -> Iterator[Proxy]:
    """A proxy that runs until the block ends."""
    made = Proxy(towards)
    threading.Thread(target=made.run, daemon=True).start()
    try:
        yield made
    finally:
        made.close()
