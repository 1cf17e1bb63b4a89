"""From a job in an empty queue without workers to a worker process: enqueue -> process exists, with the stages' times.

The whole of `headway up` runs as a user would run it, with quiet queues beside those that are woken. Each run wakes a
queue of its own, so that no run meets the workers of another. Before the runs, the CPU time of the quiet system is
taken over a minute (``--idle``).

    python benchmarks/wake.py --runs 25 --quiet 20 --busy 2
"""

import argparse
import contextlib
import itertools
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis
import rq
from options import positive_count

from headway.cli.local.ports import free_address
from headway.local import procfs
from headway.settings import Address
from headway.store.embedded import ensure_postgres, ensure_valkey

STAGES = ("sampled and durable", "in Spark's rows", "decided", "process exists")
CHANNELS = ("headway_metrics", "headway_decisions", "headway_assignments")
IDLE_S = 60.0
SETTLING_PART = 1 / 3  # of that time: the JVM goes on compiling for a while after it is ready
WAKE_BOUND_S = 60.0


@dataclass(frozen=True)
class Notice:
    """A notification of Postgres and when it arrived."""

    channel: str
    at_s: float


class Ear:
    """Keeps every notification with its time."""

    def __init__(self, database_url: str) -> None:
        self.notices: list[Notice] = []
        self._url = database_url
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            for channel in CHANNELS:
                connection.execute(f"listen {channel}")
            with contextlib.suppress(psycopg.OperationalError):  # Postgres ends before we do
                for notification in connection.notifies():
                    self.notices.append(Notice(notification.channel, time.time()))

    def first(self, channel: str, *, from_s: float, to_s: float) -> float | None:
        """When ``channel`` was last notified before ``to_s``, at ``from_s`` or later."""
        times = [each.at_s for each in self.notices if each.channel == channel and from_s <= each.at_s <= to_s]
        return times[-1] if times else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=positive_count, default=25)
    parser.add_argument("--quiet", type=int, default=20, help="queues beside, in which nothing happens")
    parser.add_argument("--busy", type=int, default=0, help="processes that keep a core busy meanwhile")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds that the quiet system is measured for (60)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headway-wake-") as folder, contextlib.ExitStack() as stack:
        figures = _measure(Path(folder), args, stack)
    print(json.dumps(figures, indent=2))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def _measure(folder: Path, args: argparse.Namespace, stack: contextlib.ExitStack) -> dict[str, Any]:
    valkey = ensure_valkey(folder / "valkey")
    stack.callback(valkey.wait_stopped, 10.0)
    broker = redis.Redis.from_url(valkey.url)
    names = [f"wake{number}" for number in range(args.runs)]
    _write_files(folder, valkey.url, [*names, *(f"quiet{number}" for number in range(args.quiet))])
    up = stack.enter_context(_up(folder))
    idle = _idle_cpu(up, seconds=args.idle)
    database = ensure_postgres(folder / ".headway" / "postgres")
    stack.callback(database.release)
    ear = Ear(database.url)
    for _ in range(args.busy):
        stack.enter_context(_spinning())
    with psycopg.connect(database.url, autocommit=True) as connection:
        runs = [_wake(name, broker, connection, ear) for name in names]
    return {
        "runs": args.runs,
        "quiet_queues": args.quiet,
        "busy_processes": args.busy,
        "load_average": os.getloadavg(),
        "cores": os.cpu_count(),
        "idle_cpu_cores": idle,
        "enqueue_to_process_s": _figures([run["process exists"] for run in runs]),
        "stages_s": {
            stage: _figures([run[stage] - (run[before] if before else 0.0) for run in runs])
            for before, stage in itertools.pairwise([None, *STAGES])
            if stage
        },
    }


def _write_files(folder: Path, broker_url: str, queues: list[str]) -> None:
    rq_program = Path(sys.executable).with_name("rq")
    pools = "\n".join(
        f"  {name}: {{queues: [redis/{name}], template: {name}, workers_max: 2, objective: {{target_s: 10}}}}"
        for name in queues
    )
    (folder / "profiles.yaml").write_text(f"brokers: {{redis: '{broker_url}'}}\npools:\n{pools}\n")
    templates = "\n".join(
        f'[templates.{name}]\nargv = ["{rq_program}", "worker", "--url", "{broker_url}", "{name}"]\n'
        'ready_pattern = "Listening on"\nresources = {cpu_cores = 0.01, memory_bytes = "16MB"}\n'
        for name in queues
    )
    (folder / "host.toml").write_text(templates)
    broker = redis.Redis.from_url(broker_url)
    broker.sadd("rq:queues", *(f"rq:queue:{name}" for name in queues))


@contextlib.contextmanager
def _up(folder: Path) -> Iterator[psutil.Process]:
    """`headway up` in ``folder``, ready, as a process; stopped with its workers at the end."""
    http, grpc = (free_address(Address(host="127.0.0.1", port=0)) for _ in range(2))
    words = ["up", "--stop-workers", "--http-address", str(http), "--grpc-address", str(grpc)]
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=sys.stderr,
    )
    try:
        deadline_s = time.monotonic() + 180
        while not _is_ready(http):
            if child.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit("headway up did not become ready")
            time.sleep(0.5)
        yield psutil.Process(child.pid)
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(60)


def _is_ready(http: Address) -> bool:
    try:
        with urllib.request.urlopen(f"http://{http}/v1/health", timeout=2) as answer:
            return bool(json.load(answer)["status"] == "ok")
    except OSError:
        return False


def _idle_cpu(up: psutil.Process, *, seconds: float) -> dict[str, float]:
    """Cores used while nothing happens, by what uses them."""
    time.sleep(SETTLING_PART * seconds)
    before, at_s = _cpu_seconds(up), time.monotonic()
    time.sleep(seconds)
    after, span_s = _cpu_seconds(up), time.monotonic() - at_s
    used = {name: round((after[name] - before.get(name, 0.0)) / span_s, 4) for name in after}
    return {**used, "all": round(sum(used.values()), 4)}


def _cpu_seconds(up: psutil.Process) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for process in [up, *_family(up)]:
        with contextlib.suppress(psutil.Error):
            times, words = process.cpu_times(), process.cmdline()
            name = next((role for role in ("control", "pipeline", "collect", "agent", "up") if role in words), None)
            name = name or process.name().split(":")[0]
            seconds[name] = seconds.get(name, 0.0) + times.user + times.system
    return seconds


def _family(up: psutil.Process) -> list[psutil.Process]:
    """The children, and the servers that live in sessions of their own."""
    servers = [process for process in psutil.process_iter() if process.name() in {"postgres", "valkey-server"}]
    return [*up.children(recursive=True), *servers]


@contextlib.contextmanager
def _spinning() -> Iterator[None]:
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        child.kill()
        child.wait()


def _wake(name: str, broker: redis.Redis, connection: psycopg.Connection[Any], ear: Ear) -> dict[str, float]:
    """Seconds from the enqueueing of one job to each stage."""
    time.sleep(1.0 + 0.37 * (hash(name) % 10))  # so that runs meet the clocks of all parts at different phases
    at_s = time.time()
    rq.Queue(name, connection=broker).enqueue("time.sleep", 0.01)
    worker = _worker(name, connection, until_s=at_s + WAKE_BOUND_S)
    exists_s = _started_at_s(worker)
    decided_s = ear.first("headway_assignments", from_s=at_s, to_s=exists_s + 0.05) or exists_s
    rows_s = ear.first("headway_metrics", from_s=at_s, to_s=decided_s) or decided_s
    durable_s = _durable_at_s(connection, from_s=at_s)
    times = dict(zip(STAGES, (durable_s, rows_s, decided_s, exists_s), strict=True))
    print(f"{name}: " + ", ".join(f"{stage} {when - at_s:.2f} s" for stage, when in times.items()), file=sys.stderr)
    return {stage: when - at_s for stage, when in times.items()}


def _started_at_s(pid: int) -> float:
    """When a process began, to 10 ms: the boot time of the system is of whole seconds, so it is not used."""
    known = procfs.stat(pid)
    if known is None:
        raise SystemExit(f"worker {pid} ended before its start was read")
    return time.time() - (procfs.since_boot_s() - known.started_at_s)


def _worker(name: str, connection: psycopg.Connection[Any], *, until_s: float) -> int:
    while time.time() < until_s:
        row = connection.execute("select pid from workers where pool = %s and pid > 0", [name]).fetchone()
        if row:
            return int(row[0])
        select.select([], [], [], 0.02)
    raise SystemExit(f"no worker for {name} within {WAKE_BOUND_S} s")


def _durable_at_s(connection: psycopg.Connection[Any], *, from_s: float) -> float:
    row = connection.execute(
        "select min(extract(epoch from recorded_at)) from event_files where recorded_at >= to_timestamp(%s)", [from_s]
    ).fetchone()
    assert row is not None
    return float(row[0])


def _figures(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "p50": round(statistics.median(ordered), 3),
        "p95": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 3),
        "max": round(ordered[-1], 3),
    }


if __name__ == "__main__":
    sys.exit(main())
