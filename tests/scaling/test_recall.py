"""What earlier days predict for this minute."""

from collections import Counter
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.history.daily import DAY_MINUTES, Recall, recalled_jobs

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


def recalled_of(recall: Recall, *, now_s: float, ahead_s: float) -> int | None:
    return recalled_jobs(recall.by_minute, since=recall.since, now_s=now_s, ahead_s=ahead_s)


def test_what_is_taken_evaluation_by_evaluation_is_recalled_by_the_same_rule() -> None:
    recall = Recall()
    for evaluation in range(2 * DAY_MINUTES * 2):
        recall.take(1 if evaluation % 100 == 0 else 0, at_s=30.0 * (evaluation + 1))
    today_s = 2 * 86_400.0
    assert recalled_of(recall, now_s=today_s, ahead_s=0.0) == 1
    assert recalled_of(recall, now_s=today_s + 60.0, ahead_s=0.0) == 0
    assert recalled_of(recall, now_s=today_s + 60.0, ahead_s=3_000.0) == 1


def test_a_day_has_24_hours_also_when_clocks_go_forward() -> None:
    """What comes by the wall's clock is recalled an hour off on the first day, and right from the second on."""
    recall, berlin = Recall(), ZoneInfo("Europe/Berlin")
    recall.take(0, at_s=datetime(2026, 3, 27, 8, tzinfo=berlin).timestamp())
    for day in (28, 29, 30):  # clocks go forward on the 29th
        at_8_s = datetime(2026, 3, day, 8, tzinfo=berlin).timestamp()
        recall.take(9, at_s=at_8_s + 30)
    at_8_s, at_9_s = (datetime(2026, 3, 29, hour, tzinfo=berlin).timestamp() for hour in (8, 9))
    tuesday_s = datetime(2026, 3, 31, 8, tzinfo=berlin).timestamp()
    assert (recalled_of(recall, now_s=at_8_s, ahead_s=0.0), recalled_of(recall, now_s=at_9_s, ahead_s=0.0)) == (0, 9)
    assert recalled_of(recall, now_s=tuesday_s, ahead_s=0.0) == 9


def test_a_span_that_ends_with_a_minute_belongs_to_it() -> None:
    recall = Recall()
    for day in (0, 1):
        recall.take(5, at_s=day * 86_400.0 + 60.0)
        recall.take(2, at_s=day * 86_400.0 + 65.0)
    assert recalled_of(recall, now_s=2 * 86_400.0, ahead_s=0.0) == 5
    assert recalled_of(recall, now_s=2 * 86_400.0 + 60.0, ahead_s=0.0) == 2


def test_what_is_older_than_a_week_is_forgotten() -> None:
    recall = Recall()
    for minute in range(9 * DAY_MINUTES):
        recall.take(1, at_s=60.0 * minute + 30.0)
    assert len(recall.by_minute) <= 7 * DAY_MINUTES + 1


MINUTES = st.integers(0, 9).flatmap(lambda day: st.sampled_from([-1, 0, 1]).map(lambda off: (day, off)))
JOBS = st.dictionaries(MINUTES, st.integers(0, 1000)).map(
    lambda found: {MINUTE - day * DAY_MINUTES + off: jobs for (day, off), jobs in found.items()}
)
AHEAD_S = st.floats(0, 90)


@given(jobs=JOBS, days_known=st.integers(1, 9), ahead_s=AHEAD_S, more=JOBS)
def test_more_on_earlier_days_is_never_recalled_as_less(
    jobs: dict[int, int], days_known: int, ahead_s: float, more: dict[int, int]
) -> None:
    earlier = {minute: count for minute, count in more.items() if minute < MINUTE - 1}
    fuller = Counter(jobs) + Counter(earlier)
    before, after = (recalled(each, days_known=days_known, ahead_s=ahead_s) for each in (jobs, fuller))
    assert before is not None
    assert after is not None
    assert 0 <= before <= after


@given(jobs=JOBS, days_known=st.integers(1, 9), ahead_s=AHEAD_S, more_jobs=st.integers(0, 1000))
def test_more_today_is_never_recalled_as_more(
    jobs: dict[int, int], days_known: int, ahead_s: float, more_jobs: int
) -> None:
    fuller = {**jobs, MINUTE: jobs.get(MINUTE, 0) + more_jobs}
    before, after = (recalled(each, days_known=days_known, ahead_s=ahead_s) for each in (jobs, fuller))
    assert before is not None
    assert after is not None
    assert after <= before
