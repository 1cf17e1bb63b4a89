"""RQ's worker, made safe to stop at any moment: ``rq worker --worker-class headway.workers.rq.DrainingWorker mail``.

RQ's own worker leaves by an exception out of its signal handler unless it is marked busy. A signal that comes after it
has taken a job and before it is marked busy leaves that job in RQ's intermediate queue, where RQ's clean-up calls it
failed a minute later. This one notes the signal, finishes what it has taken, and checks for the note between two jobs,
once a second while it waits, and between two tries to reach a Redis that is away.
"""

import time
from types import FrameType
from typing import Any

import redis
from rq import Queue, Worker
from rq.job import Job
from rq.utils import now

from headway.emit.rq import Reporting

IDLE_POLL_S = 1
RQ_RECONNECT_S_MAX = 5.0  # RQ's own is a minute: longer than many a worker has to leave


class _RedisAway(Exception):
    """There is no Redis to report to, or to ask for a job."""


class DrainingWorker(Worker):
    """A worker that loses no job when it is asked to stop. Asked again, it goes on finishing its job."""

    max_connection_wait_time = RQ_RECONNECT_S_MAX
    _is_polling = False
    """Whether it polls for a job: RQ would try to reach Redis until it is back."""
    _has_taken = False
    """Whether its present poll took a job."""

    def request_stop(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - RQ's signature
        """Note that this worker shall end."""
        self._shutdown_requested_date = now()
        self._stop_requested = True

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """The next job; None once this worker shall end, and of a burst worker also where none waits."""
        is_burst = timeout is None
        idle_since_s = time.monotonic()
        while not self._stop_requested:
            poll_s = None if is_burst else IDLE_POLL_S
            taken = self._polled(poll_s)
            if taken is not None or is_burst:
                return taken
            if max_idle_time is not None and time.monotonic() - idle_since_s >= max_idle_time:
                return None
        return None

    def reorder_queues(self, reference_queue: Queue) -> None:
        """Order its queues for the next poll, which RQ does as soon as it has taken a job."""
        self._has_taken = True
        super().reorder_queues(reference_queue)

    def set_state(self, *args: Any, **kwargs: Any) -> None:
        """Report its state, which it does before each poll for a job: the poll itself finds a Redis that is away."""
        try:
            super().set_state(*args, **kwargs)
        except redis.ConnectionError:
            if not self._is_polling:
                raise

    def heartbeat(self, *args: Any, **kwargs: Any) -> None:
        """Report that it lives, which it does before and after each poll for a job: as ``set_state``."""
        try:
            super().heartbeat(*args, **kwargs)
        except redis.ConnectionError as error:
            if not self._is_polling:
                raise
            if self._stop_requested and not self._has_taken:
                raise _RedisAway from error

    def _polled(self, poll_s: int | None) -> tuple[Job, Queue] | None:
        self._is_polling, self._has_taken = True, False
        try:
            taken: tuple[Job, Queue] | None = super().dequeue_job_and_maintain_ttl(poll_s, poll_s)
            return taken
        except _RedisAway:
            return None
        finally:
            self._is_polling = False


class ReportingWorker(Reporting, DrainingWorker):
    """A worker that loses no job when it is asked to stop, and reports its jobs: docs/how-to/report-jobs.md."""
