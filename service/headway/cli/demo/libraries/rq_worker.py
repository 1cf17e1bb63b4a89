"""The demo's worker: RQ's, which loses no job when it is asked to stop, and runs jobs in its own process."""

from contextlib import suppress

import redis
from rq import Queue, SimpleWorker
from rq.job import Job

from headway.cli.demo.demo_jobs import STARTS
from headway.workers import rq


class DrainingWorker(SimpleWorker, rq.DrainingWorker):
    """A worker without a process for each job: docs/decisions/0007-demo-worker.md."""

    def perform_job(self, job: Job, queue: Queue) -> bool:
        """Count that the job begins here, then do it."""
        with suppress(redis.RedisError):  # a count that cannot be kept is no reason not to work
            self.connection.hincrby(STARTS, job.id, 1)
        done: bool = super().perform_job(job, queue)
        return done
