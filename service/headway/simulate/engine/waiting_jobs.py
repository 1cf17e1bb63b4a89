"""The jobs that wait in the queues of one pool, and which of them comes next."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from random import Random

from headway.scaling.model import QueueOrder


class SeveralQueues(ABC):
    """Jobs that wait in several queues. To be used like the ``deque`` of a pool with a single queue."""

    def __init__(self, queue_of: Sequence[int], queues: int) -> None:
        self._queue_of = queue_of
        self._queues: list[deque[int]] = [deque() for _ in range(queues)]

    def append(self, job: int) -> None:
        """Let ``job`` wait at the end of its queue."""
        self._queues[self._queue_of[job]].append(job)

    @abstractmethod
    def popleft(self) -> int:
        """The job that comes next."""

    def heads(self) -> list[int]:
        """The oldest job of each queue that is not empty."""
        return [queue[0] for queue in self._queues if queue]

    def __len__(self) -> int:
        return sum(map(len, self._queues))


class InOrder(SeveralQueues):
    """Strict order: the first queue that is not empty is taken from."""

    def popleft(self) -> int:
        return next(queue for queue in self._queues if queue).popleft()


class InTurn(SeveralQueues):
    """Each queue that is not empty is taken from in turn."""

    def __init__(self, queue_of: Sequence[int], queues: int) -> None:
        super().__init__(queue_of, queues)
        self._turns = list(range(queues))

    def popleft(self) -> int:
        number = next(number for number in self._turns if self._queues[number])
        self._turns.remove(number)
        self._turns.append(number)
        return self._queues[number].popleft()


class AtRandom(SeveralQueues):
    """Any queue that is not empty is taken from, each with the same chance."""

    def __init__(self, queue_of: Sequence[int], queues: int, draws: Random) -> None:
        super().__init__(queue_of, queues)
        self._draws = draws

    def popleft(self) -> int:
        return self._draws.choice([queue for queue in self._queues if queue]).popleft()


Waiting = deque[int] | SeveralQueues


def waiting_in(order: QueueOrder, queue_of: Sequence[int], queues: int, draws: Random) -> Waiting:
    """Nothing that waits yet, in so many queues that workers take from in ``order``."""
    match order:
        case QueueOrder.STRICT:
            return InOrder(queue_of, queues)
        case QueueOrder.IN_TURN:
            return InTurn(queue_of, queues)
        case QueueOrder.RANDOM:
            return AtRandom(queue_of, queues, draws)
        case QueueOrder.BY_ARRIVAL:
            return deque()


def heads(waiting: Waiting) -> list[int]:
    """The jobs of which one has waited longest."""
    return waiting.heads() if isinstance(waiting, SeveralQueues) else [waiting[0]] if waiting else []
