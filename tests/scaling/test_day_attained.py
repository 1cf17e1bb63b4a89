"""When the error budget of a day that has not ended is spent."""

import pytest

from headway.scaling.metrics.attainment import Attained, DayAttained


@pytest.mark.parametrize(
    ("jobs", "late_jobs", "before_jobs", "percentile", "allowed_jobs", "is_spent"),
    [
        (1000, 10, 0, 99.0, 10.0, False),  # 1 % of 1,000
        (1000, 11, 0, 99.0, 10.0, True),
        (1000, 11, 2000, 99.0, 20.0, False),  # as many may come as yesterday
        (2000, 11, 500, 99.0, 20.0, False),
        (1000, 60, 0, 95.0, 50.0, True),
        (20, 1, 0, 99.0, 1.0, False),  # the first job after a start
        (20, 2, 0, 99.0, 1.0, True),
        (20, 20, 0, 100.0, 1.0, False),  # no budget, so none to spend
    ],
)
def test_it_is_spent_when_more_are_late_than_are_allowed_on_such_a_day(
    jobs: int, late_jobs: int, before_jobs: int, percentile: float, allowed_jobs: float, *, is_spent: bool
) -> None:
    today, before = Attained(jobs=jobs, late_jobs=late_jobs), Attained(jobs=before_jobs, late_jobs=0)
    day = DayAttained(from_s=0.0, today=today, before=before)
    assert day.allowed_jobs(percentile) == pytest.approx(allowed_jobs)
    assert day.is_spent(percentile) == is_spent
