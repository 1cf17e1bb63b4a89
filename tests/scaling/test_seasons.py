"""What hours of the week bring, and when that is believed."""

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.history.daily import DAY_MINUTES
from headway.scaling.history.weekly import (
    HOUR_MINUTES,
    WEEK_HOURS,
    WEEK_MINUTES,
    WEEKS_MAX,
    ArrivalCounts,
    Errors,
    Member,
    Season,
    Weeks,
    agreed,
    error,
    errors_of,
    seasonal_jobs,
    trained,
)
from headway.scaling.profile_keys.schedule import hour_of_week

MONDAY = 2930 * WEEK_MINUTES + 4 * DAY_MINUTES  # the Unix clock begins on a Thursday
HOUR_9 = 9 * HOUR_MINUTES
SATURDAY = 5 * DAY_MINUTES


def weeks_of(pattern: dict[int, int], *, weeks: int) -> ArrivalCounts:
    """``weeks`` whole weeks up to a Monday, each with ``pattern``: minute of the week -> jobs."""
    since = MONDAY - weeks * WEEK_MINUTES
    return ArrivalCounts(
        since=since,
        until=MONDAY,
        minutes={
            since + week * WEEK_MINUTES + minute: jobs for week in range(weeks) for minute, jobs in pattern.items()
        },
    )


def office(jobs: int = 60) -> dict[int, int]:
    """``jobs`` a minute from nine to five, Monday to Friday."""
    return {day * DAY_MINUTES + minute: jobs for day in range(5) for minute in range(HOUR_9, 17 * HOUR_MINUTES)}


def at_nine(*, days: range = range(5), jobs: int = 100) -> dict[int, int]:
    return {day * DAY_MINUTES + HOUR_9: jobs for day in days}


def learned(counted: ArrivalCounts) -> Season:
    season = trained(counted)
    assert season is not None
    return season


def test_an_hour_of_the_week_is_counted_by_the_clock_on_the_wall() -> None:
    hour = int(datetime(2026, 7, 6, 7, tzinfo=UTC).timestamp()) // 3600  # a Monday
    assert hour_of_week(hour, UTC) == 7
    assert hour_of_week(hour, ZoneInfo("Europe/Berlin")) == 9
    assert hour_of_week(hour - 8, UTC) == WEEK_HOURS - 1
    assert hour_of_week(MONDAY // HOUR_MINUTES, UTC) == 0


def test_hours_keep_to_the_wall_when_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    hours = [int(datetime(2026, 3, day, 9, tzinfo=berlin).timestamp()) // 3600 for day in (27, 30)]
    assert [hour_of_week(hour, berlin) % 24 for hour in hours] == [9, 9]
    assert [hour_of_week(hour, UTC) % 24 for hour in hours] == [8, 7]


def test_an_hour_has_its_mean_and_what_most_of_its_minutes_do_not_exceed() -> None:
    # 57 minutes with 2 jobs and three with 20: a mean of 2.9, and 95 % of 60 minutes are 57
    pattern = {HOUR_9 + minute: 2 for minute in range(57)} | {HOUR_9 + minute: 20 for minute in (57, 58, 59)}
    season = learned(weeks_of(pattern, weeks=3))
    assert season.mean_jobs[9] == pytest.approx(2.9)
    assert season.high_jobs[9] == 2
    assert (season.weeks_seen, season.mean_jobs[10]) == (3, 0.0)


def test_a_minute_that_stands_out_of_its_hour_every_week_is_remembered_by_itself() -> None:
    season = learned(weeks_of(at_nine(), weeks=2))
    assert season.peaks == {day * DAY_MINUTES + HOUR_9: 100 for day in range(5)}


def test_what_one_week_had_is_no_peak() -> None:
    counted = weeks_of(office(2), weeks=3)
    odd = {**counted.minutes, counted.since + 30: 500, counted.until - WEEK_MINUTES + 90: 500}
    season = learned(ArrivalCounts(since=counted.since, until=counted.until, minutes=odd))
    assert (season.peaks, season.mean_jobs[0], season.mean_jobs[1]) == ({}, 0.0, 0.0)


def test_an_hour_that_comes_twice_when_clocks_are_set_back_is_two_hours() -> None:
    """Berlin, 25 October 2026, 2:00: what came in the second of them is not what the first had."""
    berlin = ZoneInfo("Europe/Berlin")
    twice = int(datetime(2026, 10, 25, 0, tzinfo=UTC).timestamp()) // 60
    until = twice + 2 * DAY_MINUTES
    rushes = [twice - 2 * WEEK_MINUTES, twice - WEEK_MINUTES, twice]
    counted = ArrivalCounts(
        since=until - 3 * WEEK_MINUTES, until=until, minutes={**dict.fromkeys(rushes, 50), twice + 60: 900}
    )
    season = trained(counted, zone=berlin)
    assert season is not None
    slot = hour_of_week(twice // HOUR_MINUTES, berlin)
    assert slot == hour_of_week(twice // HOUR_MINUTES + 1, berlin) == 6 * 24 + 2
    assert season.weeks[slot] == 4
    assert season.peaks == {slot * HOUR_MINUTES: 50}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0.0),
        ([(0, 7.0)], 7.0),
        ([(0, 9.0), (1, 4.0)], 4.0),  # neither of two confirms the other
        ([(0, 90.0), (1, 4.0), (2, 5.0)], 5.0),
        ([(0, 8.0), (1, 8.0), (2, 8.0), (3, 2.0), (4, 2.0), (5, 2.0), (6, 2.0)], 8.0),  # three of late beat four of old
    ],
)
def test_what_weeks_agree_on(values: list[tuple[int, float]], expected: float) -> None:
    assert agreed(values) == expected


@given(values=st.lists(st.floats(0, 1e6), min_size=3, max_size=60), odd=st.integers(0, 59), jobs=st.floats(0, 1e9))
def test_one_odd_week_moves_what_weeks_agree_on_no_further_than_another_week(
    values: list[float], odd: int, jobs: float
) -> None:
    odd %= len(values)
    others = [value for age, value in enumerate(values) if age != odd]
    predicted = agreed((age, jobs if age == odd else value) for age, value in enumerate(values))
    assert min(others) <= predicted <= max(others)


@given(values=st.lists(st.integers(0, 100), min_size=1, max_size=30), raised=st.data())
def test_more_jobs_in_a_week_never_lower_what_weeks_agree_on(values: list[int], raised: st.DataObject) -> None:
    more = [value + raised.draw(st.integers(0, 100)) for value in values]
    assert agreed(enumerate(map(float, values))) <= agreed(enumerate(map(float, more)))


def test_nothing_is_learned_of_less_than_two_weeks() -> None:
    whole = weeks_of(office(), weeks=2)
    assert trained(whole) is not None
    assert trained(ArrivalCounts(since=whole.since + 1, until=whole.until, minutes=whole.minutes)) is None
    assert trained(whole.before(whole.end_hour - 1)) is None


def test_hours_reach_further_back_than_minutes() -> None:
    minutes = weeks_of(office(60), weeks=2)
    first = minutes.since // HOUR_MINUTES
    hours = dict.fromkeys(range(first - 6 * WEEK_HOURS, first), 600)  # ten a minute, day and night
    season = learned(
        ArrivalCounts(
            since=minutes.since,
            until=minutes.until,
            minutes=minutes.minutes,
            hours_since=first - 6 * WEEK_HOURS,
            hours=hours,
        )
    )
    assert (season.weeks[9], season.mean_jobs[9], season.high_jobs[9]) == (8, 10.0, 60.0)


def test_a_season_is_judged_by_a_week_that_it_was_not_trained_on() -> None:
    counted = weeks_of(at_nine(), weeks=2)
    surprise = counted.until - WEEK_MINUTES + SATURDAY
    season = learned(ArrivalCounts(since=counted.since, until=counted.until, minutes={**counted.minutes, surprise: 50}))
    assert season.errors is not None
    # Of 50 jobs that come unexpected, less two deviations of chance, 14.1: thrice 35.9.
    assert season.errors.season == pytest.approx(107.6 + _after(at_nine()) + 50 - 14.1, abs=0.1)


def _after(pattern: dict[int, int]) -> float:
    """What "the same as in the last minute" errs in the minutes after those of ``pattern``."""
    return sum(error(jobs, 0) for jobs in pattern.values())


@pytest.mark.parametrize(
    ("pattern", "is_better"),
    [
        (at_nine(), True),  # of seven days the second most is a Friday's, also on Saturday
        (at_nine(days=range(1)), True),  # no other day has what Monday has
        (office(), True),
        (at_nine(days=range(7)), False),  # days tell as much
        (dict.fromkeys(range(WEEK_MINUTES), 5), False),  # the last minute tells as much
        ({}, False),
    ],
)
def test_a_season_is_believed_where_it_is_less_wrong_than_days_and_the_last_minute(
    pattern: dict[int, int], is_better: bool
) -> None:
    assert learned(weeks_of(pattern, weeks=3)).is_better is is_better


def test_a_season_without_a_week_to_judge_it_by_is_not_believed() -> None:
    season = learned(weeks_of(at_nine(), weeks=2))
    unjudged = Season(mean_jobs=season.mean_jobs, high_jobs=season.high_jobs, weeks=season.weeks, peaks=season.peaks)
    assert not unjudged.is_better


@pytest.mark.parametrize(
    ("season", "recent", "days", "is_better"),
    [(94, 100, 100, True), (96, 100, 100, False), (94, 100, 98, False), (94, 96, 100, False), (0, 0, 0, False)],
)
def test_a_gain_below_a_twentieth_is_luck(season: float, recent: float, days: float, is_better: bool) -> None:
    judged = Season(mean_jobs=(), high_jobs=(), weeks=(), errors=Errors(season=season, recent=recent, days=days))
    assert judged.is_better is is_better


@given(expected=st.floats(0, 1e4), jobs=st.integers(0, 10_000), more=st.integers(1, 1000))
def test_errors_within_chance_are_none_and_further_ones_are_greater(expected: float, jobs: int, more: int) -> None:
    assert error(jobs, jobs) == 0 <= error(expected, jobs)
    if jobs > expected:
        assert error(expected, jobs) <= error(expected, jobs + more)
    assert error(jobs, jobs + more) >= error(jobs + more, jobs)


@settings(max_examples=20, deadline=None)
@given(
    jobs=st.dictionaries(st.integers(0, 3 * WEEK_MINUTES - 1), st.integers(1, 500), max_size=300),
    shift=st.integers(0, 3),
)
def test_a_whole_number_of_weeks_later_the_same_is_learned(jobs: dict[int, int], shift: int) -> None:
    def at(start: int) -> Season | None:
        return trained(
            ArrivalCounts(
                since=start,
                until=start + 3 * WEEK_MINUTES,
                minutes={start + minute: count for minute, count in jobs.items()},
            )
        )

    assert at(MONDAY) == at(MONDAY + shift * WEEK_MINUTES)


@settings(max_examples=20, deadline=None)
@given(jobs=st.dictionaries(st.integers(0, 2 * WEEK_MINUTES - 1), st.integers(1, 500), max_size=300))
def test_whoever_expects_nothing_is_as_wrong_as_the_last_minute(
    jobs: dict[int, int],
) -> None:
    week = {minute % WEEK_MINUTES: count for minute, count in jobs.items()}
    errors = learned(weeks_of(week, weeks=2)).errors
    assert errors is not None
    assert min(errors.season, errors.recent, errors.days) >= 0
    empty = Season(mean_jobs=(0.0,) * WEEK_HOURS, high_jobs=(0.0,) * WEEK_HOURS, weeks=(1,) * WEEK_HOURS)
    counted = weeks_of(week, weeks=2)
    predicted = errors_of(empty, counted, from_hour=counted.end_hour - WEEK_HOURS)
    assert predicted.season == pytest.approx(predicted.recent)  # whoever expects nothing leaves it to the last minute


def recalled(
    season: Season,
    minute: int,
    *,
    second: float = 30.0,
    ahead_s: float = 20.0,
    arrived: int = 0,
    rate: float = 0.0,
    members: int = 1,
) -> float:
    """What is recalled of ``members`` queues with ``season`` that have these arrivals together."""
    member = Member(season=season, arrived_jobs=arrived // members, rate_per_s=rate / members)
    now_s = (MONDAY + minute) * 60.0 + second
    return seasonal_jobs([member] * members, now_s=now_s, ahead_s=ahead_s, tick_s=5.0)


OFFICE, NINE = learned(weeks_of(office(), weeks=3)), learned(weeks_of(at_nine(), weeks=3))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (recalled(OFFICE, HOUR_9), 20.0),  # one a second for 20 s
        (recalled(OFFICE, HOUR_9 - 1, second=50.0), 10.0),  # of which it is nine for 10 s
        (
            recalled(OFFICE, HOUR_9, rate=1.0),
            5.0,
        ),  # the rate tells of all but the first tick's, which the guard takes off
        (recalled(OFFICE, HOUR_9, rate=9.0), 0.0),
        (recalled(OFFICE, SATURDAY + HOUR_9), 0.0),
        (recalled(NINE, HOUR_9), 100.0),
        (recalled(NINE, HOUR_9, arrived=40), 60.0),
        (recalled(NINE, HOUR_9, arrived=400), 1.67 / 3),  # what is left is the hour's mean
        (recalled(NINE, HOUR_9 - 1, second=40.0), 100.0),
        (recalled(NINE, SATURDAY + HOUR_9), 0.0),
    ],
)
def test_what_is_recalled_is_what_hours_bring_beyond_the_rate_or_a_minute_beyond_what_it_has(
    found: float, expected: float
) -> None:
    assert found == pytest.approx(expected, abs=0.01)


def test_the_members_of_a_pool_add_up() -> None:
    assert recalled(NINE, HOUR_9, members=2, arrived=40) == pytest.approx(160.0)
    assert recalled(OFFICE, HOUR_9, members=3, rate=1.5) == pytest.approx(60.0 - 1.5 * 15)


@given(
    rate=st.floats(0, 50), more=st.floats(0, 50), ahead_s=st.floats(0.1, 300), minute=st.integers(0, WEEK_MINUTES - 1)
)
def test_a_rate_never_takes_off_more_than_it_brings(rate: float, more: float, ahead_s: float, minute: int) -> None:
    """What the rate brings and what is recalled are asked for together: more arrivals never ask for less."""
    slow, fast = (each * ahead_s + recalled(OFFICE, minute, ahead_s=ahead_s, rate=each) for each in (rate, rate + more))
    assert slow <= fast + 1e-6


def test_weeks_taken_evaluation_by_evaluation_are_learned_by_the_same_rule() -> None:
    counted = weeks_of(office(2) | at_nine(), weeks=4)
    taken = Weeks()
    for minute in range(counted.since, counted.until + 1):
        taken.take(counted.minutes.get(minute, 0), at_s=minute * 60.0 + 30)
    hours = {
        hour: sum(counted.minutes.get(minute, 0) for minute in range(hour * HOUR_MINUTES, (hour + 1) * HOUR_MINUTES))
        for hour in range(counted.first_hour, counted.end_hour - 2 * WEEK_HOURS)
    }
    known = ArrivalCounts(
        since=counted.until - 2 * WEEK_MINUTES,
        until=counted.until,
        minutes=counted.minutes,
        hours_since=counted.first_hour,
        hours=hours,
    )
    assert taken.season == trained(known)
    assert len(taken._minutes) <= 2 * WEEK_MINUTES


def test_a_day_that_is_not_over_is_not_learned_from() -> None:
    taken = Weeks()
    for minute in range(MONDAY - 2 * WEEK_MINUTES, MONDAY + 30):
        taken.take(1, at_s=minute * 60.0 + 30)
    before = taken.season
    taken.take(999, at_s=(MONDAY + 31) * 60.0)
    assert before is not None
    assert taken.season is before


def test_what_is_older_than_half_a_year_changes_nothing() -> None:
    """Learning would take longer each day, for what weighs next to nothing."""
    recent = weeks_of(office(), weeks=2)
    hour = recent.first_hour
    half_a_year = {hour - 3 - WEEK_HOURS * week: 60 * week for week in range(1, 24)}
    older = {hour - 3 - WEEK_HOURS * week: 9_999 for week in range(26, 400)}
    known, longer = (
        trained(replace(recent, hours_since=hour - 500 * WEEK_HOURS, hours=hours))
        for hours in (half_a_year, half_a_year | older)
    )
    assert known is not None
    assert known == longer
    assert known.weeks_seen == WEEKS_MAX


def test_hours_that_nothing_is_learned_from_any_more_are_not_kept() -> None:
    taken = Weeks()
    for day in range(0, 3 * 365, 20):
        taken.take(3, at_s=(MONDAY + day * DAY_MINUTES) * 60.0)
    newest = MONDAY // HOUR_MINUTES + 3 * 365 * 24
    assert min(taken._hours) > newest - (WEEKS_MAX + 1) * WEEK_HOURS - 40 * 24
