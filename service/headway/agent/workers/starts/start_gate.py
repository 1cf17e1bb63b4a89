"""Which kinds of workers may be started now. A kind is a pool and a template.

crash loop     its pause holds the kind back; meanwhile one worker is let through now and then, as a trial
known cause    while a worker is on trial, no other is started: it would fail by the same cause
background     a worker of the template has gone to the background: each further one would
"""

import logging

from headway.agent.workers import lifecycle
from headway.agent.workers.crash_backoff import Backoff
from headway.agent.workers.ends.done_jobs import DoneJobs, Kind
from headway.agent.workers.ends.orphans import OrphanProcesses
from headway.agent.workers.managed_worker import LATER_S, ManagedWorker
from headway.agent.workers.starts.start_failures import OUTPUT_READ_EVERY_S, StartFailures
from headway.agent.workers.worker_record import Record
from headway.agent.workers.worker_table import WorkerTable

log = logging.getLogger(__name__)


class StartGate:
    """Holds kinds of workers back, by how their last starts ended."""

    def __init__(self, table: WorkerTable, remains: OrphanProcesses, done_jobs: DoneJobs) -> None:
        self._table = table
        self._remains = remains
        self._done_jobs = done_jobs
        self.backoff = Backoff({})
        self.failures = StartFailures()
        self._let_through: set[Kind] = set()
        """Kinds that back off of which one worker is to be tried all the same."""

    def check(self, worker: ManagedWorker, *, now_s: float) -> None:
        """Free the place of a worker that backs off once another may be started in it."""
        kind = worker.record.kind
        if self._is_open(kind, now_s) or self._begin_trial(kind, now_s):
            worker.become(lifecycle.over(worker.record.life, now_s=now_s))
            self._table.remove_if_gone(worker)

    def admit(self, kind: Kind, *, now_s: float) -> bool:
        """Whether a worker that is wanted now is started now. A trial that has begun admits one."""
        is_paused = self.backoff.holds(kind, now_s=now_s) and kind not in self._let_through
        self._let_through.discard(kind)
        return not is_paused and not self._is_barred(kind, now_s)

    def opens_at_s(self, kind: Kind, *, now_s: float) -> float:
        """When to ask again for a worker of the kind that backs off, at the latest."""
        if self._remains.in_background(kind[1]) is not None:
            return now_s + LATER_S
        if self.failures.holds(kind, self._table.records(), now_s=now_s):
            return now_s + OUTPUT_READ_EVERY_S
        tries_at_s = self._tries_at_s(kind, now_s)
        return now_s if tries_at_s is None else tries_at_s

    def note_failure(self, kind: Kind, why: str, *, started_at_s: float, now_s: float) -> None:
        """Pause the kind: a worker that was started then has failed, or cannot be started."""
        self._let_through.discard(kind)
        pause = self.backoff.pauses.get(kind)
        # What older workers do shows nothing of those that are started now.
        done_at_s = None if pause is None else self._done_jobs.last_s(kind, started_after_s=pause.failed_at_s)
        self.backoff = self.backoff.failed(kind, started_at_s=started_at_s, now_s=now_s, done_at_s=done_at_s)
        # A worker that was on trial through the whole pause leaves it past: the next start is due now.
        pause_s = max(0.0, (self._tries_at_s(kind, now_s) or now_s) - now_s)
        log.warning("failed pool=%s template=%s again_in_s=%.0f: %s", *kind, pause_s, why)

    def note_survivors(self, *, now_s: float) -> None:
        """End the pauses of kinds that are well again: a worker that was started after the last failure has stayed."""
        for record in self._table.records():
            if record.life.has_stayed(now_s=now_s):
                self.backoff = self.backoff.survived(record.kind, started_at_s=record.life.started_at_s, now_s=now_s)

    def note_due_end(self, record: Record, *, now_s: float) -> None:
        """Open for the kind of a worker that has ended when its end was due: the kind is well."""
        self.failures.forget(record.kind)
        self.backoff = self.backoff.survived(record.kind, started_at_s=record.life.started_at_s, now_s=now_s)

    def forget_failures(self, kind: Kind) -> None:
        """Open for a kind whose workers are started otherwise now."""
        self.backoff = self.backoff.without(kind)
        self.failures.forget(kind)

    def _is_open(self, kind: Kind, now_s: float) -> bool:
        """Whether a worker of the kind may be started now, without a trial."""
        return not self.backoff.holds(kind, now_s=now_s) and not self._is_barred(kind, now_s)

    def _begin_trial(self, kind: Kind, now_s: float) -> bool:
        """Whether one worker of the kind is to be tried now in spite of its pause. That is noted: no other is."""
        tries_at_s = self._tries_at_s(kind, now_s)
        is_due = tries_at_s is not None and now_s >= tries_at_s
        if not is_due or self._is_barred(kind, now_s):
            return False
        self.backoff = self.backoff.tried(kind, now_s=now_s)
        self._let_through.add(kind)
        return True

    def _is_barred(self, kind: Kind, now_s: float) -> bool:
        """Whether nothing of the kind may be started now, not even as a trial."""
        is_in_background = self._remains.in_background(kind[1]) is not None
        return is_in_background or self.failures.holds(kind, self._table.records(), now_s=now_s)

    def _tries_at_s(self, kind: Kind, now_s: float) -> float | None:
        """When the next worker of the kind may be started; while one is on trial, the end of its pause."""
        pause = self.backoff.pauses.get(kind)
        if pause is None or self._table.has_trial(kind, now_s=now_s):
            return self.backoff.until_s(kind)
        return min(pause.until_s, pause.tries_at_s)
