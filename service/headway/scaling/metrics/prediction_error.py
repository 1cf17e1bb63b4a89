"""How far predictions were off: what a job that arrived then was predicted to wait, and what those that arrived did.

What is counted knows of starts when they began and how long each had waited, by spans of 5 s. From both follows when
the jobs were enqueued, to within a span.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.scaling.measure import BUCKET_S, BucketRow, sketch_value_s
from headway.scaling.metrics.behaviour import nearest_rank

PREDICTED_JOBS_MIN = 0.5  # of a cohort: less is the edge of another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Jobs that were enqueued in the 5 s from a moment on, and their mean wait, as far as they have started."""

    jobs: float
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """How far the predictions of a pool were off of late."""

    p50_s: float
    """Of the absolute error."""
    p95_s: float
    bias_s: float
    """The mean of predicted less observed: above 0, jobs waited less than predicted."""
    count: int


def cohort(rows: Iterable[BucketRow], *, at_s: float) -> Cohort | None:
    """The jobs in ``rows`` that were enqueued in [``at_s``, ``at_s`` + 5 s); ``None`` where none of them has started.

    Those that started in a span [s, s + 5) and had waited w were enqueued in [s - w, s - w + 5): the part of that span
    which lies in the cohort's is the part of them that counts.
    """
    jobs = wait_s = 0.0
    for row in rows:
        if row.bucket_s <= at_s - BUCKET_S:
            continue
        for index, count in row.pickup_sketch.items():
            waited_s = sketch_value_s(index)
            part = 1.0 - abs(row.bucket_s - waited_s - at_s) / BUCKET_S
            if part > 0.0:
                jobs += part * count
                wait_s += part * count * waited_s
    return Cohort(jobs=jobs, wait_s=wait_s / jobs) if jobs >= PREDICTED_JOBS_MIN else None


def error_of(errors_s: Sequence[float]) -> PredictionError | None:
    """What these errors, predicted less observed, come to; ``None`` of none."""
    if not errors_s:
        return None
    ordered = sorted(map(abs, errors_s))
    return PredictionError(
        p50_s=nearest_rank(ordered, 0.5),
        p95_s=nearest_rank(ordered, 0.95),
        bias_s=sum(errors_s) / len(errors_s),
        count=len(errors_s),
    )
