"""What a queue's weeks have in common: what comes in each hour of the week, and whether that predicts better than days
do.

An hour has its mean; a minute of it in which every week brings more than chance would, as what starts at nine sharp
does, is remembered beside it. Nothing here is used on trust: a season carries its own errors in a week that it was not
trained on, beside those of doing without.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.history.daily import DAILY_DAYS, DAY_MINUTES, ended_minute, minutes_ahead, most_of
from headway.scaling.profile_keys.schedule import UTC_ZONE, Zone, hour_of_week

SEASONS_VERSION = 1  # of what is stored: a season of another version is not read
WEEK_HOURS = 168
HOUR_MINUTES = int(HOUR_S / MINUTE_S)
WEEK_MINUTES = WEEK_HOURS * HOUR_MINUTES
WEEKS_MIN = 2  # one to learn from and one to be judged by
WEEKS_MAX = 26  # half a year: older ones together would weigh a hundredth, and take longer the longer a queue is known
KEPT_HOURS = (WEEKS_MAX + 1) * WEEK_HOURS  # the last week is judged by those before it
HALF_LIFE_WEEKS = 4.0  # a month ago says half as much; so slow that of three weeks no one outweighs the others
WEEKLY_HIGH_QUANTILE = 0.95  # of an hour's minutes
WEEKLY_CHANCE_SIGMAS = 3.0  # a minute beyond that is no chance where independent jobs come
WEEKLY_CHANCE_JOBS = 3.0  # nor is it worth remembering below that
WEEKLY_MISSED_WEIGHT = (
    3.0  # a job that nobody expected is late; one that was expected in vain is a worker's idle minute
)
WEEKLY_JUDGED_SIGMAS = 2.0  # so far from what was expected independent jobs come by chance, now and then
WEEKLY_GAIN_MIN = 0.05  # less than that is luck


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalCounts:
    """Arrivals of one queue: by minute of the Unix clock where that is known, by hour before."""

    since: int
    """The first minute that is known."""
    until: int
    """The first minute that is not over."""
    minutes: Mapping[int, int]
    """Minute -> arrivals. One that is not among them had none."""
    hours_since: int | None = None
    """The first hour that is known, where hours reach further back than minutes."""
    hours: Mapping[int, int] = field(default_factory=dict)
    """Hour -> arrivals, of hours before ``since``."""

    @property
    def first_hour(self) -> int:
        """The first whole hour that minutes are known of."""
        return -(-self.since // HOUR_MINUTES)

    @property
    def end_hour(self) -> int:
        """The first hour that is not over."""
        return self.until // HOUR_MINUTES

    @property
    def known_from_s(self) -> float:
        """Since when anything is known, Unix seconds."""
        hours_s = math.inf if self.hours_since is None else self.hours_since * HOUR_MINUTES * MINUTE_S
        return min(self.since * MINUTE_S, hours_s)

    @property
    def known_until_s(self) -> float:
        """When the last whole hour ended, Unix seconds."""
        return self.end_hour * HOUR_MINUTES * MINUTE_S

    def before(self, hour: int) -> "ArrivalCounts":
        """As it was known when ``hour`` began."""
        until = hour * HOUR_MINUTES
        return ArrivalCounts(
            since=self.since, until=until, minutes=self.minutes, hours_since=self.hours_since, hours=self.hours
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Jobs that were expected wrongly in a week, by who had expected them; what nobody had expected counts thrice."""

    season: float
    recent: float
    """By "the same as in the last minute"."""
    days: float
    """By "the same as in this minute of earlier days"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """What comes to a queue in each hour of the week; Monday's first hour comes first."""

    mean_jobs: tuple[float, ...]
    """In a minute, by hour of the week."""
    high_jobs: tuple[float, ...]
    """What 95 % of an hour's minutes do not exceed."""
    weeks: tuple[int, ...]
    """How many weeks each hour was seen in."""
    peaks: Mapping[int, float] = field(default_factory=dict)
    """Minute of the week -> what comes in it, where that stands out of its hour in every week."""
    errors: Errors | None = None
    """In the last week; ``None`` where there is none to judge by."""
    zone: Zone = UTC_ZONE
    """Whose hours they are."""

    @property
    def weeks_seen(self) -> int:
        """How many weeks it comes from."""
        return max(self.weeks, default=0)

    @property
    def is_better(self) -> bool:
        """Whether it has been less wrong than the last minute and than earlier days, by more than luck."""
        if self.errors is None:
            return False
        return self.errors.season < (1 - WEEKLY_GAIN_MIN) * min(self.errors.recent, self.errors.days)


def trained(counted: ArrivalCounts, *, zone: Zone = UTC_ZONE) -> Season | None:
    """The season that ``counted`` speaks for, with its errors in the last week as learned from the weeks before it.

    Returns:
        ``None`` until minutes of two whole weeks are known.
    """
    judged_hour = counted.end_hour - WEEK_HOURS
    if counted.end_hour - counted.first_hour < WEEKS_MIN * WEEK_HOURS:
        return None
    before = _learned(counted.before(judged_hour), zone)
    errors = errors_of(before, counted, from_hour=judged_hour)
    return _learned(counted, zone, errors=errors)


def _learned(counted: ArrivalCounts, zone: Zone, *, errors: Errors | None = None) -> Season:
    totals: list[list[tuple[int, float]]] = [[] for _ in range(WEEK_HOURS)]
    highs: list[list[tuple[int, float]]] = [[] for _ in range(WEEK_HOURS)]
    by_minute: list[list[int]] = [[] for _ in range(WEEK_HOURS)]
    rushes: dict[int, dict[int, float]] = {}
    since, end = counted.first_hour, counted.end_hour
    first = since if counted.hours_since is None else min(since, counted.hours_since)
    for hour in range(max(first, end - WEEKS_MAX * WEEK_HOURS), end):
        slot, age = hour_of_week(hour, zone), (end - 1 - hour) // WEEK_HOURS
        if hour < since:
            totals[slot].append((age, float(counted.hours.get(hour, 0))))
            continue
        jobs = _by_minute(counted, hour)
        totals[slot].append((age, float(sum(jobs.values()))))
        highs[slot].append((age, _high(jobs)))
        by_minute[slot].append(hour)
        for minute, arrived in jobs.items():
            # By hour, not by age: when clocks are set back, an hour of the week comes twice.
            rushes.setdefault(slot * HOUR_MINUTES + minute, {})[hour] = arrived
    mean_jobs = tuple(agreed(each) / HOUR_MINUTES for each in totals)
    return Season(
        mean_jobs=mean_jobs,
        high_jobs=tuple(agreed(each) for each in highs),
        weeks=tuple(len(each) for each in totals),
        peaks=dict(_peaks(rushes, mean_jobs, hours=by_minute, end=end)),
        errors=errors,
        zone=zone,
    )


def _by_minute(counted: ArrivalCounts, hour: int) -> dict[int, int]:
    """Minute of the hour -> arrivals, where there were any."""
    first = hour * HOUR_MINUTES
    return {minute: jobs for minute in range(HOUR_MINUTES) if (jobs := counted.minutes.get(first + minute, 0))}


def _high(jobs: Mapping[int, int]) -> float:
    above = HOUR_MINUTES - math.ceil(WEEKLY_HIGH_QUANTILE * HOUR_MINUTES)
    return float(sorted(jobs.values(), reverse=True)[above]) if len(jobs) > above else 0.0


def _peaks(
    rushes: Mapping[int, Mapping[int, float]], mean_jobs: Sequence[float], *, hours: Sequence[Sequence[int]], end: int
) -> Iterator[tuple[int, float]]:
    """The minutes of the week in which the weeks agree on more than chance makes of their hour's mean."""
    for minute, by_hour in sorted(rushes.items()):
        slot = minute // HOUR_MINUTES
        jobs = agreed([((end - 1 - hour) // WEEK_HOURS, by_hour.get(hour, 0.0)) for hour in hours[slot]])
        if jobs > mean_jobs[slot] + WEEKLY_CHANCE_SIGMAS * math.sqrt(mean_jobs[slot]) + WEEKLY_CHANCE_JOBS:
            yield minute, jobs


def agreed(values: Iterable[tuple[int, float]]) -> float:
    """What weeks agree on, each given as how many weeks ago it was and its value.

    The median, in which newer weeks weigh more. From three weeks on an odd one moves it no further than to what
    another week had; of two, the lower counts, because neither confirms the other; without any, it is 0.
    """
    known = sorted((value, 0.5 ** (age / HALF_LIFE_WEEKS)) for age, value in values)
    if len(known) == WEEKS_MIN:
        return known[0][0]
    half = sum(weight for _, weight in known) / 2
    for value, weight in known:
        half -= weight
        if half <= 0:
            return value
    return 0.0


def errors_of(season: Season, counted: ArrivalCounts, *, from_hour: int) -> Errors:
    """How wrong ``season`` would have been from ``from_hour`` on, beside the last minute and earlier days.

    Earlier days and seasons add to the last minute's prediction, as they do where they are used.
    """
    by_season = by_recent = by_days = 0.0
    # By position, earlier days are a slice: this reads every minute of a week, for every queue there is.
    known = [counted.minutes.get(minute, 0) for minute in range(counted.since, counted.until)]
    for hour in range(from_hour, counted.end_hour):
        slot = hour_of_week(hour, season.zone)
        first = hour * HOUR_MINUTES - counted.since
        for minute in range(HOUR_MINUTES):
            at = first + minute
            jobs, recent = known[at], known[at - 1] if at else 0
            days = known[max(at - DAILY_DAYS * DAY_MINUTES, at % DAY_MINUTES) : at : DAY_MINUTES]
            expected = season.peaks.get(slot * HOUR_MINUTES + minute, season.mean_jobs[slot])
            if jobs or recent or expected or any(days):
                by_recent += error(recent, jobs)
                by_days += error(max(recent, most_of(days)), jobs)
                by_season += error(max(recent, expected), jobs)
    return Errors(season=by_season, recent=by_recent, days=by_days)


def error(expected_jobs: float, jobs: float) -> float:
    """By how many jobs the expectation was wrong beyond chance; those that it missed weigh more than those in vain.

    Without chance left out, whoever expects a little more than there is on average would seem accurate on mere noise.
    """
    wrong_jobs = abs(jobs - expected_jobs) - WEEKLY_JUDGED_SIGMAS * math.sqrt(max(jobs, expected_jobs))
    if wrong_jobs <= 0:
        return 0.0
    return WEEKLY_MISSED_WEIGHT * wrong_jobs if jobs > expected_jobs else wrong_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A queue of a pool whose season is believed, and what it brings today."""

    season: Season
    arrived_jobs: int
    """In this minute so far."""
    rate_per_s: float
    """Of late."""


def seasonal_jobs(members: Sequence[Member], *, now_s: float, ahead_s: float, tick_s: float) -> float:
    """The jobs that weeks predict by ``ahead_s`` from now, beyond those of this minute and of the recent rate.

    Of two the greater: what the hours bring on average in that time less what the rate brings after the first tick
    (which the guard takes off), and the most that a minute begun by then brings, less what it has brought.
    """
    minutes = minutes_ahead(now_s=now_s, ahead_s=ahead_s)
    rushes = dict.fromkeys(minutes, 0.0)
    beyond_rate = -sum(member.rate_per_s for member in members) * max(0.0, ahead_s - tick_s)
    for minute in minutes:
        ends_s = min(now_s + ahead_s, (minute + 1) * MINUTE_S)
        lasts_s = max(0.0, ends_s - max(now_s, minute * MINUTE_S))
        for season in (member.season for member in members):
            slot = hour_of_week(minute // HOUR_MINUTES, season.zone)
            beyond_rate += season.mean_jobs[slot] * lasts_s / MINUTE_S
            rushes[minute] += season.peaks.get(slot * HOUR_MINUTES + minute % HOUR_MINUTES, 0.0)
    rushes[minutes[0]] -= sum(member.arrived_jobs for member in members)
    return max(0.0, beyond_rate, *rushes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What the past predicts for the time ahead."""

    jobs: float | None = None
    """``None`` where it predicts nothing yet."""
    weeks: int | None = None
    """How many weeks predict them; ``None`` where earlier days do."""


def recalled(
    members: Sequence[Member], *, by_days: float | None, now_s: float, ahead_s: float, tick_s: float
) -> Recalled:
    """The weeks' prediction for ``members``, and ``by_days`` earlier days' for the other queues of their pool."""
    if not members:
        return Recalled(jobs=by_days)
    jobs = seasonal_jobs(members, now_s=now_s, ahead_s=ahead_s, tick_s=tick_s)
    return Recalled(jobs=jobs + (by_days or 0.0), weeks=min(member.season.weeks_seen for member in members))


class Weeks:
    """Arrivals of one queue, and the season they speak for, learned anew when a day is over."""

    def __init__(self, zone: Zone = UTC_ZONE) -> None:
        self._zone = zone
        self._minutes: dict[int, int] = {}
        self._hours: dict[int, int] = {}
        self._first: int | None = None
        self._learned_day: int | None = None
        self.season: Season | None = None

    def take(self, jobs: int, *, at_s: float) -> None:
        """Count ``jobs`` that arrived up to ``at_s``."""
        minute = ended_minute(at_s)
        if self._first is None:
            self._first = minute
        if jobs:
            self._minutes[minute] = self._minutes.get(minute, 0) + jobs
        day = minute // DAY_MINUTES
        if day != self._learned_day:
            self._learned_day = day
            self._learn(until=day * DAY_MINUTES)

    def _learn(self, *, until: int) -> None:
        assert self._first is not None
        since = max(self._first, until - WEEKS_MIN * WEEK_MINUTES)
        for minute in [each for each in self._minutes if each < since]:
            hour = minute // HOUR_MINUTES
            self._hours[hour] = self._hours.get(hour, 0) + self._minutes.pop(minute)
        for hour in [each for each in self._hours if each < until // HOUR_MINUTES - KEPT_HOURS]:
            del self._hours[hour]
        counted = ArrivalCounts(
            since=since,
            until=until,
            minutes=self._minutes,
            hours_since=-(-self._first // HOUR_MINUTES),
            hours=self._hours,
        )
        self.season = trained(counted, zone=self._zone)
