"""What Celery's workers have of a queue in Redis, those jobs that they run and those that they hold. Pure."""

from dataclasses import dataclass

from headway.collect.celery.acknowledgements import Acknowledgements


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenJobs:
    """Jobs that workers have of a queue. ``None`` is unknown."""

    in_flight_jobs: int | None
    in_flight_min_jobs: int
    reserved_jobs: int | None


def taken_jobs(
    held_jobs: int,
    *,
    undated_jobs: int,
    running_jobs: int | None,
    known: Acknowledgements,
    is_only: bool,
    is_fresh: bool,
    is_read: bool,
) -> TakenJobs:
    """What workers have of a queue.

    What runs is exact only while no heartbeat is overdue. How many of the held jobs run, where each job that runs is
    held, needs no more than that, or a late heartbeat would make all reserved jobs seem to run.

    Args:
        held_jobs: those of its jobs that workers hold, and that are due.
        undated_jobs: beside these, those of which nobody knows whether they are due, and so whether any of them runs.
        running_jobs: those that run by the heartbeats; ``None``: not known.
        known: how workers acknowledge.
        is_only: whether it is the only queue of its broker.
        is_fresh: whether no heartbeat is overdue.
        is_read: whether each message that workers hold was read, so that ``held_jobs`` are all.
    """
    if undated_jobs:
        # They are no backlog and no load, but to put them back would only have the next worker take them: one stays.
        least = max(1 + held_jobs, running_jobs or 0) if is_fresh else 1 + held_jobs
        return TakenJobs(in_flight_jobs=None, in_flight_min_jobs=least, reserved_jobs=None)
    if not is_read:
        return TakenJobs(in_flight_jobs=None, in_flight_min_jobs=held_jobs, reserved_jobs=None)
    if known.is_early:
        in_flight = None if running_jobs is None or not is_fresh else running_jobs + held_jobs
        return TakenJobs(in_flight_jobs=in_flight, in_flight_min_jobs=held_jobs, reserved_jobs=held_jobs)
    reserved = None if running_jobs is None else max(0, held_jobs - running_jobs)
    least = max(held_jobs, running_jobs or 0) if is_fresh else held_jobs
    # With nothing that runs, or nothing that is held, both ways of acknowledging are the same. While nobody says what
    # runs, a number would make all that is held seem to run.
    is_exact = running_jobs is not None and (known.is_late or (is_fresh and not (running_jobs and held_jobs)))
    return TakenJobs(
        in_flight_jobs=least if is_exact and is_only else None, in_flight_min_jobs=least, reserved_jobs=reserved
    )
