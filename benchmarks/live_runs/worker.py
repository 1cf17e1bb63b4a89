"""The worker of jobs that take no processor: RQ's, which loses no job when it is asked to stop, in a single process."""

from rq import SimpleWorker

from headway.workers import rq


class DrainingSimpleWorker(SimpleWorker, rq.DrainingWorker):
    """A worker without a process for each job."""
