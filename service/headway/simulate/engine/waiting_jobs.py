"""The jobs that wait in the queues of one pool."""

from collections import deque
from collections.abc import Sequence


class InOrder:
    """Jobs that wait in several queues in strict order: the first one that is not empty is taken from.

    To be used like the ``deque`` of a pool with a single queue.
    """

    def __init__(self, queue_of: Sequence[int], queues: int) -> None:
        self._queue_of = queue_of
        self._queues: tuple[deque[int], ...] = tuple(deque() for _ in range(queues))

    def append(self, job: int) -> None:
        """Let ``job`` wait at the end of its queue."""
        self._queues[self._queue_of[job]].append(job)

    def popleft(self) -> int:
        """The job that comes next."""
        return next(queue for queue in self._queues if queue).popleft()

    def heads(self) -> list[int]:
        """The oldest job of each queue that is not empty."""
        return [queue[0] for queue in self._queues if queue]

    def __len__(self) -> int:
        return sum(map(len, self._queues))


Waiting = deque[int] | InOrder


def heads(waiting: Waiting) -> list[int]:
    """The jobs of which one has waited longest."""
    return waiting.heads() if isinstance(waiting, InOrder) else [waiting[0]] if waiting else []
