"""What every pool gets of the hosts, and where: room is shared where it is short, and what is shared is placed.

One pure function for the live loop (``scaling/settle.py``) and for rehearsals of many pools.

Source: docs/why/share.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.scaling.model import Assignment, Host
from headway.scaling.placement import PoolTarget, place, placed_workers
from headway.scaling.share import Claim, share


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """Where the workers of all pools go."""

    rows: tuple[Assignment, ...]
    """At most one a pool and host, by pool and host id."""
    short: Mapping[str, int] = field(default_factory=dict)
    """Pool -> the workers that it gets, of pools that get fewer than their target."""


def allotted(
    targets: Sequence[PoolTarget],
    hosts: Sequence[Host],
    current: Sequence[Assignment],
    *,
    claims: Callable[[], Iterable[Claim]],
    held: Iterable[Assignment] = (),
) -> Allotment:
    """What each of ``targets`` gets and where, given what is in place.

    Where there is room for all, ``claims`` is not called: a claim says what only matters when room is short.

    Args:
        targets: at most one a pool.
        hosts: all hosts, with the workers that they report: idle ones leave first. One that is not known has no room.
        current: what is in place of these pools.
        claims: gives one claim for each target, of as many workers: its guarantee, priority, weight and urgency.
        held: rows of other pools, and whatever else takes room and stays. They are not returned.
    """
    held = tuple(held)
    rows = place(targets, hosts, current, held=held, may_take_over=False)
    got = placed_workers(rows)
    if all(got.get(target.pool, 0) == target.workers for target in targets):
        return Allotment(rows=rows)
    granted = share(claims(), hosts, held=held, current=current)
    rows = place([_cut(target, granted[target.pool]) for target in targets], hosts, current, held=held)
    return Allotment(
        rows=rows,
        short={target.pool: granted[target.pool] for target in targets if granted[target.pool] < target.workers},
    )


def _cut(target: PoolTarget, workers: int) -> PoolTarget:
    return replace(target, workers=workers, burst_workers=min(target.burst_workers, workers))
