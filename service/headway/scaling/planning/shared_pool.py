"""Whether one pool can keep the objectives of all its queues, as its workers take from them; else they need pools of
their own, and a greater ``workers_max`` is the dearer cure.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from headway.scaling.demands.jobs_in_front import RANDOM_DEVIATIONS, jobs_in_front
from headway.scaling.explanations.phrases import duration
from headway.scaling.model import Note, NoteKind, QueueMetrics, QueueOrder, order_text
from headway.scaling.planning.queueing import slots_for_burst
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_times import MARGIN_S, service_time_s
from headway.scaling.view import PoolView


def separate_pools(view: PoolView) -> tuple[Note, ...]:
    """A note for each queue whose objective the pool cannot keep because of jobs of its other queues.

    Other queues have as many jobs in front as wait there, or as their own objectives let wait. None where the service
    times of a queue's neighbours are not known, or where separate pools would not help: the queue alone needs more
    workers than the pool may have, or all of them apart need as many as this pool does.
    """
    if len(view.queues) < 2:
        return ()
    as_allowed = replace(view, queues=tuple(_as_allowed(queue, view) for queue in view.queues))
    return tuple(note for member in view.queues if (note := _note(member, as_allowed)) is not None)


def order_remarks(profile: Profile, order: QueueOrder | None, strict_queues: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A sentence for each queue of ``profile`` that may start behind one with a longer objective, by the order alone.

    For a profile of which no load is known yet. ``order`` and ``strict_queues`` are those of the pool's template.
    """
    view = PoolView(
        profile=profile,
        queues=tuple(QueueMetrics(queue=name, waiting_jobs=1) for name in profile.queues),
        queue_order=order,
        strict_queues=strict_queues,
    )
    return tuple(remark for member in view.queues if (remark := _remark(member, view)) is not None)


def unowned_remarks(profile: Profile, owned: Collection[str]) -> tuple[str, ...]:
    """A sentence for each queue that ``profile`` helps with and that is not among those which a pool owns."""
    return tuple(
        f"profile {profile.pool!r}: helps names {queue!r}, which no pool here owns: its jobs have no objective, and no "
        "pool is sized for them"
        for queue in profile.helps
        if queue not in owned
    )


def first_helped_remarks(profile: Profile, strict_queues: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each queue of another pool that the workers of ``profile`` serve before a queue of its own.

    ``strict_queues`` are the queues of its template, by the library's own names and in its order; none of other orders.
    """
    ranks = {name: rank for rank, name in enumerate(strict_queues)}
    own_ranks = [ranks[name] for queue in profile.queues if (name := queue.partition("/")[2]) in ranks]
    return tuple(
        f"pool {profile.pool!r}: its workers take jobs of {queue} first, which another pool owns: name it last in the "
        "template's command line"
        for queue in profile.helps
        if own_ranks and ranks.get(queue.partition("/")[2], math.inf) < max(own_ranks)
    )


def _remark(member: QueueMetrics, view: PoolView) -> str | None:
    target_s = view.profile.objective_of(member.queue).target_s
    longer = [
        each.queue.queue
        for each in jobs_in_front(member, 1, view)
        if view.profile.objective_of(each.queue.queue).target_s > target_s
    ]
    if not longer:
        return None
    return (
        f"pool {view.profile.pool!r}: {member.queue}, whose jobs are to start within {duration(target_s)}, shares its "
        f"workers with {', '.join(longer)}, and they take jobs {order_text(view.queue_order)}: separate pools keep "
        f"long jobs away from it"
    )


def _note(member: QueueMetrics, view: PoolView) -> Note | None:
    objective = view.profile.objective_of(member.queue)
    within_s = max(0.0, objective.target_s - MARGIN_S)
    jobs = max(1, member.waiting_least_jobs, math.ceil((member.arrival_rate_per_s or 0.0) * objective.target_s))
    # As in deciding: a slot that has started a job of the queue goes on with one of another.
    in_front = jobs_in_front(member, 2.0 * jobs, view, deviations=RANDOM_DEVIATIONS)
    if not in_front or any(_service_s(each.queue, view) is None for each in in_front):
        return None
    alone_slots = _slots(jobs, member, view, within_s=within_s)
    shared_slots = alone_slots + sum(_slots(each.jobs, each.queue, view, within_s=within_s) for each in in_front)
    most = view.profile.workers_max if view.profile.pinned is None else view.profile.pinned
    most_slots = most * view.slots_per_worker
    apart_slots = alone_slots + sum(_own_slots(each.queue, view) for each in in_front)
    if shared_slots <= max(most_slots, apart_slots) or alone_slots > most_slots:
        return None
    others = ", ".join(f"{each.queue.queue} ({duration(_shown_s(each.queue, view))} a job)" for each in in_front)
    order = order_text(view.queue_order)
    text = (
        f"separate pools: {member.queue}, whose jobs are to start within {duration(objective.target_s)}, shares its "
        f"workers with {others}, and they take jobs {order}: {jobs:,} of its jobs need {shared_slots:,} slots here and "
        f"{alone_slots:,} in a pool of its own; workers_max={most} allows {most_slots:,} here"
    )
    neighbours = tuple(each.queue.queue for each in in_front)
    return Note(kind=NoteKind.SEPARATE_POOLS, text=text, about=(member.queue, *neighbours, order, str(most)))


def _as_allowed(queue: QueueMetrics, view: PoolView) -> QueueMetrics:
    """``queue`` with as many waiting jobs as its own objective lets wait, where fewer do."""
    target_s = view.profile.objective_of(queue.queue).target_s
    allowed_jobs = math.floor((queue.arrival_rate_per_s or 0.0) * target_s)
    return replace(queue, waiting_jobs=max(queue.waiting_least_jobs, allowed_jobs), waiting_min_jobs=None)


def _own_slots(queue: QueueMetrics, view: PoolView) -> int:
    """The slots that start all waiting jobs of ``queue`` within its own objective, in a pool of its own."""
    target_s = view.profile.objective_of(queue.queue).target_s
    return _slots(queue.waiting_least_jobs, queue, view, within_s=max(0.0, target_s - MARGIN_S))


def _slots(jobs: float, queue: QueueMetrics, view: PoolView, *, within_s: float) -> int:
    return slots_for_burst(jobs, service_time_s(queue, view), within_s)


def _service_s(queue: QueueMetrics, view: PoolView) -> float | None:
    return view.profile.service_time_guess_s if queue.service_time_s is None else queue.service_time_s


def _shown_s(queue: QueueMetrics, view: PoolView) -> float:
    return round(service_time_s(queue, view), 1 if service_time_s(queue, view) >= 1 else 3)
