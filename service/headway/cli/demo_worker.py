"""The demo's worker: RQ's, which loses no job when it is told to stop, and runs jobs in its own process."""

from rq import SimpleWorker

from headway.workers import rq


class DrainingWorker(SimpleWorker, rq.DrainingWorker):
    """A worker without a process for each job: docs/decisions/0007-demo-worker.md."""
