"""`headway up` as a user runs it, in a folder with profiles.yaml and host.toml, and what its commands answer."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from support.ports import free_port
from support.waiting import eventually

QUICK = "-XX:TieredStopAtLevel=1"  # it ends before Java's thorough compiler pays
READY_WITHIN_S = 300.0
ASKS_EACH_S = 0.5  # each answer is 10 ms of a processor
ENDS_WITHIN_S = 90.0


class RunningUp:
    """One that serves."""

    def __init__(self, folder: Path, env: Mapping[str, str], url: str) -> None:
        self._folder = folder
        self._env = dict(env)
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)
        self.url = url

    def ask(self, path: str, **query: str | int) -> dict[str, Any]:
        """What the control plane answers."""
        answer = self._client.get(path, params=query)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def headway(self, *words: str) -> str:
        """What a command prints."""
        done = self._run(words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *words: str) -> str:
        """What a command says that is refused."""
        done = self._run(words)
        assert done.returncode == 2, done.stdout
        return done.stderr

    def _run(self, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "headway", *words],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def workers(self, pool: str) -> set[int]:
        """The process ids of the pool's workers, by the last report."""
        return set(self.starts_s(pool))

    def starts_s(self, pool: str) -> dict[int, float]:
        """When each of the pool's workers was started, by its process id, by the last report."""
        return {
            each["pid"]: each["started_at_s"]
            for host in self.ask("/v1/hosts")["hosts"]
            for each in host["workers"]
            if each["pool"] == pool and each["pid"]
        }

    def started(self, pool: str) -> int:
        """How many workers of the pool were started so far."""
        log = (self._folder / ".headway" / "logs" / "agent.log").read_text()
        return sum(f"started pool={pool} " in line for line in log.splitlines())

    def pid_of(self, role: str) -> int:
        """The process id of a child, as ``agent`` or ``control``."""
        rows = json.loads((self._folder / ".headway" / "children.json").read_text())
        return int(next(row["pid"] for row in rows if row["name"] == role))

    def decision(self, pool: str) -> dict[str, Any]:
        """The newest; nothing before the first."""
        rows: list[dict[str, Any]] = self.ask("/v1/decisions", pool=pool, limit=1)["decisions"]
        return rows[0]["decision"] if rows else {}


@contextmanager
def running_up(
    folder: Path, env: Mapping[str, str], *, words: Sequence[str] = ("--stop-workers",)
) -> Iterator[RunningUp]:
    """Everything on this machine until the end of the block; then its workers end as well."""
    http, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
    whole = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
        "JAVA_TOOL_OPTIONS": QUICK,
        **env,
        "HEADWAY_HTTP_ADDRESS": http,
        "HEADWAY_GRPC_ADDRESS": grpc,
        "HEADWAY_URL": f"http://{http}",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", "up", "--plain", *words],
        cwd=folder,
        env=whole,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
    reader.start()
    try:
        eventually(
            lambda: "Ctrl-C ends Headway" in "".join(said) or process.poll() is not None, within_s=READY_WITHIN_S
        )
        assert process.poll() is None, "".join(said)
        yield RunningUp(folder, whole, f"http://{http}")
    finally:
        process.terminate()
        try:
            process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(5)
