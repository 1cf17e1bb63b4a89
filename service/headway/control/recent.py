"""The newest buckets of every queue, kept in memory so that a tick reads only what Spark has written since."""

from collections.abc import Iterable

from headway.scaling.measure import BUCKET_S, BucketRow, queue_metrics
from headway.scaling.model import Objective, QueueMetrics

KEPT_S = 900.0  # the longest window that an objective may have
RATE_WINDOW_S = 30.0  # long enough to tell a rate from chance, short enough to let go soon after a burst


class RecentBuckets:
    """Rows of the last ``KEPT_S`` by queue. Postgres is the truth; this forgets and is filled again at will."""

    def __init__(self) -> None:
        self.revision = 0
        """The newest revision taken in; reading goes on after it."""
        self._rows: dict[str, dict[float, BucketRow]] = {}

    def take(self, rows: Iterable[BucketRow], *, revision: int) -> frozenset[str]:
        """Put ``rows`` in the place of older versions of themselves.

        Returns:
            The queues among them in which jobs wait.
        """
        waiting = set()
        for row in rows:
            self._rows.setdefault(row.queue, {})[row.bucket_s] = row
            if row.waiting_jobs:
                waiting.add(row.queue)
        self.revision = max(self.revision, revision)
        return frozenset(waiting)

    def forget(self, *, now_s: float) -> None:
        """Drop rows that no window reaches, but the newest of each queue: how old it is must still be told."""
        since_s = now_s - KEPT_S - BUCKET_S
        for rows in self._rows.values():
            newest_s = max(rows)
            for bucket_s in [bucket_s for bucket_s in rows if bucket_s < since_s and bucket_s != newest_s]:
                del rows[bucket_s]

    def metrics(self, queue: str, *, now_s: float, objective: Objective) -> QueueMetrics:
        """What is known of ``queue``; everything is ``None`` where nothing was ever seen."""
        rows = sorted(self._rows.get(queue, {}).values(), key=lambda row: row.bucket_s)
        return queue_metrics(rows, queue=queue, now_s=now_s, window_s=RATE_WINDOW_S, objective=objective)
