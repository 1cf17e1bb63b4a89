"""A queue as the live loop sees it: by rows of 5 s of the clock, the last of which is still running.

The engine writes the rows that the pipeline would have written, and the controller reads them as a control plane does.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from headway.scaling.measure import BUCKET_S, BucketRow, bucket_start_s, merged_row, sketch_index

BUCKET_EDGE_S = 1e-6  # a part that ends where a bucket does is of that bucket, not of the next


def edges_s(from_s: float, until_s: float, *, begins_at_s: float) -> Iterable[float]:
    """Where a bucket ends between the two, in seconds from the beginning, which is ``begins_at_s`` by the clock."""
    offset_s = begins_at_s - bucket_start_s(begins_at_s)
    number = math.floor((from_s + offset_s) / BUCKET_S) + 1
    while (edge_s := number * BUCKET_S - offset_s) < until_s:
        if edge_s > from_s:
            yield edge_s
        number += 1


class RowWriter:
    """The rows of one queue, written as jobs come, start and end."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self._rows: dict[float, BucketRow] = {}

    def add(self, part: BucketRow) -> None:
        """Add what happened in a part of a bucket, and how the queue stood at its end."""
        before = self._rows.get(part.bucket_s)
        self._rows[part.bucket_s] = part if before is None else merged_row((part, before), part.bucket_s, BUCKET_S)

    def take(self) -> tuple[BucketRow, ...]:
        """The rows that were written since the last call; the running one is kept to be written on."""
        rows = tuple(self._rows[bucket_s] for bucket_s in sorted(self._rows))
        self._rows = {row.bucket_s: row for row in rows[-1:]}
        return rows


Depths = tuple[int, int, float | None]  # what waits, what is in flight, and how old the oldest is


def row_of(
    queue: str,
    *,
    at_s: float,
    counts: tuple[int, int, int, int],
    service_sum_s: float,
    pickups_s: Sequence[float],
    depths: Depths | None,
) -> BucketRow:
    """The row of a part of one bucket.

    Args:
        queue: Whose it is.
        at_s: When the part ended, in Unix seconds.
        counts: Jobs that arrived, those of them that came back for another attempt, and those that started and ended.
        service_sum_s: Of those that ended. Each counts as long as their mean, which is all that deciding asks for.
        pickups_s: Waits of those that started.
        depths: How the queue stood then; ``None``: not sampled.
    """
    arrived, retried, started, finished = counts
    waiting, in_flight, oldest_age_s = (None, None, None) if depths is None else depths
    return BucketRow(
        queue=queue,
        bucket_s=bucket_start_s(at_s - BUCKET_EDGE_S),
        arrived_jobs=arrived,
        retried_jobs=retried,
        started_jobs=started,
        finished_jobs=finished,
        service_sum_s=service_sum_s,
        service_sketch={sketch_index(service_sum_s / finished): finished} if finished else {},
        pickup_max_s=max(pickups_s, default=None),
        pickup_sketch=dict(Counter(map(sketch_index, pickups_s))),
        sampled_at_s=None if depths is None else at_s,
        waiting_jobs=waiting,
        in_flight_jobs=in_flight,
        delayed_jobs=None if depths is None else 0,
        oldest_age_s=oldest_age_s,
    )


def depth_row(queue: str, *, at_s: float, waiting_jobs: int) -> BucketRow:
    """The row of a queue whose source reports depths alone, at ``at_s`` (Unix seconds)."""
    return BucketRow(
        queue=queue, bucket_s=bucket_start_s(at_s - BUCKET_EDGE_S), sampled_at_s=at_s, waiting_jobs=waiting_jobs
    )
