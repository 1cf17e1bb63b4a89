"""What a slot takes between two jobs."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.measure import BUCKET_S, SERVICE_WINDOW_S, BucketRow, sketch_index
from headway.scaling.metrics.dispatch_overhead import DISPATCH_ROUNDS_MIN, Dispatch, Seen, busy_slots, with_samples

BUCKET = 100.0


def sample(at_s: float, age_s: float, slots: int | None = 2) -> Seen:
    return Seen(sampled_at_s=at_s, oldest_age_s=age_s, slots=slots)


@pytest.mark.parametrize(
    ("samples", "slots"),
    [
        # the span is from 100 to 105
        ((sample(99.0, 5.0), sample(104.0, 6.0), sample(109.0, 7.0)), 2),
        ((sample(99.0, 0.0), sample(109.0, 9.0)), 2),  # one job has waited for all of it
        ((sample(99.0, 0.0), sample(109.0, 8.9)), None),  # who waits at the end came when the span had begun
        ((sample(99.0, 5.0), sample(104.0, 3.0), sample(109.0, 6.0)), None),  # from 100 to 101 nobody may have waited
        ((sample(99.0, 5.0), sample(104.0, 4.0), sample(109.0, 5.0)), 2),  # one after the other
        ((sample(99.0, 5.0), sample(104.0, 6.0), sample(109.0, 4.0)), None),  # from 104 to 105
        ((sample(99.0, 5.0), sample(104.0, 6.0)), None),  # not over yet
        ((sample(104.0, 6.0), sample(109.0, 12.0)), None),  # not seen from its beginning
        ((sample(99.0, 9.0), sample(104.0, 9.0, slots=3), sample(109.0, 9.0)), None),  # one came and went
        ((sample(99.0, 9.0), sample(104.0, 9.0, slots=None), sample(109.0, 9.0)), None),
        ((sample(99.0, 9.0, slots=0), sample(109.0, 20.0, slots=0)), None),
        ((sample(94.0, 9.0, slots=5), sample(99.0, 9.0), sample(109.0, 20.0), sample(114.0, 9.0, slots=5)), 2),
        ((), None),
    ],
)
def test_slots_were_busy_where_somebody_waited_all_the_time_and_no_worker_came_or_went(
    samples: tuple[Seen, ...], slots: int | None
) -> None:
    assert busy_slots(samples, bucket_s=BUCKET) == slots


def test_spans_of_which_no_row_is_kept_any_more_are_not_learned_from() -> None:
    """A job that waited through a silence of a month: what the slots did in it is not known."""
    month_s = 30 * 86_400.0
    samples = (sample(BUCKET, 1.0), sample(BUCKET + month_s, month_s))
    learned = with_samples(Dispatch(), samples, (), now_s=BUCKET + month_s + 1.0)
    assert learned.run.slot_s <= 2 * SERVICE_WINDOW_S


def row(jobs: int, service_s: float, *, failed: int = 0) -> BucketRow:
    return BucketRow(
        queue="redis/mail",
        bucket_s=BUCKET,
        finished_jobs=jobs - failed,
        failed_jobs=failed,
        service_sum_s=jobs * service_s,
        service_sketch={sketch_index(service_s): jobs},
    )


def row_of(took: list[float], bucket_s: float) -> BucketRow:
    """The row of a bucket in which jobs ended that took so long."""
    return BucketRow(
        queue="redis/mail",
        bucket_s=bucket_s,
        finished_jobs=len(took),
        service_sum_s=sum(took),
        service_sketch=dict(Counter(map(sketch_index, took))),
    )


def test_the_overhead_is_what_the_slots_had_beyond_what_the_jobs_took() -> None:
    learned = Dispatch().with_span([row(100, 0.002, failed=40), row(40, 0.002)], bucket_s=BUCKET, slots=1)
    assert learned.overhead_s == pytest.approx((5.0 - 140 * 0.002) / 140, rel=1e-2)  # 28 a second
    assert learned.until_s == BUCKET + BUCKET_S


def test_jobs_whose_start_is_not_known_took_as_long_as_the_others() -> None:
    known = row(50, 0.04)
    half = BucketRow(
        queue="q",
        bucket_s=BUCKET,
        finished_jobs=50,
        service_sum_s=25 * 0.04,
        service_sketch=row(25, 0.04).service_sketch,
    )
    overheads = [Dispatch().with_span([each], bucket_s=BUCKET, slots=1).overhead_s for each in (known, half)]
    assert overheads == [pytest.approx(0.06, rel=0.01)] * 2
    unknown = BucketRow(queue="q", bucket_s=BUCKET, finished_jobs=50)
    assert Dispatch().with_span([unknown], bucket_s=BUCKET, slots=1) == Dispatch()


def test_a_few_long_jobs_show_nothing_yet() -> None:
    learned = Dispatch()
    for number in range(8):
        learned = learned.with_span([row(1, 5.0)], bucket_s=BUCKET + number * BUCKET_S, slots=1)
    assert learned.run.rounds < DISPATCH_ROUNDS_MIN
    assert learned.overhead_s is None


def test_runs_that_are_each_too_short_show_nothing_however_many_they_are() -> None:
    """A burst of two seconds' jobs, all begun together: in five seconds most of them do not end."""
    learned = Dispatch()
    for number in range(100):
        learned = learned.with_span([row(40, 2.0)], bucket_s=BUCKET + number * 60.0, slots=40)
    assert learned.overhead_s is None


@pytest.mark.parametrize(("sigma", "most_s"), [(0.3, 0.015), (0.8, 0.015), (1.2, 0.05)])
def test_bursts_in_which_all_slots_begin_at_once_show_no_overhead_where_there_is_none(
    sigma: float, most_s: float
) -> None:
    """At their ends a slot is within a job of which no row speaks yet, at their beginnings it is not."""
    rng, slots, spans_a_burst = random.Random(7), 200, 3
    learned = Dispatch()
    for burst in range(40):
        spans: list[list[float]] = [[] for _ in range(spans_a_burst)]
        for _ in range(slots):
            at_s = 0.0
            while at_s < spans_a_burst * BUCKET_S:
                took_s = rng.lognormvariate(-(sigma**2) / 2, sigma)  # 1 s on average
                at_s += took_s
                if at_s < spans_a_burst * BUCKET_S:
                    spans[math.floor(at_s / BUCKET_S)].append(took_s)
        for number, took in enumerate(spans):
            bucket_s = burst * 1000.0 + number * BUCKET_S
            learned = learned.with_span([row_of(took, bucket_s)], bucket_s=bucket_s, slots=slots)
    assert learned.overhead_s is not None
    assert learned.overhead_s <= most_s


def test_what_was_long_ago_fades() -> None:
    learned = Dispatch()
    for overhead_s in [0.1] * 100 + [0.05] * 100:
        jobs = round(BUCKET_S / (0.05 + overhead_s))
        learned = learned.with_span([row(jobs, 0.05)], bucket_s=learned.until_s, slots=1)
    assert learned.overhead_s == pytest.approx(0.05, rel=0.15)


@given(
    slots=st.integers(1, 8),
    service_s=st.floats(0.002, 2.0),
    overhead_s=st.floats(0.0, 0.5),
    seed=st.integers(0, 1000),
)
def test_what_is_learned_of_real_cycles_is_their_overhead(
    slots: int, service_s: float, overhead_s: float, seed: int
) -> None:
    """Jobs run one after the other; those that end in a span count in it, whenever they began."""
    rng = random.Random(seed)
    spans: list[list[float]] = [[] for _ in range(30)]
    for _ in range(slots):
        at_s = rng.uniform(0.0, service_s)
        while at_s < 200.0:
            took_s = rng.uniform(0.5, 1.5) * service_s
            at_s += overhead_s + took_s
            if 0 <= (number := math.floor((at_s - 20.0) / BUCKET_S)) < len(spans):
                spans[number].append(took_s)
    learned = Dispatch()
    for number, took in enumerate(spans):
        from_s = 20.0 + number * BUCKET_S
        learned = learned.with_span([row_of(took, from_s)], bucket_s=from_s, slots=slots)
    if learned.overhead_s is not None:
        assert learned.overhead_s == pytest.approx(overhead_s, abs=0.02 + 0.12 * (service_s + overhead_s))
