"""How many workers a pool should have, and why. The live loop, the simulator and ``explain`` call this one function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from headway.errors import Invalid
from headway.scaling.arithmetic import workers_of
from headway.scaling.decisions.group_uses import group_uses
from headway.scaling.decisions.metrics_notes import metrics_notes
from headway.scaling.decisions.predicted_pickup import pickups_of
from headway.scaling.decisions.shared_notes import shared_notes
from headway.scaling.demands.formulas import demand, less_help
from headway.scaling.demands.unlimited_prefetch import arrivals_at_workers
from headway.scaling.metrics.shared_queues import with_shared
from headway.scaling.model import (
    MEMORY_VERSION,
    DayBudget,
    Decision,
    Demand,
    HoldCosts,
    LastMove,
    Memory,
    Note,
    Step,
    Wanted,
)
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.planning.feasibility import circumstances
from headway.scaling.planning.shared_pool import separate_pools
from headway.scaling.policy import activation, day_budget, fallback
from headway.scaling.policy.ground import Ground
from headway.scaling.policy.limit import Limit
from headway.scaling.policy.limits import attainable, in_force, paused_workers
from headway.scaling.policy.stabilization import HOLD_SLACK_S, is_overdue, kept_workers, longest_s, start_cost_s, tried
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.pauses import PAUSES, after
from headway.scaling.reading import vanished_jobs
from headway.scaling.reading.busy_slots import with_unknown_as_idle
from headway.scaling.reading.plateau import bound_workers
from headway.scaling.reading.pool_reading import PoolReading, reading_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Advice, Strategy, note_of
from headway.scaling.view import PoolView, copied


def decide(
    view: PoolView, memory: Memory, *, now_s: float, strategies: Mapping[str, Strategy] = BUILT_IN
) -> tuple[Decision, Memory]:
    """The decision for one pool and what to remember of it.

    Pure: the same view, memory and time give the same decision. A memory of another version is dropped, and what is
    assigned is held.

    Raises:
        Invalid: the profile names a strategy that is not among ``strategies``.
    """
    strategy = _strategy(view.profile, strategies)
    if strategy.options or view.profile.strategy_options:
        view = replace(view, options={**strategy.options, **view.profile.strategy_options, **view.options})
    if memory.version != MEMORY_VERSION:
        memory = Memory()
    reading = reading_of(view, memory, now_s=now_s)
    want = _want_of(strategy, reading)
    ground = _ground_of(reading, want)
    hold = _hold_of(reading, want, ground)
    if hold.costs is not None:
        ground = copied(ground, kept_workers=kept_workers(hold.costs))
    target = _limited(want.workers, in_force(ground, strategy.come_down), ground)
    found = _Found(reading=reading, want=want, ground=ground, hold=hold, target=target)
    return _decision(found), _remembered(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Want:
    """What the demands of a pool ask for."""

    advice: Advice
    greatest: Demand
    workers: int
    most_workers: int
    """With every worker of unknown activity busy, where ``workers`` is the count with all of these idle; else 0."""
    standing_workers: int = 0
    """What the demand for pre-warmed workers asks for by fresh metrics, those in use included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hold:
    """What later evaluations may hold, and what each hold has cost so far."""

    workers: int
    """The part of this want that limits allow."""
    wanted: Sequence[Wanted]
    """Earlier wants, each no greater than what is enough."""
    costs: HoldCosts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The count that limits leave, what each of them left, and the last one that moved it."""

    workers: int
    steps: tuple[Step, ...]
    mover: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Everything that one evaluation has found: what the decision says, and what is remembered, follows from it."""

    reading: PoolReading
    want: _Want
    ground: Ground
    hold: _Hold
    target: _Target


def _strategy(profile: Profile, strategies: Mapping[str, Strategy]) -> Strategy:
    name = profile.strategy
    if name not in strategies:
        raise Invalid(
            f"profile {profile.pool!r}: strategy {name!r} is not known; known: {', '.join(sorted(strategies))}"
        )
    return strategies[name]


def _want_of(strategy: Strategy, reading: PoolReading) -> _Want:
    """What the strategy and the jobs at workers ask for; the greatest of their demands counts."""
    advice, most_workers = _advised(strategy, reading)
    if any(each.jobs for each in reading.view.helped):
        advice = replace(advice, demands=(*advice.demands, _less_help(strategy, reading)))
    arrivals = arrivals_at_workers(
        reading.taken_jobs, reading.queue, reading.times, running_slots=reading.slots.running_slots
    )
    if arrivals is not None:
        advice = replace(advice, demands=(*advice.demands, arrivals))
    greatest = max(advice.demands, key=lambda demand: demand.slots)
    per_worker = reading.view.slots_per_worker
    # Without fresh metrics it only fades, and a note that comes with it would be stored as a change.
    stands = [demand.slots for demand in advice.demands if demand.name == "standing" and reading.freshness.is_fresh]
    return _Want(
        advice=advice,
        greatest=greatest,
        workers=workers_of(greatest.slots, slots_per_worker=per_worker),
        most_workers=most_workers,
        standing_workers=workers_of(max(stands, default=0.0), slots_per_worker=per_worker),
    )


def _less_help(strategy: Strategy, reading: PoolReading) -> Demand:
    """What is asked for if the pool runs all jobs in flight itself, less those that workers of other pools report.

    Knowing that its own slots are free, the strategy may ask for a little less: what is measured of help is taken off,
    and no more.
    """
    helped = reading.view.helped
    queues = with_shared(reading.estimated.queues, helped)
    together = pooled(queues)
    counts = {"in_flight_jobs": together.in_flight_jobs, "in_flight_min_jobs": together.in_flight_min_jobs}
    estimated, queue = copied(reading.estimated, queues=queues), copied(reading.queue, **counts)
    advice, _ = _advised(strategy, copied(reading, estimated=estimated, queue=queue))
    terms = {
        "alone_slots": max(demand.slots for demand in advice.demands),
        "helped_jobs": sum(each.jobs for each in helped),
    }
    return demand(less_help, terms)


def _advised(strategy: Strategy, reading: PoolReading) -> tuple[Advice, int]:
    """What the strategy asks for, with every worker of unknown activity taken to be busy.

    Where that asks for no more workers than there are, it is asked once more with these workers taken to be idle, and
    the first count comes along: the limit ``may_be_busy`` says how many leave. Otherwise a pool whose workers report
    nothing would never come down.
    """
    view, queue, memory = reading.estimated, reading.queue, reading.memory
    advice = strategy.advise(queue, view, memory.strategy_state, reading.now_s)
    if not view.unknown_activity_workers or queue.running_jobs is not None:
        return advice, 0
    slots = max(demand.slots for demand in advice.demands)
    most_workers = workers_of(slots, slots_per_worker=view.slots_per_worker)
    if most_workers > view.running_workers + view.starting_workers:
        return advice, 0
    least = strategy.advise(queue, with_unknown_as_idle(view, reading.slots), memory.strategy_state, reading.now_s)
    return replace(least, state=advice.state), most_workers


def _ground_of(reading: PoolReading, want: _Want) -> Ground:
    """What limits stand on, before it is known what earlier holds keep up."""
    memory, now_s = reading.memory, reading.now_s
    last_workers = reading.view.assigned_workers if memory.target_workers is None else memory.target_workers
    return Ground(
        view=reading.limited,
        queue=reading.limited_queue,
        memory=memory,
        last_workers=last_workers,
        freshness=reading.freshness,
        account=day_budget.account_of(reading.limited, reading.limited_queue, memory.day_paid, now_s=now_s),
        now_s=now_s,
        most_workers=want.most_workers,
        plateau_workers=bound_workers(reading.plateau, now_s=now_s),
        is_overdue=is_overdue(reading.view.queues, reading.view.profile),
        is_held=want.workers > 0 and activation.is_held(reading, last_workers=last_workers),
    )


def _hold_of(reading: PoolReading, want: _Want, ground: Ground) -> _Hold:
    """What later evaluations may hold of this want and of earlier ones, and what each hold has cost so far.

    A hold never exceeds what the limits allow: a burst beyond the ceiling says nothing about the workers below.
    """
    workers, wanted = 0 if ground.is_held else attainable(want.workers, ground), reading.memory.wanted
    if want.advice.enough_slots is not None:
        enough_workers = workers_of(want.advice.enough_slots, slots_per_worker=reading.view.slots_per_worker)
        workers, wanted = min(workers, enough_workers), _at_most(reading.memory.wanted, enough_workers)
    costs = _hold_costs(reading, wanted, workers=workers)
    return _Hold(workers=workers, wanted=wanted, costs=costs)


def _limited(wanted_workers: int, limits: Sequence[Limit], ground: Ground) -> _Target:
    count, mover = wanted_workers, None
    steps = [_step("wanted", count)]
    for limit in limits:
        left = limit.rule(count, ground)
        if left != count:
            count, mover = left, limit.name
        steps.append(_step(limit.name, count))
    return _Target(workers=count, steps=tuple(steps), mover=mover)


@lru_cache(maxsize=4096)  # pools take the same few steps, half a dozen each: one value serves them all
def _step(name: str, workers: int) -> Step:
    return Step(name=name, workers=workers)


def _decision(found: _Found) -> Decision:
    """The whole story of the target that was ``found``."""
    reading, want, target = found.reading, found.want, found.target
    view, advice, now_s, spent = reading.view, want.advice, reading.now_s, day_budget.spending(found.ground.account)
    pickups = pickups_of(reading.queue, reading.estimated, reading.times, reading.slots, target_workers=target.workers)
    notes = _notes(found, spent)
    return Decision(
        pool=view.profile.pool,
        at_s=now_s,
        target_workers=target.workers,
        binding=target.mover or (want.greatest.name if want.greatest.slots > 0 else "idle"),
        strategy=view.profile.strategy,
        mode=view.profile.mode_at(now_s),
        objective=view.profile.objective,
        # What limits take away is taken from the burst workers: the base stays.
        burst_workers=max(0, min(advice.burst_workers, target.workers - (want.workers - advice.burst_workers))),
        demands=advice.demands,
        steps=target.steps,
        metrics=reading.shown,
        recalled_jobs=view.recalled_jobs,
        recalled_weeks=view.recalled_weeks,
        running_workers=view.running_workers,
        is_running_known=view.is_running_known,
        starting_workers=view.starting_workers,
        unknown_workers=view.unknown_workers,
        leaving_workers=view.leaving_workers,
        is_fresh=reading.freshness.is_fresh,
        metrics_age_s=None if reading.freshness.is_fresh else reading.freshness.age_s,
        is_failing=view.is_failing,
        useful_workers=view.useful_workers,
        suspension=view.suspension,
        stoppage=reading.stoppage,
        leaves_due_jobs=view.leaves_due_jobs,
        plateau=None if found.ground.plateau_workers is None else reading.plateau,
        predicted_pickup_s=pickups.predicted_pickup_s,
        member_pickups=pickups.member_pickups,
        queue_order=view.queue_order,
        helped=view.helped,
        helping=view.helping,
        helping_workers=view.helping_workers,
        day_budget=spent,
        groups=group_uses(view.groups, target.steps, slots_per_worker=view.slots_per_worker),
        notes=tuple(note.text for note in notes),
        note_facts=tuple(note.fact for note in notes),
    )


def _notes(found: _Found, spent: DayBudget | None) -> tuple[Note, ...]:
    """What people should know of the decision, beside its figures."""
    reading, advice = found.reading, found.want.advice
    return (
        *metrics_notes(reading),
        *((activation.note(reading),) if found.ground.is_held and not found.target.workers else ()),
        *circumstances(reading, burst_jobs=advice.burst_jobs, standing_workers=found.want.standing_workers),
        *separate_pools(
            reading.view.profile,
            OrderedQueues(
                queues=reading.estimated.queues,
                order=reading.view.queue_order,
                strict_queues=reading.view.strict_queues,
            ),
            reading.times,
            slots_per_worker=reading.view.slots_per_worker,
        ),
        *shared_notes(reading.view.helped, reading.view.helped_queues, target_s=reading.view.profile.shortest_target_s),
        *day_budget.notes(spent),
        *vanished_jobs.note(reading.backlog),
        *map(note_of, advice.notes),
    )


def _remembered(found: _Found) -> Memory:
    """The memory with this want, without wants too old to hold anything and without those that later ones outdo.

    A want of nothing holds nothing, so a quiet pool's memory does not change.
    """
    reading, ground, hold, target = found.reading, found.ground, found.hold, found.target
    view, memory, now_s = reading.view, reading.memory, reading.now_s
    given_s = view.profile.hold_down_s
    since_s = now_s - (longest_s(view.tick_s) if given_s is None else given_s) - HOLD_SLACK_S
    kept = [wanted for wanted in hold.wanted if since_s <= wanted.at_s < now_s and wanted.workers > hold.workers]
    newest = (Wanted(at_s=now_s, workers=hold.workers),) if hold.workers else ()
    moved = target.workers - ground.last_workers
    return Memory(
        target_workers=target.workers,
        paused_workers=_paused(target.steps, ground),
        wanted=(*kept, *newest),
        lows=_lows(reading, last_workers=ground.last_workers, wanted_workers=hold.workers),
        last_move=LastMove(at_s=now_s, is_up=moved > 0) if moved else memory.last_move,
        hold_costs=hold.costs,
        missed_evaluations=fallback.missed_evaluations(view.profile, memory, reading.freshness),
        held_since_s=activation.held_since_s(reading, is_held=ground.is_held),
        day_paid=day_budget.remembered(memory.day_paid, ground.account),
        depths=reading.depths,
        service=reading.service,
        known_arrivals=reading.known_arrivals,
        stoppage=reading.stoppage,
        backlog=reading.backlog,
        taken_jobs=reading.taken_jobs,
        plateau=reading.plateau,
        strategy_state=found.want.advice.state,
    )


def _paused(steps: Sequence[Step], ground: Ground) -> int | None:
    """The count that a pause keeps from now on; ``None`` where nothing is paused."""
    mode = ground.view.profile.mode_at(ground.now_s)
    if mode not in PAUSES:
        return None
    count = next(before.workers for before, step in pairwise(steps) if step.name == "pause")
    return after(
        mode,
        paused_workers=paused_workers(count, ground),
        asked_workers=next(step.workers for step in steps if step.name == "workers_min"),
        target_workers=steps[-1].workers,
    )


def _at_most(wanted: Sequence[Wanted], workers: int) -> tuple[Wanted, ...]:
    """``wanted`` where no more than ``workers`` had been there: whoever is there has a job, needed or not."""
    if not any(each.workers > workers for each in wanted):
        return tuple(wanted)
    return tuple(replace(each, workers=min(workers, each.workers)) for each in wanted)


def _hold_costs(reading: PoolReading, wanted: Sequence[Wanted], *, workers: int) -> HoldCosts | None:
    """What each hold has cost the pool so far; ``None`` where the profile sets the hold, or nothing was ever wanted."""
    before = reading.memory.hold_costs
    if reading.view.profile.hold_down_s is not None or (not workers and before is None):
        return None
    return tried(
        before,
        wanted,
        workers=workers,
        now_s=reading.now_s,
        tick_s=reading.times.tick_s,
        start_cost=start_cost_s(reading.times),
    )


def _lows(reading: PoolReading, *, last_workers: int, wanted_workers: int) -> tuple[Wanted, ...]:
    """Wants of the last ``hold_up_s`` that no later one was below. The first evaluation follows the last target."""
    hold_up_s, now_s = reading.view.profile.hold_up_s, reading.now_s
    if not hold_up_s:
        return ()
    since_s = now_s - hold_up_s
    before = reading.memory.lows or (Wanted(at_s=now_s, workers=min(last_workers, wanted_workers)),)
    kept = tuple(low for low in before if since_s <= low.at_s and low.workers < wanted_workers)
    return (*kept, Wanted(at_s=now_s, workers=wanted_workers))
