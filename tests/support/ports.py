"""Ports for servers that get theirs and bind it later."""

import itertools
import os
import socket
from contextlib import closing

FIRST, COUNT = 10_000, 20_000  # below those that the kernel gives away by itself, or one may be gone meanwhile
PROCESSES_APART = 97  # processes with neighbouring pids, as tests that run side by side have, begin so far apart

_numbers = itertools.count(os.getpid() * PROCESSES_APART)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has, and that neither this process nor one beside it gets again soon."""
    return next(port for number in _numbers if _is_free(port := FIRST + number % COUNT))


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
