"""The metrics of a pool as an evaluation reads them.

What depths alone show is estimated here, and what service times were before a pause is recalled, once: no strategy and
no limit need know who reports what, and when. So is everything else that is found out of a pool before its demands.
"""

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
    Stoppage,
    TakenJobs,
    is_suspended,
)
from headway.scaling.reading import depth_only, known_arrivals, service_recall, vanished_jobs
from headway.scaling.reading.direct_samples import with_direct_samples
from headway.scaling.reading.jobs_beyond_slots import with_reserved_beyond_slots
from headway.scaling.reading.plateau import plateau_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import Freshness, aged, freshness_of
from headway.scaling.reading.suspensions import stoppage_of
from headway.scaling.reading.taken_jobs import taken_jobs_of
from headway.scaling.view import PoolView, copied


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReading:
    """What one evaluation of a pool goes by, and what it leaves to be remembered of it."""

    view: PoolView
    """The pool as it was gathered; one whose workers are kept from jobs teaches nothing."""
    memory: Memory
    """What is remembered, without what was learned of jobs that have vanished."""
    now_s: float
    freshness: Freshness
    shown: PoolView
    """With its samples at this moment: what the decision shows."""
    estimated: PoolView
    """The same with the rates that depths alone show, and recalled service times, and without jobs that no worker can
    take: what strategies go by."""
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
    backlog = vanished_jobs.backlog_of(view, memory, now_s=now_s)
    memory = vanished_jobs.without_vanished(memory, backlog, view)
    freshness = freshness_of(view, now_s=now_s)
    seen = _at(view if freshness.is_fresh else _by_samples(view), now_s)
    depths = _depths(memory.depths, seen)
    shown = depth_only.with_ages(seen, depths, now_s=now_s)
    shown_queue = pooled(shown.queues)
    rated = takeable(depth_only.with_rates(shown, depths, now_s=now_s))
    rated_queue = _pooled(rated, unless=shown, known=shown_queue)
    service = service_recall.learned(memory.service, rated_queue, now_s=now_s)
    estimated = service_recall.with_times(rated, rated_queue, service, now_s=now_s)
    queue = _pooled(estimated, unless=rated, known=rated_queue)
    sampled = takeable(depth_only.with_rates(depth_only.with_ages(view, depths, now_s=now_s), depths, now_s=now_s))
    sampled_queue = pooled(sampled.queues)
    limited = service_recall.with_times(sampled, sampled_queue, service, now_s=now_s)
    known = known_arrivals.learned(memory.known_arrivals, queue, estimated.queues, tick_s=view.tick_s, now_s=now_s)
    queue = known_arrivals.with_known(queue, known, tick_s=view.tick_s, now_s=now_s)
    return PoolReading(
        view=view,
        memory=memory,
        now_s=now_s,
        freshness=freshness,
        shown=shown,
        estimated=estimated,
        queue=queue,
        limited=limited,
        limited_queue=_pooled(limited, unless=sampled, known=sampled_queue),
        stoppage=stoppage,
        backlog=backlog,
        depths=depths,
        service=service,
        known_arrivals=known,
        taken_jobs=taken_jobs_of(queue, view, memory.taken_jobs),
        plateau=plateau_of(shown_queue, view, memory.plateau, is_fresh=freshness.is_fresh, now_s=now_s),
    )


def _by_samples(view: PoolView) -> PoolView:
    """``view`` with the depths that came directly from the collectors, of which no more jobs run than slots may."""
    seen = with_direct_samples(view)
    samples = {sample.queue: sample for sample in view.direct}
    return copied(seen, queues=with_reserved_beyond_slots(seen.queues, samples, slots=view.slots_at_work))


def _pooled(view: PoolView, *, unless: PoolView, known: QueueMetrics) -> QueueMetrics:
    """The queues of ``view`` as one; ``known`` if they are those of ``unless``."""
    return known if view.queues is unless.queues else pooled(view.queues)


def _depths(before: PoolDepths | None, seen: PoolView) -> PoolDepths | None:
    """What depths show. Slots that are kept from taking jobs start none, and how fast they would shows nowhere."""
    if not is_suspended(seen.suspension):
        return depth_only.learned(before, seen)
    depths = depth_only.learned(before, copied(seen, busy_slots=0))
    if depths is None or before is None:
        return depths
    kept = {name: getattr(before, name) for name in ("cycle_s", "ended_jobs", "busy_slot_s")}
    return copied(depths, **kept)


def _at(view: PoolView, now_s: float) -> PoolView:
    queues = tuple([aged(queue, now_s=now_s) for queue in view.queues])
    return view if all(map(is_, queues, view.queues)) else copied(view, queues=queues)


def takeable(view: PoolView) -> PoolView:
    """``view`` without the waiting jobs that no worker of the pool can take: those that none of them moves when due."""
    if not view.leaves_due_jobs or not any(queue.overdue_jobs for queue in view.queues):
        return view
    return copied(view, queues=tuple(map(_without_overdue, view.queues)))


def _without_overdue(queue: QueueMetrics) -> QueueMetrics:
    if not queue.overdue_jobs or queue.waiting_jobs is None:
        return queue
    return copied(queue, waiting_jobs=queue.waiting_jobs - queue.overdue_jobs, overdue_jobs=0)
