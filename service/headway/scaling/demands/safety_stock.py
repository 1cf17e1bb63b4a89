"""What an exposed pool guards against: the jobs that may come before a worker asked for at the next evaluation is up.

Three things are learned from the pool itself: how far the recent rate fell short of what came, whether the same minute
of earlier days predicts better, and, from the jobs that were late in spite of it all, how tight the guard must be.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

from headway.scaling.arithmetic import HOUR_S, PERCENT, SHORTEST_S
from headway.scaling.demands.trust import late_percent, leeway, risk
from headway.scaling.forecasts import FORECASTS
from headway.scaling.forecasts.arrival_forecast import (
    ArrivalForecast,
    Moment,
    RecentRate,
    Span,
    trusted,
)
from headway.scaling.forecasts.rhythm_detection import Periods, periods_of, seen
from headway.scaling.forecasts.shortfalls import Shortfalls
from headway.scaling.model import QueueMetrics
from headway.scaling.profile import Forecast, Profile
from headway.scaling.reading.pool_times import MARGIN_S, PoolTimes, exposed_s
from headway.scaling.view import copied

STOCK_LATE_FRACTION = 0.001  # of all jobs may be late: a tenth of what an objective of 99 % allows
STOCK_BEYOND_FIRST = 0.01  # of all jobs may come beyond the spare, until late jobs have taught better
BEYOND_LEAST, BEYOND_MOST = 0.0005, 0.1
STOCK_LEARNING_STEP = 0.3  # a late job tightens by a quarter, as many jobs in time as it may cost loosen by as much
STOCK_MEMORY_S = 18 * HOUR_S  # a working day and its evening
LATE_JOB_WORKER_S = 16 * HOUR_S  # what standing workers may cost for each late job they avoid
STOCK_FIRST_DAY_WORKER_S = HOUR_S  # until a day was seen: what returns every day looks like chance, and earns less
STOCK_FIRST_JOBS = 1.0  # the spare while nothing has been counted yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """An exposed pool at one evaluation, as far as a guard goes by it."""

    queue: QueueMetrics
    """Its exposed members as one."""
    profile: Profile
    times: PoolTimes
    slots_max: int
    """The most that the pool may have."""
    now_s: float
    recalled_jobs: float | None = None
    """Jobs that the past predicts within ``ahead_s``; ``None``: nothing."""
    is_by_weeks: bool = False
    """Whether it predicts them by the hours of the week, and not by earlier days."""
    is_teaching: bool = True

    @property
    def ahead_s(self) -> float:
        """For how long from now arriving jobs are late for a worker that is asked for at the next evaluation."""
        return exposed_s(self.profile, self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyStock:
    """What has been learned, and what was expected at the last evaluation."""

    began_at_s: float
    at_s: float
    seen_until_s: float | None = None
    by_rate: Shortfalls = field(default_factory=Shortfalls)
    """How far the recent rate fell short."""
    periods: Periods | None = None
    """The rhythms in what came of late."""
    beyond_log: float = math.log(STOCK_BEYOND_FIRST)
    """The logarithm of the fraction of jobs that may come beyond the spare."""
    expected_jobs: float = 0.0
    """What the recent rate brings in the next span."""
    forecasts: tuple[ArrivalForecast, ...] = field(default_factory=lambda: _forecasts({}))
    """Every other forecast."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "SafetyStock":
        """The guard that a state holds, as ``stored`` made it or storing did."""
        known = {name: stored[name] for name in cls.__slots__ if name in stored}
        by_rate, periods = Shortfalls.of(stored.get("by_rate")), periods_of(stored.get("periods"))
        return cls(**{**known, "by_rate": by_rate, "periods": periods, "forecasts": _forecasts(stored)})

    def stored(self) -> Mapping[str, Any]:
        """All that was learned, side by side: each forecast knows its own again."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "forecasts"}
        return own | {name: getattr(each, name) for each in self.forecasts for name in each.__dataclass_fields__}

    def burst_jobs(self, percentile: float) -> float | None:
        """The fewest jobs beyond the rate to be ready for in a tick, so that ``percentile`` % of all jobs have a slot.

        ``None`` until a job has come.
        """
        return self.by_rate.least_spare(1 - percentile / PERCENT) if self.by_rate.jobs else None


def _forecasts(stored: Mapping[str, Any]) -> tuple[ArrivalForecast, ...]:
    return tuple([kind.of(stored) for kind in FORECASTS])


def learned(before: SafetyStock | None, pool: Exposed) -> SafetyStock:
    """``before`` with what came since, and with what is expected next. A span that is seen again counts once."""
    now_s, tick_s = pool.now_s, pool.times.tick_s
    guard = before or SafetyStock(began_at_s=now_s, at_s=now_s - tick_s)
    until_s = pool.queue.arrived_until_s
    # A quiet pool has nothing to learn: the time is counted with the next that comes.
    is_news = until_s is not None and (guard.seen_until_s is None or until_s > guard.seen_until_s)
    span = _span(guard, pool) if is_news and pool.is_teaching else None
    if span is not None:
        guard = copied(
            guard,
            by_rate=span.counted(guard.by_rate, span.rate_jobs),
            periods=seen(guard.periods, span.jobs, at_s=until_s, tick_s=tick_s),
            beyond_log=_beyond_log(guard, pool, passed_s=span.lasts_s),
        )
    moment = _moment(guard, pool)
    if is_news:
        guard = copied(guard, at_s=now_s, seen_until_s=until_s)
        # What taught nothing may have held the beat that was due.
        moment = moment if span is not None else copied(moment, periods=None)
    forecasts = tuple([each.after(span, moment) for each in guard.forecasts])
    return copied(guard, expected_jobs=moment.rate_jobs, forecasts=forecasts)


def _span(guard: SafetyStock, pool: Exposed) -> Span:
    """What came since ``guard`` was taught last."""
    passed_s, arrived_jobs = max(0.0, pool.now_s - guard.at_s), pool.queue.fresh_jobs or 0
    return Span(
        jobs=arrived_jobs,
        lasts_s=passed_s,
        kept=math.exp(-passed_s / STOCK_MEMORY_S),
        is_lost=_is_lost(arrived_jobs, pool),
        rate_jobs=guard.expected_jobs,
    )


def _moment(guard: SafetyStock, pool: Exposed) -> Moment:
    """What forecasts may know of an exposed pool."""
    queue, tick_s, ahead_s = pool.queue, pool.times.tick_s, pool.ahead_s
    rate_jobs = (queue.fresh_rate_per_s or 0.0) * tick_s
    # Less what the rate predicts for the same time: of both together, more arrivals never ask for less.
    beyond_jobs = max(0.0, (pool.recalled_jobs or 0.0) - rate_jobs * min(1.0, ahead_s / tick_s))
    return Moment(
        now_s=pool.now_s,
        tick_s=tick_s,
        ahead_s=ahead_s,
        rate_jobs=rate_jobs,
        used_jobs=None if queue.in_flight_jobs is None else queue.in_flight_jobs + (queue.waiting_jobs or 0),
        periods=None if pool.profile.forecast is Forecast.OFF else guard.periods,
        recalled_jobs=beyond_jobs if _is_recall_known(pool) else None,
        is_by_weeks=pool.is_by_weeks,
    )


def _is_lost(jobs: int, pool: Exposed) -> bool:
    """Whether the objective is lost for ``jobs`` that come at once, even with every slot that the pool may have there.

    Pre-warming for them would meet no objective, and would be paid for until they are forgotten. Before a job has
    ended, nobody knows what the slots can start; depths show it only once a burst is over: then one job a slot counts.
    """
    slot_s, wait_s = pool.times.cycle_s(pool.queue), pool.profile.shortest_target_s - MARGIN_S
    if math.isinf(slot_s) and not pool.queue.has_unknown_rates:
        return False
    startable_jobs = pool.slots_max * (1.0 + wait_s / slot_s)
    return jobs * (1.0 - late_percent(pool.profile) / PERCENT) > startable_jobs


def _beyond_log(guard: SafetyStock, pool: Exposed, *, passed_s: float) -> float:
    """The guard's tightness after the late jobs of late.

    Source: I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", NeurIPS (2021): stepping
    against each miss brings the share of misses to the one wanted, whatever the arrivals do.
    """
    queue, room = pool.queue, leeway(pool.profile)
    allowed_per_s = STOCK_LATE_FRACTION * room * (queue.start_rate_per_s or 0.0)
    covered_s = min(passed_s, queue.window_s)  # rates cover their window, however long nothing was learned before it
    step = STOCK_LEARNING_STEP * covered_s * (allowed_per_s - (queue.late_rate_per_s or 0.0))
    least, most = math.log(BEYOND_LEAST * room), math.log(min(1.0, BEYOND_MOST * room))
    return min(most, max(least, guard.beyond_log + step))


def spare_jobs(guard: SafetyStock, pool: Exposed) -> float:
    """How many jobs beyond the recent rate the pool must be ready for now.

    Time in which nothing came makes pre-warmed workers dearer for each late job they avoid, also while nothing new is
    seen.
    """
    queue, profile, times = pool.queue, pool.profile, pool.times
    if not guard.by_rate.jobs:
        is_new = pool.now_s - guard.began_at_s <= times.tick_s + times.start_up_s
        return STOCK_FIRST_JOBS if is_new else 0.0
    moment = _moment(guard, pool)
    objective_s = max(0.0, profile.shortest_target_s - MARGIN_S)
    worker_s = STOCK_FIRST_DAY_WORKER_S if moment.recalled_jobs is None else LATE_JOB_WORKER_S
    spare_of = partial(
        Shortfalls.spare,
        late_fraction=math.exp(guard.beyond_log),
        # A generous percentile makes no late job cheaper: only so many of them are allowed.
        worker_s_per_late_job=worker_s / min(risk(profile), leeway(profile)),
        jobs_per_worker=1.0
        if queue.service_time_s is None
        else 1.0 + objective_s / max(queue.service_time_s, SHORTEST_S),
    )
    quiet_s = max(0.0, pool.now_s - guard.at_s)
    recent = RecentRate(
        ahead_jobs=guard.expected_jobs * moment.ahead_s / times.tick_s,
        spare_jobs=spare_of(guard.by_rate.seen(0.0, jobs=0, span_s=quiet_s)),
        quiet_s=quiet_s,
        spare_of=spare_of,
    )
    return reduce(trusted, [each.outlook(moment, recent) for each in guard.forecasts], recent.spare_jobs)


def _is_recall_known(pool: Exposed) -> bool:
    """Whether earlier days predict today, and the profile lets them."""
    return pool.recalled_jobs is not None and pool.profile.forecast is not Forecast.OFF
