"""The embedded Postgres and Valkey, open to the network of a lab: the product's own are reached by sockets only."""

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from headway.store.embedded.owned_server import Server, ensure
from headway.store.embedded.postgres import Postgres
from headway.store.embedded.run_as import Identity
from headway.store.embedded.server_folder import Folder
from headway.store.embedded.valkey import Valkey
from headway.store.embedded.waiting import Deadline
from lab.network import Network

DEADLINE_S = 180.0
POSTGRES_PORT, VALKEY_PORT = 5432, 6379


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPostgres(Postgres):
    """Listens on one address and trusts whoever comes there: only the lab does."""

    address: str

    def prepare(self, folder: Folder, identity: Identity, deadline: Deadline) -> None:
        super(OpenPostgres, self).prepare(folder, identity, deadline)
        access = folder.root / self.home / "pg_hba.conf"
        rule = "host all all 0.0.0.0/0 trust\n"
        if not access.read_text().startswith(rule):
            access.write_text(rule + access.read_text())

    def argv(self, folder: Folder, identity: Identity, runtime_dir: Path) -> list[str]:
        argv = super(OpenPostgres, self).argv(folder, identity, runtime_dir)
        return [*argv, "-c", f"listen_addresses={self.address}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenValkey(Valkey):
    """Listens on one address and trusts whoever comes there: only the lab does."""

    address: str

    def argv(self, folder: Folder, identity: Identity, runtime_dir: Path) -> list[str]:
        argv = super(OpenValkey, self).argv(folder, identity, runtime_dir)
        return [*argv, "--port", str(VALKEY_PORT), "--bind", self.address, "--protected-mode", "no"]


class Database:
    """Postgres on a host of its own."""

    def __init__(self, folder: Path, network: Network) -> None:
        self.name = "db"
        self._network = network
        self._folder = folder / "postgres"
        self._backup = folder / "backup"
        self._program = OpenPostgres(is_durable=True, on_progress=lambda _: None, address=network.join(self.name))
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """For those on the network."""
        return f"postgresql://headway@{self._program.address}:{POSTGRES_PORT}/headway"

    @property
    def near_url(self) -> str:
        """For the test, whom no parting concerns."""
        assert self._server is not None
        return self._server.url

    @property
    def has_backup(self) -> bool:
        return self._backup.exists()

    def start(self) -> None:
        self._server = self._network.inside(
            self.name, lambda: ensure(self._program, self._folder, deadline_s=DEADLINE_S)
        )

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            assert server.wait_stopped()

    def crash(self) -> None:
        """An immediate stop, as a crash is."""
        assert self._server is not None
        os.kill(self._server.pid, signal.SIGQUIT)
        self.stop()

    def back_up(self) -> None:
        """Copy the data of a server that is stopped."""
        assert self._server is None
        shutil.rmtree(self._backup, ignore_errors=True)
        shutil.copytree(self._folder / self._program.home, self._backup, symlinks=True)

    def restore(self) -> None:
        """Put the backup in the place of the data of a server that is stopped. The backup is kept."""
        assert self._server is None
        home = self._folder / self._program.home
        shutil.rmtree(home)
        shutil.copytree(self._backup, home, symlinks=True)


class Broker:
    """Valkey on a host of its own."""

    def __init__(self, folder: Path, network: Network) -> None:
        self._network = network
        self._folder = folder / "valkey"
        self._address = network.join("broker")
        self.address = f"{self._address}:{VALKEY_PORT}"
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """For those on the network."""
        return f"redis://{self.address}/0"

    @property
    def near_url(self) -> str:
        """For the test, whom no parting concerns."""
        assert self._server is not None
        return self._server.url

    def start(self) -> None:
        program = OpenValkey(is_persistent=False, address=self._address)
        self._server = self._network.inside("broker", lambda: ensure(program, self._folder, deadline_s=DEADLINE_S))

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            assert server.wait_stopped()
