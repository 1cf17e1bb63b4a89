"""What a queue's metrics take a day at each level: a busy queue, a steady one, a slow one, and one that only waits.

    python benchmarks/storage.py [HOURS] [--kinds "25 jobs/s" "1 job/s"]

Writes made-up hours of buckets as the pipeline does, rolls them up as it does, and prints what `headway pipeline` logs
of each level for each kind of queue, and the time it took to roll up a minute.
"""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from bench import database
from options import positive_count

from headway.scaling.measure import BucketRow, merged, sketch_index
from headway.store.metrics.metrics_sink import MetricsSink
from headway.store.metrics.rollup_statements import VALUES
from headway.store.metrics.rollups import levels, tend
from headway.store.missing_rights import MissingRights

HOURS = 2
QUEUES = 4
BEGAN_S = 1_000_800.0  # on the hour
TABLES = "queue_buckets, rollup_minutes, rollup_hours"


@dataclass(frozen=True)
class Progress:
    """A micro-batch as the pipeline reports it."""

    batch_id: int = 1
    batch_s: float = 0.1
    newest_received_at_s: float | None = None


KINDS = {"25 jobs/s": 25.0, "1 job/s": 1.0, "1 job a minute": 1 / 60, "sampled only": 0.0}


def main() -> None:
    """Measure each kind of queue."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hours", type=positive_count, nargs="?", default=HOURS, help=f"of each kind ({HOURS})")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], help="of queues; default: all")
    options = parser.parse_args()
    with database() as (url, _):
        for name in options.kinds:
            measure(url, name, KINDS[name], hours=options.hours)


def measure(url: str, name: str, rate_per_s: float, *, hours: int) -> None:
    """Print what ``hours`` of queues with ``rate_per_s`` take."""
    rng, sink = random.Random(1), MetricsSink(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"truncate {TABLES}")
        connection.execute("update rollup_progress set revision = 0, minutes_until_s = 0, hours_until_s = 0")
        # To the bucket that ends the last hour for good.
        for bucket in range(hours * 720 + 150):
            sink.write(made_rows(rng, bucket, rate_per_s), Progress())
        connection.execute(f"analyze {TABLES}")
        began_s = time.perf_counter()
        tend(connection, is_stopping=lambda: False, lacks=MissingRights())
        minute_ms = (time.perf_counter() - began_s) * 1e3 / (hours * 60)
        # One hour's row would be measured by the pages of its empty table.
        columns = ", ".join(("queue", "job_class", *VALUES))
        connection.execute(
            f"insert into rollup_hours (bucket_s, {columns}) "
            f"select bucket_s - 3600 * n, {columns} from rollup_hours, generate_series(1, 300) as n"
        )
        connection.execute(f"vacuum full {TABLES}")
        for level in levels(connection):
            each = level.stored_bytes / max(level.rows, 1)
            print(
                f"{name:<15} {level.table:<15} {level.rows:>6} rows of {each:6.0f} bytes with their indexes,"
                f" {level.bytes_a_queue_and_day / 1e3:9.1f} kB a queue and day",
                flush=True,
            )
        print(f"{name:<15} {minute_ms:.1f} ms to roll up a minute of {QUEUES} queues", flush=True)
    sink.close()


def made_rows(rng: random.Random, bucket: int, rate_per_s: float) -> Sequence[BucketRow]:
    """The rows of one bucket, each sampled as collectors do."""
    rows = []
    for number in range(QUEUES):
        jobs = sum(rng.random() < 0.05 for _ in range(round(rate_per_s * 5 * 20))) if rate_per_s else 0
        if 0 < rate_per_s < 1:
            jobs = int(rng.random() < rate_per_s * 5)
        services_s = [rng.lognormvariate(-1, 0.8) for _ in range(jobs)]
        pickups_s = [rng.expovariate(0.5) for _ in range(jobs)]
        rows.append(
            BucketRow(
                queue=f"redis/queue-{number}",
                bucket_s=BEGAN_S + 5.0 * bucket,
                arrived_jobs=jobs,
                started_jobs=jobs,
                finished_jobs=jobs,
                service_sum_s=sum(services_s),
                pickup_max_s=max(pickups_s, default=None),
                service_sketch=merged({sketch_index(value): 1} for value in services_s),
                pickup_sketch=merged({sketch_index(value): 1} for value in pickups_s),
                sampled_at_s=BEGAN_S + 5.0 * bucket + 2,
                waiting_jobs=jobs // 4,
                in_flight_jobs=min(jobs, 3),
                oldest_age_s=0.5 if jobs >= 4 else 0.0,
            )
        )
    return rows


if __name__ == "__main__":
    main()
