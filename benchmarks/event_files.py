"""Event files as ingest writes them, at a rate that is held, or many at once for work in bulk.

    python benchmarks/event_files.py FOLDER --rate 5000 --queues 200 --seconds 60

Each file holds what has happened since the one before. FOLDER/journal.jsonl records what was written, and when.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from options import positive_count

from headway.scaling.model.event_row import SCHEMA_VERSION
from headway.store.events.event_files import SCHEMA

FILE_S = 0.2
PROBE = "bench/probe"
KINDS = np.array(["enqueued", "started", "finished"])


def events(
    count: int, *, queues: int, classes: int, from_s: float, until_s: float, rng: np.random.Generator, number: int = 0
) -> pa.Table:
    """``count`` events of ``queues`` queues, evenly from ``from_s`` to ``until_s``, and one of the queue ``PROBE``."""
    size = count + 1
    at_s = np.linspace(from_s, until_s, size)
    kind = rng.integers(0, 3, size)
    queue = rng.integers(0, queues, size)
    names = np.char.add("bench/", queue.astype(str)).astype(object)
    classed = np.char.add("Job", (rng.integers(0, max(classes, 1), size)).astype(str)).astype(object)
    names[-1], kind[-1] = PROBE, 0
    served_s, waited_s = rng.lognormal(-1.0, 1.5, size), rng.exponential(0.5, size)
    columns: dict[str, Any] = {
        "schema_version": np.full(size, SCHEMA_VERSION, np.int32),
        "queue": names,
        "kind": KINDS[kind].astype(object),
        "job_id": np.char.add(f"{number}-", np.arange(size).astype(str)).astype(object),
        "job_class": pa.array(classed, mask=np.full(size, fill_value=not classes) | (names == PROBE)),
        "at_s": at_s,
        "received_at_s": np.full(size, until_s),
        "enqueued_at_s": pa.array(at_s - waited_s, mask=kind != 1),
        "started_at_s": pa.array(at_s - served_s, mask=kind != 2),
        "producer": np.full(size, "bench", object),
        "sequence": np.full(size, number),
    }
    nothing = {field.name: pa.nulls(size, field.type) for field in SCHEMA if field.name not in columns}
    return pa.table([pa.array((columns | nothing)[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the event log")
    parser.add_argument("--rate", type=float, default=5000.0, help="events a second")
    parser.add_argument("--queues", type=positive_count, default=200)
    parser.add_argument("--classes", type=positive_count, default=1, help="job classes of a queue")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    hot, rng = args.folder / "hot", np.random.default_rng(args.seed)
    hot.mkdir(parents=True, exist_ok=True)
    many = {"queues": args.queues, "classes": args.classes, "rng": rng}
    pq.write_table(events(100, from_s=0.0, until_s=1.0, **many), args.folder / "draft")  # the first takes longer
    began_s = written_s = time.time()
    with (args.folder / "journal.jsonl").open("w", buffering=1) as journal:
        number = 0
        while time.time() < began_s + args.seconds:
            time.sleep(max(0.0, began_s + (number + 1) * FILE_S - time.time()))
            from_s, written_s = written_s, time.time()
            count = round((written_s - began_s) * args.rate) - round((from_s - began_s) * args.rate)
            table = events(count, from_s=from_s, until_s=written_s, number=number, **many)
            name = f"{round(written_s * 1000):013d}-{'be' * 6}-{number:06d}.parquet"
            pq.write_table(table, args.folder / name)
            (args.folder / name).rename(hot / name)
            journal.write(json.dumps([number, count, from_s, written_s, time.time()]) + "\n")
            number += 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
