"""What earlier days tell of this minute."""

import pytest

from headway.scaling.recall import DAY_MINUTES, Recall, recalled_jobs

MINUTE = 20 * DAY_MINUTES
NOW_S = MINUTE * 60.0 + 30.0


def at(days: dict[int, int], *, minute: int = MINUTE) -> dict[int, int]:
    """Arrivals in ``minute`` so many days ago."""
    return {minute - day * DAY_MINUTES: jobs for day, jobs in days.items()}


def recalled(jobs: dict[int, int], *, days_known: int = 7, ahead_s: float = 10.0) -> int | None:
    return recalled_jobs(jobs, since=MINUTE - days_known * DAY_MINUTES, now_s=NOW_S, ahead_s=ahead_s)


@pytest.mark.parametrize(
    ("days", "days_known", "expected"),
    [
        ({1: 9}, 1, 9),
        ({1: 9, 2: 4}, 2, 9),
        ({1: 9, 2: 4}, 3, 4),  # the third day had none
        ({1: 9}, 3, 0),  # one odd day
        ({3: 9, 7: 8, 8: 99}, 8, 8),  # a week, no more
    ],
)
def test_of_three_days_or_more_the_second_most_counts(days: dict[int, int], days_known: int, expected: int) -> None:
    assert recalled(at(days), days_known=days_known) == expected


def test_nothing_is_recalled_until_a_whole_day_is_known() -> None:
    jobs = at({1: 9})
    assert recalled_jobs({}, since=None, now_s=NOW_S, ahead_s=10.0) is None
    assert recalled_jobs(jobs, since=MINUTE - DAY_MINUTES + 1, now_s=NOW_S, ahead_s=10.0) is None
    assert recalled_jobs(jobs, since=MINUTE - DAY_MINUTES, now_s=NOW_S, ahead_s=10.0) == 9


def test_what_the_minute_has_today_is_not_expected_again() -> None:
    assert recalled(at({0: 3, 1: 9}), days_known=1) == 6
    assert recalled(at({0: 30, 1: 9}), days_known=1) == 0


def test_a_minute_counts_from_when_it_begins_within_the_time_ahead() -> None:
    jobs = at({1: 2}) | at({1: 9}, minute=MINUTE + 1)
    assert recalled(jobs, days_known=1, ahead_s=29.0) == 2
    assert recalled(jobs, days_known=1, ahead_s=30.0) == 9


def test_what_is_taken_look_by_look_is_recalled_by_the_same_rule() -> None:
    recall = Recall()
    for look in range(2 * DAY_MINUTES * 2):
        recall.take(1 if look % 100 == 0 else 0, at_s=30.0 * (look + 1))
    today_s = 2 * 86_400.0
    assert recall.jobs(now_s=today_s, ahead_s=0.0) == 1
    assert recall.jobs(now_s=today_s + 60.0, ahead_s=0.0) == 0
    assert recall.jobs(now_s=today_s + 60.0, ahead_s=3_000.0) == 1
