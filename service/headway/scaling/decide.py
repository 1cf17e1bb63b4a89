"""How many workers a pool should have, and why. The live loop, the simulator and ``explain`` call this one function."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from headway.errors import Invalid
from headway.scaling.arithmetic import workers_of
from headway.scaling.decisions.metrics_notes import metrics_notes
from headway.scaling.decisions.pool_reading import PoolReading, reading_of
from headway.scaling.decisions.predicted_pickup import member_pickups, predicted_pickup_of
from headway.scaling.demands.busy_slots import with_unknown_as_idle
from headway.scaling.demands.deadlines import start_up_s
from headway.scaling.demands.unlimited_prefetch import arrivals_at_workers, taken_jobs_of
from headway.scaling.model import (
    MEMORY_VERSION,
    Backlog,
    DayBudget,
    DayPaid,
    Decision,
    HoldCosts,
    KnownArrivals,
    LastMove,
    MeasuredService,
    Memory,
    Plateau,
    PoolDepths,
    Step,
    Stoppage,
    TakenJobs,
    Wanted,
)
from headway.scaling.planning.feasibility import circumstances
from headway.scaling.planning.shared_pool import separate_pools
from headway.scaling.policy import activation, day_budget, fallback, vanished_jobs
from headway.scaling.policy.ground import Ground, Limit
from headway.scaling.policy.limits import attainable, in_force, paused_workers
from headway.scaling.policy.plateau import bound_workers, plateau_of
from headway.scaling.policy.stabilization import HOLD_SLACK_S, kept_workers, longest_s, start_cost_s, tried
from headway.scaling.policy.suspensions import stoppage_of
from headway.scaling.profile_keys.pauses import PAUSES, after
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView, copied, metrics_age_s, pooled


def decide(
    view: PoolView, memory: Memory, *, now_s: float, strategies: Mapping[str, Strategy] = BUILT_IN
) -> tuple[Decision, Memory]:
    """The decision for one pool and what to remember of it.

    Pure: the same view, memory and time give the same decision. A memory of another version is dropped, and what is
    assigned is held.

    Raises:
        Invalid: the profile names a strategy that is not among ``strategies``.
    """
    strategy = _strategy(view, strategies)
    if strategy.options or view.profile.strategy_options:
        view = replace(view, options={**strategy.options, **view.profile.strategy_options, **view.options})
    if memory.version != MEMORY_VERSION:
        memory = Memory()
    last_workers = view.assigned_workers if memory.target_workers is None else memory.target_workers
    stoppage = stoppage_of(view, memory.stoppage, now_s=now_s)
    if stoppage is not None:
        view = copied(view, is_teaching=False)
    backlog = vanished_jobs.backlog_of(view, memory, now_s=now_s)
    memory = vanished_jobs.without_vanished(memory, backlog, view)
    reading = reading_of(view, memory, now_s=now_s)
    advice, most_workers = _advised(strategy, reading, memory, now_s=now_s)
    taken_jobs = taken_jobs_of(reading.queue, view, memory.taken_jobs)
    if (arrivals := arrivals_at_workers(taken_jobs, reading.queue, view)) is not None:
        advice = replace(advice, demands=(*advice.demands, arrivals))
    greatest = max(advice.demands, key=lambda demand: demand.slots)
    wanted_workers = workers_of(greatest.slots, slots_per_worker=view.slots_per_worker)
    is_held = wanted_workers > 0 and activation.is_held(reading.shown, memory, last_workers=last_workers, now_s=now_s)
    seen_queue = pooled(reading.shown.queues)
    plateau = plateau_of(seen_queue, view, memory.plateau, is_fresh=reading.is_fresh, now_s=now_s)
    plateau_workers = bound_workers(plateau, now_s=now_s)
    ground = Ground(
        view=reading.limited,
        memory=memory,
        last_workers=last_workers,
        is_fresh=reading.is_fresh,
        now_s=now_s,
        most_workers=most_workers,
        plateau_workers=plateau_workers,
        is_held=is_held,
    )
    # What never was and never will be cannot be held: a burst beyond the ceiling says nothing about the workers below.
    attainable_workers = 0 if is_held else attainable(wanted_workers, ground)
    if advice.enough_slots is not None:
        enough_workers = workers_of(advice.enough_slots, slots_per_worker=view.slots_per_worker)
        attainable_workers = min(attainable_workers, enough_workers)
        memory = replace(memory, wanted=_at_most(memory.wanted, enough_workers))
    hold_costs = _hold_costs(view, memory, wanted_workers=attainable_workers, now_s=now_s)
    if hold_costs is not None:
        ground = copied(ground, kept_workers=kept_workers(hold_costs))
    limits = in_force(view, strategy.come_down, is_held=is_held, is_plateau=plateau_workers is not None)
    target_workers, steps, mover = _limited(wanted_workers, limits, ground)
    account = day_budget.account_of(reading.limited, memory.day_paid, now_s=now_s)
    decision = _decision(
        view,
        reading,
        advice,
        memory,
        wanted_workers=wanted_workers,
        binding=mover or (greatest.name if greatest.slots > 0 else "idle"),
        steps=steps,
        spent=day_budget.spending(account),
        is_held=is_held,
        stoppage=stoppage,
        backlog=backlog,
        plateau=None if plateau_workers is None else plateau,
        now_s=now_s,
    )
    return decision, _remembered(
        view,
        memory,
        last_workers=last_workers,
        target_workers=target_workers,
        paused=_paused(steps, ground),
        wanted_workers=attainable_workers,
        hold_costs=hold_costs,
        held_since_s=activation.held_since_s(reading.shown, memory, is_held=is_held, now_s=now_s),
        day_paid=day_budget.remembered(memory.day_paid, account),
        depths=reading.depths,
        service=reading.service,
        known_arrivals=reading.known_arrivals,
        stoppage=stoppage,
        backlog=backlog,
        taken_jobs=taken_jobs,
        plateau=plateau,
        strategy_state=advice.state,
        now_s=now_s,
    )


def _strategy(view: PoolView, strategies: Mapping[str, Strategy]) -> Strategy:
    name = view.profile.strategy
    if name not in strategies:
        raise Invalid(
            f"profile {view.profile.pool!r}: strategy {name!r} is not known; known: {', '.join(sorted(strategies))}"
        )
    return strategies[name]


def _advised(strategy: Strategy, reading: PoolReading, memory: Memory, *, now_s: float) -> tuple[Advice, int]:
    """What the strategy asks for, with every worker of unknown activity taken to be busy.

    Where that asks for no more workers than there are, it is asked once more with these workers taken to be idle, and
    the first count comes along: the limit ``may_be_busy`` says how many leave. Otherwise a pool whose workers report
    nothing would never come down.
    """
    queue, view = reading.queue, reading.estimated
    advice = strategy.advise(queue, view, memory.strategy_state, now_s)
    if not view.unknown_activity_workers or queue.running_jobs is not None:
        return advice, 0
    slots = max(demand.slots for demand in advice.demands)
    most_workers = workers_of(slots, slots_per_worker=view.slots_per_worker)
    if most_workers > view.running_workers + view.starting_workers:
        return advice, 0
    least = strategy.advise(queue, with_unknown_as_idle(view), memory.strategy_state, now_s)
    return replace(least, state=advice.state), most_workers


def _decision(
    view: PoolView,
    reading: PoolReading,
    advice: Advice,
    memory: Memory,
    *,
    wanted_workers: int,
    binding: str,
    steps: tuple[Step, ...],
    spent: DayBudget | None,
    is_held: bool,
    stoppage: Stoppage | None,
    backlog: Backlog | None,
    plateau: Plateau | None,
    now_s: float,
) -> Decision:
    """The whole story of the count that the last of ``steps`` left."""
    target_workers = steps[-1].workers
    return Decision(
        pool=view.profile.pool,
        at_s=now_s,
        target_workers=target_workers,
        binding=binding,
        mode=view.profile.mode_at(now_s),
        objective=view.profile.objective,
        # What limits take away is taken from the burst workers: the base stays.
        burst_workers=max(0, min(advice.burst_workers, target_workers - (wanted_workers - advice.burst_workers))),
        demands=advice.demands,
        steps=steps,
        metrics=reading.shown.queues,
        recalled_jobs=view.recalled_jobs,
        recalled_weeks=view.recalled_weeks,
        running_workers=view.running_workers,
        is_running_known=view.is_running_known,
        starting_workers=view.starting_workers,
        unknown_workers=view.unknown_workers,
        leaving_workers=view.leaving_workers,
        is_fresh=reading.is_fresh,
        metrics_age_s=None if reading.is_fresh else metrics_age_s(view, now_s=now_s),
        is_failing=view.is_failing,
        useful_workers=view.useful_workers,
        suspension=view.suspension,
        stoppage=stoppage,
        plateau=plateau,
        predicted_pickup_s=predicted_pickup_of(reading.queue, reading.estimated, target_workers=target_workers),
        member_pickups=member_pickups(reading.queue, reading.estimated, target_workers=target_workers),
        queue_order=view.queue_order,
        day_budget=spent,
        notes=(
            *metrics_notes(view, reading, memory, now_s=now_s),
            *((activation.note(view),) if is_held and not target_workers else ()),
            *circumstances(view, memory, now_s=now_s, state=advice.state),
            *separate_pools(reading.estimated),
            *day_budget.notes(spent),
            *vanished_jobs.note(backlog),
            *advice.notes,
        ),
    )


def _limited(wanted_workers: int, limits: Sequence[Limit], ground: Ground) -> tuple[int, tuple[Step, ...], str | None]:
    """The count that ``limits`` leave, what each of them left, and the last one that moved it."""
    count, mover = wanted_workers, None
    steps = [_step("wanted", count)]
    for limit in limits:
        left = limit(count, ground)
        if left != count:
            count, mover = left, limit.__name__
        steps.append(_step(limit.__name__, count))
    return count, tuple(steps), mover


@lru_cache(maxsize=4096)  # pools take the same few steps, half a dozen each: one value serves them all
def _step(name: str, workers: int) -> Step:
    return Step(name=name, workers=workers)


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


def _remembered(
    view: PoolView,
    memory: Memory,
    *,
    last_workers: int,
    target_workers: int,
    paused: int | None,
    wanted_workers: int,
    hold_costs: HoldCosts | None,
    held_since_s: float | None,
    day_paid: DayPaid | None,
    depths: PoolDepths | None,
    service: MeasuredService | None,
    known_arrivals: KnownArrivals | None,
    stoppage: Stoppage | None,
    backlog: Backlog | None,
    taken_jobs: TakenJobs | None,
    plateau: Plateau | None,
    strategy_state: State,
    now_s: float,
) -> Memory:
    """The memory with this want, without wants too old to hold anything and without those that later ones outdo.

    A want of nothing holds nothing, so a quiet pool's memory does not change.
    """
    given_s = view.profile.hold_down_s
    since_s = now_s - (longest_s(view.tick_s) if given_s is None else given_s) - HOLD_SLACK_S
    kept = [wanted for wanted in memory.wanted if since_s <= wanted.at_s < now_s and wanted.workers > wanted_workers]
    newest = (Wanted(at_s=now_s, workers=wanted_workers),) if wanted_workers else ()
    moved = target_workers - last_workers
    return Memory(
        target_workers=target_workers,
        paused_workers=paused,
        wanted=(*kept, *newest),
        lows=_lows(view, memory, last_workers=last_workers, wanted_workers=wanted_workers, now_s=now_s),
        last_move=LastMove(at_s=now_s, is_up=moved > 0) if moved else memory.last_move,
        hold_costs=hold_costs,
        missed_evaluations=fallback.missed_evaluations(view, memory, now_s=now_s),
        held_since_s=held_since_s,
        day_paid=day_paid,
        depths=depths,
        service=service,
        known_arrivals=known_arrivals,
        stoppage=stoppage,
        backlog=backlog,
        taken_jobs=taken_jobs,
        plateau=plateau,
        strategy_state=strategy_state,
    )


def _at_most(wanted: Sequence[Wanted], workers: int) -> tuple[Wanted, ...]:
    """``wanted`` where no more than ``workers`` had been there: whoever is there has a job, needed or not."""
    if not any(each.workers > workers for each in wanted):
        return tuple(wanted)
    return tuple(replace(each, workers=min(workers, each.workers)) for each in wanted)


def _hold_costs(view: PoolView, memory: Memory, *, wanted_workers: int, now_s: float) -> HoldCosts | None:
    """What each hold has cost the pool so far; ``None`` where the profile sets the hold, or nothing was ever wanted."""
    before = memory.hold_costs
    if view.profile.hold_down_s is not None or (not wanted_workers and before is None):
        return None
    return tried(
        before,
        memory.wanted,
        workers=wanted_workers,
        now_s=now_s,
        tick_s=view.tick_s,
        start_cost=start_cost_s(start_up_s=start_up_s(view), exit_s=view.exit_s or 0.0, core_s=view.start_up_cpu_s),
    )


def _lows(
    view: PoolView, memory: Memory, *, last_workers: int, wanted_workers: int, now_s: float
) -> tuple[Wanted, ...]:
    """Wants of the last ``hold_up_s`` that no later one was below. The first evaluation follows the last target."""
    if not view.profile.hold_up_s:
        return ()
    since_s = now_s - view.profile.hold_up_s
    before = memory.lows or (Wanted(at_s=now_s, workers=min(last_workers, wanted_workers)),)
    kept = tuple(low for low in before if since_s <= low.at_s and low.workers < wanted_workers)
    return (*kept, Wanted(at_s=now_s, workers=wanted_workers))
