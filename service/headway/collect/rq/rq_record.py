"""A job's record as RQ writes it, and its members of registries."""

from datetime import datetime

from headway.collect.job_lifecycle import JobRecord, JobState
from headway.collect.prepared_commands import Prepared, beginning, ending, prepared, together

FIELDS = (
    "status",
    "created_at",
    "enqueued_at",
    "started_at",
    "ended_at",
    "retries_left",
    "number_of_retries",
    "repeats_left",
)
"""All that is ever read of a job. Its data, meta and result are pickles and nobody else's business."""

_BEFORE_KEY, _FIELDS = beginning(("HMGET",), words_in_all=2 + len(FIELDS)), ending(FIELDS)

DIGITS_MAX = 9  # whoever has tried a job more often than that counts no attempts
TIME_MAX_S = 1e11  # ingest takes no later time, and refuses the whole batch for one

_STATES = {
    "queued": JobState.WAITING,
    "started": JobState.RUNNING,
    "finished": JobState.FINISHED,
    "failed": JobState.FAILED,
    "stopped": JobState.FAILED,
    "scheduled": JobState.DELAYED,
    "canceled": JobState.CANCELED,
}

_EXECUTION_CHARS = 32  # a uuid in hexadecimal


def record_commands(key: str) -> Prepared:
    """Asks for the record at ``key``."""
    return Prepared(_BEFORE_KEY + ending((key,)) + _FIELDS)


def score_commands(job_id: str, *registries: str) -> Prepared:
    """Asks where in ``registries`` a job is."""
    return together(*(prepared("ZSCORE", key, job_id) for key in registries))


def record_from(values: list[str | None] | None) -> JobRecord | None:
    """The record whose ``FIELDS`` have ``values``; None of a job that is gone or was never put into a queue."""
    if values is None:
        return None
    status, created, enqueued, started, ended, retries_left, retries, repeats_left = values
    created_at_s = _seconds(created)
    enqueued_at_s = _seconds(enqueued) or created_at_s
    if enqueued_at_s is None:
        return None
    return JobRecord(
        state=_STATES.get(status or "", JobState.ELSEWHERE),
        enqueued_at_s=enqueued_at_s,
        started_at_s=_seconds(started),
        ended_at_s=_seconds(ended),
        created_at_s=created_at_s,
        retries_left=_count(retries_left),
        retries=_count(retries),
        is_repeated=repeats_left is not None,
    )


def _count(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() and len(value) < DIGITS_MAX else None


def _seconds(value: str | None) -> float | None:
    if not value:
        return None
    try:
        seconds = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < TIME_MAX_S else None


def job_of(member: str) -> str:
    """The job of a member of the registry of started jobs: ``job:execution``, or the job alone before RQ 2."""
    job_id, _, execution = member.rpartition(":")
    is_composite = job_id and len(execution) == _EXECUTION_CHARS and execution.isalnum()
    return job_id if is_composite else member
