"""What an exposed pool guards against: the jobs that may come before a worker asked for at the next evaluation is up.

Three things are learned from the pool itself: how far the recent rate fell short of what came, whether the same minute
of earlier days predicts better, and, from the jobs that were late in spite of it all, how tight the guard must be.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headway.scaling.arithmetic import ROUNDING, SHORTEST_S
from headway.scaling.demands.deadlines import ceiling_slots
from headway.scaling.demands.rhythm_detection import Periods, expected, periods_of, seen, steady_per_s
from headway.scaling.demands.shortfalls import Shortfalls
from headway.scaling.demands.trust import late_percent, leeway
from headway.scaling.model import QueueMetrics
from headway.scaling.profile import Forecast
from headway.scaling.reading.pool_times import MARGIN_S, cycle_s, exposed_s, start_up_s
from headway.scaling.view import PoolView

STOCK_LATE_FRACTION = 0.001  # of all jobs may be late: a tenth of what an objective of 99 % allows
STOCK_BEYOND_FIRST = 0.01  # of all jobs may come beyond the spare, until late jobs have taught better
BEYOND_LEAST, BEYOND_MOST = 0.0005, 0.1
STOCK_LEARNING_STEP = 0.3  # a late job tightens by a quarter, as many jobs in time as it may cost loosen by as much
STOCK_MEMORY_S = 18 * 3600.0  # a working day and its evening
LATE_JOB_WORKER_S = 16 * 3600.0  # what standing workers may cost for each late job they avoid
STOCK_FIRST_DAY_WORKER_S = (
    3600.0  # until a day has been seen, what returns every day looks like chance and is paid less for
)
BANDS = 8
STOCK_BAND_TIME_S = 600.0  # with so many jobs there already, before what came on top of them is believed
STOCK_RECALL_TIME_S = 3600.0  # for which earlier days only add: that they fell short of nothing yet is no proof
STOCK_FIRST_JOBS = 1.0  # the spare while nothing has been counted yet


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyStock:
    """What has been learned, and what was expected at the last evaluation."""

    began_at_s: float
    at_s: float
    seen_until_s: float | None = None
    by_rate: Shortfalls = field(default_factory=Shortfalls)
    """How far the recent rate fell short."""
    by_recall: Shortfalls = field(default_factory=Shortfalls)
    """How far the rate and earlier days fell short together; only since earlier days predict anything."""
    by_use: tuple[Shortfalls, ...] = ()
    """How far the rate fell short by how many jobs were there already, in bands of ``_band``."""
    used_jobs: int | None = None
    """How many were there at the last evaluation; ``None``: not known."""
    by_rhythm: Shortfalls = field(default_factory=Shortfalls)
    """How far a rhythm that is believed, and the rate of all other jobs, fell short."""
    periods: Periods | None = None
    """The rhythms in what came of late."""
    rhythmic_jobs: float | None = None
    """What came by them and beside them is expected to be in the next span; ``None`` while none is believed."""
    recalled_mean_jobs: float = 0.0
    """What standing for recalled jobs costs on average."""
    beyond_log: float = math.log(STOCK_BEYOND_FIRST)
    """The logarithm of the fraction of jobs that may come beyond the spare."""
    expected_jobs: float = 0.0
    recalled_jobs: float | None = None

    def burst_jobs(self, percentile: float) -> float | None:
        """The fewest jobs beyond the rate to be ready for in a tick, so that ``percentile`` % of all jobs have a slot.

        ``None`` until a job has come.
        """
        return self.by_rate.least_spare(1 - percentile / 100) if self.by_rate.jobs else None


def guard_of(stored: Any) -> SafetyStock | None:
    """The guard that a state holds: the value itself, or the mapping that storing made of it."""
    if stored is None or isinstance(stored, SafetyStock):
        return stored
    shortfalls = {name: _shortfalls(stored[name]) for name in ("by_rate", "by_recall", "by_rhythm") if name in stored}
    by_use = tuple(_shortfalls(each) for each in stored.get("by_use", ()))
    periods = periods_of(stored.get("periods"))
    return SafetyStock(**{**stored, **shortfalls, "by_use": by_use, "periods": periods})


def _shortfalls(stored: Mapping[str, Any]) -> Shortfalls:
    return Shortfalls(**{**stored, "spans": tuple(stored["spans"])})


def learned(before: SafetyStock | None, queue: QueueMetrics, view: PoolView, *, now_s: float) -> SafetyStock:
    """``before`` with what came since, and with what is expected next. A span that is seen again counts once."""
    guard = before or SafetyStock(began_at_s=now_s, at_s=now_s - view.tick_s)
    expected_jobs = (queue.fresh_rate_per_s or 0.0) * view.tick_s
    # Less what the rate predicts for the same time: of both together, more arrivals never ask for less.
    counted = min(1.0, exposed_s(view) / view.tick_s)
    recalled_jobs = max(0.0, (view.recalled_jobs or 0.0) - expected_jobs * counted) if _is_recall_known(view) else None
    used_jobs = None if queue.in_flight_jobs is None else queue.in_flight_jobs + (queue.waiting_jobs or 0)
    until_s = queue.arrived_until_s
    if until_s is None or (guard.seen_until_s is not None and until_s <= guard.seen_until_s):
        # A quiet pool has nothing to learn: the time is counted with the next that comes.
        rhythmic_jobs = _rhythmic_jobs(guard.periods, view, now_s=now_s, ahead_s=view.tick_s)
        return replace(
            guard,
            expected_jobs=expected_jobs,
            recalled_jobs=recalled_jobs,
            used_jobs=used_jobs,
            rhythmic_jobs=rhythmic_jobs,
        )
    if not view.is_teaching:
        return replace(
            guard,
            at_s=now_s,
            seen_until_s=until_s,
            expected_jobs=expected_jobs,
            recalled_jobs=recalled_jobs,
            used_jobs=used_jobs,
            rhythmic_jobs=None,
        )
    passed_s = max(0.0, now_s - guard.at_s)
    kept = math.exp(-passed_s / STOCK_MEMORY_S)
    arrived_jobs = queue.fresh_jobs or 0
    is_lost = _is_lost(arrived_jobs, queue, view, now_s=now_s)
    beyond_rate = 0.0 if is_lost else arrived_jobs - guard.expected_jobs
    by_recall = guard.by_recall.faded(kept)
    if guard.recalled_jobs is not None:
        by_recall = by_recall.seen(beyond_rate - guard.recalled_jobs, jobs=arrived_jobs, span_s=passed_s)
    by_rhythm = guard.by_rhythm.faded(kept)
    if guard.rhythmic_jobs is not None:
        beyond_rhythm = 0.0 if is_lost else arrived_jobs - guard.rhythmic_jobs
        by_rhythm = by_rhythm.seen(beyond_rhythm, jobs=arrived_jobs, span_s=passed_s)
    periods = seen(guard.periods, arrived_jobs, at_s=until_s, tick_s=view.tick_s)
    return SafetyStock(
        began_at_s=guard.began_at_s,
        at_s=now_s,
        seen_until_s=until_s,
        by_rate=guard.by_rate.faded(kept).seen(beyond_rate, jobs=arrived_jobs, span_s=passed_s),
        by_recall=by_recall,
        by_use=_by_use(guard, beyond_rate, jobs=arrived_jobs, passed_s=passed_s),
        used_jobs=used_jobs,
        by_rhythm=by_rhythm,
        periods=periods,
        rhythmic_jobs=_rhythmic_jobs(periods, view, now_s=now_s, ahead_s=view.tick_s),
        recalled_mean_jobs=guard.recalled_mean_jobs * kept + (guard.recalled_jobs or 0.0) * (1 - kept),
        beyond_log=_beyond_log(guard, queue, view, passed_s=passed_s),
        expected_jobs=expected_jobs,
        recalled_jobs=recalled_jobs,
    )


def _is_lost(jobs: int, queue: QueueMetrics, view: PoolView, *, now_s: float) -> bool:
    """Whether the objective is lost for ``jobs`` that come at once, even with every slot that the pool may have there.

    Pre-warming for them would meet no objective, and would be paid for until they are forgotten. Before a job has
    ended, nobody knows what the slots can start; depths show it only once a burst is over: then one job a slot counts.
    """
    if math.isinf(cycle_s(queue, view)) and not queue.has_unknown_rates:
        return False
    wait_s = view.profile.shortest_target_s - MARGIN_S
    startable_jobs = ceiling_slots(view, now_s) * (1.0 + wait_s / cycle_s(queue, view))
    return jobs * (1.0 - late_percent(view.profile) / 100.0) > startable_jobs


def _by_use(guard: SafetyStock, beyond_jobs: float, *, jobs: int, passed_s: float) -> tuple[Shortfalls, ...]:
    """The shortfalls by use with one more span, which began with ``guard.used_jobs``.

    Bands fade when they are seen again, so that a span costs the work of one band.
    """
    if guard.used_jobs is None:
        return guard.by_use
    band = _band(guard.used_jobs)
    found = [*guard.by_use, *[Shortfalls()] * (band + 1 - len(guard.by_use))]
    found[band] = found[band].faded(math.exp(-passed_s / STOCK_MEMORY_S)).seen(beyond_jobs, jobs=jobs, span_s=passed_s)
    return tuple(found)


def _band(jobs: int) -> int:
    """None, one, two, three or four, five to eight and so on; from ``_upto`` of the last on, all are one."""
    return min(BANDS - 1, (jobs - 1).bit_length() + 1) if jobs else 0


def _upto(band: int) -> int:
    """The most jobs of a band that is not the last."""
    return 1 << band >> 1


def _beyond_log(guard: SafetyStock, queue: QueueMetrics, view: PoolView, *, passed_s: float) -> float:
    """The guard's tightness after the late jobs of late.

    Source: I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", NeurIPS (2021): stepping
    against each miss brings the share of misses to the one wanted, whatever the arrivals do.
    """
    room = leeway(view.profile)
    allowed_per_s = STOCK_LATE_FRACTION * room * (queue.start_rate_per_s or 0.0)
    covered_s = min(passed_s, queue.window_s)  # rates cover their window, however long nothing was learned before it
    step = STOCK_LEARNING_STEP * covered_s * (allowed_per_s - (queue.late_rate_per_s or 0.0))
    least, most = math.log(BEYOND_LEAST * room), math.log(min(1.0, BEYOND_MOST * room))
    return min(most, max(least, guard.beyond_log + step))


def spare_jobs(guard: SafetyStock, queue: QueueMetrics, view: PoolView, *, now_s: float) -> float:
    """How many jobs beyond the recent rate the pool must be ready for now.

    Time in which nothing came makes pre-warmed workers dearer for each late job they avoid, also while nothing new is
    seen. Earlier days count only while guarding with them asks for fewer pre-warmed workers than guarding without.
    Weeks have been judged before they come here.
    """
    if not guard.by_rate.jobs:
        is_new = now_s - guard.began_at_s <= view.tick_s + start_up_s(view)
        return STOCK_FIRST_JOBS if is_new else 0.0
    quiet_s = max(0.0, now_s - guard.at_s)
    by_rate = _spare(guard.by_rate.seen(0.0, jobs=0, span_s=quiet_s), guard, queue, view)
    in_rhythm, is_due = _spare_in_rhythm(guard, queue, view, now_s=now_s)
    least = min(by_rate, _spare_in_use(guard, by_rate, queue, view), in_rhythm)
    # The others weigh what standing all the time costs. Through the moments of a beat it costs next to nothing.
    least = in_rhythm if is_due else least
    if guard.recalled_jobs is None:
        return least
    by_recall = _spare(guard.by_recall.seen(0.0, jobs=0, span_s=quiet_s), guard, queue, view)
    # Weeks have been judged by a whole week. What is learned here is forgotten in a day, and what comes once a week
    # would never pay.
    is_believed = view.recalled_weeks is not None or _pays(guard, by_recall, by_rate)
    if guard.by_recall.time_s < STOCK_RECALL_TIME_S * guard.by_recall.scale:
        return max(least, by_recall + guard.recalled_jobs)
    return by_recall + guard.recalled_jobs if is_believed else least


def _rhythmic_jobs(periods: Periods | None, view: PoolView, *, now_s: float, ahead_s: float) -> float | None:
    """What rhythms bring within ``ahead_s``, and what comes beside them; ``None`` where none is believed."""
    ahead_jobs = expected(periods, now_s=now_s, ahead_s=ahead_s, tick_s=view.tick_s)
    beside_per_s = steady_per_s(periods, now_s=now_s, tick_s=view.tick_s)
    if ahead_jobs is None or beside_per_s is None or view.profile.forecast is Forecast.OFF:
        return None
    return ahead_jobs + beside_per_s * ahead_s


def _spare_in_rhythm(guard: SafetyStock, queue: QueueMetrics, view: PoolView, *, now_s: float) -> tuple[float, bool]:
    """The spare that is enough while a rhythm shows when bursts come, and how far it fell short so far; and whether
    one is due, so that no less is enough.
    """
    ahead_s = exposed_s(view)
    rhythmic_jobs = _rhythmic_jobs(guard.periods, view, now_s=now_s, ahead_s=ahead_s)
    if guard.by_rhythm.time_s < STOCK_BAND_TIME_S * guard.by_rhythm.scale or rhythmic_jobs is None:
        return math.inf, False
    burst_jobs = expected(guard.periods, now_s=now_s, ahead_s=ahead_s, tick_s=view.tick_s)
    ahead_jobs = guard.expected_jobs * ahead_s / view.tick_s
    return rhythmic_jobs + _spare(guard.by_rhythm, guard, queue, view) - ahead_jobs, bool(burst_jobs)


def _spare_in_use(guard: SafetyStock, by_rate: float, queue: QueueMetrics, view: PoolView) -> float:
    """The spare that is enough with as many jobs as there are: what is there already will not come once more.

    Where one job at a time comes, a second worker waits for nobody while the first is at work. The jobs that are there
    and those to be ready for together never fall as jobs rise. Below 0 where less came than the recent rate makes
    expect.
    """
    if guard.used_jobs is None or not guard.by_use:
        return by_rate
    ahead_jobs = guard.expected_jobs * exposed_s(view) / view.tick_s
    own_band = _band(guard.used_jobs)
    most_jobs, least_above_jobs = 0.0, math.inf
    for band in range(max(own_band + 1, len(guard.by_use))):
        more_jobs = _jobs_on_top(guard, band, queue, view, ahead_jobs=ahead_jobs)
        if more_jobs is None:
            continue
        if band < own_band:
            most_jobs = max(most_jobs, _upto(band) + more_jobs)
        elif band == own_band:
            return min(by_rate, max(most_jobs, guard.used_jobs + more_jobs) - guard.used_jobs - ahead_jobs)
        else:
            least_above_jobs = min(least_above_jobs, _upto(band - 1) + 1 + more_jobs)
    # With as many as there are it was not watched for long: no more than where more were there.
    return min(by_rate, max(most_jobs, least_above_jobs) - guard.used_jobs - ahead_jobs)


def _jobs_on_top(
    guard: SafetyStock, band: int, queue: QueueMetrics, view: PoolView, *, ahead_jobs: float
) -> float | None:
    """The jobs to be ready for beside those of a band; ``None`` where the band has not been watched for long.

    Jobs come whole: the half that is expected and the half that is spare are one.
    """
    if band >= len(guard.by_use) or guard.by_use[band].time_s < STOCK_BAND_TIME_S * guard.by_use[band].scale:
        return None
    return math.floor(ahead_jobs + math.ceil(_spare(guard.by_use[band], guard, queue, view)) + ROUNDING)


def _is_recall_known(view: PoolView) -> bool:
    """Whether earlier days predict today, and the profile lets them."""
    return view.recalled_jobs is not None and view.profile.forecast is not Forecast.OFF


def _pays(guard: SafetyStock, by_recall: float, by_rate: float) -> bool:
    """Whether guarding by earlier days has asked for fewer pre-warmed workers than guarding without."""
    return by_recall + guard.recalled_mean_jobs < by_rate


def _spare(shortfalls: Shortfalls, guard: SafetyStock, queue: QueueMetrics, view: PoolView) -> float:
    service_s = queue.service_time_s
    objective_s = max(0.0, view.profile.shortest_target_s - MARGIN_S)
    worker_s = STOCK_FIRST_DAY_WORKER_S if guard.recalled_jobs is None else LATE_JOB_WORKER_S
    return min(
        shortfalls.least_spare(math.exp(guard.beyond_log)),
        shortfalls.worth(
            # A generous percentile makes no late job cheaper: only so many of them are allowed.
            worker_s_per_late_job=worker_s / min(view.profile.risk, leeway(view.profile)),
            jobs_per_worker=1.0 if service_s is None else 1.0 + objective_s / max(service_s, SHORTEST_S),
        ),
    )
