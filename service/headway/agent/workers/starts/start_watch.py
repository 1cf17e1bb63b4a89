"""Starts of workers, watched until each is ready, is late, or shows why it takes so long."""

from collections.abc import Iterable

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
        self._by_age: set[str] = set()
        """The ids of workers that were taken for ready by their age alone, and may still load what they need."""

    def check(self, worker: ManagedWorker, *, now_s: float) -> bool:
        """Take note of how far the worker's start is. Returns whether it is late: the worker is to be asked to stop."""
        record = worker.record
        # None beats before it is ready.
        if self._has_reported(record.worker_id) or worker.is_ready(now_s=now_s):
            self._note_ready(worker, now_s=now_s)
        elif worker.is_late(now_s=now_s):
            worker.give_up(now_s=now_s)
            return True
        elif self._failures.is_output_due(record, now_s=now_s):
            printed = self._output.end(record.worker_id, OUTPUT_END_BYTES)
            self._failures.note(record, printed, now_s=now_s, has_ended=False)
        return False

    def scan(self, workers: Iterable[ManagedWorker], *, now_s: float) -> None:
        """Take note of workers that are ready beyond doubt: they report, or have stayed."""
        doubtful = [worker.record for worker in workers if worker.record.worker_id in self._by_age]
        ready = [each for each in doubtful if self._has_reported(each.worker_id) or each.life.has_stayed(now_s=now_s)]
        for record in ready:
            self._reporters.note_ready(record.worker_id, record.template)
        self._by_age = {each.worker_id for each in doubtful} - {each.worker_id for each in ready}

    def take_start_ups(self) -> list[StartUp]:
        """The starts of workers that became ready since the last call."""
        start_ups, self._start_ups = self._start_ups, []
        return start_ups

    def _note_ready(self, worker: ManagedWorker, *, now_s: float) -> None:
        worker.tail = None
        worker.become(lifecycle.ready(worker.record.life, now_s=now_s))
        if worker.record.ready.pattern is None:
            self._by_age.add(worker.record.worker_id)
        else:
            self._reporters.note_ready(worker.record.worker_id, worker.record.template)
        self._failures.note_ready(worker.record)
        if worker.is_ours and worker.was_seen_ready:
            self._start_ups.append(worker.start_up(now_s=now_s))

    def _has_reported(self, worker_id: str) -> bool:
        return self._reporters.beat(worker_id) is not None
