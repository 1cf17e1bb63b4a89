"""A recorded workload sent again: when each job goes, and what its work is.

A worker process imports this module for ``work``, so it stays light.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from headway.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJob:
    """One job of a workload: when it arrives, in seconds from the first, and how long one worker needs for it."""

    at_s: float
    service_s: float


def work(service_s: float) -> None:
    """Keep a worker busy for ``service_s`` without using the processor, as a job that waits for a model would."""
    time.sleep(service_s)


def scheduled(
    jobs: Sequence[RecordedJob], *, speed: float, for_s: float, length_s: float | None = None
) -> tuple[RecordedJob, ...]:
    """The jobs that arrive within the first ``for_s``, the gaps between them divided by ``speed``.

    Service times stay as recorded: faster means more work at once, not easier work. Time begins with the first job,
    and a workload shorter than ``for_s`` begins again, one of its mean gaps after its last job. With ``length_s`` it
    begins where the recording did, quiet included, and again after that length.

    Raises:
        Invalid: ``speed``, ``for_s`` or ``length_s`` is not above 0, or there are no jobs.
    """
    given = {"speed": speed, "for": for_s, "length": 1.0 if length_s is None else length_s}
    breaches = [f"{name}={value} must be above 0" for name, value in given.items() if not value > 0]
    if not jobs:
        breaches.append("the workload has no jobs")
    if breaches:
        raise Invalid(*breaches)
    begins_s = jobs[0].at_s if length_s is None else 0.0
    span_s = jobs[-1].at_s - jobs[0].at_s
    round_s = (span_s + span_s / max(len(jobs) - 1, 1) if length_s is None else length_s) / speed
    taken: list[RecordedJob] = []
    for turn in count():
        for job in jobs:
            at_s = turn * round_s + (job.at_s - begins_s) / speed
            if at_s >= for_s:
                return tuple(taken)
            taken.append(RecordedJob(at_s=at_s, service_s=job.service_s))
        if round_s <= 0:  # a single job, or all at one moment: there is nothing to repeat at
            return tuple(taken)
    raise AssertionError("count() does not end")


def replay(
    jobs: Sequence[RecordedJob],
    *,
    send: Callable[[int, RecordedJob], None],
    clock: Callable[[], float],
    wait: Callable[[float], bool],
) -> int:
    """Send each job at its time, counted from the call. Returns how many were sent.

    A job whose time has passed is sent at once: delays do not add up. ``wait`` sleeps for the seconds given and returns
    True to end the replay early.
    """
    began_s = clock()
    for index, job in enumerate(jobs):
        left_s = began_s + job.at_s - clock()
        if wait(max(left_s, 0.0)):
            return index
        send(index, job)
    return len(jobs)
