"""From an event to its row in Postgres, under load: `headway pipeline` as a process, a Postgres, and a generator.

Each cell RATExQUEUES has a pipeline of its own: start to ready, a while to get warm, then what is measured. The
generator writes a file each 0.2 s and says whether it held its rate; an event's time ends when a reader that waits for
the pipeline's notification sees the row. Processor time is of the pipeline's JVM and Python together.

    python benchmarks/stream.py --cells 5000x200 20000x1000 --warm 40 --seconds 40
    python benchmarks/stream.py --cells 1000x200 --minutes 60 --json soak.json
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from event_files import FILE_S, PROBE
from options import positive_count

from headway.store.embedded import ensure_postgres
from headway.store.migrate import upgrade

CELLS = ("5000x200", "20000x1000", "5000x100", "5000x1000", "5000x10000")
READY_BOUND_S = 300.0
LEFT_BOUND_S = 60.0  # for what is still under way at the end
SPREAD = 8  # events of a file whose times are read, evenly
MIB = 1 << 20


@dataclass(frozen=True)
class File:
    """One file of the generator."""

    number: int
    events: int
    from_s: float
    until_s: float
    published_s: float


class Watch:
    """Sees how many files have reached Postgres, whenever the pipeline says that it wrote."""

    def __init__(self, database_url: str) -> None:
        self.seen: list[tuple[float, int]] = []
        self._url = database_url
        threading.Thread(target=self._poll, daemon=True).start()

    @property
    def files(self) -> int:
        return self.seen[-1][1] if self.seen else 0

    def _poll(self) -> None:
        with (
            psycopg.connect(self._url, autocommit=True) as ears,
            psycopg.connect(self._url, autocommit=True) as eyes,
        ):
            ears.execute("listen headway_metrics")
            with contextlib.suppress(psycopg.OperationalError):  # Postgres ends before we do
                for _ in ears.notifies():
                    row = eyes.execute("select sum(arrived_jobs)::int from queue_buckets where queue = %s", [PROBE])
                    self.seen.append((time.time(), (row.fetchone() or [0])[0] or 0))

    def seen_at_s(self, count: int) -> list[float | None]:
        """When each of the first ``count`` files was there; None where it never was."""
        times: list[float | None] = []
        for at_s, files in self.seen:
            times += [at_s] * (files - len(times))
        return [*times, *[None] * (count - len(times))][:count]


class Meter:
    """Processor seconds and memory of the pipeline, over time."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.samples: list[tuple[float, float, int]] = []
        """When, processor seconds so far, bytes of the JVM."""

    def read(self) -> None:
        cpu_s, jvm_bytes = 0.0, 0
        for each in [self._process, *self._process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                cpu_s += times.user + times.system
                jvm_bytes += each.memory_info().rss if each.name() == "java" else 0
        self.samples.append((time.time(), cpu_s, jvm_bytes))

    def within(self, from_s: float, until_s: float) -> dict[str, float | None]:
        found = [each for each in self.samples if from_s <= each[0] <= until_s]
        if len(found) < 2:
            return {"cpu_cores": None, "jvm_rss_mib": None}
        (first_s, first_cpu_s, _), (last_s, last_cpu_s, _) = found[0], found[-1]
        return {
            "cpu_cores": round((last_cpu_s - first_cpu_s) / (last_s - first_s), 3),
            "jvm_rss_mib": round(max(rss for _, _, rss in found) / MIB),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=CELLS, help="events a second x queues")
    parser.add_argument("--classes", type=positive_count, default=1, help="job classes of a queue")
    parser.add_argument("--warm", type=float, default=40.0, help="seconds before what is measured")
    parser.add_argument("--seconds", type=float, default=40.0, help="seconds that are measured")
    parser.add_argument("--minutes", type=float, help="measure for so long instead, and print each minute")
    parser.add_argument("--json", type=Path, help="write the figures there, after each cell")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is ended
    cells: list[dict[str, Any]] = []
    for cell in args.cells:
        rate, queues = map(int, cell.split("x"))
        with tempfile.TemporaryDirectory(prefix="headway-stream-") as folder, contextlib.ExitStack() as stack:
            cells.append(_cell(Path(folder), rate, queues, args, stack))
        print(json.dumps(cells[-1], indent=2), flush=True)
        if args.json:
            args.json.write_text(json.dumps({"machine": _machine(), "cells": cells}, indent=2) + "\n")
    return 0


def _machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30)),
        "python": platform.python_version(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _cell(
    folder: Path, rate: int, queues: int, args: argparse.Namespace, stack: contextlib.ExitStack
) -> dict[str, Any]:
    server = ensure_postgres(folder / "postgres")
    stack.callback(server.wait_stopped)
    upgrade(server.url)
    seconds = 60 * args.minutes if args.minutes else args.seconds
    began_s = time.monotonic()
    meter = Meter(stack.enter_context(_pipeline(folder, server.url)))
    ready_s = time.monotonic() - began_s
    watch = Watch(server.url)
    generator = _generator(folder / "events", rate, queues, args.classes, args.warm + seconds)
    stack.callback(_end, generator)
    loads = []
    from_s = time.time() + args.warm
    while generator.poll() is None:
        meter.read()
        loads.append(os.getloadavg()[0])
        time.sleep(1.0)
    files = _files(folder / "events")
    deadline_s = time.monotonic() + LEFT_BOUND_S
    while watch.files < len(files) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    until_s = files[-1].until_s if files else from_s
    figures = {
        "events_per_s": rate,
        "queues": queues,
        "classes": args.classes,
        "start_to_ready_s": round(ready_s, 1),
        **_latency(files, watch, from_s, until_s),
        **meter.within(from_s, until_s),
        "generator": _held(files, rate, from_s),
        "load_1m": [round(min(loads), 1), round(max(loads), 1)] if loads else None,
    }
    if args.minutes:
        figures["by_minute"] = [
            {**_latency(files, watch, at_s, at_s + 60), **meter.within(at_s, at_s + 60)}
            for at_s in (from_s + 60 * minute for minute in range(int(args.minutes)))
        ]
    return figures


@contextlib.contextmanager
def _pipeline(folder: Path, database_url: str) -> Iterator[psutil.Process]:
    """`headway pipeline`, ready."""
    env = {
        **os.environ,
        "HEADWAY_DATABASE_URL": database_url,
        "HEADWAY_EVENT_LOG": str(folder / "events"),
        "HEADWAY_CHECKPOINT": str(folder / "checkpoint"),
        "HEADWAY_STATE_DIR": str(folder / "pipeline"),
    }
    log = folder / "pipeline.log"
    with log.open("wb") as output:
        child = subprocess.Popen([sys.executable, "-m", "headway", "pipeline"], env=env, stdout=output, stderr=output)
    try:
        deadline_s = time.monotonic() + READY_BOUND_S
        while b"ready after" not in log.read_bytes():
            if child.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit(f"the pipeline did not become ready:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield psutil.Process(child.pid)
        if child.poll() is not None:
            print(f"the pipeline has ended:\n{log.read_text()[-2000:]}", file=sys.stderr)
    finally:
        _end(child)


def _generator(folder: Path, rate: int, queues: int, classes: int, seconds: float) -> subprocess.Popen[bytes]:
    options = {"--rate": rate, "--queues": queues, "--classes": classes, "--seconds": seconds}
    words = [word for name, value in options.items() for word in (name, str(value))]
    return subprocess.Popen([sys.executable, str(Path(__file__).with_name("event_files.py")), str(folder), *words])


def _end(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _files(folder: Path) -> list[File]:
    return [File(*json.loads(line)) for line in (folder / "journal.jsonl").read_text().splitlines()]


def _latency(files: list[File], watch: Watch, from_s: float, until_s: float) -> dict[str, Any]:
    """Of the files written in the span: from an event, and from its file, to the row."""
    seen = watch.seen_at_s(len(files))
    chosen = [(file, at_s) for file, at_s in zip(files, seen, strict=True) if from_s <= file.until_s <= until_s]
    events_s, files_s = [], []
    for file, at_s in chosen:
        if at_s is not None:
            files_s.append(at_s - file.published_s)
            step_s = (file.until_s - file.from_s) / SPREAD
            events_s += [at_s - file.from_s - step_s * (part + 0.5) for part in range(SPREAD)]
    return {
        "event_to_row_s": _figures(events_s),
        "file_to_row_s": _figures(files_s),
        "files": len(chosen),
        "files_not_seen": sum(at_s is None for _, at_s in chosen),
    }


def _held(files: list[File], rate: int, from_s: float) -> dict[str, Any]:
    """Whether the generator did what it was asked for."""
    chosen = [file for file in files if file.until_s >= from_s]
    if not chosen:
        return {"is_rate_held": False}
    sent_per_s = sum(file.events for file in chosen) / (chosen[-1].until_s - chosen[0].from_s)
    intervals = sorted(file.until_s - file.from_s for file in chosen)
    return {
        "events_per_s": round(sent_per_s),
        "is_rate_held": abs(sent_per_s - rate) < 0.01 * rate and intervals[len(intervals) // 2] < 1.5 * FILE_S,
        "interval_s": _figures(intervals),
    }


def _figures(values: list[float]) -> dict[str, float] | None:
    if len(values) < 2:
        return None
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49], 3), "p95": round(cuts[94], 3), "max": round(max(values), 3)}


if __name__ == "__main__":
    raise SystemExit(main())
