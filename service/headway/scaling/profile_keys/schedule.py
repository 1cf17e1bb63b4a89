"""Bounds that move by the clock: on weekdays between two times of a time zone, or once between two dates.

The rule for clocks that are set forward or back is that of a clock on the wall: a schedule is active whenever such a
clock in its zone shows a time from ``starts`` up to ``ends``. A time that is skipped never comes, and the schedule
begins or ends with the first time after it; a time that is shown twice counts twice. Docs: docs/decisions/0011.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Annotated

from headway.errors import Invalid
from headway.scaling.arithmetic import DAY_S, HOUR_S, MINUTE_S
from headway.scaling.keys import Form, Range
from headway.scaling.mapping import is_number

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
UTC_NAME = "UTC"
WORKERS_MAX = 10_000  # beyond this a typing error is likelier than a wish
Workers = Annotated[int, Range(0, WORKERS_MAX)]

Zone = tzinfo
UTC_ZONE: Zone = UTC

Zones = Mapping[str, Zone]
"""The time zones that are named, handed in by whoever may read them from disc. UTC is always known."""

_TIME = re.compile(r"([01]\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """While it is active, it sets the bounds it names. Without a date it recurs; ``ends`` itself is no longer in it.

    One whose ``ends`` is not after its ``starts`` runs over midnight and belongs to the day on which it starts.
    """

    starts: str
    """``08:00``, which recurs, or a date and time as ``2026-11-27T08:00`` (in ``time_zone``) or
    ``2026-11-27T08:00+01:00``, which happens once."""
    ends: str
    """The same; ``24:00`` is the end of the day. A recurring one that ends before it starts runs over midnight."""
    days: tuple[str, ...] = DAYS
    """Of a recurring one."""
    time_zone: str = UTC_NAME
    workers_min: Workers | None = None
    workers_max: Workers | None = None
    name: str = ""

    def __post_init__(self) -> None:
        breaches = [*self._time_breaches(), *self._day_breaches()]
        if self.workers_min is None and self.workers_max is None:
            breaches.append("names neither workers_min nor workers_max: it would move nothing")
        if breaches:
            raise Invalid(*breaches)

    @property
    def is_dated(self) -> bool:
        """Whether it happens once."""
        return "-" in self.starts

    def is_active(self, at_s: float, zones: Zones) -> bool:
        """Whether a clock on the wall of its zone shows, at ``at_s``, a time within it.

        Raises:
            Invalid: its zone is not among ``zones``.
        """
        wall = datetime.fromtimestamp(at_s, zone_of(self.time_zone, zones, key="time_zone"))
        if self.is_dated:
            starts, ends = datetime.fromisoformat(self.starts), datetime.fromisoformat(self.ends)
            now = wall if starts.tzinfo else wall.replace(tzinfo=None)
            return starts <= now < ends
        starts_s, ends_s = _time_s(self.starts), _time_s(self.ends)
        assert starts_s is not None
        assert ends_s is not None
        shown_s = wall.hour * HOUR_S + wall.minute * MINUTE_S + wall.second
        is_today, is_since_yesterday = DAYS[wall.weekday()] in self.days, DAYS[wall.weekday() - 1] in self.days
        if starts_s < ends_s:
            return is_today and starts_s <= shown_s < ends_s
        return (is_today and shown_s >= starts_s) or (is_since_yesterday and shown_s < ends_s)

    def _time_breaches(self) -> list[str]:
        times = {"starts": self.starts, "ends": self.ends}
        if any("-" in text for text in times.values()):
            return _date_breaches(times)
        breaches = [
            f"{name}={text!r} is no time as 08:00 and no date and time as 2026-11-27T08:00"
            for name, text in times.items()
            if _time_s(text) is None
        ]
        if self.starts == self.ends and not breaches:
            breaches.append(f"starts and ends are both {self.starts}: write 00:00 and 24:00 for whole days")
        return breaches

    def _day_breaches(self) -> list[str]:
        breaches = [f"days: {day!r} is none of {', '.join(DAYS)}" for day in self.days if day not in DAYS]
        if not self.days:
            breaches.append("days names no day")
        if self.is_dated and self.days != DAYS:
            breaches.append("days and a date contradict each other: it recurs or it happens once")
        return breaches


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The floor and the ceiling that hold at a moment, and the schedules that made them so."""

    workers_min: int
    workers_max: int
    schedules: tuple[str, ...] = ()


def bounds_at(
    schedules: Iterable[Schedule], *, workers_min: int, workers_max: int, at_s: float, zones: Zones
) -> Bounds:
    """The bounds that ``schedules`` make of a profile's own at ``at_s``.

    An active schedule's bound takes the place of the profile's. Where several are active, the greatest floor and the
    greatest ceiling hold; a ceiling below the floor has the last word.
    """
    active = [schedule for schedule in schedules if schedule.is_active(at_s, zones)]
    floors = [schedule.workers_min for schedule in active if schedule.workers_min is not None]
    ceilings = [schedule.workers_max for schedule in active if schedule.workers_max is not None]
    ceiling = max(ceilings, default=workers_max)
    return Bounds(
        workers_min=min(max(floors, default=workers_min), ceiling),
        workers_max=ceiling,
        schedules=tuple(schedule.name or f"{schedule.starts} to {schedule.ends}" for schedule in active),
    )


def moment_s(value: object) -> float:
    """Unix seconds, from a number of them or an ISO time with its zone. Raises ``TypeError`` or ``ValueError``."""
    if is_number(value):
        return float(value)
    if not isinstance(value, str):
        raise TypeError("expected a time as 2026-11-27T08:00+01:00, or Unix seconds")
    moment = _moment(value)
    if moment is None or moment.tzinfo is None:
        raise ValueError("expected a time with its zone, as 2026-11-27T08:00+01:00 or 2026-11-27T07:00Z")
    return moment.timestamp()


Moment = Annotated[float, Form(read=moment_s, schema={"anyOf": [{"type": "number"}, {"type": "string"}]})]


def text_of(at_s: float) -> str:
    """A moment for people, in UTC. What ``moment_s`` reads as the same minute."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _date_breaches(times: Mapping[str, str]) -> list[str]:
    moments = {name: _moment(text) for name, text in times.items()}
    breaches = [
        f"{name}={times[name]!r} is no date and time as 2026-11-27T08:00"
        for name, moment in moments.items()
        if moment is None
    ]
    known = [moment for moment in moments.values() if moment is not None]
    if breaches or len(known) != len(times):
        return breaches
    starts, ends = known
    if (starts.tzinfo is None) != (ends.tzinfo is None):
        return ["starts and ends: write both with an offset as +01:00, or neither"]
    return [] if starts < ends else [f"ends={times['ends']} is not after starts={times['starts']}"]


def zone_of(name: str, zones: Zones, *, key: str) -> Zone:
    """The zone that ``key`` of a profile names. Raises ``Invalid`` where it is not among ``zones``."""
    if name == UTC_NAME:
        return UTC_ZONE
    if name not in zones:
        raise Invalid(f"{key} {name!r} is not known; write it as Europe/Berlin")
    return zones[name]


def day_of(at_s: float, zone: Zone) -> str:
    """The day that a calendar in ``zone`` shows, as ``2026-11-27``."""
    return datetime.fromtimestamp(at_s, zone).date().isoformat()


def span_s(day: str, zone: Zone) -> tuple[float, float]:
    """When ``day`` begins and ends by a clock on the wall of ``zone``: 23 to 25 hours apart."""
    first = date.fromisoformat(day)
    began, ends = (datetime.combine(each, time(), tzinfo=zone) for each in (first, first + timedelta(days=1)))
    return began.timestamp(), ends.timestamp()


def hour_of_week(hour: int, zone: Zone) -> int:
    """The hour of the week, Monday's first being 0, that a clock on the wall of ``zone`` shows as ``hour`` begins.

    ``hour`` is one of the Unix clock. Where a zone is half an hour off, its hours of the week begin at half past.
    """
    wall = datetime.fromtimestamp(hour * HOUR_S, zone)
    return wall.weekday() * 24 + wall.hour


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _time_s(text: str) -> float | None:
    """Seconds since midnight."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    at_s = hours * HOUR_S + minutes * MINUTE_S + seconds
    return at_s if at_s <= DAY_S else None
