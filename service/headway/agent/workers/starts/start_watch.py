"""Starts of workers, watched until each is ready, is late, or shows why it takes so long."""

from headway.agent.reporting.reporters import Reporters
from headway.agent.workers import lifecycle
from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.starts.start_failures import OUTPUT_END_BYTES, StartFailures
from headway.agent.workers.worker_logs import WorkerLogs
from headway.scaling.model import StartUp


class StartWatch:
    """Takes note of workers that become ready, and measures how long their starts took."""

    def __init__(self, failures: StartFailures, reporters: Reporters, output: WorkerLogs) -> None:
        self._failures = failures
        self._reporters = reporters
        self._output = output
        self._start_ups: list[StartUp] = []

    def check(self, worker: ManagedWorker, *, now_s: float) -> bool:
        """Take note of how far the worker's start is. Returns whether it is late: the worker is to be asked to stop."""
        record = worker.record
        has_reported = self._reporters.beat(record.worker_id) is not None  # none beats before it is ready
        if has_reported or worker.is_ready(now_s=now_s):
            self._note_ready(worker, now_s=now_s)
        elif worker.is_late(now_s=now_s):
            worker.give_up(now_s=now_s)
            return True
        elif self._failures.is_output_due(record, now_s=now_s):
            printed = self._output.end(record.worker_id, OUTPUT_END_BYTES)
            self._failures.note(record, printed, now_s=now_s, has_ended=False)
        return False

    def take_start_ups(self) -> list[StartUp]:
        """The starts of workers that became ready since the last call."""
        start_ups, self._start_ups = self._start_ups, []
        return start_ups

    def _note_ready(self, worker: ManagedWorker, *, now_s: float) -> None:
        worker.tail = None
        worker.become(lifecycle.ready(worker.record.life, now_s=now_s))
        self._reporters.note_ready(worker.record.worker_id, worker.record.template)
        self._failures.note_ready(worker.record)
        if worker.is_ours and worker.was_seen_ready:
            self._start_ups.append(worker.start_up(now_s=now_s))
