"""RQ's worker, made safe to stop at any moment: ``rq worker --worker-class headway.workers.rq.DrainingWorker mail``.

RQ's own worker leaves by an exception out of its signal handler unless it is marked busy. A signal that comes after it
has taken a job and before it is marked busy leaves that job in RQ's intermediate queue, where RQ's clean-up calls it
failed a minute later. This one notes the signal, finishes what it has taken, and looks for the note between two jobs,
once a second while it waits, and between two tries to reach a Redis that is away.
"""

import time
from types import FrameType
from typing import Any

import redis
from rq import Queue, Worker
from rq.job import Job
from rq.utils import now

IDLE_LOOK_S = 1
RECONNECT_S_MAX = 5.0  # RQ's own is a minute: longer than many a worker has to leave


class _RedisAway(Exception):
    """There is no Redis to tell, or to ask for a job."""


class DrainingWorker(Worker):
    """A worker that loses no job when it is told to stop. Told again, it goes on finishing its job."""

    max_connection_wait_time = RECONNECT_S_MAX
    _is_looking = False
    """Whether it looks for a job: RQ would try to reach Redis until it is back."""

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
            look_s = None if is_burst else IDLE_LOOK_S
            taken = self._looked(look_s)
            if taken is not None or is_burst:
                return taken
            if max_idle_time is not None and time.monotonic() - idle_since_s >= max_idle_time:
                return None
        return None

    def heartbeat(self, *args: Any, **kwargs: Any) -> None:
        """Say that it lives, which it does before each look for a job."""
        try:
            super().heartbeat(*args, **kwargs)
        except redis.ConnectionError as error:
            if self._is_looking and self._stop_requested:
                raise _RedisAway from error
            raise

    def _looked(self, look_s: int | None) -> tuple[Job, Queue] | None:
        self._is_looking = True
        try:
            taken: tuple[Job, Queue] | None = super().dequeue_job_and_maintain_ttl(look_s, look_s)
            return taken
        except _RedisAway:
            return None
        finally:
            self._is_looking = False
