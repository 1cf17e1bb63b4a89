"""The metrics of a pool as an evaluation reads them.

What depths alone show is estimated here, and what service times were before a pause is recalled, once: no strategy and
no limit need know who reports what, and when.
"""

from dataclasses import dataclass
from operator import is_

from headway.scaling.decisions import known_arrivals
from headway.scaling.demands import depth_only
from headway.scaling.metrics import service_recall
from headway.scaling.metrics.direct_samples import with_direct_samples
from headway.scaling.model import KnownArrivals, MeasuredService, Memory, PoolDepths, QueueMetrics, is_suspended
from headway.scaling.view import PoolView, aged, copied, is_fresh, pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReading:
    """What one evaluation of a pool goes by."""

    is_fresh: bool
    shown: PoolView
    """With its samples at this moment: what the decision shows."""
    estimated: PoolView
    """The same with the rates that depths alone show, and recalled service times: what strategies go by."""
    queue: QueueMetrics
    """All its queues as one."""
    limited: PoolView
    """The same with the samples at their own times: what limits go by."""
    depths: PoolDepths | None
    service: MeasuredService | None
    known_arrivals: KnownArrivals | None


def reading_of(view: PoolView, memory: Memory, *, now_s: float) -> PoolReading:
    """What the evaluation of ``view`` at ``now_s`` goes by, where ``memory`` says what depths showed before."""
    fresh = is_fresh(view, now_s=now_s)
    seen = _at(view if fresh else with_direct_samples(view), now_s)
    depths = _depths(memory.depths, seen)
    shown = depth_only.with_ages(seen, depths, now_s=now_s)
    estimated = depth_only.with_rates(shown, depths, now_s=now_s)
    service = service_recall.learned(memory.service, pooled(estimated.queues))
    estimated = service_recall.with_times(estimated, service)
    limited = depth_only.with_rates(depth_only.with_ages(view, depths, now_s=now_s), depths, now_s=now_s)
    queue = pooled(estimated.queues)
    known = known_arrivals.learned(memory.known_arrivals, queue, tick_s=view.tick_s, now_s=now_s)
    return PoolReading(
        is_fresh=fresh,
        shown=shown,
        estimated=estimated,
        queue=known_arrivals.with_known(queue, known, tick_s=view.tick_s, now_s=now_s),
        limited=service_recall.with_times(limited, service),
        depths=depths,
        service=service,
        known_arrivals=known,
    )


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
