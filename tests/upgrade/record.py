"""Record what this version keeps, for the tests of every later one.

    .venv/bin/python tests/upgrade/record.py [FOLDER]

A `headway up` with real jobs runs for two minutes. Then all of it is killed at once, at a moment when the event log
holds files that the pipeline has not read, the collector's outbox holds a batch that was never answered, and a worker
runs. What is on the disk then becomes ``states/VERSION-COMMIT/``: an archive, and what the API answered before.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.parquet as pq
import redis
from rq import Queue

from headway import __version__
from headway.store.embedded import ensure_valkey

STATES = Path(__file__).with_name("states")
sys.path.insert(0, str(Path(__file__).parents[1]))

BUSY_S = 60.0
WAITS_S = 240.0
UNREAD, UNSENT = 5, 3  # jobs of which the event log knows, and the pipeline does not; and only the collector
PROFILES = """\
brokers: {{redis: '{broker}'}}
pools:
  mail:
    queues: [redis/mail, redis/news]
    template: rq-mail
    objective: {{target_s: 5, percentile: 95, window_s: 60}}
    workers_min: 1
    workers_max: 3
    hold_down_s: 10
    priority: 200
    cost_per_worker_hour: 0.1
    budget_per_day: 50
    schedules:
      - {{name: weekend, days: [sat, sun], starts: '08:00', ends: '20:00', workers_max: 2}}
  reports:
    queues: [redis/reports]
    preset: background
    template: rq-reports
    workers_max: 2
    hold_down_s: 5
  night:
    queues: [redis/night]
    template: rq-reports
    strategy: simple_rate
"""
HOST = """\
[host]
name = "recorded"
labels = {zone = "a"}

[templates.rq-mail]
argv = ["rq", "worker", "mail", "news"]
ready_pattern = "Listening on"

[templates.rq-reports]
argv = ["rq", "worker", "reports"]
ready_pattern = "Listening on"
"""
SAID = {
    "profiles": "/v1/profiles",
    "tokens": "/v1/tokens",
    "hosts": "/v1/hosts",
    "audit": "/v1/audit?limit=500",
    "decisions": "/v1/decisions?limit=6",
}


class Recording:
    """A `headway up` in a folder of its own, with a broker beside it."""

    def __init__(self, root: Path, *, ports: tuple[int, int]) -> None:
        self.root, self.data = root, root / ".headway"
        self.url = f"http://127.0.0.1:{ports[0]}"
        self.admin = secrets.token_hex(32)
        self.tokens = {"admin": self.admin}
        self._broker = ensure_valkey(root / "broker", is_persistent=True)
        self.redis = redis.Redis.from_url(self._broker.url)
        self.jobs: dict[str, int] = {}
        (root / "profiles.yaml").write_text(PROFILES.format(broker=self._broker.url))
        (root / "host.toml").write_text(HOST)
        (root / "token").write_text(self.admin)
        (root / "token").chmod(0o600)
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
        self._env |= {"HEADWAY_URL": self.url, "HEADWAY_TOKEN_FILE": str(root / "token")}
        # Templates name neither, so that what they start is the same from wherever this folder lies.
        self._env |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "RQ_REDIS_URL": self._broker.url}
        self._env |= {"HEADWAY_HTTP_ADDRESS": f"127.0.0.1:{ports[0]}", "HEADWAY_GRPC_ADDRESS": f"127.0.0.1:{ports[1]}"}
        self._up: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.root / "up.log").open("wb") as log:
            self._up = subprocess.Popen(
                [sys.executable, "-m", "headway", "up", "--plain"], cwd=self.root, env=self._env, stdout=log, stderr=log
            )
        self.until(lambda: b"logs: " in (self.root / "up.log").read_bytes())

    def headway(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "headway", *words], cwd=self.root, env=self._env, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"headway {' '.join(words)}: {done.stderr}")
        return done.stdout.strip()

    def ask(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.admin}"}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=30, trust_env=False).raise_for_status().json()

    def until(self, is_so: Callable[[], object], *, within_s: float = WAITS_S) -> None:
        until_s = time.monotonic() + within_s
        while not is_so():
            if self._up is not None and self._up.poll() is not None:
                raise SystemExit((self.root / "up.log").read_text())
            if time.monotonic() > until_s:
                raise SystemExit(f"not within {within_s:.0f} s")
            time.sleep(0.1)

    def send(self, queue: str, count: int, service: object) -> None:
        """Jobs that stay in the broker when they are done: `time.sleep`, which fails where ``service`` is no number."""
        for _ in range(count):
            options = {"result_ttl": -1, "failure_ttl": -1, "job_timeout": 600}
            Queue(queue, connection=self.redis).enqueue("time.sleep", service, **options)
            self.jobs[queue] = self.jobs.get(queue, 0) + 1

    def children(self) -> dict[str, psutil.Process]:
        rows = json.loads((self.data / "children.json").read_text())
        return {row["name"]: psutil.Process(row["pid"]) for row in rows}

    def unfinished(self) -> int:
        queues = [Queue(name, connection=self.redis) for name in self.jobs]
        return sum(queue.count + queue.started_job_registry.count for queue in queues)

    def outbox(self) -> Any:
        found = [json.loads(file.read_text()) for file in (self.data / "collect").glob("*.json")]
        return [each["pending"] for each in found if each.get("pending")]

    def recorded_workers(self) -> list[dict[str, Any]]:
        """Those that the agent has written down."""
        found: list[dict[str, Any]] = json.loads((self.data / "agent" / "workers.json").read_text())["workers"]
        return found

    def suspend(self) -> None:
        """Stop the parent of all roles."""
        assert self._up is not None
        self._up.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        """What a power cut does, workers included."""
        assert self._up is not None
        workers = [psutil.Process(row["pid"]) for row in self.recorded_workers() if psutil.pid_exists(row["pid"])]
        parent = psutil.Process(self._up.pid)
        everything = [parent, *parent.children(recursive=True), *workers]
        for process in everything:
            with suppress(psutil.Error):
                process.kill()
        self._up.wait()
        psutil.wait_procs(everything, timeout=30)

    def close(self) -> None:
        self.redis.close()
        self._broker.wait_stopped()


def live(recording: Recording) -> None:
    """A few minutes of an installation, and what people do to it."""
    for role in ("viewer", "operator", "ingest", "auditor"):
        recording.tokens[role] = recording.headway("token", "create", "--role", role, "--name", f"recorded-{role}")
    recording.tokens["gone"] = recording.headway("token", "create", "--role", "viewer", "--name", "recorded-gone")
    recording.headway("token", "revoke", "recorded-gone")
    recording.headway("pause", "night", "--reason", "the records are being moved")
    recording.headway("scale", "reports", "2", "--for", "20s", "--reason", "the month's end")
    until_s = time.monotonic() + BUSY_S
    turns = 0
    while time.monotonic() < until_s:
        turns += 1
        recording.send("mail", 4 if turns % 5 else 12, 0.4)
        recording.send("reports", turns % 3, 1.5)
        recording.send("news", turns % 2, "no number" if turns % 10 == 1 else 0.2)
        time.sleep(4)
    recording.headway("restart", "mail", "--reason", "a new release of the jobs")
    recording.until(lambda: not recording.unfinished())
    recording.headway("scale", "reports", "0", "--for", "90s", "--reason", "none of its jobs may run at the end")
    recording.until(lambda: {row["pool"] for row in recording.recorded_workers()} == {"mail"})
    time.sleep(8)  # the metrics of the last jobs, and the decisions that follow from them


def freeze(recording: Recording) -> dict[str, Any]:
    """Stop the roles one by one, so that something is left between each two of them. Returns the worker's marks."""
    children = recording.children()
    row = recording.recorded_workers()[0]
    environment = psutil.Process(row["pid"]).environ()
    marks = {name: value for name, value in environment.items() if name.startswith("HEADWAY_")}
    recording.suspend()  # nobody replaces what hangs
    children["agent"].suspend()
    children["pipeline"].suspend()
    hot = set((recording.data / "events/hot").glob("*.parquet"))
    recording.send("reports", UNREAD, 0.3)
    recording.until(lambda: sum(map(jobs_in, set((recording.data / "events/hot").glob("*.parquet")) - hot)) == UNREAD)
    children["control"].suspend()
    sent = recording.outbox()  # it may still hold what was answered
    recording.send("reports", UNSENT, 0.3)
    recording.until(lambda: recording.outbox() != sent)
    return marks


def jobs_in(file: Path) -> int:
    """How many jobs a file of the event log says were enqueued."""
    return sum(kind == "enqueued" for kind in pq.read_table(file, columns=["kind"]).column("kind").to_pylist())


def archive(recording: Recording, folder: Path, recorded: dict[str, Any]) -> None:
    """Pack what is on the disk. The database becomes a dump, in a file of `headway backup`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept = ("events", "checkpoint", "agent", "collect", "pipeline", "children.json")
    recording.headway("backup", str(recording.root / "backup.tar"))
    with tarfile.open(folder / "state.tar.xz", "w:xz", preset=9) as packed:
        for name in (*(f".headway/{name}" for name in kept), "broker", "backup.tar", "profiles.yaml", "host.toml"):
            packed.add(recording.root / name, arcname=name, filter=_kept)
    (folder / "recorded.json").write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    size_bytes = sum(file.stat().st_size for file in folder.iterdir())
    sys.stdout.write(f"recorded {sum(recording.jobs.values())} jobs into {folder} ({size_bytes:,} bytes)\n")


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Owned by nobody in particular, and without links, sockets, logs and what Spark shuffles."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    is_plain = (entry.isfile() or entry.isdir()) and "/pipeline/local/" not in entry.name
    return entry if is_plain and not entry.name.endswith((".log", ".pid")) else None


def main(words: list[str]) -> None:
    """Record one state."""
    from support.ports import free_port

    commit = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=STATES.parent, capture_output=True, text=True, check=True
    ).stdout.strip()
    folder = Path(words[0]).absolute() if words else STATES / f"{__version__}-{commit}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="headway-record-") as root, ExitStack() as stack:
        recording = Recording(Path(root), ports=(free_port(), free_port()))
        stack.callback(recording.close)
        recording.start()
        stack.callback(recording.end)
        live(recording)
        said = {name: recording.ask(path) for name, path in SAID.items()}
        marks = freeze(recording)
        recorded_at_s = time.time()
        # That jobs entered ten minutes before the collector is back, nobody reports: those that no batch has.
        seen = [event for pending in recording.outbox() for event in pending["events"] if event["kind"] == "enqueued"]
        stack.pop_all().close()
        recorded = {
            "version": __version__,
            "commit": commit,
            "recorded_at_s": recorded_at_s,
            "root": root,
            "url": recording.url,
            "tokens": recording.tokens,
            "jobs": recording.jobs,
            "uncounted": {"reports": [UNREAD + len(seen), UNREAD + UNSENT, UNREAD + UNSENT]},
            "marks": marks,
            "said": said,
        }
        archive(recording, folder, recorded)


if __name__ == "__main__":
    main(sys.argv[1:])
