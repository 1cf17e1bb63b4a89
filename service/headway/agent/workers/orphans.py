"""What a worker leaves that ends otherwise than well: children that outlive it, perhaps with a job in their hands.

They are given the time that a drain is given: without a deadline for ever, else until then. Meanwhile they count as one
worker that drains: of a pool of which no two may run, no other is started. They are known by the marks that they have
inherited, or by where they print to; the kernel shows no parent any more.
"""

import logging
import math
import signal

from headway.agent.workers import lifecycle, worker_marks, worker_process, worker_record
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import OrphanRecord, Record
from headway.local import procfs
from headway.scaling.fields import taken_from
from headway.scaling.model import Worker, WorkerState

log = logging.getLogger(__name__)


class OrphanProcesses:
    """The processes that workers have left, until they have ended."""

    def __init__(self, agent_id: str, output: WorkerLogs) -> None:
        self._agent_id = agent_id
        self._output = output
        self._ended: dict[str, Record] = {}
        self.left: list[OrphanRecord] = []
        """What is known of, for the next agent to go on with."""

    def note(self, record: Record) -> None:
        """Search, in the next scan, for processes that this worker has left."""
        self._ended[record.worker_id] = record

    def workers(self) -> tuple[Worker, ...]:
        """What is left of each worker, as one that drains, under its own id: the worker's is reported as ended."""
        first = {each.worker_id: each for each in reversed(self.left)}
        return tuple(
            taken_from(
                Worker,
                left,
                worker_id=f"{left.worker_id}-left",
                state=WorkerState.DRAINING,
                started_at_s=left.started_ticks / procfs.TICKS_PER_S,
            )
            for left in first.values()
        )

    def scan(self, *, now_s: float) -> None:
        """Find what was left since the last scan, and end what has had its time."""
        if self._ended:
            self.left = [*self.left, *self._found(now_s=now_s)]
            self._ended = {}
        self.left = [each for each in self.left if procfs.is_there(each.pid, each.started_ticks)]
        for each in self.left:
            if each.ends_by_s is not None and now_s >= each.ends_by_s:
                self._kill(each)

    def kill(self) -> None:
        """End all that was left, whatever it does."""
        for each in self.left:
            self._kill(each)

    @staticmethod
    def _kill(left: OrphanRecord) -> None:
        process = worker_process.adopt(left.pid, left.started_ticks)
        if process is not None:
            process.send(signal.SIGKILL)
            process.close()

    def _found(self, *, now_s: float) -> list[OrphanRecord]:
        found = []
        for process, record in self._marked():
            # For one that was asked to stop, the time began then: the control plane may rely on its end.
            ends_by_s = _deadline_s(record, now_s=now_s)
            end = "runs until it ends by itself"
            if ends_by_s is not None:
                end = f"ended in {max(0.0, ends_by_s - now_s):.0f} s unless it ends by itself"
            log.warning("left behind pool=%s pid=%d by pid=%d: %s", record.pool, process.pid, record.pid, end)
            found.append(taken_from(OrphanRecord, process, record, ends_by_s=ends_by_s))
        return found

    def _marked(self) -> list[tuple[procfs.Stat, Record]]:
        """The processes that the ended ones have left: one walk through all for however many workers."""
        found = []
        for pid in procfs.pids():
            worker_id, _ = worker_marks.marked(pid, self._agent_id, self._output)
            record = self._ended.get(worker_id)
            process = procfs.stat(pid) if record is not None else None
            if record is None or process is None or process.is_over:
                continue
            is_younger = process.started_ticks >= record.started_ticks - procfs.TICKS_APART_MAX
            if is_younger and worker_record.may_run_as(record.uid, procfs.uid(pid)):
                found.append((process, record))
        return found


def _deadline_s(record: Record, *, now_s: float) -> float | None:
    """When what the worker has left is killed; ``None`` where nobody has set a deadline."""
    ends_s = lifecycle.drain_ends_s(record.life, drain_timeout_s=record.stop.drain_timeout_s, now_s=now_s)
    return ends_s if math.isfinite(ends_s) else None
