"""Folders for embedded servers, and owners that are processes of their own, to be killed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway.store.embedded import ensure_postgres
from headway.store.embedded.server_folder import prepared
from headway.store.embedded.waiting import Deadline

OWN = """
import json, sys
from pathlib import Path
from headway.errors import HeadwayError
from headway.store.embedded import ensure_postgres, ensure_valkey
try:
    server = (ensure_postgres if sys.argv[1] == "postgres" else ensure_valkey)(Path(sys.argv[2]), deadline_s=30)
except HeadwayError as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    sys.exit(1)
print(json.dumps({"url": server.url, "pid": server.pid}), flush=True)
sys.stdin.read()
"""


class Owner:
    """A process that owns the server of a folder until it is asked to end, or killed."""

    def __init__(self, kind: str, folder: Path, *, python: str = sys.executable, before=(), **started_as) -> None:
        self.process = subprocess.Popen(
            [*before, python, "-c", OWN, kind, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **started_as,
        )

    def said(self) -> dict:
        return json.loads(self.process.stdout.readline() or "{}")

    @property
    def pid(self) -> int:
        return self.said()["pid"]

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.end()


@pytest.fixture
def own(folder, public_folder) -> Iterator[Callable[..., Owner]]:
    # The folders are asked for so that they outlast the owners.
    owners = []

    def start(*args, **kwargs) -> Owner:
        owners.append(Owner(*args, **kwargs))
        return owners[-1]

    yield start
    for owner in owners:
        owner.kill()


@pytest.fixture
def folder(data_folder) -> Iterator[Path]:
    """A place for a new server. Whatever the test leaves running there is waited for: its owners are gone by then."""
    path = Path(tempfile.mkdtemp(prefix="server-", dir=data_folder))
    path.chmod(0o711)
    yield path / "data"
    _remove(path)


@pytest.fixture(scope="session")
def _initialised(data_folder) -> Path:
    path = data_folder / "initialised"
    assert ensure_postgres(path, is_durable=False).wait_stopped()
    return path


@pytest.fixture
def postgres_folder(folder, _initialised) -> Path:
    """The folder of a Postgres whose database is made already, which saves a test half a second."""
    shutil.copytree(_initialised, folder)
    return folder


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("postgres", "valkey")])
def kind(request) -> str:
    return request.param


@pytest.fixture
def server_folder(kind, request) -> Path:
    """A place for a server of this kind, and quick to start."""
    return request.getfixturevalue("postgres_folder" if kind == "postgres" else "folder")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter."""
    base = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="headway-public-", dir=base if os.access(base, os.W_OK) else None))
    path.chmod(0o755)
    yield path
    _remove(path)


def guardian_pid(path: Path) -> int:
    return prepared(path).kept().guardian_pid


def _remove(path: Path) -> None:
    # Not by glob, which fails where a server that ends removes a folder meanwhile.
    servers = [prepared(Path(folder)) for folder, _, files in os.walk(path) if "owners.lock" in files]
    assert Deadline(60).sees(lambda: not any(server.is_guarded() for server in servers)), f"a server runs in {path}"
    shutil.rmtree(path, ignore_errors=True)
