"""What a collector of a queue library is: the port between the loop and those that read brokers.

A package adds a library of its own: docs/how-to/write-a-collector.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from headway.connections import Connection
from headway.errors import Invalid
from headway.scaling.model import BrokerPoll, JobEvent, QueueSample, WorkerActivity

EVENTS_MAX = 9_000  # they travel in one batch, with one cursor; ingest takes 10,000 things at once
QUEUES_POLLED_MAX = 1_000  # with jobs, in one reading: as many as one message names; of more, no entry is known

Cursor = Mapping[str, Any]
"""How far a source was reported: JSON. The source alone reads it."""


class Figure(StrEnum):
    """What may be known of a queue."""

    WAITING = "waiting"
    """Jobs that are due and not begun."""
    IN_FLIGHT = "in flight"
    """Jobs that a worker has."""
    DELAYED = "delayed"
    """Jobs that are due later, wherever the broker keeps them."""
    OLDEST_AGE = "oldest age"
    """How long the oldest waiting job has been due."""
    ENTRIES = "entries"
    """The event of each job that enters its queue."""
    STARTS = "starts"
    ENDS = "ends"
    BUSY_WORKERS = "busy workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How good a figure is."""

    is_seen: bool
    bound: str = ""
    """By how much a figure that is seen may be wrong; empty: it is exact."""
    remedy: str = ""
    """The one change that would make it better."""


EXACT = Accuracy(is_seen=True)


def bounded(bound: str, *, remedy: str = "") -> Accuracy:
    """A figure that is wrong by ``bound`` at most, as "one poll"."""
    return Accuracy(is_seen=True, bound=bound, remedy=remedy)


def unseen(*, remedy: str = "") -> Accuracy:
    """A figure that the broker does not show."""
    return Accuracy(is_seen=False, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundQueue:
    """A queue in a broker, as it was at one moment."""

    name: str
    """As the library calls it, without the connection."""
    waiting_jobs: int
    workers: int | None = None
    """Worker processes that listen to it, of whomever started them; ``None``: the broker does not show them."""
    is_aside: bool = False
    """Whether the broker moves what other queues have rejected or let expire into it, and no worker takes from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one poll of a broker found. A queue that could not be read is left out: unknown is not zero."""

    at_s: float
    samples: tuple[QueueSample, ...] = ()
    events: tuple[JobEvent, ...] = ()
    """What is new since the poll before: each event once, those of a job in their order."""
    activities: tuple[WorkerActivity, ...] = ()
    """What the broker says of each worker now; what it said of one that is left out counts no longer."""
    poll: BrokerPoll | None = None
    """What bounds the entries of jobs whose messages carry no time; ``None``: the source does not say. One of more
    than ``QUEUES_POLLED_MAX`` queues is not sent."""
    has_more: bool = False
    """Whether more is known to be new than one poll takes: poll again at once."""

    def __post_init__(self) -> None:
        if len(self.events) > EVENTS_MAX:
            raise Invalid(
                f"a reading has {len(self.events)} events, {EVENTS_MAX} at most: keep the rest for the next poll"
            )


class Source(Protocol):
    """The queues of one connection, read and never changed. One thread uses it."""

    def discover(self) -> tuple[FoundQueue, ...]:
        """The queues in the broker, by name; an empty queue counts as well as a full one.

        Raises:
            Unavailable: the broker does not answer.
        """

    def poll(self, at_s: float) -> Reading:
        """Everything as it is now, and what is new since the poll before. ``at_s`` is the time, in Unix seconds.

        Raises:
            Unavailable: the broker does not answer. Nothing was reported, nothing is known to be zero.
        """

    def cursor(self) -> dict[str, Any]:
        """How far everything was reported, as JSON can carry it: a new source goes on from it without a gap."""

    def close(self) -> None:
        """Let the broker go."""


def no_refusals(_: Connection) -> Iterable[str]:
    """None: whatever a connection asks for can be done."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A queue library that can be read: what an entry point of the group ``headway.collectors`` names."""

    name: str
    """As in settings, and the entry point's own."""
    title: str
    """As its makers write it."""
    schemes: tuple[str, ...]
    """Of the URLs of its brokers."""
    open: Callable[[Connection, Cursor | None], Source]
    """A source that goes on from a cursor of its own kind; without one, from now. It connects at its first call.

    Raises ``Misconfigured`` of a URL that cannot be one, and ``KeyError``, ``TypeError`` or ``ValueError`` of a cursor
    that holds what no source of this kind wrote.
    """
    is_first_choice: bool = False
    """Whether ``auto`` means this library where several read the same scheme."""
    accuracy: Mapping[Figure, Accuracy]
    """How good each figure is; one that is missing is unseen."""
    refusals: Callable[[Connection], Iterable[str]] = no_refusals
    """What of a connection this library cannot do, a sentence each; asked before anything is opened."""

    def of(self, figure: Figure) -> Accuracy:
        """How good ``figure`` is."""
        return self.accuracy.get(figure, unseen())
