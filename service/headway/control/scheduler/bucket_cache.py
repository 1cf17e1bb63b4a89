"""The newest buckets of every queue, kept in memory so that a tick reads only what Spark has written since."""

from collections.abc import Collection, Iterable

from headway.scaling.measure import SERVICE_WINDOW_S, BucketRow, queue_metrics
from headway.scaling.metrics.queue_rows import QueueRows
from headway.scaling.model import Objective, QueueMetrics

CACHED_S = SERVICE_WINDOW_S  # what a leader reads at first; objectives with a longer window are filled as time passes
CACHE_GONE_S = 86_400.0  # a queue without a row for longer is as one that was never seen


class BucketCache:
    """Rows by queue that a window still reaches. Postgres is the truth; this forgets and is filled again at will."""

    def __init__(self) -> None:
        self.revision = 0
        """The newest revision taken in; reading goes on after it."""
        self.measured_until_s: float | None = None
        """How far the pipeline has come, whatever queue it was for; ``None`` before its first row."""
        self._queues: dict[str, QueueRows] = {}

    def take(self, rows: Iterable[BucketRow], *, revision: int) -> frozenset[str]:
        """Put ``rows`` in the place of older versions of themselves.

        Returns:
            The queues among them in which jobs wait.
        """
        waiting = set()
        for row in rows:
            queue = self._queues.get(row.queue)
            if queue is None:
                queue = self._queues[row.queue] = QueueRows(row.queue)
            queue.take(row)
            self.measured_until_s = max(self.measured_until_s or 0.0, row.bucket_s + row.span_s)
            if row.waiting_jobs:
                waiting.add(row.queue)
        self.revision = max(self.revision, revision)
        return frozenset(waiting)

    def clear(self) -> None:
        """Forget everything."""
        self.revision = 0
        self.measured_until_s = None
        self._queues.clear()

    def forget(self, *, now_s: float) -> None:
        """Drop rows that no window reaches, but for a day the newest of each queue: its age must still be known.

        Queues come and go: whoever names one after a customer or a date brings new ones without end.
        """
        gone = [name for name, queue in self._queues.items() if queue.newest_s < now_s - CACHE_GONE_S]
        for name in gone:
            del self._queues[name]
        for queue in self._queues.values():
            queue.forget(now_s=now_s)

    def metrics(self, queue: str, *, now_s: float, objective: Objective) -> QueueMetrics:
        """What is known of ``queue``; everything is ``None`` where nothing was ever seen."""
        known = self._queues.get(queue)
        if known is None:
            return queue_metrics((), queue=queue, now_s=now_s, objective=objective)
        return known.metrics(now_s=now_s, objective=objective)

    def rows(self, queue: str) -> Collection[BucketRow]:
        """The buckets of ``queue`` in which something happened, in no order."""
        known = self._queues.get(queue)
        return () if known is None else known.eventful

    def lost_jobs(self, queue: str, *, now_s: float, message_ttl_s: float | None = None) -> int:
        """Jobs that waited and left ``queue`` in the last two minutes, without a start that was reported.

        None of those that the broker may have dropped because they had waited for ``message_ttl_s``.
        """
        known = self._queues.get(queue)
        return 0 if known is None else known.lost_jobs(now_s=now_s, message_ttl_s=message_ttl_s)

    def arrived_jobs(self, queue: str, *, from_s: float) -> int:
        """Arrivals but for retries in the buckets of ``queue`` that start at ``from_s`` or later."""
        known = self._queues.get(queue)
        return 0 if known is None else known.arrived_jobs(from_s=from_s)
