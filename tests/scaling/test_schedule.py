"""Bounds by the clock. The tables of skipped and repeated hours were written by hand from the zones' own rules."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.profile_keys.schedule import DAYS, Schedule, bounds_at, moment_s

ZONES = {name: ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")}


def at(text: str) -> float:
    """Unix seconds of a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def schedule(**values: Any) -> Schedule:
    return Schedule(**{"starts": "08:00", "ends": "18:00", "workers_min": 3, **values})


@pytest.mark.parametrize(
    ("utc", "is_active"),
    [
        ("2026-11-23T06:59:59", False),  # a Monday, 07:59:59 in Berlin
        ("2026-11-23T07:00:00", True),  # 08:00:00
        ("2026-11-23T16:59:59", True),  # 17:59:59
        ("2026-11-23T17:00:00", False),  # 18:00:00: the end is no longer in it
        ("2026-11-28T12:00:00", False),  # a Saturday
        ("2026-07-20T06:00:00", True),  # a Monday in summer: 08:00 is an hour earlier in UTC
        ("2026-07-20T05:59:59", False),
    ],
)
def test_a_schedule_recurs_on_its_weekdays_between_local_times(utc: str, is_active: bool) -> None:
    workdays = schedule(days=DAYS[:5], time_zone="Europe/Berlin")
    assert workdays.is_active(at(utc), ZONES) is is_active


@pytest.mark.parametrize(
    ("utc", "is_active"),
    [
        ("2026-11-27T21:59:59", False),  # Friday
        ("2026-11-27T22:00:00", True),
        ("2026-11-28T05:59:59", True),  # Saturday morning belongs to Friday
        ("2026-11-28T06:00:00", False),
        ("2026-11-28T23:00:00", False),  # Saturday night is none of its own
        ("2026-11-27T03:00:00", False),  # nor is Friday morning, which would be Thursday's
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_starts(utc: str, is_active: bool) -> None:
    assert schedule(starts="22:00", ends="06:00", days=("fri",)).is_active(at(utc), ZONES) is is_active


@pytest.mark.parametrize(
    ("starts", "ends", "zone", "utc", "is_active"),
    [
        # Berlin, 2026-03-29: 02:00 becomes 03:00 at 01:00 UTC. 02:30 never shows.
        ("02:30", "03:30", "Europe/Berlin", "2026-03-29T00:59:59", False),  # 01:59:59
        ("02:30", "03:30", "Europe/Berlin", "2026-03-29T01:00:00", True),  # 03:00:00, the first time after it
        ("02:30", "03:30", "Europe/Berlin", "2026-03-29T01:29:59", True),  # 03:29:59
        ("02:30", "03:30", "Europe/Berlin", "2026-03-29T01:30:00", False),
        ("02:00", "03:00", "Europe/Berlin", "2026-03-29T00:59:59", False),  # wholly inside what is skipped:
        ("02:00", "03:00", "Europe/Berlin", "2026-03-29T01:00:00", False),  # it does not happen that day
        ("01:00", "02:30", "Europe/Berlin", "2026-03-29T00:59:59", True),
        ("01:00", "02:30", "Europe/Berlin", "2026-03-29T01:00:00", False),  # its end is skipped: it ends at once
        # Berlin, 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC. 02:00 to 03:00 shows twice.
        ("02:00", "03:00", "Europe/Berlin", "2026-10-25T00:00:00", True),  # the first 02:00
        ("02:00", "03:00", "Europe/Berlin", "2026-10-25T01:00:00", True),  # the second 02:00
        ("02:00", "03:00", "Europe/Berlin", "2026-10-25T01:59:59", True),  # the second 02:59:59
        ("02:00", "03:00", "Europe/Berlin", "2026-10-25T02:00:00", False),  # 03:00
        ("02:15", "02:45", "Europe/Berlin", "2026-10-25T00:50:00", False),  # between its two times
        ("02:15", "02:45", "Europe/Berlin", "2026-10-25T01:20:00", True),  # the second 02:20
        # New York, 2026-03-08: 02:00 becomes 03:00 at 07:00 UTC; 2026-11-01: 02:00 becomes 01:00 at 06:00 UTC.
        ("02:30", "04:00", "America/New_York", "2026-03-08T06:59:59", False),
        ("02:30", "04:00", "America/New_York", "2026-03-08T07:00:00", True),
        ("01:00", "02:00", "America/New_York", "2026-11-01T05:30:00", True),  # 01:30, first
        ("01:00", "02:00", "America/New_York", "2026-11-01T06:30:00", True),  # 01:30, second
        ("01:00", "02:00", "America/New_York", "2026-11-01T07:00:00", False),
        # Lord Howe moves by half an hour, 2026-04-05: 02:00 becomes 01:30 at 15:00 UTC of the day before.
        ("01:30", "02:00", "Australia/Lord_Howe", "2026-04-04T14:40:00", True),  # 01:40, first
        ("01:30", "02:00", "Australia/Lord_Howe", "2026-04-04T15:10:00", True),  # 01:40, second
        ("01:30", "02:00", "Australia/Lord_Howe", "2026-04-04T15:30:00", False),
    ],
)
def test_skipped_and_repeated_hours_go_by_the_clock_on_the_wall(
    starts: str, ends: str, zone: str, utc: str, is_active: bool
) -> None:
    assert schedule(starts=starts, ends=ends, time_zone=zone).is_active(at(utc), ZONES) is is_active


@pytest.mark.parametrize(
    ("starts", "ends", "utc", "is_active"),
    [
        ("2026-11-27T00:00", "2026-11-28T00:00", "2026-11-26T18:29:59", False),  # local: 5 h 30 min ahead of UTC
        ("2026-11-27T00:00", "2026-11-28T00:00", "2026-11-26T18:30:00", True),
        ("2026-11-27T00:00", "2026-11-28T00:00", "2026-11-27T18:30:00", False),
        ("2026-11-27T00:00+01:00", "2026-11-27T12:00Z", "2026-11-26T23:00:00", True),  # an offset needs no zone
        ("2026-11-27T00:00+01:00", "2026-11-27T12:00Z", "2026-11-27T12:00:00", False),
    ],
)
def test_a_dated_schedule_happens_once(starts: str, ends: str, utc: str, is_active: bool) -> None:
    dated = schedule(starts=starts, ends=ends, time_zone="Asia/Kolkata")
    assert dated.is_active(at(utc), ZONES) is is_active


def test_where_schedules_overlap_the_greatest_floor_and_the_greatest_ceiling_hold() -> None:
    schedules = [
        schedule(starts="00:00", ends="24:00", workers_min=2, workers_max=30, name="always"),
        schedule(starts="08:00", ends="18:00", workers_min=5, workers_max=10),
        schedule(starts="09:00", ends="10:00", workers_min=None, workers_max=50, name="rush"),
    ]

    def bounds(utc: str) -> tuple[int, int, tuple[str, ...]]:
        found = bounds_at(schedules, workers_min=0, workers_max=20, at_s=at(utc), zones={})
        return found.workers_min, found.workers_max, found.schedules

    assert bounds("2026-11-23T07:00:00") == (2, 30, ("always",))
    assert bounds("2026-11-23T08:30:00") == (5, 30, ("always", "08:00 to 18:00"))
    assert bounds("2026-11-23T09:30:00") == (5, 50, ("always", "08:00 to 18:00", "rush"))


def test_without_an_active_schedule_the_profiles_own_bounds_hold() -> None:
    found = bounds_at([schedule()], workers_min=1, workers_max=20, at_s=at("2026-11-23T20:00:00"), zones={})
    assert (found.workers_min, found.workers_max, found.schedules) == (1, 20, ())


def test_a_schedule_may_lower_bounds_and_a_ceiling_has_the_last_word() -> None:
    night = [
        schedule(starts="00:00", ends="24:00", workers_min=None, workers_max=4),
        schedule(starts="00:00", ends="24:00", workers_min=9),
    ]
    found = bounds_at(night, workers_min=2, workers_max=20, at_s=at("2026-11-23T20:00:00"), zones={})
    assert (found.workers_min, found.workers_max) == (4, 4)


@given(
    st.integers(0, 86_399), st.integers(1, 86_400), st.sets(st.sampled_from(DAYS), min_size=1), st.floats(1.7e9, 1.9e9)
)
def test_in_utc_a_window_is_active_for_its_length_on_each_of_its_days(
    starts_s: int, length_s: int, days: set[str], now_s: float
) -> None:
    """Counted by hand: seconds since Monday, of the window's start and of now."""
    ends_s = (starts_s + length_s) % 86_400

    def text(second: int) -> str:
        return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"

    if starts_s == ends_s:
        return
    window = schedule(starts=text(starts_s), ends=text(ends_s), days=tuple(days))
    since_monday_s = (now_s + 3 * 86_400) % (7 * 86_400)  # 1970 began on a Thursday
    since_start_s = [(since_monday_s - DAYS.index(day) * 86_400 - starts_s) % (7 * 86_400) for day in days]
    assert window.is_active(now_s, {}) is any(0 <= int(each) < length_s % 86_400 for each in since_start_s)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"starts": "8:00"}, "starts='8:00' is no time as 08:00"),
        ({"ends": "24:01"}, "ends='24:01' is no time"),
        ({"starts": "18:00"}, "both 18:00: write 00:00 and 24:00"),
        ({"days": ("monday",)}, "days: 'monday' is none of mon, tue"),
        ({"days": ()}, "days names no day"),
        ({"workers_min": None}, "neither workers_min nor workers_max"),
        ({"starts": "2026-11-27T08:00"}, "ends='18:00' is no date and time"),
        ({"starts": "2026-11-27T08:00", "ends": "2026-11-27T09:00Z"}, "both with an offset"),
        ({"starts": "2026-11-27T08:00", "ends": "2026-11-26T09:00"}, "is not after"),
        ({"starts": "2026-11-27T08:00", "ends": "2026-11-28T09:00", "days": ("fri",)}, "contradict each other"),
    ],
)
def test_nonsense_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        schedule(**values)


def test_a_zone_that_was_not_handed_in_is_refused_by_name() -> None:
    with pytest.raises(Invalid, match="time_zone 'Mars/Olympus' is not known"):
        schedule(time_zone="Mars/Olympus").is_active(0.0, ZONES)


def test_a_moment_is_unix_seconds_or_a_time_with_its_zone() -> None:
    assert moment_s("2026-11-27T08:00+01:00") == moment_s("2026-11-27T07:00Z") == at("2026-11-27T07:00")
    assert moment_s(1_795_762_800) == 1_795_762_800.0
    with pytest.raises(ValueError, match="with its zone"):
        moment_s("2026-11-27T08:00")
    with pytest.raises(TypeError):
        moment_s(True)
