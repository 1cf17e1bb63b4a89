"""Sources that count jobs and do not name them: what their counters grow by is counted once, like events."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.telemetry import NOW_S, ingesting
from headway.control.ingest.clock_skew import LATENESS_S
from headway.control.ingest.ingest import Ingest
from headway.control.ingest.job_counts import BATCH_JOBS_MAX, JOBS_MAX, grown, is_odd, rows_of_counts, taken
from headway.errors import Invalid
from headway.scaling.measure import BucketRow, queue_metrics
from headway.scaling.model import EventKind, Objective, QueueCounts, TelemetryBatch
from headway.store.events.batches import BatchKey

ENQUEUED, STARTED, FINISHED, FAILED = EventKind.ENQUEUED, EventKind.STARTED, EventKind.FINISHED, EventKind.FAILED


def counts(arrived_jobs: int | None = None, *, epoch: str = "a", at_s: float = NOW_S, **values: Any) -> QueueCounts:
    return QueueCounts(queue="redis/mail", at_s=at_s, epoch=epoch, arrived_jobs=arrived_jobs, **values)


def batch(sequence: int, *reports: QueueCounts, producer: str = "app") -> TelemetryBatch:
    return TelemetryBatch(producer=producer, sequence=sequence, sent_at_s=NOW_S, counts=reports)


def recorded(root: Path) -> Counter[str]:
    """How many jobs of each kind are in the log."""
    return Counter(row["kind"] for path in (root / "hot").glob("*.parquet") for row in pq.read_table(path).to_pylist())


@pytest.mark.parametrize(
    ("before", "after", "jobs"),
    [
        (None, counts(1_000_000), {}),  # of a first report nobody knows since when it counts
        (counts(10), counts(10), {}),
        (counts(10), counts(15), {ENQUEUED: 5}),
        (counts(10, started_jobs=9), counts(12, started_jobs=12), {ENQUEUED: 2, STARTED: 3}),
        (counts(finished_jobs=1, failed_jobs=1), counts(finished_jobs=3, failed_jobs=2), {FINISHED: 2, FAILED: 1}),
        (counts(10), counts(4, epoch="b"), {ENQUEUED: 4}),  # begun anew at 0
        (counts(10), counts(4), {}),  # fell: nobody knows what that means
        (counts(10), counts(11 + JOBS_MAX), {}),  # no load
        (counts(), counts(4), {}),  # was not counted before
        (counts(4), counts(), {}),
        (counts(), counts(4, epoch="b"), {ENQUEUED: 4}),
    ],
)
def test_what_a_counter_grows_by_is_counted(
    before: QueueCounts | None, after: QueueCounts, jobs: dict[EventKind, int]
) -> None:
    known = None if before is None else taken(before, sequence=1, received_at_s=NOW_S - 5)
    assert grown(known, after, received_at_s=NOW_S) == jobs
    late = None if known is None else known._replace(received_at_s=NOW_S - LATENESS_S - 1)
    assert grown(late, after, received_at_s=NOW_S) == {}


@pytest.mark.parametrize(
    ("before", "after", "odd"),
    [(4, counts(5), False), (5, counts(4), True), (5, counts(4, epoch="b"), False), (0, counts(JOBS_MAX + 1), True)],
)
def test_a_counter_that_fell_or_jumped_is_odd(before: int, after: QueueCounts, odd: bool) -> None:
    assert is_odd(taken(counts(before), sequence=1, received_at_s=NOW_S), after) is odd
    assert not is_odd(None, after)


def test_jobs_are_spread_evenly_over_the_time_since_the_last_report() -> None:
    known = taken(counts(0), sequence=1, received_at_s=NOW_S - 10)
    rows = rows_of_counts(known, counts(4), BatchKey("app", 2), received_at_s=NOW_S, offset_s=0.0)
    assert [row.at_s - NOW_S for row in rows] == [-8.75, -6.25, -3.75, -1.25]


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("ab")), max_size=12))
def test_no_job_is_counted_twice_whatever_counters_do(reports: list[tuple[int, str]]) -> None:
    """Never more than the sum of what each life of the counters has risen by."""
    known, counted, most = None, 0, 0
    for number, (jobs, epoch) in enumerate(reports):
        report = counts(jobs, epoch=epoch)
        if known is not None:
            most += max(0, jobs - (known.arrived_jobs or 0)) if known.epoch == epoch else jobs
        counted += sum(grown(known, report, received_at_s=NOW_S).values())
        known = taken(report, sequence=number, received_at_s=NOW_S)
    assert counted == most


async def test_counts_are_recorded_once_whoever_takes_them_and_in_whatever_order(
    migrated_url: str, tmp_path: Path
) -> None:
    async with ingesting(migrated_url, tmp_path) as one, ingesting(migrated_url, tmp_path) as other:
        await one.accept(batch(1, counts(100)))
        await one.accept(batch(2, counts(103, finished_jobs=7)))
        assert (await other.accept(batch(2, counts(103, finished_jobs=7)))).is_duplicate
        await other.accept(batch(4, counts(110, finished_jobs=9)))
        await one.accept(batch(3, counts(106, finished_jobs=8)))  # came late: the newer one has counted it
        await one.accept(batch(5, counts(2, epoch="b")))
        assert recorded(tmp_path) == {"enqueued": 12, "finished": 2}
        await one.accept(batch(1, counts(5_000), producer="another"))
    assert recorded(tmp_path) == {"enqueued": 12, "finished": 2}
    async with ingesting(migrated_url, tmp_path) as after_a_restart:
        await after_a_restart.accept(batch(6, counts(3, epoch="b")))
    assert recorded(tmp_path)["enqueued"] == 13


async def test_a_batch_of_counters_that_jump_is_taken_and_not_counted(migrated_url: str, tmp_path: Path) -> None:
    queues = [f"redis/{number}" for number in range(BATCH_JOBS_MAX // JOBS_MAX + 2)]

    def report(jobs: int) -> list[QueueCounts]:
        return [QueueCounts(queue=queue, at_s=NOW_S, epoch="a", arrived_jobs=jobs) for queue in queues]

    async with ingesting(migrated_url, tmp_path) as ingest:
        await ingest.accept(batch(1, *report(0)))
        await ingest.accept(batch(2, *report(JOBS_MAX)))
        assert recorded(tmp_path)["enqueued"] == BATCH_JOBS_MAX // JOBS_MAX * JOBS_MAX
        await ingest.accept(batch(3, *report(JOBS_MAX + 1)))
        assert recorded(tmp_path)["enqueued"] == BATCH_JOBS_MAX // JOBS_MAX * JOBS_MAX + len(queues)


async def test_counts_that_are_none_are_refused(migrated_url: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="epoch is empty"):
        counts(1, epoch="")
    with pytest.raises(Invalid, match="arrived_jobs=-1 is negative"):
        counts(-1)
    async with ingesting(migrated_url, tmp_path) as ingest:
        for wrong in (counts(2**63), counts(1, epoch="x" * 501), counts(1, at_s=float("nan"))):
            with pytest.raises(Invalid):
                await refused(ingest, wrong)


async def refused(ingest: Ingest, report: QueueCounts) -> None:
    await ingest.accept(batch(1, report))


def test_without_a_start_the_service_time_is_the_jobs_in_flight_by_the_completions() -> None:
    """Five in flight, and sixty ended in the minute: 5 s each, by Little's law."""
    rows = [BucketRow(queue="q", bucket_s=5.0 * number, started_jobs=5, finished_jobs=5) for number in range(12)]
    sampled = BucketRow(queue="q", bucket_s=60.0, sampled_at_s=60.0, waiting_jobs=1, in_flight_jobs=5, oldest_age_s=0.0)
    found = queue_metrics([*rows, sampled], queue="q", now_s=60.0, objective=Objective())
    assert found.service_time_s == pytest.approx(5.0)
    idle = queue_metrics([sampled], queue="q", now_s=60.0, objective=Objective())
    assert idle.service_time_s is None
