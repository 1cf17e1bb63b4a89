"""The rows that a rehearsal writes are those that the pipeline would have written of the same jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.measure import BUCKET_S, RATE_WINDOW_S, BucketRow, queue_metrics
from headway.scaling.metrics.queue_rows import QueueRows
from headway.scaling.model import EventKind, JobEvent, Objective
from headway.simulate.bucket_view import RowWriter, edges_s, row_of
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import Script, jobs
from support.defined_rows import bucket_rows

QUEUE = "simulated/jobs"
OBJECTIVE = Objective(target_s=10.0, percentile=99.0)
workloads = st.lists(
    st.tuples(st.floats(0, 200).map(lambda at_s: round(at_s, 3)), st.floats(0.01, 40).map(lambda s: round(s, 3))),
    min_size=1,
    max_size=40,
).map(lambda pairs: jobs(*sorted(pairs)))


def written(
    workload: Jobs, *, workers: int, begins_at_s: float, phase_s: float, is_live: bool
) -> tuple[list[BucketRow], list[float]]:
    """The rows of a pool of constant size, and how long each job waited."""
    rows: dict[float, BucketRow] = {}
    script = Script(lambda seen: workers)
    waits: list[float] = []
    simulate(
        [PoolPlan(jobs=workload, warm_workers=workers, is_live=is_live)],
        [script],
        rehearsal=Rehearsal(begins_at_s=begins_at_s, tick_phase_s=phase_s, goes_on_s=10.0),
        on_waits=lambda found: waits.extend(found[0]),
    )
    for seen in script.seen:
        assert seen.rows is not None
        rows |= {row.bucket_s: row for row in seen.rows}
    return [rows[bucket_s] for bucket_s in sorted(rows)], waits


def events(workload: Jobs, waits: list[float], *, begins_at_s: float) -> list[JobEvent]:
    found = []
    for number, (at_s, service_s, wait_s) in enumerate(zip(workload.at_s, workload.service_s, waits, strict=True)):
        enqueued_at_s = begins_at_s + at_s
        started_at_s = begins_at_s + (at_s + wait_s)
        for kind, moment_s in (
            (EventKind.ENQUEUED, enqueued_at_s),
            (EventKind.STARTED, started_at_s),
            (EventKind.FINISHED, begins_at_s + (at_s + wait_s) + service_s),
        ):
            found.append(
                JobEvent(
                    queue=QUEUE,
                    job_id=str(number),
                    kind=kind,
                    at_s=moment_s,
                    enqueued_at_s=enqueued_at_s,
                    started_at_s=started_at_s if kind is EventKind.FINISHED else None,
                )
            )
    return found


@given(workloads, st.integers(1, 4), st.sampled_from([0.0, 0.37, 1.25, 4.99]), st.booleans())
def test_the_rows_are_those_of_the_pipeline(workload: Jobs, workers: int, phase_s: float, is_live: bool) -> None:
    begins_at_s = 1_000_000.123  # no job does anything just where a bucket ends
    rows, waits = written(workload, workers=workers, begins_at_s=begins_at_s, phase_s=phase_s, is_live=is_live)
    expected = {row.bucket_s: row for row in bucket_rows(events(workload, waits, begins_at_s=begins_at_s))}
    found = {row.bucket_s: row for row in rows if row.arrived_jobs or row.started_jobs or row.finished_jobs}
    assert found.keys() == expected.keys()
    for bucket_s, row in found.items():
        theirs = expected[bucket_s]
        assert (row.arrived_jobs, row.started_jobs, row.finished_jobs) == (
            theirs.arrived_jobs,
            theirs.started_jobs,
            theirs.finished_jobs,
        )
        assert row.service_sum_s == pytest.approx(theirs.service_sum_s)
        assert row.pickup_max_s == pytest.approx(theirs.pickup_max_s, abs=1e-6)
        assert sum(row.service_sketch.values()) == row.finished_jobs
        assert sum(row.pickup_sketch.values()) == row.started_jobs


def test_buckets_end_by_the_clock() -> None:
    assert list(edges_s(0.0, 12.0, begins_at_s=1_000_003.0)) == [2.0, 7.0]
    assert list(edges_s(2.0, 6.9, begins_at_s=1_000_003.0)) == []
    assert list(edges_s(0.0, 10.0, begins_at_s=1_000_000.0)) == [5.0]


def part(at_s: float, *, arrived: int = 0, waiting: int = 0) -> BucketRow:
    return row_of(
        QUEUE,
        at_s=at_s,
        counts=(arrived, 0, 0, 0),
        service_sum_s=0.0,
        pickups_s=(),
        depths=(waiting, 0, 1.0 if waiting else None),
    )


def test_a_bucket_is_written_on_until_it_has_passed() -> None:
    writer = RowWriter(QUEUE)
    writer.add(part(1001.0, arrived=2, waiting=2))
    (first,) = writer.take()
    assert (first.bucket_s, first.arrived_jobs, first.waiting_jobs) == (1000.0, 2, 2)
    writer.add(part(1005.0, arrived=1, waiting=3))
    writer.add(part(1006.0, waiting=1))
    earlier, later = writer.take()
    assert (earlier.bucket_s, earlier.arrived_jobs, earlier.waiting_jobs, earlier.sampled_at_s) == (
        1000.0,
        3,
        3,
        1005.0,
    )
    assert (later.bucket_s, later.arrived_jobs, later.waiting_jobs) == (1005.0, 0, 1)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=80))
def test_what_is_forgotten_changes_no_metric(observations: list[tuple[int, int, int]]) -> None:
    """Five-second parts with silences of up to 25 min between them."""
    kept, everything, at_s = QueueRows(QUEUE), {}, 1_000_000.0
    for silent_buckets, arrived, waiting in observations:
        at_s += BUCKET_S * (1 + silent_buckets)
        row = part(at_s, arrived=arrived, waiting=waiting)
        everything[row.bucket_s] = row
        kept.take(row)
        kept.forget(now_s=kept.newest_s)
        now_s = at_s + 0.7
        whole = queue_metrics(
            list(everything.values()), queue=QUEUE, now_s=now_s, window_s=RATE_WINDOW_S, objective=OBJECTIVE
        )
        assert kept.metrics(now_s=now_s, objective=OBJECTIVE) == whole


def test_a_controller_that_is_given_rows_decides_by_them() -> None:
    """The counts beside the rows say something else: who gives rows gives all that is known of the queue in them."""
    controller = Controller(target_s=10.0)
    row = part(1_000_004.0, arrived=3, waiting=3)
    decision = controller.step(Observation(at_s=1_000_004.0, waiting=0, rows=(row,)), now_s=1_000_004.7)
    assert decision.metrics[0].waiting_jobs == 3
    assert decision.metrics[0].arrived_jobs == 0  # the running bucket is not over
    assert decision.target_workers == 3
    later = controller.step(Observation(at_s=1_000_009.0, waiting=0, rows=(part(1_000_009.0, waiting=3),)))
    assert later.metrics[0].arrived_jobs == 3
