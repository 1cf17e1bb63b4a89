"""Plain sockets, as somebody uses them who speaks no whole protocol."""

import socket


def is_ended(each: socket.socket) -> bool:
    """Whether the other end hangs up within the socket's timeout."""
    try:
        while each.recv(65_536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True
