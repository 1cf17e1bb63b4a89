"""Whether something beside Headway keeps workers from taking jobs, who says so, and for how long it did."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Suspension(StrEnum):
    """What keeps workers from taking jobs of a queue or pool. ``None`` in its place is unknown."""

    NONE = "none"
    """Nothing: by the word of the broker or of the workers, they take jobs."""
    LIBRARY = "library"
    """Somebody has suspended all workers through the library, as by ``rq suspend``. The broker says so."""
    CONSUMERS_CANCELLED = "consumers_cancelled"
    """Somebody has cancelled the consumers of every worker, as by ``celery control cancel_consumer``. The workers say
    so."""
    NO_CONSUMERS = "no_consumers"
    """No worker consumes the queue, by the word of the broker: a suspension where workers of the pool run."""

    @property
    def text(self) -> str:
        """What is so, who says so, and what ends it, without its full stop; for people."""
        return (
            "its workers take jobs" if self is Suspension.NONE else f"{_SAID[self]}: none is started; {_ENDED_BY[self]}"
        )


_SAID: Mapping[Suspension, str] = MappingProxyType(
    {
        Suspension.LIBRARY: "the library has suspended all workers (`rq suspend`), as the broker says",
        Suspension.CONSUMERS_CANCELLED: "the consumers of all its workers were cancelled, as the workers report",
        Suspension.NO_CONSUMERS: "no worker consumes its queues although workers run, as the broker says",
    }
)
_ENDED_BY: Mapping[Suspension, str] = MappingProxyType(
    {
        Suspension.LIBRARY: "`rq resume` ends it",
        Suspension.CONSUMERS_CANCELLED: "`celery control add_consumer QUEUE` ends it",
        Suspension.NO_CONSUMERS: "see the logs of its workers; where somebody has cancelled their consumers, "
        "`celery control add_consumer QUEUE` ends it",
    }
)


def is_suspended(suspension: Suspension | None) -> bool:
    """Whether workers are known to be kept from taking jobs. Unknown is not suspended, and not the opposite either."""
    return suspension not in {None, Suspension.NONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stoppage:
    """A time in which workers of a pool took no jobs because they were kept from it. Times are Unix seconds."""

    since_s: float
    until_s: float | None = None
    """``None``: it goes on."""

    def counted_s(self, age_s: float, *, now_s: float) -> float:
        """Of the ``age_s`` that a job has waited by ``now_s``, the part beside this time."""
        until_s = now_s if self.until_s is None else min(now_s, self.until_s)
        return max(0.0, age_s - max(0.0, until_s - max(self.since_s, now_s - age_s)))
