"""How long the jobs of a pool wait, each of its queues judged by the objective of that queue.

A queue with an objective of its own is not late by the pool's, and a longer wait in another queue does not hide that it
is late.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headway.scaling.model import Objective, QueueMetrics
from headway.scaling.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWait:
    """A wait in one queue of a pool, and the objective of that queue."""

    queue: str
    objective: Objective
    wait_s: float

    @property
    def used(self) -> float:
        """The part of the objective's seconds that the wait takes: 1 is all of them, more is late."""
        return self.wait_s / self.objective.target_s

    @property
    def is_late(self) -> bool:
        """Whether the wait is longer than the objective allows."""
        return self.wait_s > self.objective.target_s


def oldest_wait(profile: Profile, queues: Iterable[QueueMetrics]) -> MemberWait | None:
    """The age of a queue's oldest job, of the queue where it takes the greatest part of the queue's objective.

    ``None`` if no age is known, also where none is known but that no job waits in one queue while jobs of another may.
    """
    known = tuple(queues)
    oldest = _worst(profile, known, lambda queue: queue.oldest_age_s)
    may_any_wait = any(queue.oldest_age_s is None and not queue.is_wait_known for queue in known)
    return None if oldest is not None and not oldest.wait_s and may_any_wait else oldest


def pickup_wait(profile: Profile, queues: Iterable[QueueMetrics]) -> MemberWait | None:
    """The pickup time at a queue's percentile, of the queue where it takes the greatest part of the queue's objective.

    ``None`` if none was measured.
    """
    return _worst(profile, queues, lambda queue: queue.pickup_objective_s)


def _worst(
    profile: Profile, queues: Iterable[QueueMetrics], wait_s: Callable[[QueueMetrics], float | None]
) -> MemberWait | None:
    waits = [
        MemberWait(queue=queue.queue, objective=profile.objective_of(queue.queue), wait_s=waited_s)
        for queue in queues
        if (waited_s := wait_s(queue)) is not None
    ]
    return max(waits, key=lambda wait: wait.used, default=None)
