"""The end of all workers of a host: asked for, waited for, and forced if a person asks a second time.

A worker without a drain deadline may take hours to finish its job. So a person who waits reads every few seconds for
which workers and jobs, here in the log, and from the state folder where another process shows it.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.state.state_dir import AWAITED, StateFolder
from headway.agent.workers.manager import WorkerManager
from headway.agent.workers.worker_record import Record
from headway.errors import printable
from headway.local.throttle import Throttle
from headway.scaling.model import Worker

END_MARGIN_S = 10.0  # from the force signal to the end of the last process
AWAITED_EVERY_S = 5.0
AWAITED_NAMED_MAX = 5

log = logging.getLogger(__name__)


class FleetEnd:
    """The end of every worker of ``fleet``, each of which is asked to stop."""

    def __init__(
        self,
        fleet: WorkerManager,
        folder: StateFolder,
        *,
        clock: Callable[[], float],
        activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN,
    ) -> None:
        self._fleet = fleet
        self._folder = folder
        self._clock = clock
        self._activity = activity
        fleet.is_ending = True
        fleet.drain_all()
        self._ends_by_s = clock() + fleet.drain_bound_s() + END_MARGIN_S
        self._awaited = Throttle(AWAITED_EVERY_S, clock=clock)
        self._awaited.restart()
        self._is_forced = False

    @property
    def left(self) -> int:
        """Workers that have not ended, and processes that workers have left."""
        return len(self._fleet.running()) + len(self._fleet.remains.left)

    def is_over(self) -> bool:
        """Whether nobody waits any longer: everything has ended, or was killed and does not end."""
        if not self.left or self._clock() > self._ends_by_s:
            self._write("")
            return True
        if not self._is_forced and self._awaited.due() is not None:
            line = awaited_line((*self._fleet.workers(self._activity), *self._fleet.remains.workers()))
            log.info("%s", line)
            self._write(line)
        return False

    def force(self) -> None:
        """Kill everything that is left: a person has asked a second time."""
        if self._is_forced:
            return
        self._is_forced = True
        self._ends_by_s = self._clock() + END_MARGIN_S
        log.warning("killing workers=%d: asked a second time to stop", self.left)
        self._fleet.kill_all(why="this agent was asked a second time to stop")

    def _write(self, line: str) -> None:
        with suppress(OSError):  # shown elsewhere only
            self._folder.replace(AWAITED, line, is_durable=False)


def awaited_line(workers: Iterable[Worker]) -> str:
    """For which workers somebody waits, and what is known of their jobs: one line of bounded length."""
    workers = tuple(workers)
    named = ", ".join(_named(worker) for worker in workers[:AWAITED_NAMED_MAX])
    more = f" and {len(workers) - AWAITED_NAMED_MAX} more" if len(workers) > AWAITED_NAMED_MAX else ""
    noun = "1 worker that finishes its job" if len(workers) == 1 else f"{len(workers)} workers that finish their jobs"
    return f"waiting for {noun}: {named}{more}"


def _named(worker: Worker) -> str:
    job = ""
    if worker.running:
        first = worker.running[0]
        kind = f" of {printable(first.job_class)}" if first.job_class else ""
        others = f" and {len(worker.running) - 1} more" if len(worker.running) > 1 else ""
        job = f", job {printable(first.job_id)}{kind}{others}"
    return f"{worker.pool or 'unknown pool'} (process {worker.pid}{job})"
