"""Events of a pool that programs beside Headway act on: receivers subscribe to them, and get each once."""

from dataclasses import dataclass
from enum import StrEnum


class PoolEventKind(StrEnum):
    """What happened."""

    SCALED = "scaled"
    """The target is another number."""
    BREACH_PREDICTED = "breach_predicted"
    """A job that arrives now will probably start too late for the objective of its queue."""
    BREACH = "breach"
    """The incident that jobs of the pool wait too long has begun."""
    RECOVERED = "recovered"
    """That incident has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEvent:
    """Something that happened to a pool."""

    pool: str
    event: PoolEventKind
    at_s: float
    from_workers: int
    """The target before."""
    to_workers: int
    why: str
    """In sentences."""
    decision_id: str | None = None
    """The decision that it follows from, or that was in force; ``None``: none is stored."""
