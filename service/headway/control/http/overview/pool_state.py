"""What of a pool's state is read off its workers, its hosts and its newest stored decision."""

from collections.abc import Sequence

from headway.control.http.overview.pool_places import Places
from headway.control.http.schemas.responses import FailuresOut
from headway.scaling.conditions.pool_facts import WorkerCounts
from headway.scaling.metrics.job_failures import Failures, is_failing, together
from headway.scaling.model import FailureLimit, Mode, QueueMetrics
from headway.scaling.profile import Profile
from headway.store.pools.decisions import StoredDecision

POOL_UNSTARTED_S = 6.0  # agents receive what they shall start within a second, and report at once that they do


def unstarted_workers(
    counts: WorkerCounts, decision: StoredDecision | None, *, target_workers: int | None, mode: Mode, now_s: float
) -> int:
    """The workers that were asked for a while ago, and that no host has got to start; those that end too early are.

    0 while any start, for starts take turns on a host; while any leave or are unknown, whose places may be needed; and
    where targets are not acted on, or hosts have no room.
    """
    missing = (target_workers or 0) - counts.running
    are_moving = counts.starting or counts.draining or counts.unknown
    if (
        decision is None
        or missing <= 0
        or are_moving
        or mode is Mode.RECOMMEND
        or decision.decision.binding == "capacity"
    ):
        return 0
    # One that is stored again says the same as before: it was asked for earlier still.
    is_old = decision.previous_workers == decision.decision.target_workers
    return missing if is_old or now_s - decision.decided_at.timestamp() > POOL_UNSTARTED_S else 0


def is_crash_looping(profile: Profile, counts: WorkerCounts, decision: StoredDecision | None, places: Places) -> bool:
    """Whether the pool's workers crash: on every host, on one that should run some, or all of them."""
    if decision is not None and decision.decision.is_failing:
        return True
    if counts.backing_off and not counts.running:
        return True
    return any(row.host.is_known and profile.template in row.host.failing for row in places.of_pool(profile.pool))


def failures_out(each: Sequence[Failures], limit: FailureLimit, metrics: QueueMetrics) -> FailuresOut | None:
    """The failures of queues together as they are given.

    ``None``: by ``metrics`` of these queues, nothing was measured, or nobody reports how jobs of one of them end.
    """
    if metrics.failure_rate_per_s is None:
        return None
    total = together(each)
    return FailuresOut(
        window_s=limit.window_s,
        ended_jobs=total.ended_jobs,
        failed_jobs=total.failed_jobs,
        retried_jobs=total.retried_jobs,
        share=total.share,
        is_failing=is_failing(total, limit) or any(is_failing(one, limit) for one in each),
    )
