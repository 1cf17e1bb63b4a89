"""What every pool gets of the hosts, and where: room is shared where it is short, and what is shared is placed.

One pure function for the live loop (``scaling/allocation/allocate.py``) and for rehearsals of many pools.

Source: docs/why/share.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.scaling.allocation.fair_share import Claim, Shares, shared
from headway.scaling.allocation.grant_placement import Realising
from headway.scaling.allocation.refusals import MORE_MOVES, Refusals
from headway.scaling.model import Assignment, Host
from headway.scaling.placement.pool_parts import Part, PoolTarget
from headway.scaling.placement.worker_placer import Placing


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """Where the workers of all pools go."""

    rows: tuple[Assignment, ...]
    """At most one a pool and host, by pool and host id."""
    short: Mapping[str, int] = field(default_factory=dict)
    """Pool -> the workers that it gets, of pools that get fewer than their target."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Pool -> why it gets fewer than it is guaranteed, and what would help."""
    in_pieces: Mapping[str, int] = field(default_factory=dict)
    """Pool -> workers of its share that it does not get: there is room for them, but nowhere enough for one."""


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
    What a pool gets has its place: no count is given out that is not among the rows.

    Args:
        targets: at most one a pool.
        hosts: all hosts, with the workers that they report: idle ones leave first. One that is not known has no room.
        current: what is in place of these pools.
        claims: gives one claim for each target, of as many workers: its guarantee, priority, weight and urgency.
        held: rows of other pools, and whatever else takes room and stays. They are not returned.
    """
    held = tuple(held)
    if (placing := all_placed(targets, hosts, current, held=held)) is not None:
        return Allotment(rows=tuple(placing.rows()))
    placing = Placing(targets, hosts, current, held=held)
    asked = tuple(claims())
    shares = shared(asked, hosts, held=held, current=_where_shut(placing))
    if not shares.is_guaranteed and placing.stay_where_shut():
        shares = shared(asked, hosts, held=held, current=_where_shut(placing))
    realising = Realising(placing, asked, shares)
    realising.realise()
    placed = placing.placed
    short = {each.pool: placed(each.pool) for each in targets if placed(each.pool) < each.workers}
    return Allotment(
        rows=tuple(placing.rows()),
        short=short,
        refusals=_refusals(
            placing,
            [claim for claim in asked if claim.pool in short],
            asked,
            shares,
            does_go_on=realising.has_moved_guaranteed,
        ),
        in_pieces={
            pool: shares.granted[pool] - workers for pool, workers in short.items() if workers < shares.granted[pool]
        },
    )


def _refusals(
    placing: Placing, short: Iterable[Claim], claims: Sequence[Claim], shares: Shares, *, does_go_on: bool
) -> dict[str, str]:
    refused = [claim for claim in short if placing.placed(claim.pool) < min(claim.guaranteed_workers, claim.workers)]
    if not refused:
        return {}
    rooms, floors = placing.bare_rooms(), shares.floors.by_host
    for host_id, counts in floors.items():
        for kind, workers in counts.items():
            rooms.put(host_id, kind, workers)
    refusals = Refusals(rooms, floors=floors, claims=claims)

    def reason(claim: Claim) -> str:
        if shares.guaranteed[claim.pool] < min(claim.guaranteed_workers, claim.workers):
            return refusals.of(claim)
        return MORE_MOVES if does_go_on else refusals.of_moves(claim)

    return {claim.pool: reason(claim) for claim in refused}


def all_placed(
    targets: Sequence[PoolTarget],
    hosts: Sequence[Host],
    current: Sequence[Assignment],
    *,
    held: Sequence[Assignment] = (),
) -> Placing | None:
    """All of ``targets`` in their places, where nobody need move for it; ``None`` where somebody has none.

    Workers spread over the hosts by priority. Where that leaves no place for a large one, or for one that only few
    hosts may run, those come first; and at last they are packed.
    """
    placing = Placing(targets, hosts, current, held=held)
    if _have_places(placing, placing.parts, placing.add):
        return placing
    for is_tight in (False, True):
        placing = Placing(targets, hosts, current, held=held)
        if not placing.could_place_all():
            return None
        if _have_places(placing, placing.hardest_first(), placing.add_tightly if is_tight else placing.add):
            return placing
    return None


def _have_places(placing: Placing, parts: Iterable[Part], add: Callable[[Part], str | None]) -> bool:
    """Whether there is room for all that is missing, which is placed where there is."""
    placing.leave_ailing()
    for part in parts:
        while part.missing > 0:
            if add(part) is None:
                return False
    return True


def _where_shut(placing: Placing) -> tuple[Assignment, ...]:
    """What is on hosts that get nothing new."""
    shut = {room.host_id for room in placing.rooms.shut}
    return tuple(row for row in placing.rows() if row.host_id in shut) if shut else ()
