"""A bound on how long an exchange over a socket may take: a peer that sends a byte now and then meets no timeout."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def ended_after(limit_s: float, socket_now: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Shut down the socket that ``socket_now`` returns after ``limit_s``; whoever reads from it then sees its end."""

    def end() -> None:
        found = socket_now()
        if found is not None:
            with suppress(OSError):
                # Not the method of a TLS socket, which would take the session from under whoever reads.
                socket.socket.shutdown(found, socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
