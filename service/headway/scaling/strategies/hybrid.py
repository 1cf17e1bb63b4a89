"""The default: deadlines for the jobs that wait, and standing workers only for those that no reaction could save."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

from headway.scaling.demands import formulas
from headway.scaling.demands.deadlines import ceiling_slots, standing, supply, taking
from headway.scaling.demands.due_work import is_due_soon
from headway.scaling.demands.formulas import FORMULAS, demand, terms_of
from headway.scaling.demands.helping_slots import freed_slots
from headway.scaling.demands.needs import NO_NEED, Coming, Need, Supply
from headway.scaling.demands.pool_work import PoolWork
from headway.scaling.demands.rhythm_capacity import Enough, Keeping, enough_slots
from headway.scaling.demands.safety_stock import Exposed, SafetyStock, learned, spare_jobs
from headway.scaling.demands.start_contention import helpful_starts, vain_starts_note, without_vain_starts
from headway.scaling.demands.trust import confidence, risk
from headway.scaling.forecasts.rhythm_detection import Periods, periods_of, rhythm_alone, seen
from headway.scaling.model import QueueMetrics
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.policy.stabilization import start_cost_s
from headway.scaling.profile import Forecast, Profile
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.pool_times import MARGIN_S, PoolTimes, exposed_members, exposed_s, times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

HYBRID_SILENT_S = 600.0  # whoever comes after a pause so long is started for it
BURST_DEVIATIONS = 1.65  # a burst of twenty brings more, and only the last jobs of it wait for too long
CAUTION = 1.0  # standard deviations fewer completions than expected are assumed

Asked = tuple[tuple[float, int], ...]
"""When workers that start were asked for, and how many, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridState:
    """What is remembered of a pool. Each field is stored by its name, and left out where it says nothing."""

    asked: Asked = ()
    blind: bool = False
    """Whether workers were asked for before any job had ended."""
    guard: SafetyStock | None = None
    """Of an exposed pool."""
    periods: Periods | None = None
    """The rhythms of any other."""

    @classmethod
    def of(cls, stored: State) -> "HybridState":
        """The state that ``stored`` returned, or the mapping that storing made of it."""
        return cls(
            asked=tuple((at_s, int(workers)) for at_s, workers in stored.get("asked", ())),
            blind=stored.get("blind", False),
            guard=SafetyStock.of(stored["guard"]) if "guard" in stored else None,
            periods=periods_of(stored.get("periods")),
        )

    def stored(self, before: "HybridState", stored_before: State) -> State:
        """The values to store. What is as ``before`` is the very value in ``stored_before``, and not written again."""
        kept = {name: value for name in self.__slots__ if (value := getattr(self, name))}
        same = {name: stored_before[name] for name, value in kept.items() if value == getattr(before, name)}
        guard = {} if self.guard is None else {"guard": self.guard.stored()}
        return kept | guard | same


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
    """The slots in use, those that the waiting jobs need beyond, and those that must stand."""
    profile, times = view.profile, times_of(view)
    before, tick_s, per_worker = HybridState.of(state), times.tick_s, view.slots_per_worker
    asked = _asked(before.asked, view.starting_workers, asked_at_s=now_s - tick_s)
    price_s, slots_max = start_cost_s(times), ceiling_slots(view, now_s)
    coming = _coming(asked, slots_per_worker=per_worker, start_up_s=times.start_up_s, now_s=now_s)
    caution = CAUTION * confidence(profile) / risk(profile)
    members = OrderedQueues(queues=view.queues, order=view.queue_order, strict_queues=view.strict_queues)
    freed = freed_slots(view.helping, view.helped_queues, members, dispatch_s=times.dispatch_s)
    given = supply(queue, slots_of(view), times, coming=coming, freed=freed, caution=caution)
    exposed = _exposed(queue, view, times, slots_max=slots_max, now_s=now_s)
    guard = None if exposed is None else learned(before.guard, exposed)
    news = queue if view.is_teaching else None
    own_periods = _periods(before.periods, news, tick_s=tick_s, now_s=now_s) if guard is None else None
    periods = own_periods if guard is None else guard.periods
    enough = None
    if guard is None or not profile.member_objectives:  # what is enough for one objective is not for a shorter one
        enough = _enough_slots(periods, queue, profile, times, start_cost_s=price_s / per_worker, now_s=now_s)
    work = PoolWork(queue=queue, members=members, profile=profile, times=times, slots_max=slots_max)
    if before.blind and not math.isinf(given.cycle_s):
        given = _reconsidered(work, given)
    # What was begun since the sample still waits in it: it counts as a floor, and not once more as work to come.
    in_use = {
        "busy_slots": _busy_beside_coming(given, running_slots=view.running_workers * per_worker),
        "coming_slots": given.coming_slots,
        "begun_jobs": view.taken_jobs,
        # One while the next job is likely to come before the last worker has idled for what a start costs: who serves
        # short jobs all the time seems idle if none happens to run just now.
        "serving_slots": int(view.running_workers > 0 and (queue.arrived_jobs or 0) * price_s > tick_s),
    }
    helping = {"helping_slots": given.helping_slots} if given.helping_slots else {}
    drain = None if enough is None else work.drain_of_wave(given, slots=enough.slots)
    if drain is None:
        drain = work.drain(given)
    helpful = per_worker * helpful_starts(view.queues, times, host_cores=view.host_cores, slots_per_worker=per_worker)
    calculated, drain = drain, without_vain_starts(drain, given, helpful_slots=helpful)
    is_blind = math.isinf(given.cycle_s) and bool(asked or drain.new_slots)
    after = HybridState(asked=asked, blind=is_blind, guard=guard, periods=own_periods)
    demands = [
        demand(formulas.work_in_progress, in_use),
        demand(
            formulas.backlog_drain,
            {**in_use, **helping, **_drain_terms(queue, given, calculated, drain, helpful_slots=helpful)},
        ),
        demand(formulas.wake, _wake_terms(queue, view.running_workers, view.starting_workers)),
    ]
    if queue.delayed:
        # One worker is there when the first is due, however long the objective lets it wait, as for one that waits.
        first_slots = int(is_due_soon(queue, given))
        # Where no worker moves them when they are due, something else does, or nobody: one worker is enough to see.
        due = NO_NEED if view.leaves_due_jobs else work.due(given, price_s=price_s)
        demands.append(demand(formulas.due_work, {**in_use, **helping, "first_slots": first_slots, **terms_of(due)}))
    if enough is not None:
        demands.append(demand(formulas.rhythm, enough._asdict()))
    elif guard is not None and exposed is not None:
        # A slot that runs a job of another pool's queue stands there as well: else each that stands would soon be such.
        stand = _standing_terms(guard, exposed, work, given.with_helping_as_idle())
        demands.append(demand(formulas.standing, {**in_use, **stand}))
    return Advice(
        demands=tuple(demands),
        state=after.stored(before, state),
        notes=vain_starts_note(calculated, drain, host_cores=view.host_cores),
        enough_slots=None if enough is None else enough.slots,
        burst_jobs=None if guard is None else guard.burst_jobs(profile.objective.percentile),
    )


def _standing_terms(guard: SafetyStock, exposed: Exposed, work: PoolWork, given: Supply) -> dict[str, float]:
    spare = spare_jobs(guard, exposed)
    # What is learned leaves retries out. They come all the same, and take a slot each.
    coming_jobs = guard.expected_jobs + (exposed.queue.retry_rate_per_s or 0.0) * exposed.times.tick_s
    left, taken_slots = work.left_for(exposed.queue, given)
    stand = standing(
        left,
        waiting_jobs=exposed.queue.waiting_least_jobs,
        exposed_s=exposed.ahead_s,
        target_s=exposed.profile.shortest_target_s,
        arrivals_per_tick=coming_jobs,
        spare_jobs=spare,
    )
    terms = {"arrivals_per_tick_jobs": coming_jobs, "spare_jobs": spare, "taken_slots": taken_slots}
    return {**terms, **terms_of(stand)}


def _drain_terms(
    queue: QueueMetrics, given: Supply, calculated: Need, drain: Need, *, helpful_slots: float
) -> dict[str, float]:
    # Where nobody is started for them, waiting jobs are taken by slots that run jobs of other pools until then, too.
    takers = given if drain.new_slots else given.with_helping_as_idle()
    terms: dict[str, float] = {
        "waiting_jobs": queue.waiting_least_jobs,
        "taking_slots": taking(queue, takers).kept_slots,
    }
    if calculated.new_slots and not math.isinf(helpful_slots):
        terms["helpful_slots"] = helpful_slots
    return {**terms, **terms_of(calculated)}


def _wake_terms(queue: QueueMetrics, running_workers: int, starting_workers: int) -> dict[str, float]:
    """The first worker comes at once, also where the objective lets it wait."""
    return {
        "waiting_jobs": queue.waiting_least_jobs,
        "running_workers": running_workers,
        "starting_workers": starting_workers,
    }


def _exposed(queue: QueueMetrics, view: PoolView, times: PoolTimes, *, slots_max: int, now_s: float) -> Exposed | None:
    """The members whose own objective reacting is too slow for, with what the past predicts; ``None``: there are none.

    As one queue; ``queue`` itself where all are exposed, or no member has an objective of its own.
    """
    if exposed_s(view.profile, times) <= 0:
        return None
    if view.profile.member_objectives:
        members = exposed_members(view.profile, view.queues, times)
        queue = pooled(members) if 0 < len(members) < len(view.queues) else queue
    return Exposed(
        queue=queue,
        profile=view.profile,
        times=times,
        slots_max=slots_max,
        now_s=now_s,
        recalled_jobs=view.recalled_jobs,
        is_by_weeks=view.recalled_weeks is not None,
        is_teaching=view.is_teaching,
    )


def _periods(before: Periods | None, news: QueueMetrics | None, *, tick_s: float, now_s: float) -> Periods | None:
    """The rhythms of a pool that is not exposed; forgotten once nothing came for long."""
    periods = before if news is None else seen(before, news.fresh_jobs, at_s=news.arrived_until_s, tick_s=tick_s)
    return periods if periods is not None and _is_kept(periods, now_s) else None


def _is_kept(periods: Periods, now_s: float) -> bool:
    return now_s - periods.at_s <= HYBRID_SILENT_S


def _enough_slots(
    periods: Periods | None,
    queue: QueueMetrics,
    profile: Profile,
    times: PoolTimes,
    *,
    start_cost_s: float,
    now_s: float,
) -> Enough | None:
    """The slots to keep through the pauses of a rhythm that is believed; ``None``: without one, or it is dearer."""
    alone = None if periods is None else rhythm_alone(periods, now_s=now_s, tick_s=times.tick_s)
    if alone is None or profile.forecast is Forecast.OFF or profile.hold_down_s is not None:
        return None
    rhythm, beside_per_s = alone
    keeping = Keeping(
        cycle_s=times.cycle_s(queue),
        wait_s=max(0.0, profile.objective.target_s - MARGIN_S),
        tick_s=times.tick_s,
        start_cost_s=start_cost_s,
        beside_per_s=beside_per_s + (queue.retry_rate_per_s or 0.0),  # work, though no news
        deviations=BURST_DEVIATIONS * confidence(profile) / risk(profile),
    )
    return enough_slots(rhythm, keeping)


def _busy_beside_coming(given: Supply, *, running_slots: int) -> int:
    """Slots in use that none of those to come can be.

    Jobs beyond the slots of workers that run are in the hands of nobody, or of workers that are not the pool's. Beside
    them, each worker that starts would ask for one more.
    """
    beyond_slots = max(0, given.busy_slots - running_slots)
    return given.busy_slots - min(beyond_slots, given.coming_slots)


def _reconsidered(work: PoolWork, given: Supply) -> Supply:
    """``given`` with as few slots to come as start the waiting jobs no later than all would.

    Before a job has ended, each that waits asks for a worker: it may take for ever. Those that were asked for so and
    still start are wanted only as far as what is known by now asks for them.
    """

    def new_slots(slots: int) -> int:
        return work.drain(_with_coming(given, slots)).new_slots

    least_slots = new_slots(given.coming_slots)
    needed_slots = bisect_left(range(given.coming_slots), -least_slots, key=lambda slots: -new_slots(slots))
    return _with_coming(given, needed_slots)


def _with_coming(given: Supply, slots: int) -> Supply:
    """``given`` with no more than ``slots`` to come, those that are ready first."""
    left, coming = slots, []
    for each in sorted(given.coming, key=lambda each: each.ready_in_s):
        coming.append(replace(each, slots=min(left, each.slots)))
        left -= coming[-1].slots
    return replace(given, coming=tuple(each for each in coming if each.slots))


def _asked(before: Asked, starting_workers: int, *, asked_at_s: float) -> Asked:
    """When the workers that start now were asked for: those that are up first, what is new at ``asked_at_s``."""
    known = [*before]
    up_workers = sum(workers for _, workers in known) - starting_workers
    if up_workers < 0:
        known.append((asked_at_s, -up_workers))
    left = []
    for at_s, workers in known:
        gone = min(workers, max(0, up_workers))
        up_workers -= gone
        if workers > gone:
            left.append((at_s, workers - gone))
    return tuple(left)


def _coming(asked: Asked, *, slots_per_worker: int, start_up_s: float, now_s: float) -> tuple[Coming, ...]:
    return tuple(
        Coming(slots=workers * slots_per_worker, ready_in_s=max(0.0, at_s + start_up_s - now_s))
        for at_s, workers in asked
    )


def is_at_rest(state: State, now_s: float) -> bool:
    """Whether ``state`` holds no more than arrivals in which no rhythm was found, and keeps them."""
    if not state:
        return True
    periods = periods_of(state.get("periods"))
    return state.keys() == {"periods"} and periods is not None and not periods.rhythms and _is_kept(periods, now_s)


HYBRID = Strategy(name="hybrid", advise=advise, formulas=FORMULAS, is_clockless=True, is_at_rest=is_at_rest)
