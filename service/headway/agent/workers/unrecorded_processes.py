"""Capacity of which nobody knows whether it is a worker: counted, shown, and left alone until it ends by itself."""

import logging

from headway.agent.workers.worker_record import Unrecorded
from headway.local import procfs
from headway.scaling.fields import taken_from
from headway.scaling.model import Worker, WorkerState

log = logging.getLogger(__name__)


class UnrecordedWorkers:
    """The processes that bear a worker's marks and have no record, until they have ended."""

    def __init__(self) -> None:
        self.found: list[Unrecorded] = []
        """What is known of, for the next agent to go on with."""

    def workers(self) -> tuple[Worker, ...]:
        """Each as a worker in a state that is not known."""
        return tuple(
            taken_from(Worker, each, state=WorkerState.UNKNOWN, started_at_s=each.started_ticks / procfs.TICKS_PER_S)
            for each in self.found
        )

    def scan(self) -> None:
        """Forget those that have ended."""
        ended = [each for each in self.found if not procfs.is_there(each.pid, each.started_ticks)]
        for each in ended:
            log.info("ended pid=%d pool=%s, of which there was no record", each.pid, each.pool or "unknown")
            self.found.remove(each)
