"""What workers have left, watched: its reports are read until it has ended, and jobs that its kill cuts are noted."""

from headway.agent.model import Activity
from headway.agent.reporting.reporters import Reporters
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.ends.orphans import OrphanProcesses
from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.worker_record import OrphanRecord
from headway.scaling.model import CutCause, Worker


class OrphanWatch:
    """The processes that workers have left, with what they report and what their ends cut."""

    def __init__(self, remains: OrphanProcesses, reporters: Reporters, cuts: CutWatch) -> None:
        self._remains = remains
        self._reporters = reporters
        self._cuts = cuts
        self._reporting: set[str] = set()
        """The ids of workers of which something was left at the last scan."""

    def workers(self) -> tuple[Worker, ...]:
        """What workers have left, with what those report that take jobs on."""
        return self._remains.workers(self._activity)

    def _activity(self, worker_id: str) -> Activity:
        said = self._reporters.activity(worker_id)
        return self._cuts.left_activity(worker_id) if said.source is None else said

    def last_report(self, worker: ManagedWorker) -> Activity:
        """What a worker that has ended reported last. A main process that it leaves reports on, through its pipe."""
        worker_id = worker.record.worker_id
        if not worker.record.has_other_main():
            return self._reporters.end(worker_id)
        self._reporting.add(worker_id)
        return self._reporters.activity(worker_id)

    def scan(self, *, now_s: float) -> list[OrphanRecord]:
        """Find what was left since the last scan, and end what has had its time.

        Returns those that are to be asked to stop, noted as asked.
        """
        self._note_kills(self._remains.overdue(now_s=now_s), cause=CutCause.DRAIN_DEADLINE)
        return self._remains.note_asked() if self._remains.scan(now_s=now_s) else []

    def end_reports(self) -> None:
        """Remove the pipes of workers of which nothing is left any more."""
        left = {each.worker_id for each in self._remains.left}
        for worker_id in self._reporting - left:
            self._reporters.end(worker_id)
        self._reporting = left

    def kill(self, worker_id: str | None = None) -> bool:
        """Kill what one worker has left, or all workers. Returns whether there was anything."""
        left = self._remains.named(worker_id)
        self._note_kills(left, cause=CutCause.KILLED)
        self._remains.kill(left)
        return bool(left)

    def _note_kills(self, left: list[OrphanRecord], *, cause: CutCause) -> None:
        for each in left:
            self._cuts.note_kill(each, cause=cause, said=self._reporters.activity(each.worker_id))
