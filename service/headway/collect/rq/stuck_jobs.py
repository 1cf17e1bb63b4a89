"""Jobs that a worker took from a queue of RQ and never began: they stay in RQ's intermediate queue.

A worker of one queue moves a job there and marks it as begun a moment later. Where it dies in between, RQ's clean-up
fails the job, ten minutes later, and needs a worker that runs.
"""

import logging
from collections.abc import Mapping, Sequence

STUCK_AFTER_S = 60.0  # as long as RQ itself waits before it gives such a job up

log = logging.getLogger(__name__)


class StuckJobs:
    """The job that was taken first in each queue, where it has not begun, and since when it was seen so."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, float]] = {}
        self._named: dict[str, str] = {}

    def see(self, taken: Mapping[str, Sequence[str]], *, at_s: float) -> None:
        """Take what one poll found: queue -> jobs that were taken and have not begun, the first of them first."""
        before = self._first
        self._first = {
            queue: before[queue] if queue in before and before[queue][0] == jobs[0] else (jobs[0], at_s)
            for queue, jobs in taken.items()
            if jobs
        }
        self._named = {queue: job for queue, job in self._named.items() if self._first.get(queue, ("",))[0] == job}
        for queue, (job, since_s) in self._first.items():
            if at_s - since_s > STUCK_AFTER_S and queue not in self._named:
                self._named[queue] = job
                log.warning(
                    "job stuck queue=%s job=%s jobs=%d: its worker died before the job began; RQ's clean-up fails it "
                    "while a worker runs",
                    queue,
                    job,
                    len(taken[queue]),
                )
