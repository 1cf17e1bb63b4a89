"""What limits stand on: a pool at a moment, what is remembered of it, and whether its metrics can be trusted."""

from dataclasses import dataclass

from headway.scaling.model import Memory, QueueMetrics
from headway.scaling.policy.day_budget import Account
from headway.scaling.reading.sample_age import Freshness
from headway.scaling.view import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What limits stand on: the pool, what is remembered, the last target, and whether the metrics can be trusted."""

    view: PoolView
    queue: QueueMetrics
    """All its queues as one."""
    memory: Memory
    last_workers: int
    freshness: Freshness
    account: Account | None
    """The account of the day's budget; ``None`` without such a budget."""
    now_s: float
    kept_workers: int = 0
    """What the cheapest holds keep up, where the profile sets none."""
    most_workers: int = 0
    """What demands ask for if every worker of unknown activity is busy, where the count is that of idle ones."""
    plateau_workers: int | None = None
    """The count above which the target does not rise, because jobs wait beside idle slots; ``None``: none is known."""
    is_overdue: bool = False
    """Whether a waiting job has no time left, by an age that its source reports: what is estimated holds nobody."""
    is_held: bool = False
    """At zero with too few jobs to wake for."""
