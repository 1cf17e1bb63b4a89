"""The ways of Spark's rows into Postgres: COPY as text or binary, arrays through unnest, ADBC where it is installed.

    python benchmarks/sink.py [rows ...]

Each writes the same rows, both sketches among them, in one transaction a batch: an upsert into queue_buckets, where
they are already, as most are while a bucket runs. Printed are, a batch, the median and the processor time of this
process and of its Postgres backend.
"""

import gc
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import psutil
import psycopg
from bench import database
from psycopg.types.json import Jsonb

from headway.scaling.measure import BucketRow, merged, sketch_index

SIZES = (200, 1_000, 10_000)
TURNS = 7
JOBS_A_ROW = 25  # 5,000 events/s over 200 queues

COUNTS = ("arrived_jobs", "started_jobs", "finished_jobs", "failed_jobs", "retried_jobs")
TYPES = {
    "queue": "text",
    "bucket_s": "double precision",
    **dict.fromkeys(COUNTS, "bigint"),
    "service_sum_s": "double precision",
    "pickup_max_s": "double precision",
    "service_sketch": "jsonb",
    "pickup_sketch": "jsonb",
    "sampled_at_s": "double precision",
    "waiting_jobs": "bigint",
    "in_flight_jobs": "bigint",
    "delayed_jobs": "bigint",
    "oldest_age_s": "double precision",
}
COLUMNS = ", ".join(TYPES)
_SET = ", ".join(f"{name} = excluded.{name}" for name in TYPES if name not in {"queue", "bucket_s"})
SKETCHES = {"service_sketch", "pickup_sketch"}

Connection = psycopg.Connection[tuple[object, ...]]


def made_rows(count: int) -> list[BucketRow]:
    """Rows of ``count`` busy queues in one bucket."""
    rng = random.Random(1)
    return [
        BucketRow(
            queue=f"redis/queue-{number}",
            bucket_s=1e9,
            arrived_jobs=JOBS_A_ROW,
            started_jobs=JOBS_A_ROW,
            finished_jobs=JOBS_A_ROW,
            service_sum_s=12.5,
            pickup_max_s=3.5,
            service_sketch=merged({sketch_index(rng.lognormvariate(-1, 0.8)): 1} for _ in range(JOBS_A_ROW)),
            pickup_sketch=merged({sketch_index(rng.expovariate(0.5)): 1} for _ in range(JOBS_A_ROW)),
            sampled_at_s=1e9 + 3,
            waiting_jobs=number,
            in_flight_jobs=3,
            oldest_age_s=0.5,
        )
        for number in range(count)
    ]


def _cells(row: BucketRow) -> list[object]:
    return [json.dumps(getattr(row, name)) if name in SKETCHES else getattr(row, name) for name in TYPES]


def _upsert(connection: Connection, source: str) -> None:
    connection.execute(
        f"insert into queue_buckets ({COLUMNS}, revision) select {COLUMNS}, 1 from {source} "
        f"on conflict (queue, bucket_s) do update set {_SET}, revision = excluded.revision + 1"
    )


def copy_text(connection: Connection, rows: Sequence[BucketRow]) -> None:
    """COPY in Postgres's text format, row by row."""
    with connection.cursor() as cursor, cursor.copy(f"copy arrived ({COLUMNS}) from stdin") as copy:
        for row in rows:
            copy.write_row(_cells(row))
    _upsert(connection, "arrived")


def copy_block(connection: Connection, rows: Sequence[BucketRow]) -> None:
    """COPY in the text format, of one text that is put together here."""
    block = "".join("\t".join(map(_text, _cells(row))) + "\n" for row in rows)
    with connection.cursor() as cursor, cursor.copy(f"copy arrived ({COLUMNS}) from stdin") as copy:
        copy.write(block)
    _upsert(connection, "arrived")


def _text(value: object) -> str:
    if value is None:
        return r"\N"
    if isinstance(value, str):
        return value.replace("\\", r"\\").replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")
    return str(value)


def copy_binary(connection: Connection, rows: Sequence[BucketRow]) -> None:
    """COPY in the binary format, row by row."""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"copy arrived ({COLUMNS}) from stdin (format binary)") as copy,
    ):
        copy.set_types(list(TYPES.values()))
        for row in rows:
            copy.write_row([Jsonb(getattr(row, name)) if name in SKETCHES else getattr(row, name) for name in TYPES])
    _upsert(connection, "arrived")


def arrays(connection: Connection, rows: Sequence[BucketRow]) -> None:
    """One statement with an array a column, and no table between."""
    columns = list(zip(*map(_cells, rows), strict=True))
    given = ", ".join(f"%s::{'text' if kind == 'jsonb' else kind}[]" for kind in TYPES.values())
    chosen = ", ".join(f"{name}::jsonb" if kind == "jsonb" else name for name, kind in TYPES.items())
    connection.execute(
        f"insert into queue_buckets ({COLUMNS}, revision) "
        f"select {chosen}, 1 from unnest({given}) as given({COLUMNS}) "
        f"on conflict (queue, bucket_s) do update set {_SET}, revision = excluded.revision + 1",
        [list(column) for column in columns],
    )


def adbc(url: str) -> Callable[[Connection, Sequence[BucketRow]], None] | None:
    """ADBC's own COPY of an Arrow table into a staging table, then the same upsert; None where it is not installed."""
    try:
        import adbc_driver_postgresql.dbapi as driver
        import pyarrow as pa
    except ImportError:
        return None
    connection = driver.connect(url)
    kinds = {"text": pa.string(), "jsonb": pa.string(), "bigint": pa.int64(), "double precision": pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in TYPES.items()])
    chosen = ", ".join(f"{name}::jsonb" if kind == "jsonb" else name for name, kind in TYPES.items())

    def write(_: Connection, rows: Sequence[BucketRow]) -> None:
        columns = zip(*map(_cells, rows), strict=True)
        table = pa.table([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema)
        with connection.cursor() as cursor:
            cursor.execute("truncate staged")
            cursor.adbc_ingest("staged", table, mode="append")
            cursor.execute(
                f"insert into queue_buckets ({COLUMNS}, revision) select {chosen}, 1 from staged "
                f"on conflict (queue, bucket_s) do update set {_SET}, revision = excluded.revision + 1"
            )
        connection.commit()

    return write


def measure(name: str, write: Callable[[Connection, Sequence[BucketRow]], None], url: str, size: int) -> None:
    """Print what a batch of ``size`` rows costs when it is written by ``write``."""
    rows = made_rows(size)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("truncate queue_buckets")
        connection.execute(
            f"create temporary table arrived on commit delete rows as select {COLUMNS} from queue_buckets with no data"
        )
        gc.collect()
        with connection.transaction():
            write(connection, rows)
        walls_s, began_cpu_s, began_backends_s = [], time.process_time(), _backends_s(connection)
        for _ in range(TURNS):
            began_s = time.perf_counter()
            with connection.transaction():
                write(connection, rows)
            walls_s.append(time.perf_counter() - began_s)
        here_ms = (time.process_time() - began_cpu_s) / TURNS * 1e3
        there_ms = (_backends_s(connection) - began_backends_s) / TURNS * 1e3
    wall_ms, load = statistics.median(walls_s) * 1e3, os.getloadavg()[0]
    processor = f"processor: {here_ms:7.1f} ms here, {there_ms:7.1f} ms in Postgres"
    print(f"{size:>6} rows  {name:<12} {wall_ms:8.1f} ms; {processor}; load {load:.1f}", flush=True)


def _backends_s(connection: Connection) -> float:
    """The processor time of every backend that serves this process."""
    found = connection.execute("select pid from pg_stat_activity where backend_type = 'client backend'").fetchall()
    times = [psutil.Process(int(str(pid))).cpu_times() for (pid,) in found]
    return sum(each.user + each.system for each in times)


def main() -> None:
    """Measure every way at every size."""
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    with database() as (url, _):
        with psycopg.connect(url, autocommit=True) as connection:
            staged = ", ".join(f"{n} {'text' if k == 'jsonb' else k}" for n, k in TYPES.items())
            connection.execute(f"create unlogged table staged ({staged})")
        ways = {"COPY text": copy_text, "COPY block": copy_block, "COPY binary": copy_binary, "unnest": arrays}
        with_adbc = adbc(url)
        if with_adbc:
            ways["ADBC"] = with_adbc
        for size in sizes:
            for name, write in ways.items():
                measure(name, write, url, size)


if __name__ == "__main__":
    main()
