"""How far predictions were off."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.measure import BUCKET_S, BucketRow, sketch_index
from headway.scaling.metrics.prediction_error import PredictionError, cohort, error_of
from headway.scaling.model import EventKind, JobEvent
from support.defined_rows import bucket_rows

AT_S = 1_000.0  # a bucket begins there


def started(bucket_s: float, *waits_s: float) -> BucketRow:
    sketch: dict[int, int] = {}
    for wait_s in waits_s:
        sketch[sketch_index(wait_s)] = sketch.get(sketch_index(wait_s), 0) + 1
    return BucketRow(queue="redis/mail", bucket_s=bucket_s, started_jobs=len(waits_s), pickup_sketch=sketch)


@pytest.mark.parametrize(
    ("rows", "jobs", "wait_s"),
    [
        ((), None, None),
        ((started(AT_S, 0.0),), 1.0, 0.0),  # taken at once
        ((started(AT_S - BUCKET_S, 0.0),), None, None),  # the jobs before
        ((started(AT_S + 10.0, 10.0),), 1.0, 10.0),
        ((started(AT_S + 10.0, 5.0),), None, None),  # enqueued five seconds after
        ((started(AT_S + 10.0, 7.5, 12.5),), 1.0, 10.0),  # half of either may be of the cohort
        ((started(AT_S + 10.0, 10.0), started(AT_S + 20.0, 20.0)), 2.0, 15.0),
    ],
)
def test_a_cohort_is_the_jobs_of_its_span_by_when_they_started_and_how_long_they_had_waited(
    rows: tuple[BucketRow, ...], jobs: float | None, wait_s: float | None
) -> None:
    found = cohort(rows, at_s=AT_S)
    if jobs is None:
        assert found is None
    else:
        assert found is not None
        assert found.jobs == pytest.approx(jobs, abs=0.05)
        assert found.wait_s == pytest.approx(wait_s, rel=0.02, abs=0.01)


@given(seed=st.integers(0, 10_000), wait_s=st.floats(0.0, 60.0), growth=st.floats(-0.2, 0.5))
def test_the_wait_of_a_cohort_is_that_of_the_jobs_that_were_enqueued_then(
    seed: int, wait_s: float, growth: float
) -> None:
    """Of a queue whose wait changes smoothly. What is compared are the events themselves."""
    rng = random.Random(seed)
    enqueued_s = sorted(AT_S + rng.uniform(-100.0, 100.0) for _ in range(4_000))
    waits_s = [max(0.0, wait_s + growth * (each - AT_S)) for each in enqueued_s]
    events = [
        JobEvent(queue="q", job_id="j", kind=EventKind.STARTED, at_s=at_s + waited_s, enqueued_at_s=at_s)
        for at_s, waited_s in zip(enqueued_s, waits_s, strict=True)
    ]
    found = cohort(bucket_rows(events), at_s=AT_S)
    of_span = [w for at_s, w in zip(enqueued_s, waits_s, strict=True) if AT_S <= at_s < AT_S + BUCKET_S]
    assert found is not None
    assert found.wait_s == pytest.approx(sum(of_span) / len(of_span), abs=0.6 + 0.02 * wait_s)
    assert found.jobs == pytest.approx(len(of_span), rel=0.35)


def test_errors_are_reported_by_their_size_and_by_their_side() -> None:
    assert error_of([]) is None
    assert error_of([2.0]) == PredictionError(p50_s=2.0, p95_s=2.0, bias_s=2.0, count=1)
    off = error_of([-1.0] * 10 + [0.0] * 8 + [5.0] * 2)
    assert off == PredictionError(p50_s=1.0, p95_s=5.0, bias_s=0.0, count=20)
