"""The metrics of a pool as an evaluation reads them.

What depths alone show is estimated here, and what service times were before a pause is recalled, once: no strategy and
no limit need know who reports what, and when. So is everything else that is found out of a pool before its demands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_

from headway.scaling.model import (
    Backlog,
    KnownArrivals,
    MeasuredService,
    Memory,
    Plateau,
    PoolDepths,
    QueueMetrics,
    QueueSample,
    Stoppage,
    TakenJobs,
    is_suspended,
)
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.reading import depth_only, known_arrivals, service_recall, vanished_jobs
from headway.scaling.reading.busy_slots import WorkerSlots, slots_of
from headway.scaling.reading.direct_samples import overlaid
from headway.scaling.reading.jobs_beyond_slots import with_reserved_beyond_slots
from headway.scaling.reading.plateau import plateau_of
from headway.scaling.reading.pool_times import PoolTimes, times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import Freshness, aged, freshness_of
from headway.scaling.reading.suspensions import stoppage_of
from headway.scaling.reading.taken_jobs import taken_jobs_of
from headway.scaling.view import PoolView, copied

Queues = tuple[QueueMetrics, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReading:
    """What one evaluation of a pool goes by, and what it leaves to be remembered of it."""

    view: PoolView
    """The pool as it was gathered; one whose workers are kept from jobs teaches nothing."""
    memory: Memory
    """What is remembered, without what was learned of jobs that have vanished."""
    now_s: float
    freshness: Freshness
    shown: tuple[QueueMetrics, ...]
    """Its queues with their samples at this moment: what the decision shows."""
    times: PoolTimes
    slots: WorkerSlots
    estimated: PoolView
    """The pool with these queues, with the rates that depths alone show and recalled service times, and without jobs
    that no worker can take: what strategies go by."""
    queue: QueueMetrics
    """All its queues as one."""
    limited: PoolView
    """The same with the samples at their own times: what limits go by."""
    limited_queue: QueueMetrics
    """All queues of ``limited`` as one."""
    stoppage: Stoppage | None
    backlog: Backlog | None
    depths: PoolDepths | None
    service: MeasuredService | None
    known_arrivals: KnownArrivals | None
    taken_jobs: TakenJobs | None
    plateau: Plateau | None


def reading_of(view: PoolView, memory: Memory, *, now_s: float) -> PoolReading:
    """What the evaluation of ``view`` at ``now_s`` goes by, where ``memory`` says what was there before."""
    stoppage = stoppage_of(view, memory.stoppage, now_s=now_s)
    if stoppage is not None:
        view = copied(view, is_teaching=False)
    times, slots, gathered = times_of(view), slots_of(view), view.queues
    backlog = vanished_jobs.backlog_of(view, memory, now_s=now_s)
    memory = vanished_jobs.without_vanished(memory, backlog, gathered)
    freshness = freshness_of(gathered, view.profile, now_s=now_s)
    if not freshness.is_fresh:
        gathered = _by_samples(gathered, view.direct, slots=view.slots_at_work)
    seen = _at(gathered, now_s)
    is_held = is_suspended(view.suspension)
    depths = depth_only.learned(
        memory.depths,
        OrderedQueues(queues=seen, order=view.queue_order, strict_queues=view.strict_queues),
        profile=view.profile,
        busy_by_workers=0 if is_held else slots.busy_by_workers,
        helped=view.helped,
        tick_s=view.tick_s,
    )
    if is_held:
        depths = _with_pace_of(depths, memory.depths)

    def rated_of(aged_queues: Queues) -> Queues:
        rated = depth_only.with_rates(aged_queues, depths, dispatch_s=times.dispatch_s, now_s=now_s)
        return takeable(rated) if view.leaves_due_jobs else rated

    shown = depth_only.with_ages(seen, depths, now_s=now_s)
    rated, shown_queue = rated_of(shown), pooled(shown)
    rated_queue = shown_queue if rated is shown else pooled(rated)
    service = service_recall.learned(memory.service, rated_queue, now_s=now_s)
    estimated = service_recall.with_times(rated, rated_queue, service, now_s=now_s)
    queue = rated_queue if estimated is rated else pooled(estimated)
    sampled = rated_of(depth_only.with_ages(view.queues, depths, now_s=now_s))
    sampled_queue = pooled(sampled)
    limited = service_recall.with_times(sampled, sampled_queue, service, now_s=now_s)
    known = known_arrivals.learned(memory.known_arrivals, queue, estimated, tick_s=view.tick_s, now_s=now_s)
    queue = known_arrivals.with_known(queue, known, tick_s=view.tick_s, now_s=now_s)
    return PoolReading(
        view=view,
        memory=memory,
        now_s=now_s,
        freshness=freshness,
        shown=shown,
        times=times,
        slots=slots,
        estimated=view if estimated is view.queues else copied(view, queues=estimated),
        queue=queue,
        limited=view if limited is view.queues else copied(view, queues=limited),
        limited_queue=sampled_queue if limited is sampled else pooled(limited),
        stoppage=stoppage,
        backlog=backlog,
        depths=depths,
        service=service,
        known_arrivals=known,
        taken_jobs=taken_jobs_of(queue, slots, memory.taken_jobs),
        plateau=plateau_of(shown_queue, view, slots, memory.plateau, is_fresh=freshness.is_fresh, now_s=now_s),
    )


def _with_pace_of(depths: PoolDepths | None, before: PoolDepths | None) -> PoolDepths | None:
    """``depths`` of slots that are kept from taking jobs: they start none, and how fast they would shows nowhere."""
    if depths is None or before is None:
        return depths
    kept = {name: getattr(before, name) for name in ("cycle_s", "ended_jobs", "busy_slot_s")}
    return copied(depths, **kept)


def _by_samples(queues: Queues, direct: Sequence[QueueSample], *, slots: int) -> Queues:
    """``queues`` with the depths that came directly from the collectors, of which no more jobs run than slots may."""
    samples = {sample.queue: sample for sample in direct}
    newest = tuple([overlaid(queue, samples.get(queue.queue)) for queue in queues])
    return with_reserved_beyond_slots(newest, samples, slots=slots)


def _at(queues: Queues, now_s: float) -> Queues:
    now = tuple([aged(queue, now_s=now_s) for queue in queues])
    return queues if all(map(is_, now, queues)) else now


def takeable(queues: Queues) -> Queues:
    """``queues`` without the waiting jobs that are due and that somebody must move before a worker can take them."""
    return tuple(map(_without_overdue, queues)) if any(queue.overdue_jobs for queue in queues) else queues


def _without_overdue(queue: QueueMetrics) -> QueueMetrics:
    if not queue.overdue_jobs or queue.waiting_jobs is None:
        return queue
    return copied(queue, waiting_jobs=queue.waiting_jobs - queue.overdue_jobs, overdue_jobs=0)
