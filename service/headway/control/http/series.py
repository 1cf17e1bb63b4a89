"""How many series one answer of `/metrics` has at most: whoever scrapes keeps each, and names are others' to choose."""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.metrics_core import Metric

from headway.control.http.answers import QueueOut


class Left:
    """The series that there is still room for, and how many were left out."""

    def __init__(self, series_max: int) -> None:
        self._left = series_max
        self.omitted = 0

    def cut(self, families: Iterable[Metric]) -> Iterator[Metric]:
        """``families`` with as many of their samples as there is room for."""
        for family in families:
            self.omitted += max(0, len(family.samples) - self._left)
            del family.samples[self._left :]
            self._left -= len(family.samples)
            yield family

    def whole(self, queues: Sequence[QueueOut], *, series_each: int) -> Sequence[QueueOut]:
        """The queues that there is room for whole: those of a pool first."""
        room = self._left // series_each
        if len(queues) <= room:
            return queues
        self.omitted += (len(queues) - room) * series_each
        return sorted(queues, key=lambda queue: (queue.pool is None, queue.queue))[:room]
