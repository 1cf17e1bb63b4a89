"""Workers placed by priority and without guarantees, which show the rules of placing alone."""

from collections.abc import Iterable, Sequence

from headway.scaling.model import Assignment, Host
from headway.scaling.placement.displacement import Takeover
from headway.scaling.placement.pool_parts import PoolTarget
from headway.scaling.placement.worker_placer import Placing


def place(
    targets: Iterable[PoolTarget],
    hosts: Sequence[Host],
    current: Iterable[Assignment],
    *,
    held: Iterable[Assignment] = (),
    may_take_over: bool = True,
) -> tuple[Assignment, ...]:
    """The assignments that give each pool its target where the known hosts have room, and as much of it where not.

    Only a pool that has no other place takes one over, from a pool of lower priority, and only if it ``may_take_over``.
    Rows of other pools that are ``held`` take their room first and are not returned. Pools without workers get no row.
    """
    placing = Placing(targets, hosts, current, held=held)
    placing.leave_ailing()
    takeover = Takeover(placing, {}) if may_take_over else None
    for part in placing.parts:
        while part.missing > 0:  # asked at its turn: a part before it may have taken a place of it
            if placing.add(part) is None and (takeover is None or takeover.take(part, is_guarantee=False) is None):
                break
    return tuple(placing.rows())
