"""The default: deadlines for the jobs that wait, and standing workers only for those that no reaction could save."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

from headway.scaling.demands import formulas
from headway.scaling.demands.deadlines import (
    backlog_drain,
    ceiling_slots,
    completions_per_s,
    standing,
    supply,
    taking,
    waiting,
)
from headway.scaling.demands.due_work import due_work, is_due_soon
from headway.scaling.demands.formulas import FORMULAS, demand, terms_of
from headway.scaling.demands.jobs_in_front import drain_behind, without_slots
from headway.scaling.demands.needs import NO_NEED, Coming, Need, Supply, greatest, need
from headway.scaling.demands.rhythm_capacity import Enough, Keeping, enough_slots
from headway.scaling.demands.safety_stock import SafetyStock, learned, spare_jobs
from headway.scaling.demands.start_contention import helpful_slots, vain_starts_note, without_vain_starts
from headway.scaling.demands.trust import confidence
from headway.scaling.forecasts.rhythm_detection import Periods, periods_of, rhythm_alone, seen
from headway.scaling.model import QueueMetrics
from headway.scaling.policy.stabilization import start_cost_s
from headway.scaling.profile import Forecast
from headway.scaling.reading.pool_times import MARGIN_S, batch_cycle_s, cycle_s, exposed_members, exposed_s, start_up_s
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView, copied

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
    before = HybridState.of(state)
    asked, price_s, slots_max = _asked(view, before.asked, now_s), _start_price_s(view), ceiling_slots(view, now_s)
    given = supply(
        queue, view, coming=_coming(asked, view, now_s), caution=CAUTION * confidence(view.profile) / view.profile.risk
    )
    exposed = _exposed_part(queue, view)
    ahead_s = exposed_s(view)
    guard = learned(before.guard, exposed, view, now_s=now_s) if ahead_s > 0 else None
    own_periods = _periods(before.periods, queue, view, now_s=now_s) if guard is None else None
    periods = own_periods if guard is None else guard.periods
    enough = _enough_slots(periods, queue, view, price_s=price_s, now_s=now_s)
    if guard is not None and view.profile.member_objectives:
        enough = None  # what is enough for one objective is not for a shorter one
    if before.blind and not math.isinf(given.cycle_s):
        given = _reconsidered(queue, view, given, slots_max=slots_max)
    # What was begun since the sample still waits in it: it counts as a floor, and not once more as work to come.
    in_use = {
        "busy_slots": _busy_beside_coming(given, view),
        "coming_slots": given.coming_slots,
        "begun_jobs": view.taken_jobs,
        # One while the next job is likely to come before the last worker has idled for what a start costs: who serves
        # short jobs all the time seems idle if none happens to run just now.
        "serving_slots": int(view.running_workers > 0 and (queue.arrived_jobs or 0) * price_s > view.tick_s),
    }
    helping = {"helping_slots": given.helping_slots} if given.helping_slots else {}
    drain = None if enough is None else _drain_of_wave(queue, given, view, slots=enough.slots)
    if drain is None:
        drain = _drain(queue, view, given, slots_max=slots_max)
    helpful = helpful_slots(view)
    calculated, drain = drain, without_vain_starts(drain, given, helpful_slots=helpful)
    is_blind = math.isinf(given.cycle_s) and bool(asked or drain.new_slots)
    after = HybridState(asked=asked, blind=is_blind, guard=guard, periods=own_periods)
    demands = [
        demand(formulas.work_in_progress, in_use),
        demand(
            formulas.backlog_drain,
            {**in_use, **helping, **_drain_terms(queue, given, calculated, drain, helpful_slots=helpful)},
        ),
        demand(formulas.wake, _wake_terms(queue, view)),
    ]
    if queue.delayed:
        # One worker is there when the first is due, however long the objective lets it wait, as for one that waits.
        first_slots = int(is_due_soon(queue, given))
        # Where no worker moves them when they are due, something else does, or nobody: one worker is enough to see.
        due = NO_NEED if view.leaves_due_jobs else _due(queue, view, given, price_s=price_s)
        demands.append(demand(formulas.due_work, {**in_use, **helping, "first_slots": first_slots, **terms_of(due)}))
    if enough is not None:
        demands.append(demand(formulas.rhythm, enough._asdict()))
    elif guard is not None:
        spare = spare_jobs(guard, exposed, view, now_s=now_s)
        # What is learned leaves retries out. They come all the same, and take a slot each.
        coming_jobs = guard.expected_jobs + (exposed.retry_rate_per_s or 0.0) * view.tick_s
        # A slot that runs a job of another pool's queue stands there as well: else each that stands would soon be such.
        left, taken_slots = _left_for(exposed, queue, given.with_helping_as_idle(), view)
        stand = standing(
            left,
            waiting_jobs=exposed.waiting_least_jobs,
            exposed_s=ahead_s,
            target_s=view.profile.shortest_target_s,
            arrivals_per_tick=coming_jobs,
            spare_jobs=spare,
        )
        terms = {"arrivals_per_tick_jobs": coming_jobs, "spare_jobs": spare, "taken_slots": taken_slots}
        demands.append(demand(formulas.standing, {**in_use, **terms, **terms_of(stand)}))
    return Advice(
        demands=tuple(demands),
        state=after.stored(before, state),
        notes=vain_starts_note(calculated, drain, view),
        enough_slots=None if enough is None else enough.slots,
        burst_jobs=None if guard is None else guard.burst_jobs(view.profile.objective.percentile),
    )


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


def _wake_terms(queue: QueueMetrics, view: PoolView) -> dict[str, float]:
    """The first worker comes at once, also where the objective lets it wait."""
    return {
        "waiting_jobs": queue.waiting_least_jobs,
        "running_workers": view.running_workers,
        "starting_workers": view.starting_workers,
    }


def _exposed_part(queue: QueueMetrics, view: PoolView) -> QueueMetrics:
    """The members whose own objective reacting is too slow for, as one queue; ``queue`` where all are, or none is."""
    if not view.profile.member_objectives:
        return queue
    members = exposed_members(view)
    return pooled(members) if 0 < len(members) < len(view.queues) else queue


def _periods(before: Periods | None, queue: QueueMetrics, view: PoolView, *, now_s: float) -> Periods | None:
    """The rhythms of a pool that is not exposed; forgotten once nothing came for long."""
    is_news = view.is_teaching
    periods = seen(before, queue.fresh_jobs, at_s=queue.arrived_until_s, tick_s=view.tick_s) if is_news else before
    return periods if periods is not None and _is_kept(periods, now_s) else None


def _is_kept(periods: Periods, now_s: float) -> bool:
    return now_s - periods.at_s <= HYBRID_SILENT_S


def _enough_slots(
    periods: Periods | None, queue: QueueMetrics, view: PoolView, *, price_s: float, now_s: float
) -> Enough | None:
    """The slots to keep through the pauses of a rhythm that is believed; ``None``: without one, or it is dearer."""
    alone = None if periods is None else rhythm_alone(periods, now_s=now_s, tick_s=view.tick_s)
    if alone is None or view.profile.forecast is Forecast.OFF or view.profile.hold_down_s is not None:
        return None
    rhythm, beside_per_s = alone
    keeping = Keeping(
        cycle_s=cycle_s(queue, view),
        wait_s=view.profile.objective.target_s - MARGIN_S,
        tick_s=view.tick_s,
        start_cost_s=price_s / view.slots_per_worker,
        beside_per_s=beside_per_s + (queue.retry_rate_per_s or 0.0),  # work, though no news
        deviations=BURST_DEVIATIONS * confidence(view.profile) / view.profile.risk,
    )
    return enough_slots(rhythm, keeping)


def _drain_of_wave(queue: QueueMetrics, given: Supply, view: PoolView, *, slots: int) -> Need | None:
    """What waiting jobs need beyond the slots that are enough for a rhythm; ``None`` where that is not to be relied on.

    Jobs of a wave come evenly: the oldest has waited longest and starts first, the newest waits for all others, and
    between those two each waits as much of both as its place in the queue.
    """
    oldest_left_s = view.profile.objective.target_s - MARGIN_S - (queue.oldest_age_s or 0.0)
    if given.busy_slots + given.idle_slots + given.coming_slots < slots or oldest_left_s <= 0 or len(view.queues) > 1:
        return None
    if not queue.waiting_least_jobs:
        return NO_NEED
    sure = replace(given, caution=0.0)  # what the rhythm needs was counted without, and a burst's scatter with
    target_s = view.profile.objective.target_s
    newest = need(queue.waiting_least_jobs, target_s - MARGIN_S, sure, start_up_s=given.start_up_s)
    return greatest((taking(queue, given), newest))


def _start_price_s(view: PoolView) -> float:
    """What a start and its exit cost, in worker-seconds."""
    return start_cost_s(start_up_s=start_up_s(view), exit_s=view.exit_s or 0.0, core_s=view.start_up_cpu_s)


def _drain(queue: QueueMetrics, view: PoolView, given: Supply, *, slots_max: int) -> Need:
    """What the waiting jobs of all members need together, and never less than those of any one by its own objective.

    Jobs of other members that start before its own take slots from it, by the order in which workers take jobs.
    """
    needs = [
        taking(queue, given),
        _drain_of(queue, given, view, target_s=_loosest_s(view), slots_max=slots_max),
    ]
    if len(view.queues) > 1 or view.profile.member_objectives:
        for member in view.queues:
            alone = _with_own_completions(member, given, view)
            target_s = view.profile.objective_of(member.queue).target_s
            needs.append(
                _drain_of(
                    member, alone, view, target_s=target_s, slots_max=slots_max, is_behind_others=len(view.queues) > 1
                )
            )
    return greatest(needs)


def _with_own_completions(queue: QueueMetrics, given: Supply, view: PoolView) -> Supply:
    """``given`` with none of the slots busy that run jobs of other queues: those may be long ones."""
    # Which slots run an unknown number of its jobs, nobody knows: any of them may, and few of them need.
    least_slots = max(0, queue.in_flight_least_jobs - (queue.reserved_jobs or 0))
    busy_slots = given.busy_slots if queue.running_jobs is None else queue.running_jobs
    return replace(given, busy_slots=busy_slots, completions_per_s=completions_per_s(queue, view, least_slots))


def _left_for(exposed: QueueMetrics, queue: QueueMetrics, given: Supply, view: PoolView) -> tuple[Supply, int]:
    """What will start jobs of the exposed members, and how many idle slots are about to take others of ``queue``.

    Whatever the order of the queues: while no job of theirs waits, each slot takes one of the others.
    """
    if exposed is queue:
        return given, 0
    own = replace(_with_own_completions(exposed, given, view), cycle_s=cycle_s(exposed, view))
    return without_slots(own, queue.waiting_least_jobs - exposed.waiting_least_jobs)


def _due(queue: QueueMetrics, view: PoolView, given: Supply, *, price_s: float) -> Need:
    """Slots for what is due later, of all members and of each alone with its own objective."""
    needs = [due_work(queue, given, view, target_s=_loosest_s(view), price_s=price_s)]
    for member in view.queues:
        if member.delayed:
            target_s = view.profile.objective_of(member.queue).target_s
            needs.append(due_work(member, given, view, target_s=target_s, price_s=price_s))
    return greatest(needs)


def _loosest_s(view: PoolView) -> float:
    """Within how long all jobs of the pool may wait: those of a stricter queue are counted for themselves."""
    return max(view.profile.objective_of(queue.queue).target_s for queue in view.queues)


def _drain_of(
    queue: QueueMetrics,
    given: Supply,
    view: PoolView,
    *,
    target_s: float,
    slots_max: int,
    is_behind_others: bool = False,
) -> Need:
    of_batch_s = batch_cycle_s(queue, view)
    per_s = min(given.completions_per_s, given.busy_slots / of_batch_s)
    is_same = of_batch_s == given.cycle_s and per_s == given.completions_per_s
    batch = given if is_same else copied(given, cycle_s=of_batch_s, completions_per_s=per_s)
    due = waiting(queue, view, target_s=target_s)
    alone = backlog_drain(due, batch, slots_max=slots_max)
    if not is_behind_others:
        return alone
    return greatest((alone, drain_behind(queue, due, batch, view, slots_max=slots_max)))


def _busy_beside_coming(given: Supply, view: PoolView) -> int:
    """Slots in use that none of those to come can be.

    Jobs beyond the slots of workers that run are in the hands of nobody, or of workers that are not the pool's. Beside
    them, each worker that starts would ask for one more.
    """
    beyond_slots = max(0, given.busy_slots - view.running_workers * view.slots_per_worker)
    return given.busy_slots - min(beyond_slots, given.coming_slots)


def _reconsidered(queue: QueueMetrics, view: PoolView, given: Supply, *, slots_max: int) -> Supply:
    """``given`` with as few slots to come as start the waiting jobs no later than all would.

    Before a job has ended, each that waits asks for a worker: it may take for ever. Those that were asked for so and
    still start are wanted only as far as what is known by now asks for them.
    """

    def new_slots(slots: int) -> int:
        return _drain(queue, view, _with_coming(given, slots), slots_max=slots_max).new_slots

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


def _asked(view: PoolView, before: Asked, now_s: float) -> Asked:
    """When the workers that start now were asked for: those that are up were asked for first."""
    known = [*before]
    up_workers = sum(workers for _, workers in known) - view.starting_workers
    if up_workers < 0:
        known.append((now_s - view.tick_s, -up_workers))
    left = []
    for at_s, workers in known:
        gone = min(workers, max(0, up_workers))
        up_workers -= gone
        if workers > gone:
            left.append((at_s, workers - gone))
    return tuple(left)


def _coming(asked: Asked, view: PoolView, now_s: float) -> tuple[Coming, ...]:
    return tuple(
        Coming(slots=workers * view.slots_per_worker, ready_in_s=max(0.0, at_s + start_up_s(view) - now_s))
        for at_s, workers in asked
    )


def is_at_rest(state: State, now_s: float) -> bool:
    """Whether ``state`` holds no more than arrivals in which no rhythm was found, and keeps them."""
    if not state:
        return True
    periods = periods_of(state.get("periods"))
    return state.keys() == {"periods"} and periods is not None and not periods.rhythms and _is_kept(periods, now_s)


HYBRID = Strategy(name="hybrid", advise=advise, formulas=FORMULAS, is_clockless=True, is_at_rest=is_at_rest)
