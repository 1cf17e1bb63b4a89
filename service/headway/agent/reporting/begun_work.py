"""Whether a worker works by now that the control plane takes for idle: that is reported soon, other changes later."""

from collections.abc import Callable, Iterable

from headway.agent.model import Activity
from headway.scaling.model import Worker

WORKS_FOR_S = 0.5  # a shorter job is over before anybody could go by it
PUBLISHED_GAP_S = 1.0  # from one state of the host to the next, however many workers begin a job


class BegunWork:
    """The workers that were idle when the host's state was published last."""

    def __init__(self) -> None:
        self._idle: frozenset[str] = frozenset()
        self._published_at_s = float("-inf")

    def publish(self, workers: Iterable[Worker], *, now_s: float) -> None:
        """Note what is published of the workers."""
        self._idle = frozenset(each.worker_id for each in workers if each.is_busy is False)
        self._published_at_s = now_s

    def is_due(self, reported: Callable[[str], Activity], *, now_s: float) -> bool:
        """Whether one of them has by its report, which ``reported`` looks up by its id, had a job for a while."""
        if now_s - self._published_at_s < PUBLISHED_GAP_S:
            return False
        busy = [each for each in map(reported, self._idle) if each.is_busy]
        return any(each.busy_since_s is None or now_s - each.busy_since_s >= WORKS_FOR_S for each in busy)
