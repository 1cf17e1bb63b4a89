"""What limits stand on: a pool at a moment, what is remembered of it, and whether its metrics can be trusted."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.scaling.model import Memory
from headway.scaling.view import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What limits stand on: the pool, what is remembered, the last target, and whether the metrics can be trusted."""

    view: PoolView
    memory: Memory
    last_workers: int
    is_fresh: bool
    now_s: float
    kept_workers: int = 0
    """What the cheapest holds keep up, where the profile sets none."""
    most_workers: int = 0
    """What demands ask for if every worker of unknown activity is busy, where the count is that of idle ones."""
    plateau_workers: int | None = None
    """The count above which the target does not rise, because jobs wait beside idle slots; ``None``: none is known."""
    is_held: bool = False
    """At zero with too few jobs to wake for."""


Limit = Callable[[int, Ground], int]
"""It moves a count in its declared way, and in no other."""
