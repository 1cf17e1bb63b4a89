"""A whole `headway up` beside its own Postgres and broker, started and stopped; what it decides is asked of its API."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headway.cli.api_client import Api
from headway.cli.local.ports import free_address
from headway.cli.operator.apply import apply_profiles
from headway.errors import HeadwayError
from headway.scaling.profile import Profile
from headway.settings import Address
from headway.store.embedded import ensure_postgres, ensure_valkey

READY_WITHIN_S = 240.0  # two busy cores, a cold Java
STOP_WITHIN_S = 60.0
DECISIONS_A_PAGE = 200
BENCHMARKS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A running installation."""

    broker_url: str
    database_url: str
    url: str
    agent_pid: int
    folder: Path

    def apply(self, profile: Profile) -> None:
        """Let a pool be run."""
        apply_profiles(self.url, None, [profile])

    def decisions(self, pool: str) -> list[dict[str, Any]]:
        """Every stored decision of a pool, the oldest first."""
        found: list[dict[str, Any]] = []
        query: dict[str, str | int] = {"pool": pool, "limit": DECISIONS_A_PAGE}
        with Api(self.url, None) as api:
            while True:
                page = api.get("/v1/decisions", **query)
                found += page["decisions"]
                if not page["next"]:
                    return found[::-1]
                query["before"] = page["next"]

    def workers(self) -> list[tuple[str, str]]:
        """The pool and state of each worker, by the last report."""
        with Api(self.url, None) as api:
            return [(worker["pool"], worker["state"]) for worker in api.get("/v1/workers")["workers"]]

    def behaviour(self, pool: str) -> dict[str, Any]:
        """How the pool behaves, as the control plane has learned it."""
        with Api(self.url, None) as api:
            return api.get(f"/v1/pools/{pool}/behaviour")


HOST_FILE = """\
[templates.{name}]
argv = {argv}
ready_pattern = "Listening on"
drain_timeout_s = 60
resources = {{cpu_cores = 0.02, memory_bytes = "48MB"}}
"""


def _host_file(name: str, worker_class: str, broker_url: str, queues: Sequence[str]) -> str:
    words = ["-m", "rq.cli", "worker", "--url", broker_url, "-w", worker_class, "--disable-job-desc-logging", *queues]
    return HOST_FILE.format(name=name, argv=json.dumps([sys.executable, *words]))


@contextmanager
def installation(folder: Path, *, template: str, worker_class: str, queues: Sequence[str]) -> Iterator[System]:
    """`headway up` in ``folder``, with one template whose workers serve ``queues``; all of it ends at the end."""
    with installation_of(
        folder,
        host_file=lambda broker_url: _host_file(template, worker_class, broker_url, queues),
        profiles=lambda broker_url: f"brokers: {{live: '{broker_url}'}}\npools: {{}}\n",
    ) as system:
        yield system


@contextmanager
def installation_of(
    folder: Path, *, host_file: Callable[[str], str], profiles: Callable[[str], str]
) -> Iterator[System]:
    """`headway up` in ``folder``; all of it ends at the end.

    Args:
        folder: Made where it is missing.
        host_file: The text of ``host.toml`` for workers of the broker with this URL.
        profiles: That of ``profiles.yaml``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    valkey = ensure_valkey(folder / "valkey", is_persistent=False)
    postgres = ensure_postgres(folder / "postgres")
    try:
        (folder / "host.toml").write_text(host_file(valkey.url))
        (folder / "profiles.yaml").write_text(profiles(valkey.url))
        http, grpc = (free_address(Address(host="127.0.0.1", port=0)) for _ in range(2))
        process = _up(folder, postgres.url, http=http, grpc=grpc)
        try:
            url = f"http://{http}"
            _wait_ready(url, process, folder)
            yield System(
                broker_url=valkey.url,
                database_url=postgres.url,
                url=url,
                agent_pid=_agent_pid(process.pid),
                folder=folder,
            )
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_WITHIN_S)
            if process.poll() is None:
                process.kill()
    finally:
        for server in (postgres, valkey):
            server.release()
            server.wait_stopped(20.0)


def _up(folder: Path, database_url: str, *, http: Address, grpc: Address) -> "subprocess.Popen[bytes]":
    python_path = os.pathsep.join(filter(None, (str(BENCHMARKS), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "HEADWAY_DATABASE_URL": database_url, "PYTHONPATH": python_path}
    words = [
        *("--profiles", "profiles.yaml", "--host-file", "host.toml", "--data-dir", "data", "--stop-workers", "--plain"),
        *("--http-address", str(http), "--grpc-address", str(grpc)),
    ]
    with (folder / "up.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "headway", "up", *words],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_ready(url: str, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    until_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            raise SystemExit(f"`headway up` ended: {folder / 'up.log'} says why")
        if "dashboard:" in (folder / "up.log").read_text().split("\x00")[-1]:
            with suppress(HeadwayError), Api(url, None) as api:
                api.get("/v1/health")
                return
        time.sleep(0.5)
    raise SystemExit(
        f"`headway up` was not ready within {READY_WITHIN_S:g} s: {folder / 'up.log'} says how far it came"
    )


def _agent_pid(pid: int) -> int:
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if child.cmdline()[1:4] == ["-m", "headway", "agent"]:
                return child.pid
    raise SystemExit("`headway up` has started no agent")
