"""The newest buckets of every queue, kept in memory so that a tick reads only what Spark has written since."""

import math
from collections.abc import Collection, Iterable

from headway.scaling.measure import (
    BUCKET_S,
    RATE_WINDOW_S,
    BucketRow,
    Moving,
    is_uneventful,
    queue_metrics,
    read_again,
    settles_at_s,
)
from headway.scaling.metrics.flush_detection import BacklogDrop, fall_of
from headway.scaling.model import Objective, QueueMetrics

CACHED_S = 300.0  # the longest window that deciding reads
CACHE_GONE_S = 86_400.0  # a queue without a row for longer is as one that was never seen


class BucketCache:
    """Rows of the last ``CACHED_S`` by queue. Postgres is the truth; this forgets and is filled again at will."""

    def __init__(self) -> None:
        self.revision = 0
        """The newest revision taken in; reading goes on after it."""
        self.measured_until_s: float | None = None
        """How far the pipeline has come, whatever queue it was for; ``None`` before its first row."""
        self._queues: dict[str, _CachedQueue] = {}

    def take(self, rows: Iterable[BucketRow], *, revision: int) -> frozenset[str]:
        """Put ``rows`` in the place of older versions of themselves.

        Returns:
            The queues among them in which jobs wait.
        """
        waiting = set()
        for row in rows:
            queue = self._queues.get(row.queue)
            if queue is None:
                queue = self._queues[row.queue] = _CachedQueue(row.queue)
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
            queue.forget(before_s=now_s - CACHED_S - BUCKET_S)

    def metrics(self, queue: str, *, now_s: float, objective: Objective) -> QueueMetrics:
        """What is known of ``queue``; everything is ``None`` where nothing was ever seen."""
        known = self._queues.get(queue)
        if known is None:
            return queue_metrics((), queue=queue, now_s=now_s, window_s=RATE_WINDOW_S, objective=objective)
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


class _CachedQueue:
    """The rows of one queue in which something happened, the newest sample, and what was last made of them."""

    __slots__ = (
        "_empty_at_s",
        "_eventful",
        "_fall",
        "_last",
        "_moving",
        "_name",
        "_newest",
        "_sampled",
        "_sampled_before",
    )

    def __init__(self, name: str) -> None:
        self._name = name
        self._eventful: dict[float, BucketRow] = {}
        self._moving = Moving()
        self._newest: BucketRow | None = None
        self._sampled: BucketRow | None = None
        self._sampled_before: BucketRow | None = None
        """The last with a sample in a bucket before that of ``_sampled``."""
        self._empty_at_s: float | None = None
        """When the queue was last seen empty in a bucket before that of ``_sampled``."""
        self._fall: BacklogDrop | None = None
        self._last: tuple[float, Objective, QueueMetrics] | None = None
        """What was made of the rows, for which objective, and the time from which on it holds; none of newer rows."""

    def take(self, row: BucketRow) -> None:
        is_quiet = is_uneventful(row) and row.bucket_s not in self._eventful
        # A row in which nothing happened holds a sample only, and of these the newest counts.
        if not is_quiet and is_uneventful(row):
            del self._eventful[row.bucket_s]
        elif not is_quiet:
            self._eventful[row.bucket_s] = row
        if self._newest is None or row.bucket_s >= self._newest.bucket_s:
            self._newest = row
        is_read = row.sampled_at_s is not None and (self._sampled is None or row.bucket_s >= self._sampled.bucket_s)
        if is_read:
            if self._sampled is not None and row.bucket_s > self._sampled.bucket_s:
                self._sampled_before = self._sampled
                if self._sampled.waiting_jobs == 0:
                    self._empty_at_s = self._sampled.sampled_at_s
            self._sampled = row
            self._fall = fall_of(self._sampled_before, row, empty_at_s=self._empty_at_s) or self._fall
        if not is_quiet:
            self._last = None
        elif self._last is not None and is_read:
            settled_s, objective, metrics = self._last
            self._last = settled_s, objective, read_again(metrics, row)

    @property
    def eventful(self) -> Collection[BucketRow]:
        """The rows in which something happened."""
        return self._eventful.values()

    @property
    def newest_s(self) -> float:
        """When the newest bucket began."""
        return -math.inf if self._newest is None else self._newest.bucket_s

    def forget(self, *, before_s: float) -> None:
        gone = [bucket_s for bucket_s in self._eventful if bucket_s < before_s]
        for bucket_s in gone:
            del self._eventful[bucket_s]

    def lost_jobs(self, *, now_s: float, message_ttl_s: float | None) -> int:
        fall = self._fall
        if fall is None or not fall.is_shown(now_s) or fall.may_have_expired(message_ttl_s):
            return 0
        accounted_jobs = sum(
            row.started_jobs + row.revoked_jobs
            for bucket_s, row in self._eventful.items()
            if fall.before.bucket_s <= bucket_s <= fall.after.bucket_s
        )
        return fall.lost_jobs(accounted_jobs)

    def arrived_jobs(self, *, from_s: float) -> int:
        return sum(row.fresh_jobs for bucket_s, row in self._eventful.items() if bucket_s >= from_s)

    def metrics(self, *, now_s: float, objective: Objective) -> QueueMetrics:
        if self._last is not None:
            settled_s, promised, metrics = self._last
            if now_s >= settled_s and objective == promised:
                return metrics
        rows = self._rows()
        metrics = queue_metrics(
            rows, queue=self._name, now_s=now_s, window_s=RATE_WINDOW_S, objective=objective, moving=self._moving
        )
        latest = [self._eventful[max(self._eventful)]] if self._eventful else []
        settled_s = settles_at_s(latest, window_s=RATE_WINDOW_S, objective=objective)
        self._last = (settled_s, objective, metrics) if now_s >= settled_s else None
        return metrics

    def _rows(self) -> list[BucketRow]:
        rows = dict(self._eventful)
        for row in (self._newest, self._sampled):
            if row is not None:
                rows.setdefault(row.bucket_s, row)
        return [rows[bucket_s] for bucket_s in sorted(rows)]
