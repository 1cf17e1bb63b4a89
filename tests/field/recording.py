"""What happened to one pool, by three witnesses: the application's log, Headway's API, and the list of processes."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What the application notes."""

    READY = "ready"
    START = "start"
    END = "end"
    ASKED = "asked"
    """The worker was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A line of the application's log."""

    at_s: float
    kind: Kind
    worker_id: str
    job_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A worker of the pool in an answer of Headway's API."""

    worker_id: str
    state: str
    is_busy: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of Headway's API about the pool: what it showed of each worker."""

    at_s: float
    workers: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """The workers of the pool of which any process lived."""

    at_s: float
    worker_ids: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision on the pool, for who reads why something happened; nothing is judged by it."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All of it, in the order of time; Unix seconds."""

    sent: Mapping[str, float]
    """Job -> when it was sent."""
    events: tuple[Event, ...]
    answers: tuple[Answer, ...]
    processes: tuple[Processes, ...]
    decisions: tuple[Decided, ...] = ()


def events_of(lines: Iterable[str]) -> tuple[Event, ...]:
    """The events of an application's log, by their time."""
    rows = (json.loads(line) for line in lines)
    events = (
        Event(at_s=row["at_s"], kind=Kind(row["kind"]), worker_id=row["worker_id"], job_id=row["job_id"])
        for row in rows
    )
    return tuple(sorted(events, key=lambda event: event.at_s))
