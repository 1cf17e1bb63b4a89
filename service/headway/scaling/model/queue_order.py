"""In what order a worker takes jobs from the queues that it serves. A library and its options set it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType

from headway.scaling.model.queue_metrics import QueueMetrics


class QueueOrder(StrEnum):
    """From which of its queues a worker takes the next job. ``None`` in its place is unknown, and is not ``STRICT``."""

    STRICT = "strict"
    """From the first that is not empty: a later queue waits until the earlier ones are empty."""
    IN_TURN = "in_turn"
    """From each of those that are not empty in turn, one job at a time, however many jobs wait in each."""
    RANDOM = "random"
    """From any of those that are not empty, each with the same chance."""
    BY_ARRIVAL = "by_arrival"
    """As jobs came, whichever queue they are in: before one that comes now, all that wait may start."""

    @property
    def text(self) -> str:
        """How workers take jobs, to follow "workers take jobs"; for people."""
        return _TEXTS[self]


_TEXTS: Mapping[QueueOrder, str] = MappingProxyType(
    {
        QueueOrder.STRICT: "from a later queue only while the earlier ones are empty",
        QueueOrder.IN_TURN: "from the queues in turn",
        QueueOrder.RANDOM: "from the queues at random",
        QueueOrder.BY_ARRIVAL: "from the queues in the order of arrival",
    }
)
STRICT_QUEUES_MAX = 100  # of one template that are reported by name
STRICT_NAME_CHARS_MAX = 500  # as many as a control plane takes of a text
UNKNOWN_ORDER = "from the queues in an unknown order, so that each job may start behind all others"


def order_text(order: QueueOrder | None) -> str:
    """How workers take jobs, to follow "workers take jobs"; of an unknown order, what is assumed."""
    return UNKNOWN_ORDER if order is None else order.text


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedQueues:
    """The queues of a pool, and in what order its workers take jobs from them."""

    queues: tuple[QueueMetrics, ...]
    order: QueueOrder | None
    """``None``: not known, and a job may start behind all others."""
    strict_queues: Sequence[str] = ()
    """Of ``STRICT``: the queues from the first to the last, by the library's own names."""


def is_earlier(other: QueueMetrics, member: QueueMetrics, ranked: Sequence[str]) -> bool:
    """Whether ``other`` comes before ``member`` in a strict order; also where the rank of one of both is not known."""
    ranks = _ranks(_Names(ranked))
    ours, theirs = ranks.get(_own_name(member)), ranks.get(_own_name(other))
    return ours is None or theirs is None or theirs < ours


class _Names:
    """A list of names that is compared by what it is, and not by what it holds: a pool may have a thousand queues."""

    __slots__ = ("names",)

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def __hash__(self) -> int:
        """Return the hash of the very list."""
        return id(self.names)

    def __eq__(self, other: object) -> bool:
        """Return whether it is the very list."""
        return isinstance(other, _Names) and self.names is other.names


@lru_cache(maxsize=64)  # asked for once for each two queues of a pool; the list stays alive with its entry
def _ranks(ranked: _Names) -> Mapping[str, int]:
    return {name: rank for rank, name in enumerate(ranked.names)}


def _own_name(queue: QueueMetrics) -> str:
    """The name of a queue within its connection."""
    return queue.queue.partition("/")[2]
