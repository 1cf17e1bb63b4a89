"""RQ's workers, as they write themselves into Redis."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from headway.collect.prepared_commands import Prepared, beginning, ending, prepared, together
from headway.collect.rq.rq_record import job_of
from headway.connections import as_text
from headway.scaling.model import WorkerActivity

FIELDS = ("state", "pid", "hostname", "current_job", "queues", "birth", "successful_job_count", "failed_job_count")
PID_MAX = 2**31
DIGITS_MAX = 15  # a number of more digits raises as it is read, or as it is sent

_FIELDS = ending(FIELDS)


def worker_commands(key: str) -> Prepared:
    """Asks for the fields of the worker at ``key``, and for the executions that it has under way."""
    fields = Prepared(beginning(("HMGET", key), words_in_all=2 + len(FIELDS)) + _FIELDS)
    # From RQ 3 on; before, current_job named the one job.
    return together(fields, prepared("SMEMBERS", f"{key}:executions"))


def served_by(fields: Sequence[str | None]) -> frozenset[str]:
    """The queues that a worker serves; none of one that is gone."""
    is_there = fields[FIELDS.index("pid")] is not None
    return frozenset((fields[FIELDS.index("queues")] or "").split(",")) if is_there else frozenset()


def successes_of(fields: Sequence[str | None]) -> int:
    """How many jobs a worker has ended without a failure. RQ writes the count with the first of them."""
    return _count(fields[FIELDS.index("successful_job_count")])


StartsOf = Callable[[Collection[str]], Iterable[tuple[str, float]]]
"""The queues of those of some jobs that run, and when they began."""


def activities_of(workers: Iterable[tuple[Any, Any]], started: StartsOf) -> tuple[WorkerActivity, ...]:
    """What the workers do by their fields and executions, which are ``None`` and an error where they cannot be read.

    RQ keeps the record of a worker that was killed for minutes, and a container that is started again has the same name
    and gives its processes the same ids. Of several records of one process, that of the youngest worker counts.
    """
    readable = [(fields, jobs) for fields, jobs in workers if fields is not None and not isinstance(jobs, Exception)]
    # When each began, as a text that sorts by time; empty where its record does not say.
    readable.sort(key=lambda each: each[0][FIELDS.index("birth")] or "")
    found = (activity_from(fields, jobs, started) for fields, jobs in readable)
    return tuple({(each.host, each.pid): each for each in found if each is not None}.values())


def activity_from(fields: Sequence[str | None], executions: Iterable[Any], started: StartsOf) -> WorkerActivity | None:
    """What a worker does; ``None`` of one that is gone. ``started`` says which of some jobs run, and since when."""
    state, pid, host, job_id, _, _, *ended = fields
    if not host or not 0 < _count(pid) <= PID_MAX:
        return None  # gone without a goodbye: its key has expired, its name is still in the set
    is_busy = state == "busy"
    jobs = {job_of(member) for member in executions} | ({job_id} if job_id else set())
    starts = [*started(jobs)] if is_busy else []
    queues = {queue for queue, _ in starts}
    return WorkerActivity(
        host=as_text(host),
        pid=_count(pid),
        is_busy=is_busy,
        busy_since_s=min((at_s for _, at_s in starts), default=None),
        # RQ writes a count with the first job of its kind.
        ended_jobs=sum(map(_count, ended)),
        busy_queue=queues.pop() if len(queues) == 1 else None,
    )


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= DIGITS_MAX else 0
