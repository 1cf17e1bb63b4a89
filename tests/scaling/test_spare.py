import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.forecasts.shortfalls import FINE_JOBS, SCALE_MAX, STEP, Shortfalls


def seen(*spans: tuple[float, int], span_s: float = 5.0) -> Shortfalls:
    """Spans of 5 s, each with how many more jobs came than expected, and how many came."""
    found = Shortfalls()
    for shortfall_jobs, jobs in spans:
        found = found.seen(shortfall_jobs, jobs=jobs, span_s=span_s)
    return found


RUSH = seen((10, 60), *[(1, 4)] * 5, *[(0, 2)] * 10)  # 100 jobs in 16 spans: one short by ten, five by one


@pytest.mark.parametrize(
    ("late_fraction", "spare_jobs"),
    [
        (0.0, 10.0),  # none may come beyond the spare
        (0.005, 9.5),  # half a job of the rush may
        (0.05, 5.0),  # five jobs may: 10 − 5
        (0.09, 1.0),  # nine may: 10 − 9
        (0.12, 0.5),  # twelve may: 10 − s + 5 × (1 − s)
        (0.15, 0.0),  # fifteen may: all of the rush and the five
        (1.0, 0.0),
    ],
)
def test_the_least_spare_is_counted_by_jobs_and_not_by_spans(late_fraction: float, spare_jobs: float) -> None:
    assert RUSH.least_spare(late_fraction) == pytest.approx(spare_jobs)


@pytest.mark.parametrize(
    ("worker_s_per_late_job", "jobs_per_worker", "spare_jobs"),
    [
        (80.0, 1.0, 10.0),  # 80 s were watched: a worker for the tenth job saved one late job in them
        (79.0, 1.0, 1.0),  # too few for the tenth, and six for the first
        (80.0 / 6, 1.0, 1.0),  # 80 ÷ 6 s for each of six
        (80.0 / 7, 1.0, 0.0),
        (20.0, 4.0, 10.0),  # a worker that takes four in time serves four rushes for one
        (20.0, 3.9, 1.0),
    ],
)
def test_a_spare_job_is_worth_a_worker_while_it_is_needed_often_enough(
    worker_s_per_late_job: float, jobs_per_worker: float, spare_jobs: float
) -> None:
    assert RUSH.worth(worker_s_per_late_job=worker_s_per_late_job, jobs_per_worker=jobs_per_worker) == spare_jobs


def test_what_came_as_expected_asks_for_nothing() -> None:
    for quiet in (Shortfalls(), seen((0, 5), (-3, 2))):
        assert quiet.least_spare(0.0) == 0.0
        assert quiet.worth(worker_s_per_late_job=1e9, jobs_per_worker=1.0) == 0.0


def test_time_in_which_nothing_came_makes_standing_dearer_and_the_spare_no_smaller() -> None:
    calm = RUSH.seen(0.0, jobs=0, span_s=1.0)
    assert calm.worth(worker_s_per_late_job=80.0, jobs_per_worker=1.0) == 1.0  # 81 s for one job of the rush
    assert calm.least_spare(0.05) == RUSH.least_spare(0.05)


def test_older_spans_weigh_less_than_newer_ones() -> None:
    fading = seen((10, 100))
    for _ in range(3):
        fading = fading.faded(0.5).seen(2, jobs=100, span_s=5.0)
    # jobs 100/8 + 100/4 + 100/2 + 100 = 187.5 and 1 % of them beyond: the rush of ten weighs an eighth,
    # (10 − s) ÷ 8 + 1.75 × (2 − s) = 1.875
    assert fading.least_spare(0.01) == pytest.approx((10 / 8 + 3.5 - 1.875) / 1.875)


@pytest.mark.parametrize(
    ("jobs", "counted"),
    [
        (0.2, 1.0),  # part of a job is one
        (1.0, 1.0),
        (1.1, 2.0),
        (FINE_JOBS, FINE_JOBS),
        (FINE_JOBS + 1, FINE_JOBS * STEP),  # 33 is within 33.6
        (34.0, FINE_JOBS * STEP**2),  # and 34 within 35.28
        (1000.0, FINE_JOBS * STEP**71),  # ln(1000 ÷ 32) ÷ ln 1.05 = 70.5
    ],
)
def test_a_shortfall_is_kept_as_it_is_up_to_32_jobs_and_to_5_percent_beyond(jobs: float, counted: float) -> None:
    assert seen((jobs, 2000)).least_spare(0.0) == pytest.approx(counted)


@given(jobs=st.floats(1e-6, 1e9))
def test_no_shortfall_is_counted_smaller_than_it_was_nor_much_greater(jobs: float) -> None:
    counted = seen((jobs, 1)).least_spare(0.0)
    assert jobs * (1 - 1e-9) <= counted <= max(math.ceil(jobs), jobs * STEP * (1 + 1e-9))


SPANS = st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 10**6), st.floats(0, 600), st.floats(0.01, 1)))


def drawn(spans: list[tuple[float, int, float, float]]) -> Shortfalls:
    found = Shortfalls()
    for shortfall_jobs, jobs, span_s, kept in spans:
        found = found.faded(kept).seen(shortfall_jobs, jobs=jobs, span_s=span_s)
    return found


@given(spans=SPANS, late_fraction=st.floats(0, 1), more=st.floats(0, 1))
def test_allowing_more_late_jobs_never_asks_for_a_greater_spare(
    spans: list[tuple[float, int, float, float]], late_fraction: float, more: float
) -> None:
    found = drawn(spans)
    strict, lax = found.least_spare(late_fraction), found.least_spare(late_fraction + more)
    assert 0.0 <= lax <= strict * (1 + 1e-9)
    assert strict <= found.least_spare(0.0) < math.inf


@given(spans=SPANS, worker_s=st.floats(1, 1e6), more=st.floats(1, 10), jobs_per_worker=st.floats(1, 100))
def test_paying_more_for_a_late_job_never_keeps_fewer_standing(
    spans: list[tuple[float, int, float, float]], worker_s: float, more: float, jobs_per_worker: float
) -> None:
    found = drawn(spans)
    frugal, lavish = (
        found.worth(worker_s_per_late_job=each, jobs_per_worker=jobs_per_worker) for each in (worker_s, worker_s * more)
    )
    assert 0.0 <= frugal <= lavish <= found.least_spare(0.0)


@given(spans=SPANS, late_fraction=st.floats(0, 1), kept=st.floats(0.01, 1))
def test_fading_alone_changes_neither_answer(
    spans: list[tuple[float, int, float, float]], late_fraction: float, kept: float
) -> None:
    found = drawn(spans)
    faded = found.faded(kept)
    assert faded.least_spare(late_fraction) == pytest.approx(found.least_spare(late_fraction))
    # Away from the edge at which a span more or less decides, which rounding may move.
    assert faded.worth(worker_s_per_late_job=math.pi * 1e3, jobs_per_worker=1.0) == found.worth(
        worker_s_per_late_job=math.pi * 1e3, jobs_per_worker=1.0
    )


def test_weights_are_scaled_back_before_they_grow_out_of_what_numbers_hold() -> None:
    before = RUSH
    for _ in range(200):
        before = before.faded(0.5).seen(3, jobs=20, span_s=5.0)
        assert before.scale <= SCALE_MAX
        assert before.jobs <= 21 * 2 * SCALE_MAX
    fresh = replace(before, scale=1.0, jobs=before.jobs / before.scale)
    assert fresh.jobs == pytest.approx(40.0)  # 20 × (1 + 1/2 + 1/4 + …)


def test_after_a_silence_without_end_nothing_is_left_of_what_was() -> None:
    gone = RUSH.faded(0.0)
    assert gone.least_spare(0.0) == 0.0
    assert gone.worth(worker_s_per_late_job=1e9, jobs_per_worker=1.0) == 0.0
    assert gone.seen(4, jobs=5, span_s=5.0).least_spare(0.0) == 4.0
