"""What a worker leaves that ends otherwise than well: children that outlive it, perhaps with a job in their hands.

They are given the time that a drain is given, and then ended: nobody else would ever do it. They are known by the marks
that they have inherited; the kernel tells of no parent any more.
"""

import logging
import os
import signal
from collections.abc import Collection
from contextlib import suppress

from headway.agent import procfs
from headway.agent.records import Left, Record
from headway.agent.templates import AGENT_ID, WORKER_ID

log = logging.getLogger(__name__)


class Remains:
    """The processes that workers have left, until they have ended."""

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._ended: dict[str, Record] = {}
        self.left: list[Left] = []
        """What is known of, for the next agent to go on with."""

    def note(self, record: Record) -> None:
        """Look, at the next look, for what this worker has left."""
        self._ended[record.worker_id] = record

    def look(self, *, now_s: float) -> None:
        """Find what was left since the last look, and end what has had its time."""
        if self._ended:
            self.left += self._found(now_s=now_s)
            self._ended = {}
        self.left = [each for each in self.left if procfs.is_there(each.pid, each.started_ticks)]
        for each in self.left:
            if now_s >= each.ends_by_s:
                with suppress(OSError):
                    os.kill(each.pid, signal.SIGKILL)

    def _found(self, *, now_s: float) -> list[Left]:
        found = []
        for worker_id, process in _marked(self._agent_id, self._ended):
            record = self._ended[worker_id]
            log.warning(
                "left behind pool=%s pid=%d by pid=%d: ended in %g s unless it ends by itself",
                record.pool,
                process.pid,
                record.pid,
                record.stop.drain_timeout_s,
            )
            found.append(
                Left(
                    worker_id=worker_id,
                    pid=process.pid,
                    started_ticks=process.started_ticks,
                    ends_by_s=now_s + record.stop.drain_timeout_s,
                )
            )
        return found


def _marked(agent_id: str, worker_ids: Collection[str]) -> list[tuple[str, procfs.Stat]]:
    """The processes that bear the marks of these workers: one walk through all for however many workers."""
    found = []
    for pid in procfs.pids():
        marks = procfs.environment(pid)
        worker_id = marks.get(WORKER_ID, "")
        if marks.get(AGENT_ID) == agent_id and worker_id in worker_ids:
            process = procfs.stat(pid)
            if process is not None and not process.is_over:
                found.append((worker_id, process))
    return found
