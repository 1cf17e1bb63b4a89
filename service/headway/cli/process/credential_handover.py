"""What a parent hands a role that it starts: credentials, by a socket, for the kernel shows an environment to its user.

The role first makes itself unreadable, then asks. A socket, unlike a pipe or a file, cannot be opened through /proc.
"""

import json
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress

from headway.cli.process.process_privacy import CREDENTIALS, make_unreadable, take_over

HANDED_FD = "HEADWAY_HANDED_FD"
ASKED = b"?"
HANDOVER_TAKEN_WITHIN_S = 60.0  # a cold disk, two busy cores: from its start to its first line


class CredentialHandover:
    """Hands one child what of ``env`` is a credential. ``env`` and ``fd`` are what the child is started with."""

    def __init__(self, env: Mapping[str, str]) -> None:
        secret = {name: value for name, value in env.items() if name in CREDENTIALS}
        self.env = {name: value for name, value in env.items() if name not in secret}
        self.fd: int | None = None
        self._theirs: socket.socket | None = None
        if not secret:
            return
        ours, self._theirs = socket.socketpair()
        self.fd = self._theirs.fileno()
        self.env[HANDED_FD] = str(self.fd)
        threading.Thread(target=_answer, args=[ours, json.dumps(secret).encode()], name="hand", daemon=True).start()

    def close(self) -> None:
        """Once the child is started, or could not be: its end is its own."""
        if self._theirs is not None:
            self._theirs.close()


def _answer(ours: socket.socket, secrets: bytes) -> None:
    with ours, suppress(OSError):  # a child that has ended asks for nothing
        ours.settimeout(HANDOVER_TAKEN_WITHIN_S)
        if ours.recv(1) == ASKED:
            ours.sendall(secrets)


def take() -> None:
    """Put what the parent hands into this process's own variables, from which settings are read."""
    number = os.environ.pop(HANDED_FD, "")
    if not number:
        return
    make_unreadable()
    with socket.socket(fileno=int(number)) as handed:
        handed.sendall(ASKED)
        secrets = json.loads(b"".join(iter(lambda: handed.recv(65_536), b"")))
    take_over(secrets)
