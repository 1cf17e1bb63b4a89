"""The totals of every queue, kept in memory so that a scrape reads only what was written since the last."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.metrics.attainment import BUDGET_WINDOW_S, Attained
from headway.scaling.metrics.job_totals import JobTotals, together
from headway.store.engine import Engine, snapshot, transaction
from headway.store.metrics.queue_totals import LiveRow, read_live, read_totals, read_totals_until_s
from headway.store.pools.attainment import read_attained

ATTAINED_WINDOWS = (("1h", HOUR_S), ("1d", DAY_S), ("30d", BUDGET_WINDOW_S))
ATTAINED_READ_S = 60.0  # a thousand busy pools have nine million rows in thirty days

NO_JOBS = JobTotals()


class TotalsCache:
    """What each queue did since it was first counted. Postgres is the truth; this is filled again at will."""

    def __init__(self, engine: Engine, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._clock = clock
        self._turn = asyncio.Lock()
        self._until_s = 0.0
        self._revision = 0
        self._base: Mapping[str, JobTotals] = {}
        self._live: dict[str, _Live] = {}
        self._failed: dict[str, int] = {}
        """The most failed jobs that each queue has shown."""
        self._attained: Mapping[str, tuple[Attained, ...]] = {}
        self._attained_at_s = float("-inf")

    async def totals(self) -> Mapping[str, JobTotals]:
        """Each queue's total; empty while none are counted."""
        async with self._turn:
            async with snapshot(self._engine) as conn:
                until_s = await read_totals_until_s(conn)
                if until_s is None:
                    return {}
                is_moved = until_s != self._until_s
                base = await read_totals(conn) if is_moved else self._base
                rows, revision = await read_live(conn, from_s=until_s, after_revision=self._revision)
                if revision < self._revision:  # of a restored database, which counts from an earlier one on
                    self._live.clear()
                    self._failed.clear()
                    base = await read_totals(conn)
                    rows, revision = await read_live(conn, from_s=until_s, after_revision=0)
            self._revision, self._until_s, self._base = revision, until_s, base

            def take() -> Mapping[str, JobTotals]:
                self._take(rows)
                return self._sums()

            return await asyncio.to_thread(take)

    async def attained(self) -> Mapping[str, tuple[Attained, ...]]:
        """Pool -> what started in each of ``ATTAINED_WINDOWS``, as of the last minute."""
        now_s = self._clock()
        if abs(now_s - self._attained_at_s) >= ATTAINED_READ_S:
            async with transaction(self._engine) as conn:
                self._attained = await read_attained(conn, since_s=[now_s - span_s for _, span_s in ATTAINED_WINDOWS])
            self._attained_at_s = now_s
        return self._attained

    def _take(self, rows: Iterable[LiveRow]) -> None:
        for row in rows:
            queue = self._live.get(row.queue)
            if queue is None:
                queue = self._live[row.queue] = _Live()
            queue.take(row)
        for queue in self._live.values():
            queue.forget(before_s=self._until_s)

    def _sums(self) -> Mapping[str, JobTotals]:
        names = {*self._base, *self._live}
        sums = {
            name: together((self._base.get(name, NO_JOBS), self._live[name].jobs if name in self._live else NO_JOBS))
            for name in names
        }
        # The retry of a failed attempt may be reported a moment later than the failure. Prometheus would take a counter
        # that falls by one for one that begins again, and count all of it.
        self._failed = {name: max(jobs.failed, self._failed.get(name, 0)) for name, jobs in sums.items()}
        return {name: replace(jobs, failed=self._failed[name]) for name, jobs in sums.items()}


class _Live:
    """The buckets of one queue that are in no total yet, and their sum."""

    def __init__(self) -> None:
        self._rows: dict[float, JobTotals] = {}
        self.jobs = NO_JOBS

    def take(self, row: LiveRow) -> None:
        """Put ``row`` in the place of an older version of itself."""
        before = self._rows.get(row.bucket_s)
        self._rows[row.bucket_s] = row.jobs
        self.jobs = together((self.jobs, row.jobs) if before is None else (self.jobs, row.jobs, before.negative()))

    def forget(self, *, before_s: float) -> None:
        """Drop what is in the total by now."""
        gone = [bucket_s for bucket_s in self._rows if bucket_s < before_s]
        if gone:
            parts = [self._rows.pop(bucket_s).negative() for bucket_s in gone]
            self.jobs = together((self.jobs, *parts)) if self._rows else NO_JOBS
