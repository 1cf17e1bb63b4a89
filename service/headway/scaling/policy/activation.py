"""A pool at zero that wakes only for more than a few jobs, or once one of them has waited for long enough."""

from headway.scaling.demands.trust import slow_start_s
from headway.scaling.model import Note, NoteKind, QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_reading import PoolReading
from headway.scaling.reading.pool_times import MARGIN_S, PoolTimes


def is_held(reading: PoolReading, *, last_workers: int) -> bool:
    """Whether the pool is at zero, has no more jobs than its profile sleeps on for, and none has waited for too long.

    By the newest that is known of its queues, aged to this moment. A pool without jobs is held like one with a
    few, whatever is foreseen: otherwise a job that comes could lower the count. Where no time is left to wait, the
    profile holds nothing back.
    """
    view, memory = reading.view, reading.memory
    profile = view.profile
    is_anybody_there = view.assigned_workers or view.running_workers or view.starting_workers
    if not profile.activation_jobs or last_workers or is_anybody_there:
        return False
    if sum(map(_jobs, reading.shown)) > profile.activation_jobs:
        return False
    since_s = reading.now_s if memory.held_since_s is None else memory.held_since_s
    held_s = reading.now_s - since_s
    return all(
        _waited_s(queue, unknown_s=held_s) < wait_s(profile, queue.queue, reading.times) for queue in reading.shown
    )


def held_since_s(reading: PoolReading, *, is_held: bool) -> float | None:
    """What to remember of when jobs that are there were first held back; ``None`` where none is."""
    if not is_held or not any(map(_jobs, reading.shown)):
        return None
    since_s = reading.memory.held_since_s
    return reading.now_s if since_s is None else since_s


def wait_s(profile: Profile, queue: str, times: PoolTimes) -> float:
    """How long a job of ``queue`` may wait at zero: as the profile says, else as long as its objective lets it."""
    if profile.activation_wait_s is not None:
        return profile.activation_wait_s
    ready_s = times.start_up_s + slow_start_s(profile, times)
    return max(0.0, profile.objective_of(queue).target_s - times.tick_s - ready_s - MARGIN_S - profile.hold_up_s)


def note(reading: PoolReading) -> Note:
    """What a decision says while it holds the pool at zero."""
    profile = reading.view.profile
    jobs = profile.activation_jobs
    what = "job" if jobs == 1 else "jobs"
    least_s = min(wait_s(profile, queue.queue, reading.times) for queue in reading.view.queues)
    text = f"at zero, the pool wakes for more than {jobs} {what}, or for one that has waited {least_s:.4g} s"
    return Note(kind=NoteKind.ACTIVATION, text=text)


def in_vain(profile: Profile, times: PoolTimes) -> Note | None:
    """What is wrong with the threshold of ``profile``; ``None`` where nothing is."""
    if not profile.activation_jobs:
        return None
    given_s = profile.activation_wait_s
    target_s = profile.shortest_target_s
    if given_s is None:
        least_s = min(wait_s(profile, queue, times) for queue in profile.queues)
        void = f"activation_jobs={profile.activation_jobs} holds nothing back: {target_s:g} s leave no time to wait"
        return None if least_s else Note(kind=NoteKind.INFEASIBLE, text=void, about=(void,))
    late_s = given_s + times.tick_s + times.start_up_s + profile.hold_up_s
    late = f"activation_wait_s={given_s:g} lets a job at zero start after {late_s:g} s, of {target_s:g} s"
    about = (f"activation_wait_s={given_s:g}",)
    return Note(kind=NoteKind.INFEASIBLE, text=late, about=about) if late_s > target_s else None


def _jobs(queue: QueueMetrics) -> int:
    """Jobs that wait, and those that were taken and have not ended: these are work as well."""
    return queue.waiting_least_jobs + queue.in_flight_least_jobs


def _waited_s(queue: QueueMetrics, *, unknown_s: float) -> float:
    """How long the oldest job has waited; where the broker does not say, for as long as the pool has been held."""
    if not _jobs(queue):
        return 0.0
    is_known = queue.waiting_least_jobs and queue.oldest_age_s is not None
    return (queue.oldest_age_s or 0.0) if is_known else unknown_s
