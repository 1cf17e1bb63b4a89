"""The rows of one queue that a window of deciding still reaches, live and in simulation, and what they say."""

import math
from collections.abc import Collection

from headway.scaling.measure import (
    BUCKET_S,
    SERVICE_WINDOW_S,
    BucketRow,
    Moving,
    is_uneventful,
    longest_window_s,
    queue_metrics,
    read_again,
)
from headway.scaling.metrics.flush_detection import BacklogDrop, fall_of
from headway.scaling.model import Objective, QueueMetrics


class QueueRows:
    """The rows of one queue in which something happened, its newest sample, and the metrics last computed of them."""

    __slots__ = (
        "_empty_at_s",
        "_eventful",
        "_fall",
        "_kept_s",
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
        self._kept_s = SERVICE_WINDOW_S
        """The longest window that was asked for."""
        self._last: tuple[float, Objective, QueueMetrics] | None = None
        """What was made of the rows, for which objective, and the time from which on it holds; none of newer rows."""

    def take(self, row: BucketRow) -> None:
        """Put ``row`` in the place of an older version of itself."""
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

    def forget(self, *, now_s: float) -> None:
        """Drop the rows that no window reaches at ``now_s`` or later."""
        gone = [bucket_s for bucket_s in self._eventful if bucket_s <= now_s - self._kept_s - BUCKET_S]
        for bucket_s in gone:
            del self._eventful[bucket_s]

    def lost_jobs(self, *, now_s: float, message_ttl_s: float | None) -> int:
        """Jobs that waited and left the queue in the last two minutes, without a start that was reported."""
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
        """Arrivals but for retries in the buckets that start at ``from_s`` or later."""
        return sum(row.fresh_jobs for bucket_s, row in self._eventful.items() if bucket_s >= from_s)

    def metrics(self, *, now_s: float, objective: Objective, tick_s: float = BUCKET_S) -> QueueMetrics:
        """``queue_metrics`` of all rows so far, at no cost while nothing happens; ``tick_s`` is the same each time."""
        if self._last is not None:
            settled_s, promised, metrics = self._last
            if now_s >= settled_s and objective == promised:
                return metrics
        metrics = queue_metrics(
            self._rows(), queue=self._name, now_s=now_s, objective=objective, tick_s=tick_s, moving=self._moving
        )
        self._kept_s = longest_window_s(objective=objective, tick_s=tick_s)
        settled_s = max(self._eventful, default=-math.inf) + BUCKET_S + self._kept_s
        self._last = (settled_s, objective, metrics) if now_s >= settled_s else None
        return metrics

    def _rows(self) -> list[BucketRow]:
        rows = dict(self._eventful)
        for row in (self._newest, self._sampled):
            if row is not None:
                rows.setdefault(row.bucket_s, row)
        return [rows[bucket_s] for bucket_s in sorted(rows)]
