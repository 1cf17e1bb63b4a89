"""The terms of ``hybrid``, each with the patches that take it out and where it can act at all."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from closed_loop.patches import Patch
from headway.scaling import decide, forecasts
from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.demands import deadlines, pool_work, safety_stock, trust
from headway.scaling.demands.deadlines import Due, waiting
from headway.scaling.demands.needs import Need, Supply, greatest, need
from headway.scaling.demands.safety_stock import Exposed
from headway.scaling.forecasts import earlier_days
from headway.scaling.forecasts.arrival_forecast import ArrivalForecast
from headway.scaling.forecasts.in_use import InUse
from headway.scaling.forecasts.rhythmic import Rhythmic
from headway.scaling.history.weekly import WEEK_HOURS, WEEKS_MIN
from headway.scaling.model import HoldCosts, QueueMetrics
from headway.scaling.policy import stabilization
from headway.scaling.policy.stabilization import HOLDS_TICKS
from headway.scaling.profile import Forecast
from headway.scaling.reading.pool_times import PoolTimes
from headway.scaling.strategies import hybrid
from headway.simulate import controller

# A workload goes on after its last job: the margin keeps a term that acts at the very end.
DAILY_FROM_S = DAY_S - HOUR_S
WEEKLY_FROM_S = WEEKS_MIN * WEEK_HOURS * HOUR_S - DAY_S


class Kind(StrEnum):
    """What a term is for."""

    REACTION = "reaction"
    FORECAST = "forecast"
    HOLD = "hold"
    GUARD = "guard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A part of the strategy that can be left out, and what is there instead."""

    name: str
    """Words joined by hyphens, as on the command line."""
    kind: Kind
    instead: str
    """What happens without the term."""
    patches: tuple[Patch, ...]
    is_of_exposed: bool = False
    """Whether the term acts only in pools for which reacting is too slow."""
    from_s: float = 0.0
    """How long a workload must last for the term to act in it."""


def without_deferral(due: Iterable[Due], given: Supply, *, slots_max: int) -> Need:  # noqa: ARG001
    """The backlog drained as if there were no next evaluation."""
    found, ahead_jobs = Need(), 0.0
    for each in due:
        ahead_jobs += each.jobs
        found = greatest((found, need(ahead_jobs, each.within_s, given, start_up_s=given.start_up_s)))
    return found


def without_cohorts(queue: QueueMetrics, *, target_s: float, slow_start_s: float, tick_s: float) -> tuple[Due, ...]:
    """All waiting jobs as old as the oldest."""
    return waiting(replace(queue, arrivals=()), target_s=target_s, slow_start_s=slow_start_s, tick_s=tick_s)


def mean_completions(queue: QueueMetrics, times: PoolTimes, busy_slots: int) -> float:
    """Completions by the mean service time."""
    return busy_slots / times.cycle_s(queue)


def no_wake(_queue: QueueMetrics, running_workers: int, starting_workers: int) -> dict[str, float]:
    """The terms of a pool in which no job waits."""
    return {"waiting_jobs": 0, "running_workers": running_workers, "starting_workers": starting_workers}


def is_week_recalled(pool: Exposed) -> bool:
    """Whether weeks predict today: what earlier days predict is not known."""
    return pool.is_by_weeks and pool.profile.forecast is not Forecast.OFF


def workers_kept_by_pool(costs: HoldCosts) -> int:
    """The count that stays up when all workers of the pool wait as long as has cost all bands together least."""
    totals = [sum(band) for band in zip(*costs.bands, strict=True)] or [0.0] * len(HOLDS_TICKS)
    return costs.levels[totals.index(min(totals))]


def _kept_for(ticks: int) -> Patch:
    """Every worker is held for so many ticks."""
    at = HOLDS_TICKS.index(ticks)
    return Patch(decide, "kept_workers", lambda costs: costs.levels[at])


def _without(forecast: type[ArrivalForecast]) -> Patch:
    """Nobody asks ``forecast``."""
    return Patch(safety_stock, "FORECASTS", tuple(each for each in forecasts.FORECASTS if each is not forecast))


REACTIONS = (
    Term(
        name="deferral",
        kind=Kind.REACTION,
        instead="every waiting job asks for its worker now",
        patches=(Patch(pool_work, "backlog_drain", without_deferral),),
    ),
    Term(
        name="age-of-cohorts",
        kind=Kind.REACTION,
        instead="every waiting job counts as old as the oldest",
        patches=(Patch(pool_work, "waiting", without_cohorts),),
    ),
    Term(
        name="caution",
        kind=Kind.REACTION,
        instead="completions are expected at their mean",
        patches=(Patch(hybrid, "CAUTION", 0.0),),
    ),
    Term(
        name="recent-completions",
        kind=Kind.REACTION,
        instead="completions are expected by the mean service time",
        patches=(
            Patch(pool_work, "completions_per_s", mean_completions),
            Patch(deadlines, "completions_per_s", mean_completions),
        ),
    ),
    Term(
        name="slow-start-margin",
        kind=Kind.REACTION,
        instead="a start takes as long as the mean",
        patches=(Patch(trust, "START_UP_SPREAD", 0.0),),
    ),
    Term(
        name="wake",
        kind=Kind.REACTION,
        instead="the first worker may wait as long as the objective lets it",
        patches=(Patch(hybrid, "_wake_terms", no_wake),),
    ),
)
FORECASTS = (
    Term(
        name="bands-by-use",
        kind=Kind.FORECAST,
        instead="one spare, however many jobs are there",
        patches=(_without(InUse),),
        is_of_exposed=True,
    ),
    Term(
        name="daily-recall",
        kind=Kind.FORECAST,
        instead="no recall of earlier days; weeks still predict",
        patches=(Patch(safety_stock, "_is_recall_known", is_week_recalled),),
        is_of_exposed=True,
        from_s=DAILY_FROM_S,
    ),
    Term(
        name="weekly-recall",
        kind=Kind.FORECAST,
        instead="earlier days predict, never weeks",
        patches=(Patch(controller, "Weeks", lambda _zone=None: None),),
        is_of_exposed=True,
        from_s=WEEKLY_FROM_S,
    ),
    Term(
        name="recall-only-where-it-pays",
        kind=Kind.FORECAST,
        instead="earlier days predict even where that is dearer",
        patches=(Patch(earlier_days, "_pays", lambda *_: True),),
        is_of_exposed=True,
        from_s=DAILY_FROM_S,
    ),
    Term(
        name="rhythm-of-exposed-pools",
        kind=Kind.FORECAST,
        instead="the spare ignores rhythms",
        patches=(_without(Rhythmic),),
        is_of_exposed=True,
    ),
    Term(
        name="rhythm-of-reactive-pools",
        kind=Kind.FORECAST,
        instead="every burst is followed down and up again",
        patches=(Patch(hybrid, "_enough_slots", lambda *_, **__: None),),
    ),
)
HOLDS = (
    Term(
        name="hold-per-band",
        kind=Kind.HOLD,
        instead="one learned hold for all workers of a pool",
        patches=(Patch(decide, "kept_workers", workers_kept_by_pool),),
    ),
    Term(name="learned-hold", kind=Kind.HOLD, instead="every worker is held for 15 s", patches=(_kept_for(3),)),
    Term(name="any-hold", kind=Kind.HOLD, instead="no worker is held", patches=(_kept_for(0),)),
    Term(
        name="start-up-in-the-price-of-a-start",
        kind=Kind.HOLD,
        instead="a start costs its processor time alone",
        patches=(Patch(stabilization, "HOLD_START_UP_SHARE", 0.0),),
    ),
    Term(
        name="hold-overdue",
        kind=Kind.HOLD,
        instead="workers may leave while a job is overdue",
        patches=(Patch(stabilization, "is_overdue", lambda *_: False),),
    ),
)
GUARDS = (
    Term(
        name="standing",
        kind=Kind.GUARD,
        instead="no worker is pre-warmed",
        patches=(Patch(hybrid, "exposed_s", lambda *_: 0.0),),
        is_of_exposed=True,
    ),
    Term(
        name="spare",
        kind=Kind.GUARD,
        instead="workers are pre-warmed for the expected jobs alone",
        patches=(Patch(hybrid, "spare_jobs", lambda *_, **__: 0.0),),
        is_of_exposed=True,
    ),
    Term(
        name="learning-from-late-jobs",
        kind=Kind.GUARD,
        instead="the guard is as tight as at first",
        patches=(Patch(safety_stock, "STOCK_LEARNING_STEP", 0.0),),
        is_of_exposed=True,
    ),
    Term(
        name="price-of-a-late-job",
        kind=Kind.GUARD,
        instead="a late job may cost any number of idle workers",
        patches=(
            Patch(safety_stock, "LATE_JOB_WORKER_S", math.inf),
            Patch(safety_stock, "STOCK_FIRST_DAY_WORKER_S", math.inf),
        ),
        is_of_exposed=True,
    ),
    Term(
        name="first-day-price",
        kind=Kind.GUARD,
        instead="the first day is priced as every other",
        patches=(Patch(safety_stock, "STOCK_FIRST_DAY_WORKER_S", safety_stock.LATE_JOB_WORKER_S),),
        is_of_exposed=True,
    ),
)
TERMS = {term.name: term for term in (*REACTIONS, *FORECASTS, *HOLDS, *GUARDS)}
CANDIDATES = (
    "rhythm-of-exposed-pools",
    "rhythm-of-reactive-pools",
    "bands-by-use",
    "weekly-recall",
    "hold-per-band",
)
"""Which terms `--eliminate` leaves out together unless others are named."""
