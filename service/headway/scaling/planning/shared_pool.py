"""Whether one pool can keep the objectives of all its queues, as its workers take from them; else they need pools of
their own, and a greater ``workers_max`` is the dearer cure.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from headway.scaling.demands.jobs_in_front import RANDOM_DEVIATIONS, jobs_in_front
from headway.scaling.explanations.phrases import duration
from headway.scaling.model import Note, NoteKind, QueueMetrics, QueueOrder, order_text
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.planning.queueing import slots_for_burst
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_times import MARGIN_S, PoolTimes


def separate_pools(
    profile: Profile, among: OrderedQueues, times: PoolTimes, *, slots_per_worker: int
) -> tuple[Note, ...]:
    """A note for each of the queues whose objective the pool cannot keep because of jobs of its other queues.

    Other queues have as many jobs in front as wait there, or as their own objectives let wait. None where the service
    times of a queue's neighbours are not known, or where separate pools would not help: the queue alone needs more
    workers than the pool may have, or all of them apart need as many as this pool does.
    """
    if len(among.queues) < 2:
        return ()
    as_allowed = replace(among, queues=tuple(_as_allowed(queue, profile) for queue in among.queues))
    most_slots = _most_workers(profile) * slots_per_worker
    notes = (_note(member, profile, as_allowed, times, most_slots=most_slots) for member in among.queues)
    return tuple(note for note in notes if note is not None)


def order_remarks(profile: Profile, order: QueueOrder | None, strict_queues: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A sentence for each queue of ``profile`` that may start behind one with a longer objective, by the order alone.

    For a profile of which no load is known yet. ``order`` and ``strict_queues`` are those of the pool's template.
    """
    queues = tuple(QueueMetrics(queue=name, waiting_jobs=1) for name in profile.queues)
    among = OrderedQueues(queues=queues, order=order, strict_queues=strict_queues)
    return tuple(remark for member in queues if (remark := _remark(member, profile, among)) is not None)


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


def _remark(member: QueueMetrics, profile: Profile, among: OrderedQueues) -> str | None:
    target_s = profile.objective_of(member.queue).target_s
    longer = [
        each.queue.queue
        for each in jobs_in_front(member, 1, among)
        if profile.objective_of(each.queue.queue).target_s > target_s
    ]
    if not longer:
        return None
    return (
        f"pool {profile.pool!r}: {member.queue}, whose jobs are to start within {duration(target_s)}, shares its "
        f"workers with {', '.join(longer)}, and they take jobs {order_text(among.order)}: separate pools keep "
        f"long jobs away from it"
    )


def _most_workers(profile: Profile) -> int:
    return profile.workers_max if profile.pinned is None else profile.pinned


def _note(
    member: QueueMetrics, profile: Profile, among: OrderedQueues, times: PoolTimes, *, most_slots: int
) -> Note | None:
    objective = profile.objective_of(member.queue)
    within_s = max(0.0, objective.target_s - MARGIN_S)
    jobs = max(1, member.waiting_least_jobs, math.ceil((member.arrival_rate_per_s or 0.0) * objective.target_s))
    # As in deciding: a slot that has started a job of the queue goes on with one of another.
    in_front = jobs_in_front(member, 2.0 * jobs, among, deviations=RANDOM_DEVIATIONS)
    if not in_front or any(math.isinf(times.known_service_s(each.queue)) for each in in_front):
        return None
    alone_slots = _slots(jobs, member, times, within_s=within_s)
    shared_slots = alone_slots + sum(_slots(each.jobs, each.queue, times, within_s=within_s) for each in in_front)
    apart_slots = alone_slots + sum(_own_slots(each.queue, profile, times) for each in in_front)
    if shared_slots <= max(most_slots, apart_slots) or alone_slots > most_slots:
        return None
    others = ", ".join(f"{each.queue.queue} ({duration(_shown_s(each.queue, times))} a job)" for each in in_front)
    order, most = order_text(among.order), _most_workers(profile)
    text = (
        f"separate pools: {member.queue}, whose jobs are to start within {duration(objective.target_s)}, shares its "
        f"workers with {others}, and they take jobs {order}: {jobs:,} of its jobs need {shared_slots:,} slots here and "
        f"{alone_slots:,} in a pool of its own; workers_max={most} allows {most_slots:,} here"
    )
    neighbours = tuple(each.queue.queue for each in in_front)
    return Note(kind=NoteKind.SEPARATE_POOLS, text=text, about=(member.queue, *neighbours, order, str(most)))


def _as_allowed(queue: QueueMetrics, profile: Profile) -> QueueMetrics:
    """``queue`` with as many waiting jobs as its own objective lets wait, where fewer do."""
    target_s = profile.objective_of(queue.queue).target_s
    allowed_jobs = math.floor((queue.arrival_rate_per_s or 0.0) * target_s)
    return replace(queue, waiting_jobs=max(queue.waiting_least_jobs, allowed_jobs), waiting_min_jobs=None)


def _own_slots(queue: QueueMetrics, profile: Profile, times: PoolTimes) -> int:
    """The slots that start all waiting jobs of ``queue`` within its own objective, in a pool of its own."""
    target_s = profile.objective_of(queue.queue).target_s
    return _slots(queue.waiting_least_jobs, queue, times, within_s=max(0.0, target_s - MARGIN_S))


def _slots(jobs: float, queue: QueueMetrics, times: PoolTimes, *, within_s: float) -> int:
    return slots_for_burst(jobs, times.service_time_s(queue), within_s)


def _shown_s(queue: QueueMetrics, times: PoolTimes) -> float:
    return round(times.service_time_s(queue), 1 if times.service_time_s(queue) >= 1 else 3)
