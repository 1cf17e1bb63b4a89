"""Which host runs which of a pool's workers. Neither loses nor invents a worker, moves as few as it can, and is stable.

A host that is not open (cordoned, or its memory under pressure) keeps what it has and gets nothing new; one that drains
is none for placing: scaling/allocation/host_drain.py says when what it has may leave.
"""

from collections.abc import Iterable, Sequence

from headway.scaling.model import Assignment, Host
from headway.scaling.placement.displacement import Takeover
from headway.scaling.placement.pool_parts import PoolTarget
from headway.scaling.placement.worker_placer import Placing

__all__ = ["PoolTarget", "place", "placed_workers"]


def place(
    targets: Iterable[PoolTarget],
    hosts: Sequence[Host],
    current: Iterable[Assignment],
    *,
    held: Iterable[Assignment] = (),
    may_take_over: bool = True,
) -> tuple[Assignment, ...]:
    """The assignments that give each pool its target where the known hosts have room, and as much of it where not.

    What is in place stays while it is wanted. Only a pool that has no other place takes one over, from a pool of lower
    priority. What is not wanted leaves where it is idle, then where it is fullest. A host that is not known gets
    nothing. Pools without workers get no row.

    Args:
        targets: at most one a pool.
        hosts: all hosts.
        current: what is in place of these pools; what is there of others is dropped.
        held: rows of other pools that stay whatever is decided here. They take their room first and are not returned.
        may_take_over: False leaves every place with whom it is, and pools without a place short.
    """
    placing = Placing(targets, hosts, current, held=held)
    placing.leave_ailing()
    takeover = Takeover(placing, {}) if may_take_over else None
    for part in placing.parts:
        while part.missing > 0:  # asked at its turn: a part before it may have taken a place of it
            if placing.add(part) is None and (takeover is None or takeover.take(part, is_guarantee=False) is None):
                break
    return tuple(placing.rows())


def placed_workers(rows: Iterable[Assignment]) -> dict[str, int]:
    """Pool -> its workers in ``rows``."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.pool] = counts.get(row.pool, 0) + row.workers
    return counts
