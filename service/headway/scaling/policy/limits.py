"""Reasons to change the number of workers. They fold in a written order, and the order is policy.

Each limit moves the count in its declared way only. First what tames a change (no ground to lower, too small, too soon,
too far), then what a person or the clock says, at last what must never be exceeded: it has the last word.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from headway.scaling.arithmetic import ROUNDING, whole
from headway.scaling.group import smallest
from headway.scaling.model import is_suspended
from headway.scaling.policy.day_budget import payable_workers
from headway.scaling.policy.fallback import fallback, hold_stale
from headway.scaling.policy.ground import Ground
from headway.scaling.policy.limit import IsInForce, Limit, Rule, always, limit, limit_of
from headway.scaling.policy.stabilization import hold_down, hold_overdue, hold_up
from headway.scaling.profile import WORKERS_MAX, Profile
from headway.scaling.profile_keys.pauses import PAUSES, begun, kept
from headway.scaling.profile_keys.schedule import Bounds
from headway.scaling.reading.pool_times import times_of
from headway.scaling.view import copied


@limit(is_in_force=lambda ground: ground.view.useful_workers is not None)
def useful_workers(count: int, ground: Ground) -> int:
    """No more workers than get jobs at a time. A person may keep more, by a floor: one that takes over at once."""
    most = ground.view.useful_workers
    return count if most is None else min(count, most)


@limit(is_in_force=lambda ground: ground.view.profile.tolerance_fraction > 0)
def tolerance(count: int, ground: Ground) -> int:
    """A change of no more than ``tolerance_fraction`` of the last target is not made."""
    room = ground.view.profile.tolerance_fraction * ground.last_workers + ROUNDING
    return ground.last_workers if abs(count - ground.last_workers) <= room else count


@limit(is_in_force=lambda ground: _has_steps(ground.view.profile))
def step(count: int, ground: Ground) -> int:
    """No further from the last target than a step of its direction."""
    profile, last_workers = ground.view.profile, ground.last_workers
    if count > last_workers:
        most = _step(profile.step_up_workers, profile.step_up_fraction, last_workers)
        return count if most is None else min(count, last_workers + most)
    most = _step(profile.step_down_workers, profile.step_down_fraction, last_workers)
    return count if most is None else max(count, last_workers - most)


@limit(is_in_force=lambda ground: ground.view.is_failing)
def crash_loop(count: int, ground: Ground) -> int:
    """Where the template fails on every host, no more than before; one from zero, which shows when it is well again."""
    return min(count, max(1, ground.last_workers)) if ground.view.is_failing else count


@limit(is_in_force=lambda ground: ground.plateau_workers is not None)
def plateau(count: int, ground: Ground) -> int:
    """While jobs wait beside idle slots, one step up at a time, and none where the last step started no more jobs."""
    most = ground.plateau_workers
    return count if most is None else min(count, max(most, ground.last_workers))


@limit(is_in_force=lambda ground: ground.is_held)
def activation(count: int, ground: Ground) -> int:
    """At zero, nobody for no more than ``activation_jobs``, until one of them has waited for ``activation_wait_s``."""
    return 0 if ground.is_held else count


@limit(is_in_force=lambda ground: ground.view.unknown_activity_workers > 0)
def may_be_busy(count: int, ground: Ground) -> int:
    """Down only by workers that are known to be idle, and not needed if all unknown ones are busy; without one, by one
    worker whose activity is unknown.

    The next of these is asked once the one before has ended: the stop signal lets it finish a job that it may have.
    While a job waits none is asked, as all may be busy.
    """
    view = ground.view
    if not view.unknown_activity_workers:
        return count
    idle_workers = view.idle_workers or 0
    may_be_busy_workers = view.running_workers + view.starting_workers - idle_workers
    kept = max(may_be_busy_workers, ground.most_workers)
    does_any_job_wait = any(queue.waiting_least_jobs for queue in view.queues)
    is_next_due = not (idle_workers or view.starting_workers or view.leaving_workers or does_any_job_wait)
    return max(count, kept - is_next_due)


@limit(is_in_force=lambda ground: ground.view.helping_workers > 0)
def helping(count: int, ground: Ground) -> int:
    """Down only by workers that run no job of another pool's queue: these stay beside what the pool itself needs, as
    far as the last target had them.
    """
    view = ground.view
    there = min(ground.last_workers, view.running_workers + view.starting_workers)
    return max(count, min(there, count + view.helping_workers))


def _has_steps(profile: Profile) -> bool:
    of_up = profile.step_up_workers is not None or profile.step_up_fraction is not None
    return of_up or profile.step_down_workers is not None or profile.step_down_fraction is not None


def _step(workers: int | None, fraction: float | None, last_workers: int) -> int | None:
    """The more of the two, and never none: a pool must be able to leave zero."""
    if workers is None and fraction is None:
        return None
    return max(1, workers or 0, math.floor((fraction or 0.0) * last_workers + ROUNDING))


@limit(
    is_in_force=lambda ground: ground.view.profile.pause is not None or ground.view.profile.mode in PAUSES,
    clock=lambda view, now_s: (view.profile.mode_at(now_s), view.profile.pause_at(now_s)),
)
def pause(count: int, ground: Ground) -> int:
    """An operator's pause keeps the count at which it began, in one direction or both, and every busy worker."""
    return kept(
        ground.view.profile.mode_at(ground.now_s),
        count,
        paused_workers=paused_workers(count, ground),
        busy_workers=busy_workers(ground),
    )


def paused_workers(count: int, ground: Ground) -> int:
    """The count that the pause keeps, as it is remembered; else the pause begins now, while ``count`` is asked for."""
    if ground.memory.paused_workers is not None:
        return ground.memory.paused_workers
    existing = ground.view.assigned_workers + ground.view.unknown_workers
    return begun(count, last_workers=ground.last_workers, existing_workers=existing)


def busy_workers(ground: Ground) -> int:
    """Assigned workers on known hosts that have a job, at most: without fresh metrics all of them."""
    view = ground.view
    there = min(view.assigned_workers, view.running_workers + view.starting_workers)
    # Hosts and brokers report at different moments: neither makes a worker idle that was busy for the other.
    seen = (ground.queue.running_jobs, view.busy_workers) if ground.freshness.is_fresh else ()
    known = [count for count in seen if count is not None]
    if known and view.idle_workers is not None:
        known.append(view.running_workers - view.idle_workers - view.unknown_activity_workers)
    return min(there, max(known, default=there))


@limit(is_in_force=lambda ground: is_suspended(ground.view.suspension))
def suspended(count: int, ground: Ground) -> int:
    """While something beside Headway keeps its workers from taking jobs, no more than before: nobody is started."""
    return min(count, ground.last_workers) if is_suspended(ground.view.suspension) else count


@limit(
    is_in_force=lambda ground: ground.view.profile.override is not None,
    clock=lambda view, now_s: view.profile.override_at(now_s),
)
def override(count: int, ground: Ground) -> int:
    """The count that an operator has set, until it expires."""
    current = ground.view.profile.override_at(ground.now_s)
    return count if current is None else current.workers


@limit(
    is_in_force=lambda ground: bool(ground.view.profile.schedules),
    clock=lambda view, now_s: view.profile.bounds_at(now_s, view.zones),
)
def schedule(count: int, ground: Ground) -> int:
    """Within the bounds that active schedules set."""
    bounds = bounds_of(ground)
    return min(max(count, bounds.workers_min), bounds.workers_max) if bounds.schedules else count


@limit()
def workers_min(count: int, ground: Ground) -> int:
    """Never below the floor."""
    return max(count, bounds_of(ground).workers_min)


@limit()
def workers_max(count: int, ground: Ground) -> int:
    """Never above the ceiling, less the workers that leave and those that may still run on unreachable hosts."""
    return min(count, _known(bounds_of(ground).workers_max, ground))


@limit(is_in_force=lambda ground: ground.view.profile.pinned is not None)
def pinned(count: int, ground: Ground) -> int:
    """Exactly the pinned count, less the same."""
    exact = ground.view.profile.pinned
    # No more than these may exist, whoever of them is busy.
    return count if exact is None else _beside_leavers(max(0, exact - ground.view.unknown_workers), ground)


@limit(is_in_force=lambda ground: bool(ground.view.groups))
def group(count: int, ground: Ground) -> int:
    """Never above the smallest cap of the pool's groups, less the same, as if the pool were alone in each."""
    view = ground.view
    if not view.groups:
        return count
    cap = smallest(view.groups, view.slots_per_worker).ceiling_workers(view.slots_per_worker)
    return min(count, _known(cap, ground))


@limit(is_in_force=lambda ground: ground.view.profile.rate_limit_per_s is not None)
def rate_limit(count: int, ground: Ground) -> int:
    """No more slots than the called service allows: rate times service time. One worker at least, else nobody calls."""
    rate_per_s = ground.view.profile.rate_limit_per_s
    if rate_per_s is None:
        return count
    slots = rate_per_s * times_of(ground.view).service_time_s(ground.queue)
    ceiling = max(1, whole(slots / ground.view.slots_per_worker))
    return min(count, _known(ceiling, ground))


@limit(
    is_in_force=lambda ground: _has_budget(ground.view.profile),
    clock=lambda view, now_s: None if view.profile.budget_per_day is None else now_s,
)
def budget(count: int, ground: Ground) -> int:
    """No more than can be paid, in any hour and until the day ends; the floor is paid for like everything else."""
    profile, view = ground.view.profile, ground.view
    if profile.budget_per_hour is not None and profile.cost_per_worker_hour is not None:
        count = min(count, _known(whole(profile.budget_per_hour / profile.cost_per_worker_hour), ground))
    account = ground.account
    if account is None:
        return count
    if not account.is_whole:
        # Nobody knows what is left of the day: at no moment do more exist than it pays for from end to end.
        count = min(count, _known(whole(account.even_workers), ground))
    floor, busy = bounds_of(ground).workers_min, busy_workers(ground)
    return min(count, payable_workers(account, view, floor_workers=floor, busy_workers=busy))


def _has_budget(profile: Profile) -> bool:
    return profile.budget_per_hour is not None or profile.budget_per_day is not None


def _known(ceiling: int, ground: Ground) -> int:
    """``ceiling`` less the workers that may still run on unreachable hosts: they count against it.

    Nothing is started in their place, but for want of it no busy worker is asked to leave: it exists already.
    """
    if not ground.view.unknown_workers:  # hardly ever are there any: who is busy is not counted for nothing
        return _beside_leavers(max(0, ceiling), ground)
    return _beside_leavers(max(0, ceiling - ground.view.unknown_workers, min(ceiling, busy_workers(ground))), ground)


def _beside_leavers(ceiling: int, ground: Ground) -> int:
    """``ceiling`` less the workers that were asked to stop and still finish their jobs.

    They only keep others from being started: to dismiss one more for each that leaves would empty the pool.
    """
    if not ground.view.leaving_workers:
        return ceiling
    return min(ceiling, max(ground.view.assigned_workers, ceiling - ground.view.leaving_workers))


def bounds_of(ground: Ground) -> Bounds:
    """The floor and the ceiling of this moment."""
    return ground.view.profile.bounds_at(ground.now_s, ground.view.zones)


@limit()
def capacity(count: int, ground: Ground) -> int:
    """Never more than known hosts can hold. While no host is known, what runs is held: unknown is not zero."""
    room = ground.view.capacity_workers
    return min(count, ground.last_workers if room is None else room)


def ceiling_of(ground: Ground) -> int:
    """The count that the pool may never exceed, whatever room there is, those that leave included."""
    if ground.view.leaving_workers:
        ground = replace(ground, view=copied(ground.view, leaving_workers=0))
    count = WORKERS_MAX
    for each in (workers_max, pinned, group, suspended, rate_limit, budget):
        count = each.rule(count, ground)
    return count


def attainable(count: int, ground: Ground) -> int:
    """``count``, but no more than the ceiling of this moment allows and there is room for."""
    return capacity(min(plateau(useful_workers(count, ground), ground), ceiling_of(ground)), ground)


def in_order(come_down: Rule) -> tuple[Limit, ...]:
    """Every limit, in the order in which they fold; ``come_down`` is the strategy's own way to take a lower count."""
    # A strategy with a way down of its own answers for it.
    downs = (hold_overdue, hold_down) if come_down is hold_down else (limit_of(come_down),)
    taming = (useful_workers, hold_stale, tolerance, hold_up, *downs, step)
    of_workers = (crash_loop, plateau, activation, may_be_busy)
    said = (fallback, pause, override, schedule, workers_min)
    never_exceeded = (workers_max, pinned, group, suspended, rate_limit, budget, capacity)
    return (*taming, *of_workers, helping, *said, *never_exceeded)


@lru_cache(maxsize=256)  # one per strategy
def by_name(come_down: Rule) -> Mapping[str, Limit]:
    """The same by their names."""
    return MappingProxyType({each.name: each for each in in_order(come_down)})


def in_force(ground: Ground, come_down: Rule) -> tuple[Limit, ...]:
    """The limits that the profile or the moment sets, and those that every pool has, in the order in which they fold.

    What is not set could not move the count: leaving it out keeps decisions short.
    """
    return _those_set(tuple([is_set(ground) for is_set in _conditions(come_down)]), come_down)


@lru_cache(maxsize=256)
def _conditions(come_down: Rule) -> tuple[IsInForce, ...]:
    """When each limit is in force that not every pool has."""
    return tuple(each.is_in_force for each in in_order(come_down) if each.is_in_force is not always)


@lru_cache(maxsize=1024)  # an installation has a handful of sorts of profile
def _those_set(are_set: tuple[bool, ...], come_down: Rule) -> tuple[Limit, ...]:
    """The limits of every pool, and of the others those that are set."""
    is_next_set = iter(are_set)
    return tuple(each for each in in_order(come_down) if each.is_in_force is always or next(is_next_set))


LIMITS: tuple[Limit, ...] = in_order(hold_down)
"""The order as it is for a strategy that holds before it comes down."""
