"""How old the samples of queues are, and what passes between a sample and the moment at which it is read."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.scaling.model import QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.view import copied

UNREAD_S = 6.0
"""A queue that is read is sampled at least this often: every 4 s by its collector, or with the poll and the stream that
follow.
"""


def aged(queue: QueueMetrics, *, now_s: float) -> QueueMetrics:
    """``queue`` with its oldest job's age, and when delayed jobs are due, brought from the sample's time to ``now_s``.

    Waiting goes on between samples.
    """
    if queue.delayed and queue.sampled_at_s is not None and queue.sampled_at_s < now_s:
        passed_s = now_s - queue.sampled_at_s
        queue = copied(queue, delayed=tuple(copied(each, due_in_s=each.due_in_s - passed_s) for each in queue.delayed))
    if (
        not (queue.waiting_least_jobs or queue.reserved_jobs)
        or queue.oldest_age_s is None
        or queue.sampled_at_s is None
        or queue.sampled_at_s >= now_s
    ):
        return queue
    passed_s = max(0.0, now_s - queue.sampled_at_s)
    if queue.oldest_age_max_s is None:
        return copied(queue, oldest_age_s=queue.oldest_age_s + passed_s)
    most_s = queue.oldest_age_max_s + passed_s
    return copied(queue, oldest_age_s=queue.oldest_age_s + passed_s, oldest_age_max_s=most_s)


def is_seen(queue: QueueMetrics) -> bool:
    """Whether its broker has ever reported this queue. A queue that was never seen has no jobs with an objective."""
    return queue.sampled_at_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How old the samples of a pool's queues are at a moment, and whether they can be trusted."""

    age_s: float | None
    """How long ago the members that were ever seen were sampled, the oldest of them; ``None`` where none ever was."""
    is_fresh: bool
    """Whether the members that were ever seen, at least one, were sampled within the profile's ``stale_after_s``."""
    is_unread: bool
    """Whether a queue that was seen has no sample of the newest span, or only a lower bound of its waiting jobs.

    That nothing arrived in it is not known then. A broker that hangs looks like one in which nothing happens, long
    before metrics are as old as ``stale_after_s``.
    """


def freshness_of(queues: Sequence[QueueMetrics], profile: Profile, *, now_s: float) -> Freshness:
    """How fresh the samples of ``queues``, all of one pool, are at ``now_s``, in Unix seconds."""
    sampled = [queue.sampled_at_s for queue in queues if queue.sampled_at_s is not None]
    age_s = now_s - min(sampled) if sampled else None
    is_bound_only = any(queue.waiting_jobs is None and queue.waiting_min_jobs is not None for queue in queues)
    return Freshness(
        age_s=age_s,
        is_fresh=age_s is not None and age_s <= profile.stale_after_s,
        is_unread=is_bound_only or (age_s is not None and age_s > UNREAD_S),
    )
