"""Workers that clear a backlog before its oldest job has waited too long: the predecessor's two versions.

Both are silent until a share of the objective is gone, and both fall at the breach for jobs of more than a second: from
there they divide jobs by seconds. Headway's own drain (``headway.scaling.demands.deadlines``) does neither.
"""

import math

SHORTEST_JOB_S = 0.1
DRAIN_RISE_FROM = 0.5  # share of the objective from which urgency multiplies
STEEPNESS = 8.0
MULTIPLIER_MAX = 5.0
DRAIN_USED_MAX = 1.5  # beyond this share nothing grows any more


def backlog_drain_classic(
    backlog_jobs: int, oldest_age_s: float, *, objective_s: float, service_s: float, threshold: float
) -> float:
    """Workers by the first version: the backlog over what a worker does in the time left, from the threshold on."""
    if backlog_jobs <= 0 or service_s <= 0 or oldest_age_s < math.floor(objective_s * threshold):
        return 0.0
    left_s = objective_s - oldest_age_s
    if left_s <= 0:
        return float(math.ceil(backlog_jobs / max(service_s, SHORTEST_JOB_S)))
    return backlog_jobs / max(left_s / service_s, 1.0)


def backlog_drain(
    backlog_jobs: int,
    oldest_age_s: float,
    *,
    objective_s: float,
    service_s: float,
    threshold: float,
    left_after_start_s: float | None = None,
) -> float:
    """Workers by the third version: the same times an urgency that grows with the square of the time used.

    An age of 0 means that it is not known, and the backlog is spread over the whole objective. ``left_after_start_s``
    stands for the objective where a new worker's start is taken off it. An objective of nothing is breached by any job.
    """
    if backlog_jobs <= 0 or service_s <= 0:
        return 0.0
    span_s = objective_s if left_after_start_s is None else left_after_start_s
    if oldest_age_s == 0:
        return backlog_jobs / max(span_s / service_s, 1.0)
    used = min(oldest_age_s / span_s, DRAIN_USED_MAX) if span_s > 0 else DRAIN_USED_MAX
    if used < threshold:
        return 0.0
    left_s = span_s - oldest_age_s
    workers = backlog_jobs / (max(left_s / service_s, 1.0) if left_s > 0 else max(service_s, SHORTEST_JOB_S))
    return workers * urgency(used)


def urgency(used: float) -> float:
    """What the third version multiplies by at this share of the objective: nothing below a half, 5 at most."""
    if used < DRAIN_RISE_FROM:
        return 0.0
    return min(1.0 + STEEPNESS * (used - DRAIN_RISE_FROM) ** 2, MULTIPLIER_MAX)
