"""Events per processor second of Spark where many lie there already: in a batch, and in the stream that catches up.

Parquet files of the event log are made first. `counts` is the stream's own aggregation without its sketches and newest
samples, `sketches` is all of it, in the session of work in bulk; `stream` is `availableNow` in the pipeline's own
session, until all is read.
Processor seconds are the JVM's, from /proc; rounds follow one another in one JVM, so that the later ones are warm.

    python benchmarks/bulk.py --millions 4 --queues 1000 --rounds 5
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
from event_files import events
from options import positive_count
from pyspark.sql import DataFrame, SparkSession

from headway_spark.event_log.schema import EVENTS
from headway_spark.java import java_home
from headway_spark.session import close, embedded
from headway_spark.stream.buckets import buckets, with_bucket
from headway_spark.stream.pipeline import LATENESS_S
from headway_spark.studies.bulk import bulk_session

KINDS = ("counts", "sketches", "stream")
FILE_EVENTS = 100_000
STREAM_FILES = 10  # of a micro-batch: a million events
EVENTS_PER_S = 20_000.0  # of the time that the events are of
NO_COUNTS = ("service_sketch", "pickup_sketch", "sample")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=_millions, default=4.0, help="of events, in steps of 0.1")
    parser.add_argument("--queues", type=positive_count, default=1000)
    parser.add_argument("--classes", type=int, default=0, help="job classes of a queue; each such event counts twice")
    parser.add_argument("--rounds", type=positive_count, default=5)
    parser.add_argument("--cores", type=positive_count, default=2, help="tasks at a time")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="default: all")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, folder = args.one
        print(json.dumps(_rounds(kind, Path(folder), args)))
        return 0
    figures: dict[str, Any] = {
        "millions_of_events": args.millions,
        "queues": args.queues,
        "classes": args.classes,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    with tempfile.TemporaryDirectory(prefix="headway-bulk-") as folder:
        _write(Path(folder) / "log" / "hot", args)
        for kind in args.kinds:
            figures[kind] = _in_a_process(kind, folder)
    print(json.dumps(figures, indent=2))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def _millions(text: str) -> float:
    files = positive_count(f"{float(text) * 1_000_000 / FILE_EVENTS:.0f}")
    return files * FILE_EVENTS / 1_000_000


def _in_a_process(kind: str, folder: str) -> dict[str, Any]:
    """Each kind has a JVM of its own."""
    argv = [sys.executable, __file__, *sys.argv[1:], "--one", kind, folder]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _write(hot: Path, args: argparse.Namespace) -> None:
    hot.mkdir(parents=True)
    rng = np.random.default_rng(1)
    span_s = FILE_EVENTS / EVENTS_PER_S
    files = round(args.millions * 1_000_000 / FILE_EVENTS)
    began_s = time.time() - files * span_s
    for number in range(files):
        from_s = began_s + number * span_s
        many = {"queues": args.queues, "classes": args.classes, "from_s": from_s, "until_s": from_s + span_s}
        pq.write_table(events(FILE_EVENTS - 1, rng=rng, number=number, **many), hot / f"{number:06d}.parquet")
        os.utime(hot / f"{number:06d}.parquet", (from_s, from_s))


def _rounds(kind: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    work_dir = folder / kind
    work_dir.mkdir()
    hot, million = folder / "log" / "hot", args.millions
    rounds: list[dict[str, float]] = []
    with _session(kind, work_dir, args.cores) as (session, jvm):
        for number in range(args.rounds):
            before, began_s = _cpu_s(jvm), time.monotonic()
            _WORK[kind](session, hot, work_dir / str(number))
            cpu_s, wall_s = _cpu_s(jvm) - before, time.monotonic() - began_s
            rounds.append(
                {
                    "cpu_s_per_million": round(cpu_s / million, 3),
                    "events_per_cpu_s": round(million * 1e6 / cpu_s),
                    "wall_s": round(wall_s, 2),
                    "load_1m": round(os.getloadavg()[0], 1),
                }
            )
        rss_mib = round(jvm.memory_info().rss / (1 << 20))
    warm = rounds[len(rounds) // 2 :]
    return {
        "warm_events_per_cpu_s": round(statistics.median(each["events_per_cpu_s"] for each in warm)),
        "best_events_per_cpu_s": max(each["events_per_cpu_s"] for each in rounds),
        "jvm_rss_mib": rss_mib,
        "rounds": rounds,
    }


@contextlib.contextmanager
def _session(kind: str, work_dir: Path, cores: int) -> Iterator[tuple[SparkSession, psutil.Process]]:
    """The session that such work has, and its JVM."""
    if kind == "stream":
        session = embedded(java_home=java_home(os.environ, shim_dir=work_dir / "java"), work_dir=work_dir)
        try:
            yield session, _jvm()
        finally:
            close(session)
    else:
        with bulk_session(os.environ, work_dir=work_dir, cores=cores) as session:
            yield session, _jvm()


def _jvm() -> psutil.Process:
    (found,) = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
    return found


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _counts(session: SparkSession, hot: Path, _: Path) -> None:
    _made(_read(session, hot).drop(*NO_COUNTS))  # nobody reads them, so they are not made


def _sketches(session: SparkSession, hot: Path, _: Path) -> None:
    _made(_read(session, hot))


def _read(session: SparkSession, hot: Path) -> DataFrame:
    return buckets(with_bucket(session.read.schema(EVENTS).parquet(str(hot)), lateness_s=LATENESS_S))


def _made(rows: DataFrame) -> None:
    """Make every row whole, and throw it away."""
    rows.write.format("noop").mode("overwrite").save()


def _stream(session: SparkSession, hot: Path, work_dir: Path) -> None:
    """The pipeline's aggregation over what is there; Python takes each micro-batch's rows, as it does for the sink."""

    def take(frame: DataFrame, _: int) -> None:
        frame.toArrow()

    files = session.readStream.schema(EVENTS).option("maxFilesPerTrigger", STREAM_FILES).parquet(str(hot))
    rows = buckets(with_bucket(files, lateness_s=LATENESS_S)).writeStream.outputMode("update").foreachBatch(take)
    query = rows.option("checkpointLocation", str(work_dir)).trigger(availableNow=True).start()
    query.awaitTermination()


_WORK: dict[str, Callable[[SparkSession, Path, Path], None]] = {
    "counts": _counts,
    "sketches": _sketches,
    "stream": _stream,
}

if __name__ == "__main__":
    raise SystemExit(main())
