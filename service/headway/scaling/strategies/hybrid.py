"""The default: deadlines for the jobs that wait, and standing workers only for those that no reaction could save."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headway.scaling.demand import (
    Coming,
    Need,
    Supply,
    backlog_drain,
    batch_cycle_s,
    completions_per_s,
    confidence,
    exposed_s,
    greatest,
    standing,
    start_up_s,
    supply,
    taking,
    waiting,
)
from headway.scaling.guard import guard_of, learned, spare_jobs
from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

CAUTION = 1.0  # standard deviations fewer completions than expected are reckoned with


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
    """The slots in use, those that the waiting jobs need beyond, and those that must stand."""
    asked = _asked(view, state.get("asked", ()), now_s)
    given = supply(
        queue, view, coming=_coming(asked, view, now_s), caution=CAUTION * confidence(view.profile) / view.profile.risk
    )
    in_use = given.busy_slots + view.starting_workers * view.slots_per_worker
    # What was begun since the sample still waits in it: it counts as a floor, and not once more as work to come.
    at_work = in_use + view.taken_jobs
    drain = _drain(queue, view, given, slots_max=_slots_max(view, now_s))
    demands = [
        Demand(name="work_in_progress", slots=at_work),
        Demand(name="backlog_drain", slots=max(at_work, in_use + drain.slots)),
        Demand(name="wake", slots=float(_is_asleep(queue, view))),
    ]
    kept: dict[str, Any] = {"asked": [list(each) for each in asked]} if asked else {}
    if exposed_s(view) > 0:
        before = guard_of(state.get("guard"))
        guard = learned(before, queue, view, now_s=now_s)
        spare = spare_jobs(guard, queue, view, now_s=now_s)
        stand = standing(queue, view, given, arrivals_per_tick=guard.expected_jobs, spare_jobs=spare)
        demands.append(Demand(name="standing", slots=max(at_work, in_use + stand.slots)))
        # As it was stored, where it is the same: what is at rest is not written again.
        kept["guard"] = state["guard"] if guard == before else guard
    return Advice(demands=tuple(demands), state=kept)


def _is_asleep(queue: QueueMetrics, view: PoolView) -> bool:
    """Whether jobs wait and nobody is there: the first worker comes at once, also where the objective lets it wait."""
    return bool(queue.waiting_jobs) and not view.running_workers and not view.starting_workers


def _drain(queue: QueueMetrics, view: PoolView, given: Supply, *, slots_max: int) -> Need:
    """What the waiting jobs of all members need, never less than those of any one alone with its own objective."""
    needs = [
        taking(queue, given),
        _drain_of(queue, given, view, target_s=view.profile.objective.target_s, slots_max=slots_max),
    ]
    if len(view.queues) > 1 or view.profile.member_objectives:
        for member in view.queues:
            busy_slots = member.in_flight_jobs or 0
            alone = replace(given, busy_slots=busy_slots, completions_per_s=completions_per_s(member, view, busy_slots))
            target_s = view.profile.objective_of(member.queue).target_s
            needs.append(_drain_of(member, alone, view, target_s=target_s, slots_max=slots_max))
    return greatest(needs)


def _drain_of(queue: QueueMetrics, given: Supply, view: PoolView, *, target_s: float, slots_max: int) -> Need:
    of_batch_s = batch_cycle_s(queue, view)
    batch = replace(
        given, cycle_s=of_batch_s, completions_per_s=min(given.completions_per_s, given.busy_slots / of_batch_s)
    )
    return backlog_drain(waiting(queue, view, target_s=target_s), batch, view, slots_max=slots_max)


def _slots_max(view: PoolView, now_s: float) -> int:
    """The most slots that the pool may have now."""
    workers = view.profile.bounds_at(now_s, view.zones).workers_max
    if view.capacity_workers is not None:
        workers = min(workers, view.capacity_workers)
    return workers * view.slots_per_worker


def _asked(view: PoolView, before: Sequence[Sequence[float]], now_s: float) -> tuple[tuple[float, int], ...]:
    """When the workers that start were asked for, the oldest first: those that are up were asked for first."""
    known = [(at_s, int(workers)) for at_s, workers in before]
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


def _coming(asked: Sequence[tuple[float, int]], view: PoolView, now_s: float) -> tuple[Coming, ...]:
    return tuple(
        Coming(slots=workers * view.slots_per_worker, ready_in_s=max(0.0, at_s + start_up_s(view) - now_s))
        for at_s, workers in asked
    )


HYBRID = Strategy(name="hybrid", advise=advise, is_clockless=True)
