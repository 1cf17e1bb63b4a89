import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.simulate.replay import RecordedJob
from headway.simulate.studies.fixed_pool import fixed_pool, pickup_times, smallest_fixed_pool


def job(arrived_at_s: float, service_s: float) -> RecordedJob:
    return RecordedJob(at_s=arrived_at_s, service_s=service_s)


@pytest.mark.parametrize(
    ("jobs", "workers", "waits", "ends_at_s"),
    [
        ([job(0, 4)], 1, [0], 4),
        ([job(0, 4), job(1, 4)], 1, [0, 3], 8),  # the second waits for the first: 4 − 1
        ([job(0, 4), job(1, 4)], 2, [0, 0], 5),
        ([job(0, 4), job(0, 2), job(0, 2)], 2, [0, 0, 2], 4),  # the third takes the worker that is free first
        ([job(0, 9), job(1, 1), job(2, 1)], 2, [0, 0, 0], 9),
        ([job(5, 1), job(0, 1)], 1, [0, 0], 6),  # the order given does not matter, the arrivals do
    ],
)
def test_jobs_are_served_first_come_first_served(jobs, workers, waits, ends_at_s):
    assert pickup_times(jobs, workers=workers) == (waits, ends_at_s)


@pytest.mark.parametrize(
    ("fraction", "workers"),
    [
        (0.25, 1),  # one worker: waits 0, 10, 20, 30; one of four within 5 s
        (0.5, 2),  # two: 0, 0, 10, 10
        (0.75, 3),
        (0.8, 4),  # 3 of 4 are not 80 %
        (1.0, 4),
    ],
)
def test_the_smallest_pool_reaches_the_fraction_and_no_smaller_one_does(fraction, workers):
    burst = [job(0, 10)] * 4
    found = smallest_fixed_pool(burst, objective_s=5, fraction=fraction)
    assert found.workers == workers
    assert found.in_time_fraction >= fraction


def test_a_pool_that_may_not_be_large_enough_is_as_large_as_it_may_be():
    found = smallest_fixed_pool([job(0, 10)] * 4, objective_s=5, fraction=1.0, workers_max=3)
    assert (found.workers, found.in_time_fraction) == (3, 0.75)


jobs_of_any_kind = st.lists(
    st.builds(job, st.floats(0, 100, width=32), st.floats(0, 30, width=32)), min_size=1, max_size=30
)


@given(jobs=jobs_of_any_kind, workers=st.integers(1, 10))
def test_one_more_worker_never_makes_a_job_wait_longer(jobs, workers):
    fewer, _ = pickup_times(jobs, workers=workers)
    more, _ = pickup_times(jobs, workers=workers + 1)
    assert all(one <= other + 1e-9 for one, other in zip(more, fewer, strict=True))


@given(jobs=jobs_of_any_kind, fraction=st.floats(0, 1))
def test_one_worker_fewer_would_not_reach_the_fraction(jobs, fraction):
    found = smallest_fixed_pool(jobs, objective_s=2, fraction=fraction)
    assert found.in_time_fraction >= fraction
    if found.workers > 1:
        smaller = fixed_pool(jobs, workers=found.workers - 1, objective_s=2)
        assert smaller.in_time_fraction < fraction


def test_a_pool_of_nobody_or_for_nothing_is_refused():
    with pytest.raises(Invalid, match="workers=0"):
        fixed_pool([job(0, 1)], workers=0, objective_s=1)
    with pytest.raises(Invalid, match="jobs=0"):
        fixed_pool([], workers=1, objective_s=1)
