"""What earlier versions left behind, each in a folder of ``states/``, and installations that go on with a copy.

``record.py`` makes such a state. Here its archive is unpacked elsewhere, beside a broker with the recorded jobs. One
with ``began_at_commit`` was recorded there; the version at ``commit`` then brought its tables up to its own.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import redis
from rq import Queue

from headway.store.embedded import dump, ensure_postgres, ensure_valkey
from support.archives import open_tar
from support.ports import free_port

STATES = Path(__file__).with_name("states")
QUICK = "-XX:TieredStopAtLevel=1"  # ended before Java's thorough compiler pays
WAITS_S = 240.0
STOP_WITHIN_S = 90.0

TOTALS = """
with progress as (select minutes_until_s, hours_until_s from rollup_progress),
parts as (
    select queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs from rollup_hours, progress
    where job_class = '' and bucket_s < hours_until_s
    union all
    select queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs from rollup_minutes, progress
    where job_class = '' and bucket_s >= hours_until_s and bucket_s < minutes_until_s
    union all
    select queue, arrived_jobs, started_jobs, finished_jobs, failed_jobs from queue_buckets, progress
    where bucket_s >= minutes_until_s
)
select queue, sum(arrived_jobs)::int, sum(started_jobs)::int, sum(finished_jobs + failed_jobs)::int
from parts group by queue order by queue
"""


@dataclass(frozen=True, slots=True)
class State:
    """What one version left."""

    folder: Path

    @property
    def facts(self) -> dict[str, Any]:
        """When and where it was recorded, its tokens and jobs, and what its API said."""
        found: dict[str, Any] = json.loads((self.folder / "recorded.json").read_text())
        return found

    def unpack(self, root: Path) -> None:
        """Put its files below ``root``; the database is still a dump, in ``backup.tar``."""
        with open_tar(self.folder / "state.tar.xz") as packed:
            packed.extractall(root)

    def dump(self, root: Path) -> Path:
        """The database's dump, of the files that were put below ``root``."""
        with open_tar(root / "backup.tar") as backup:
            backup.extract("database.dump", root)
        return root / "database.dump"


def states() -> list[State]:
    """Every recorded state, the oldest first."""
    found = (State(file.parent) for file in STATES.glob("*/recorded.json"))
    return sorted(found, key=lambda state: state.facts["recorded_at_s"])


class Installation:
    """A `headway up` of this version in the recorded folder."""

    def __init__(self, state: State, root: Path) -> None:
        self.root, self.data = root, root / ".headway"
        self.facts = state.facts
        http, grpc = free_port(), free_port()
        self.url = f"http://127.0.0.1:{http}"
        state.unpack(root)
        _load_database(state, root)
        _move(self.data / "checkpoint", was=self.facts["root"], now=str(root))
        self._broker = ensure_valkey(root / "broker", is_persistent=True)
        self.redis = redis.Redis.from_url(self._broker.url)
        profiles = root / "profiles.yaml"
        profiles.write_text(re.sub(r"(?<=redis: ').*(?=')", self._broker.url, profiles.read_text()))
        (root / "token").write_text(self.facts["tokens"]["admin"])
        (root / "token").chmod(0o600)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
        self.env |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "RQ_REDIS_URL": self._broker.url}
        self.env |= {"HEADWAY_URL": self.url, "HEADWAY_TOKEN_FILE": str(root / "token"), "JAVA_TOOL_OPTIONS": QUICK}
        self.env |= {"HEADWAY_HTTP_ADDRESS": f"127.0.0.1:{http}", "HEADWAY_GRPC_ADDRESS": f"127.0.0.1:{grpc}"}
        self._up: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self.jobs: dict[str, int] = dict(self.facts["jobs"])
        with self.database() as connection:
            self._counted = _totals(connection)
        self._uncounted: dict[str, list[int]] = dict(self.facts["uncounted"])

    # --- the processes -----------------------------------------------------------------------------------------------

    def start_worker(self) -> int:
        """Start a worker that ran when the state was recorded, as its agent did. Returns its pid.

        Only what is of another boot is written into the agent's record: the process, and the seconds since the boot.
        """
        (template,) = (line for line in (self.root / "host.toml").read_text().splitlines() if '"mail"' in line)
        argv = json.loads(template.partition("= ")[2])
        file = self.data / "agent" / "workers.json"
        record = json.loads(file.read_text())
        (row,) = (row for row in record["workers"] if row["worker_id"] == self.facts["marks"]["HEADWAY_WORKER_ID"])
        with (self.data / "agent" / "workers" / f"{row['worker_id']}.log").open("ab") as log:
            worker = subprocess.Popen(
                argv, env={**self.env, **self.facts["marks"]}, stdout=log, stderr=log, start_new_session=True
            )
        self._workers.append(worker)
        row["pid"] = worker.pid
        row["started_ticks"] = int(Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[19])
        row["life"] |= dict.fromkeys(("started_at_s", "since_s"), row["started_ticks"] / os.sysconf("SC_CLK_TCK"))
        record["boot_id"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        file.write_text(json.dumps(record))
        return worker.pid

    def start(self) -> None:
        """Start everything, and return once it is ready."""
        with (self.root / "up.log").open("wb") as log:
            self._up = subprocess.Popen(
                [sys.executable, "-m", "headway", "up", "--plain"],
                cwd=self.root,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.until(lambda: "logs: " in self.printed("up"))

    def stop(self) -> None:
        """End everything, workers included. Nothing of it is left."""
        if self._up is not None and self._up.poll() is None:
            self._up.terminate()
            try:
                self._up.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._up.kill()
                self._up.wait()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("RQ_REDIS_URL") == self._broker.url:
                    process.send_signal(signal.SIGKILL)
        for worker in self._workers:
            worker.wait()
        self.redis.close()
        assert self._broker.wait_stopped()

    def headway(self, *words: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            [sys.executable, "-m", "headway", *words],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def printed(self, name: str) -> str:
        """What ``up`` or one of its roles has printed."""
        log = self.root / "up.log" if name == "up" else self.data / "logs" / f"{name}.log"
        return log.read_text(errors="replace") if log.exists() else ""

    # --- what is asked of it -----------------------------------------------------------------------------------------

    def answer(self, path: str, *, token: str = "admin") -> httpx.Response:
        """The answer of the API to the holder of a recorded token."""
        headers = {"Authorization": f"Bearer {self.facts['tokens'][token]}"}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=30, trust_env=False)

    def workers(self) -> list[dict[str, Any]]:
        """Every worker that is reported."""
        hosts = self.answer("/v1/hosts").raise_for_status().json()["hosts"]
        return [worker for host in hosts for worker in host["workers"]]

    def send(self, queue: str, count: int) -> None:
        """Send jobs."""
        for _ in range(count):
            Queue(queue, connection=self.redis).enqueue("time.sleep", 0.1)
        self.jobs[queue] = self.jobs.get(queue, 0) + count
        self._uncounted[queue] = [jobs + count for jobs in self._uncounted.get(queue, [0, 0, 0])]

    def ended(self) -> dict[str, int]:
        """Queue -> jobs that the broker calls finished or failed."""
        queues = [Queue(name, connection=self.redis) for name in self.jobs]
        return {each.name: each.finished_job_registry.count + each.failed_job_registry.count for each in queues}

    def totals(self) -> dict[str, tuple[int, ...]]:
        """Queue -> jobs that arrived, that started and that ended, by the metrics in Postgres, each counted once."""
        with self.database() as connection:
            return _totals(connection)

    def expected(self) -> dict[str, tuple[int, ...]]:
        """What ``totals`` are to be: those of the dump, and once each job that came after it."""
        return {
            queue: tuple(
                map(sum, zip(counted, self._uncounted.get(queue.removeprefix("redis/"), [0, 0, 0]), strict=True))
            )
            for queue, counted in self._counted.items()
        }

    @contextmanager
    def database(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection to the Postgres that is running."""
        with ensure_postgres(self.data / "postgres") as server, psycopg.connect(server.url, autocommit=True) as found:
            yield found

    def until(self, is_so: Callable[[], object], *, within_s: float = WAITS_S) -> None:
        """Return once something is so."""
        until_s = time.monotonic() + within_s
        while not is_so():
            assert self._up is not None
            assert self._up.poll() is None, self.printed("up")
            assert time.monotonic() < until_s, f"not within {within_s} s: {self.printed('up')}"
            time.sleep(0.1)


def _totals(connection: psycopg.Connection[Any]) -> dict[str, tuple[int, ...]]:
    return {queue: tuple(counts) for queue, *counts in connection.execute(TOTALS).fetchall()}


def _load_database(state: State, root: Path) -> None:
    server = ensure_postgres(root / ".headway" / "postgres")
    try:
        dump.load(server.url, state.dump(root))
    finally:
        assert server.wait_stopped(60)


def _move(checkpoint: Path, *, was: str, now: str) -> None:
    """Let Spark's list of files name those of a folder that was moved. Checksums are of the old text."""
    for file in checkpoint.joinpath("sources").rglob("*"):
        if file.is_file() and file.suffix != ".crc" and was in (text := file.read_text()):
            file.write_text(text.replace(was, now))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def contains(found: Any, recorded: Any) -> bool:
    """Whether all that was recorded is found as it was; what a later version adds beside it is its own."""
    if isinstance(recorded, Mapping):
        return isinstance(found, Mapping) and all(
            name in found and contains(found[name], value) for name, value in recorded.items()
        )
    if isinstance(recorded, list):
        return isinstance(found, list) and all(any(contains(each, row) for each in found) for row in recorded)
    return bool(found == recorded)
