"""Reports the jobs of RQ workers: one flag, and no line of the application changes.

    rq worker --worker-class headway.emit.rq.Worker mail

reports when jobs start and how they end, with the name of their function, which RQ's broker does not show. When they
entered their queue the collector of RQ knows, so it is not reported here.
"""

import os
import time
from datetime import UTC, datetime
from functools import cache
from typing import Any

import rq
from rq.job import Job

from headway.emit.emitter import Emitter
from headway.emit.frames import EventKind

CONNECTION = os.environ.get("HEADWAY_CONNECTION", "redis")
"""What Headway calls the broker: the first part of a queue's name."""


@cache
def emitter() -> Emitter:
    """The one of this process and of those that it forks, made where it is first asked for: in the worker."""
    return Emitter.from_environment()


class Reporting:
    """What a worker class inherits before RQ's own to report its jobs. Its work horses are forked, not spawned."""

    _stopped_job_id: str | None
    _is_end_reported = False
    """Of the job under way. A callback that fails makes RQ end a job a second time, which is none."""

    def execute_job(self, job: Job, queue: rq.Queue) -> None:
        """In the worker, before it forks a work horse."""
        emitter()
        self._is_end_reported = False
        super().execute_job(job, queue)  # type: ignore[misc]

    def prepare_job_execution(self, job: Job, *args: Any, **kwargs: Any) -> None:
        """In the work horse: RQ notes the start, as the collector reads it."""
        super().prepare_job_execution(job, *args, **kwargs)  # type: ignore[misc]
        emitter().report("started", at_s=_unix_s(job.started_at), enqueued_at_s=_unix_s(job.enqueued_at), **_about(job))

    def handle_job_success(self, job: Job, queue: rq.Queue, *args: Any, **kwargs: Any) -> None:
        """In the work horse."""
        super().handle_job_success(job, queue, *args, **kwargs)  # type: ignore[misc]
        self._ended("finished", job)

    def handle_job_retry(self, job: Job, queue: rq.Queue, retry: rq.Retry, *args: Any, **kwargs: Any) -> None:
        """In the work horse: the job has returned that it wants another attempt."""
        has_more = (job.number_of_retries or 0) < retry.max
        super().handle_job_retry(job, queue, retry, *args, **kwargs)  # type: ignore[misc]
        self._ended("failed", job, is_retried=has_more)

    def handle_job_failure(self, job: Job, queue: rq.Queue, *args: Any, **kwargs: Any) -> None:
        """In the work horse, and of one that was killed in the worker."""
        is_retried = (job.retries_left or 0) > 0 and self._stopped_job_id != job.id
        super().handle_job_failure(job, queue, *args, **kwargs)  # type: ignore[misc]
        self._ended("failed", job, is_retried=is_retried)

    def _ended(self, kind: EventKind, job: Job, *, is_retried: bool = False) -> None:
        if self._is_end_reported:
            return
        self._is_end_reported = True
        about, ended_at_s = _about(job), _unix_s(job.ended_at) or time.time()
        emitter().report(kind, at_s=ended_at_s, started_at_s=_unix_s(job.started_at), **about)
        if is_retried:  # at the time of the failure, which is then none of the job
            emitter().report("retried", at_s=ended_at_s, **about)


class Worker(Reporting, rq.Worker):
    """RQ's worker, which reports its jobs."""


def _about(job: Job) -> dict[str, Any]:
    return {"queue": f"{CONNECTION}/{job.origin}", "job_id": job.id, "job_class": _function(job)}


def _function(job: Job) -> str | None:
    try:
        name: str | None = job.func_name
    except Exception:  # noqa: BLE001 - its data cannot be read, and RQ says so itself
        return None
    return name or None


def _unix_s(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()  # RQ's are of UTC
