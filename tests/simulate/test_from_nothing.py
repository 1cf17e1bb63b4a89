"""What no pool can do that has no worker at the first moment, whatever it knows."""

import heapq
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.simulate.replay import RecordedJob
from support.cost_lower_bound import least_hours, least_starts

OBJECTIVE_S = 10.0


def at_once(jobs: int, service_s: float) -> list[RecordedJob]:
    return [RecordedJob(at_s=0.0, service_s=service_s)] * jobs


@pytest.mark.parametrize(
    ("jobs", "start_up_s", "percent", "starts"),
    [
        (at_once(20_000, 0.036), 2.0, 99.5, 90),  # each starts 1 + ⌊8 ÷ 0.036⌋ = 223; 19,900 ÷ 223 = 89.2
        (at_once(20_000, 0.036), 2.0, 40.0, 36),  # 8,000 ÷ 223 = 35.9
        (at_once(20_000, 0.036), 8.0, 28.0, 100),  # each starts 1 + ⌊2 ÷ 0.036⌋ = 56
        (at_once(20_000, 0.036), 8.0, 2.5, 9),  # 500 ÷ 56 = 8.9
        (at_once(7, 60.0), 2.0, 100.0, 7),  # nobody starts a second one
        (at_once(7, 60.0), 2.0, 50.0, 4),  # 3.5 of 7
        (at_once(7, 60.0), 10.0, 100.0, 7),  # the last moment is in time
        (at_once(7, 60.0), 10.5, 100.0, math.inf),  # nobody is up in time
        (at_once(7, 60.0), 10.5, 0.0, 0),
        ([RecordedJob(at_s=5.0, service_s=1.0)], 12.0, 100.0, 1),  # it came late enough for the start-up
        ([RecordedJob(at_s=100.0, service_s=1.0)] * 9, 2.0, 100.0, 0),  # it may be there by then: not counted
        ([], 2.0, 100.0, 0),
    ],
)
def test_so_many_workers_are_started_for_the_first_jobs(
    jobs: Sequence[RecordedJob], start_up_s: float, percent: float, starts: float
) -> None:
    assert least_starts(jobs, start_up_s=start_up_s, objective_s=OBJECTIVE_S, percent=percent) == starts


@pytest.mark.parametrize(
    ("percent", "workers_max", "hours"),
    [
        (99.5, 90, 900 / 3600),  # 20,000 × 36 ms of work and 90 start-ups of 2 s
        (99.5, 89, math.inf),
        (40.0, 36, 792 / 3600),  # 36 start-ups
    ],
)
def test_all_work_and_every_start_up_is_paid_for(percent: float, workers_max: int, hours: float) -> None:
    jobs = at_once(20_000, 0.036)
    least = least_hours(jobs, start_up_s=2.0, objective_s=OBJECTIVE_S, percent=percent, workers_max=workers_max)
    assert least == pytest.approx(hours)


@given(
    drawn=st.lists(st.tuples(st.floats(0, 30), st.floats(0.1, 20)), min_size=1, max_size=12),
    start_up_s=st.floats(0, 15),
    workers=st.integers(1, 6),
)
def test_no_pool_that_starts_from_nothing_does_with_fewer(
    drawn: list[tuple[float, float]], start_up_s: float, workers: int
) -> None:
    """Workers that are all asked for at the first moment reach what the bound says they may, at most."""
    jobs = [RecordedJob(at_s=at_s, service_s=service_s) for at_s, service_s in sorted(drawn)]
    free_at_s, in_time = [start_up_s] * workers, 0
    for job in sorted(jobs, key=lambda each: (each.at_s, each.service_s)):
        starts_s = max(job.at_s, free_at_s[0])
        if starts_s > job.at_s + OBJECTIVE_S:
            continue  # who is late may wait until all others have started
        heapq.heapreplace(free_at_s, starts_s + job.service_s)
        in_time += 1
    percent = 100 * in_time / len(jobs)
    assert least_starts(jobs, start_up_s=start_up_s, objective_s=OBJECTIVE_S, percent=percent) <= workers
