"""Totals of queues on a real Postgres: what is counted and what is not yet are together what the buckets brought."""

from collections.abc import Iterator

import psycopg
import pytest

from headway.scaling.measure import BucketRow, sketch_index
from headway.scaling.metrics.job_totals import JobTotals, together
from headway.store.engine import Engine, transaction
from headway.store.metrics import rollups
from headway.store.metrics.metrics_sink import MetricsSink
from headway.store.metrics.queue_totals import read_live, read_totals, read_totals_until_s
from headway.store.missing_rights import MissingRights
from store.progress import Progress

HOUR_S = 1_000_800.0  # on the hour


class Pipeline:
    """Writes buckets as the stream does, and tends the rollups."""

    def __init__(self, url: str) -> None:
        self.sink = MetricsSink(url)
        self.connection: rollups.Connection = psycopg.connect(url, autocommit=True)

    def write(self, after_s: float, jobs: int, queue: str = "q") -> None:
        self.sink.write(
            [
                BucketRow(
                    queue=queue,
                    bucket_s=HOUR_S + after_s,
                    arrived_jobs=jobs,
                    started_jobs=jobs,
                    pickup_sketch={sketch_index(1.0): jobs} if jobs else {},
                )
            ],
            Progress(),
        )

    def tend(self) -> None:
        rollups.tend(self.connection, is_stopping=lambda: False, lacks=MissingRights())


@pytest.fixture
def pipeline(migrated_url: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(migrated_url)
    yield pipeline
    pipeline.sink.close()
    pipeline.connection.close()


async def total(engine: Engine, queue: str = "q") -> tuple[JobTotals, float | None]:
    """What is counted of ``queue`` and what is not yet, and up to when it is."""
    async with transaction(engine) as conn:
        until_s = await read_totals_until_s(conn)
        rows, _ = await read_live(conn, from_s=until_s or 0.0, after_revision=0)
        parts = [jobs for name, jobs in (await read_totals(conn)).items() if name == queue]
        parts += [live.jobs for live in rows if live.queue == queue]
    return together(parts), until_s


async def test_nothing_is_known_before_the_first_count(engine: Engine, pipeline: Pipeline) -> None:
    pipeline.write(0.0, 3)
    async with transaction(engine) as conn:
        assert await read_totals_until_s(conn) is None


async def test_a_total_is_of_all_buckets_wherever_the_count_has_come(engine: Engine, pipeline: Pipeline) -> None:
    pipeline.write(0.0, 0)
    pipeline.tend()
    jobs, seen = 0, set()
    for after_s in range(0, 7200, 200):
        pipeline.write(float(after_s), 2)
        jobs += 2
        pipeline.tend()
        found, until_s = await total(engine)
        assert (found.enqueued, found.started, found.waited) == (jobs, jobs, jobs)
        seen.add(until_s)
    assert len(seen) > 10, "the count went on"


async def test_an_event_that_comes_late_counts_once(engine: Engine, pipeline: Pipeline) -> None:
    pipeline.write(0.0, 1)
    pipeline.tend()
    pipeline.write(1300.0, 1)
    pipeline.tend()
    pipeline.write(700.0, 5)  # 600 s late
    pipeline.tend()
    pipeline.write(3000.0, 1)
    for _ in range(2):
        pipeline.tend()
    assert (await total(engine))[0].enqueued == 8


async def test_no_bucket_is_deleted_before_it_is_counted(engine: Engine, pipeline: Pipeline) -> None:
    """The pipeline was away for days, and finds what it left."""
    pipeline.write(0.0, 1)
    pipeline.tend()
    pipeline.write(600.0, 4)
    pipeline.connection.execute("update queue_buckets set written_at = now() - interval '1 day'")
    pipeline.write(2 * 86_400.0, 2)
    pipeline.tend()
    assert (await total(engine))[0].enqueued == 7


async def test_what_is_not_counted_of_late_is_not_known(engine: Engine, pipeline: Pipeline) -> None:
    """As where the pipeline is of an earlier version: buckets are gone that nobody has counted."""
    pipeline.write(0.0, 1)
    pipeline.tend()
    pipeline.write(7200.0, 1)
    async with transaction(engine) as conn:
        assert await read_totals_until_s(conn) is None
