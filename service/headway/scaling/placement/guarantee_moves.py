"""Moves for guarantees that have no place where others stand: guaranteed workers move, too, as few as may be."""

from collections.abc import Mapping, Sequence

from headway.scaling.placement.arrangement import Arrangement
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import Part
from headway.scaling.placement.worker_placer import Placing

GUARANTEE_MOVES_MAX = 50  # guaranteed workers that move at one evaluation; the next goes on

Parts = Mapping[str, Sequence[Part]]
Counts = dict[str, dict[str, int]]
"""Pool, or kind -> host id -> guaranteed workers there."""


def moved_for_guarantees(
    placing: Placing, parts: Parts, guaranteed: Mapping[str, int], witness: Arrangement, *, moves_max: int
) -> int:
    """Give every pool as many places as are ``guaranteed``, or as many as few enough moves give.

    Args:
        placing: where all workers are; it is changed.
        parts: by pool, those first that come first.
        guaranteed: pool -> workers. They are known to fit together where ``witness`` has them.
        witness: where they fit, whatever is in place.
        moves_max: so many guaranteed workers may move.

    Returns:
        Guaranteed workers that moved.
    """
    owed = {pool: guaranteed[pool] - _where_shut(placing, each) for pool, each in parts.items()}
    owed = {pool: workers for pool, workers in owed.items() if workers > 0}
    own = {pool: _own(placing, parts[pool], workers) for pool, workers in owed.items()}
    slots, found = _slots_from_here(placing, parts, owed, own, moves_max=moves_max)
    ways = [_places(parts, found, slots, own)]
    if found != owed:
        there = {pool: {host: _there(parts[pool], host) for host in placing.rooms.by_host} for pool in owed}
        ways.insert(0, _places(parts, owed, _slots(witness), there))
    for places in ways:
        if places is not None and (moves := _moves(placing, parts, places)) <= moves_max:
            _move(placing, parts, places)
            return moves
    return 0


def _where_shut(placing: Placing, parts: Sequence[Part]) -> int:
    rooms = placing.rooms
    return sum(
        workers
        for part in parts
        for host_id, workers in part.by_host.items()
        if workers and not rooms.is_open(rooms.by_host[host_id])
    )


def _there(parts: Sequence[Part], host_id: str) -> int:
    return sum(part.by_host.get(host_id, 0) for part in parts)


def _slots_from_here(
    placing: Placing, parts: Parts, owed: Mapping[str, int], own: Counts, *, moves_max: int
) -> tuple[Counts, dict[str, int]]:
    """Slots for those that are owed some, as few moves away from their ``own`` as can be, and for how many of each."""
    arrangement = Arrangement(placing.bare_rooms(), moves_max=moves_max)
    found: dict[str, int] = {}
    for pool, by_host in own.items():
        for host_id, workers in by_host.items():
            arrangement.put(host_id, parts[pool][0].kind, workers)
        found[pool] = sum(by_host.values())
    for pool in sorted(owed, key=lambda each: _largest_first(arrangement.rooms, parts[each][0])):
        while found[pool] < owed[pool] and arrangement.add(parts[pool][0].kind):
            found[pool] += 1
    return _slots(arrangement), {pool: workers for pool, workers in found.items() if workers}


def _largest_first(rooms: HostCapacities, part: Part) -> tuple[int, float, str]:
    """Greatest priority first, and of these the largest."""
    return -part.target.priority, -rooms.part_of(part.kind), part.target.pool


def _own(placing: Placing, parts: Sequence[Part], workers: int) -> dict[str, int]:
    """Up to so many ``workers`` of a pool by open host, from those with the most first."""
    there = {host_id: _there(parts, host_id) for part in parts for host_id in part.by_host}
    own: dict[str, int] = {}
    for host_id in sorted(there, key=lambda each: (-there[each], each)):
        if there[host_id] and placing.rooms.is_open(placing.rooms.by_host[host_id]):
            own[host_id] = min(there[host_id], workers - sum(own.values()))
    return {host_id: count for host_id, count in own.items() if count}


def _slots(arrangement: Arrangement) -> Counts:
    slots: Counts = {}
    for host_id, counts in sorted(arrangement.by_host.items()):
        for kind, workers in counts.items():
            slots.setdefault(kind, {})[host_id] = workers
    return slots


def _places(parts: Parts, owed: Mapping[str, int], slots: Counts, own: Counts) -> Counts | None:
    """Which pool has which of the slots of its kind: its ``own`` first. ``None`` if they do not suffice."""
    left = {kind: dict(by_host) for kind, by_host in slots.items()}
    places: Counts = {pool: {} for pool in owed}
    for is_own in (True, False):
        for pool, workers in owed.items():
            free = left.get(parts[pool][0].kind, {})
            for host_id in free:
                wanted = workers - sum(places[pool].values())
                taken = min(wanted, free[host_id], own[pool].get(host_id, 0) if is_own else wanted)
                if taken:
                    places[pool][host_id] = places[pool].get(host_id, 0) + taken
                    free[host_id] -= taken
    return places if all(sum(places[pool].values()) == workers for pool, workers in owed.items()) else None


def _moves(placing: Placing, parts: Parts, places: Counts) -> int:
    """Workers that are to be on another host of ``places`` than they are."""
    moves = 0
    for pool, by_host in places.items():
        coming = sum(max(0, workers - _there(parts[pool], host_id)) for host_id, workers in by_host.items())
        moves += coming - max(0, _owed(placing, parts[pool], by_host) - placing.placed(pool))
    return moves


def _owed(placing: Placing, parts: Sequence[Part], by_host: Mapping[str, int]) -> int:
    return sum(by_host.values()) + _where_shut(placing, parts)


def _move(placing: Placing, parts: Parts, places: Counts) -> None:
    """Have the guaranteed workers in their places, and let others make way where they have come."""
    crowded = set()
    for pool, by_host in places.items():
        coming = {
            host_id: workers - _there(parts[pool], host_id)
            for host_id, workers in by_host.items()
            if workers > _there(parts[pool], host_id)
        }
        owed = _owed(placing, parts[pool], by_host)
        leaving = placing.placed(pool) + sum(coming.values()) - max(placing.placed(pool), owed)
        _leave(placing, parts[pool], leaving, staying=by_host)
        for host_id, workers in coming.items():
            crowded.add(host_id)
            for _ in range(workers):
                placing.put(next(part for part in parts[pool] if part.missing > 0), host_id, 1)
    for host_id in sorted(crowded):
        room = placing.rooms.by_host[host_id]
        if min(room.left) < 0:
            placing.refill(room, _fixed(parts, places, host_id))


def _leave(placing: Placing, parts: Sequence[Part], workers: int, *, staying: Mapping[str, int]) -> None:
    """Let go ``workers`` of a pool, of open hosts on which it has more than are ``staying``, idle ones first."""
    for _ in range(workers):
        going = [
            (placing.busy.next_does(part, host_id), host_id, part)
            for part in parts
            for host_id, there in part.by_host.items()
            if there
            and _there(parts, host_id) > staying.get(host_id, 0)
            and placing.rooms.is_open(placing.rooms.by_host[host_id])
        ]
        _, host_id, part = min(going, key=lambda each: each[:2])
        placing.put(part, host_id, -1)


def _fixed(parts: Parts, places: Counts, host_id: str) -> dict[Part, int]:
    """Which workers of a host stay there: base workers rather than burst ones."""
    fixed: dict[Part, int] = {}
    for pool, by_host in places.items():
        workers = by_host.get(host_id, 0)
        for part in parts[pool]:
            fixed[part] = min(workers, part.by_host.get(host_id, 0))
            workers -= fixed[part]
    return fixed
