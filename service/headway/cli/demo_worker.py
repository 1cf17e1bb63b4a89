"""The demo's worker: RQ's, which runs jobs in its own process, made safe to stop at any moment.

RQ's own worker leaves by an exception out of its signal handler unless it is marked busy. A signal that comes after it
has taken a job and before it is marked busy loses that job: it stays in RQ's intermediate queue. This one notes the
signal, finishes what it has taken, and looks for the note between two jobs and once a second while it waits.
"""

from types import FrameType

from rq import Queue, SimpleWorker
from rq.job import Job
from rq.utils import now

IDLE_LOOK_S = 1


class DrainingWorker(SimpleWorker):
    """A worker that loses no job when it is asked to stop. Asked again, it goes on finishing its job."""

    def request_stop(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - RQ's signature
        """Note that this worker shall end."""
        self._shutdown_requested_date = now()
        self._stop_requested = True

    def dequeue_job_and_maintain_ttl(
        self,
        timeout: int | None,  # noqa: ARG002 - RQ's signature
        max_idle_time: int | None = None,  # noqa: ARG002 - RQ's signature
    ) -> tuple[Job, Queue] | None:
        """The next job, or None once this worker shall end."""
        while not self._stop_requested:
            taken: tuple[Job, Queue] | None = super().dequeue_job_and_maintain_ttl(IDLE_LOOK_S, IDLE_LOOK_S)
            if taken is not None:
                return taken
        return None
