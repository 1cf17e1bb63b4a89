"""A way to a control plane that comes from another address of loopback than all others of a test."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

OTHER_ADDRESS = "127.0.0.3"


@contextmanager
def relay_from_other_address(address: str) -> Iterator[str]:
    """Where to call to reach ``address`` from ``OTHER_ADDRESS``, over one connection, until the end of the block."""
    host, _, port = address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):  # the block has ended
                near, _ = server.accept()
                far = socket.create_connection((host, int(port)), source_address=(OTHER_ADDRESS, 0))
                back = threading.Thread(target=_copy, args=(far, near), daemon=True)
                back.start()
                _copy(near, far)
                back.join()
                near.close()
                far.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
