"""The workers of the live runs: RQ's, which lose no job when they are asked to stop."""

from rq import SimpleWorker

from headway.simulate import replay
from headway.workers import rq

PRELOADED = (replay,)
"""Imported before a process is made for a job, as RQ advises: else each of these processes imports the module anew,
which takes 0.18 s of a core, more than a short job itself. So does the first job of a worker that makes none.
"""


class DrainingSimpleWorker(SimpleWorker, rq.DrainingWorker):
    """A worker without a process for each job."""


class DrainingForkingWorker(rq.DrainingWorker):
    """A worker that makes a process for each job."""
