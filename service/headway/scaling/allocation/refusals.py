"""Why a guaranteed worker has no place, and what would help.

The sentences name what others are guaranteed, not what happens to run: they stay the same while neither hosts nor
profiles change.
"""

from collections.abc import Iterable, Mapping, Sequence

from headway.scaling.allocation.fair_share import Claim
from headway.scaling.model import HostState
from headway.scaling.placement.arrangement import Amounts, does_hold, emptied
from headway.scaling.placement.host_capacity import MICRO, RemainingCapacity
from headway.scaling.placement.host_choice import HostCapacities

GIB, MIB = 2**30, 2**20
MORE_MOVES = "there is a place, but it takes more moves than one evaluation makes: the next goes on"
TOO_MANY_MOVES = "there is a place only if more guaranteed workers move at once than one evaluation moves"
REFUSAL_NAMES_MAX = 2  # of pools that could give way; a list of all would help nobody

Floors = Mapping[str, Mapping[str, int]]
"""Host id -> kind -> guaranteed workers there."""


class Refusals:
    """Reasons by kind of worker: pools of the same kind stand before the same hosts."""

    def __init__(self, rooms: HostCapacities, *, floors: Floors | None = None, claims: Iterable[Claim] = ()) -> None:
        """Reasons for what has no place in ``rooms``.

        Args:
            rooms: with the workers in them that have their place before.
            floors: those of them that could be guaranteed less.
            claims: those of their pools.
        """
        self._rooms = rooms
        self._floors = floors or {}
        self._claims = tuple(claims)
        self._reasons: dict[str, tuple[str, Sequence[str]]] = {}

    def of(self, claim: Claim) -> str:
        """What stands in the way of one more worker of ``claim``, and what would help."""
        kind = self._rooms.kind(claim.template, claim.labels)
        if kind not in self._reasons:
            self._reasons[kind] = self._reason(claim, kind)
        reason, in_the_way = self._reasons[kind]
        return _or_less(claim, reason, in_the_way)

    def of_moves(self, claim: Claim) -> str:
        """The same where one more worker of ``claim`` has a place, but one that is too far from what is in place."""
        kind = self._rooms.kind(claim.template, claim.labels)
        serving = [room for room in self._rooms.by_host.values() if kind in room.costs and self._rooms.is_open(room)]
        cost = _amounts(serving[0].costs[kind], range(3))
        return _or_less(claim, f"{TOO_MANY_MOVES}; add a host of {cost}", self._in_the_way(serving))

    def _reason(self, claim: Claim, kind: str) -> tuple[str, Sequence[str]]:
        able = [room for room in self._rooms.by_host.values() if kind in room.costs]
        serving = [room for room in able if self._rooms.is_open(room)]
        if not serving:
            return _all_shut(claim, able, kind), ()
        bare = {room.host_id: emptied(room, self._floors) for room in serving}
        if not any(does_hold(bare[room.host_id], room.costs[kind]) for room in serving):
            return _too_large(serving, kind, bare), ()
        if not any(room.fitting(kind) for room in serving):
            return _in_pieces(serving, kind), self._in_the_way(serving)
        if self._floors:
            return (
                "no place was found in the steps that a search may take; fewer sizes of worker are easier to place",
                (),
            )
        cost = _amounts(serving[0].costs[kind], range(3))
        return f"the hosts with template {claim.template!r} hold no more; add a host of {cost}", ()

    def _in_the_way(self, serving: Iterable[RemainingCapacity]) -> list[str]:
        """Pools that are guaranteed workers there: of the least priority first, then of the largest workers."""
        kinds = {kind for room in serving for kind, workers in self._floors.get(room.host_id, {}).items() if workers}
        found = [
            (claim.priority, -self._rooms.part_of(kind), claim.pool)
            for claim in self._claims
            if claim.guaranteed_workers and claim.workers
            for kind in [self._rooms.kind(claim.template, claim.labels)]
            if kind in kinds
        ]
        return [pool for _, _, pool in sorted(found)[: REFUSAL_NAMES_MAX + 1]]


def _or_less(claim: Claim, reason: str, in_the_way: Iterable[str]) -> str:
    pools = [pool for pool in in_the_way if pool != claim.pool][:REFUSAL_NAMES_MAX]
    return f"{reason}, or lower what {' or '.join(pools)} is guaranteed" if pools else reason


def _all_shut(claim: Claim, able: Sequence[RemainingCapacity], kind: str) -> str:
    if not able:
        return f"no known host has template {claim.template!r} with what the pool asks of a host"
    names = ", ".join(sorted(room.host.name for room in able)[:REFUSAL_NAMES_MAX])
    state, cure = "is cordoned, draining or short of memory", "uncordon one"
    if all(room.host.state is HostState.CORDONED for room in able):
        state = "is cordoned"
    elif not any(room.host.can_write for room in able):
        state, cure = "cannot write to its state or log folder", "make room on one"
    elif not all(room.host.can_write for room in able):
        state, cure = f"{state}, or cannot write to its state or log folder", "uncordon or mend one"
    return (
        f"every host with template {claim.template!r} {state} ({names}); "
        f"{cure} or add a host of {_amounts(able[0].costs[kind], range(3))}"
    )


def _too_large(serving: Sequence[RemainingCapacity], kind: str, bare: Mapping[str, Amounts]) -> str:
    lacking = [at for at in range(3) if any(bare[room.host_id][at] < room.costs[kind][at] for room in serving)]
    best = max(serving, key=lambda room: _part_of(bare[room.host_id], room.costs[kind], lacking))
    cost = _amounts(best.costs[kind], lacking)
    has = _amounts(bare[best.host_id], lacking)
    return (
        f"one takes {cost}, and no host is that large (largest: {has} on host {best.host.name}); add a host of {cost}"
    )


def _in_pieces(serving: Sequence[RemainingCapacity], kind: str) -> str:
    lacking = [at for at in range(3) if any(room.left[at] < room.costs[kind][at] for room in serving)]
    best = max(serving, key=lambda room: _part_of(room.left, room.costs[kind], lacking))
    cost, has = _amounts(best.costs[kind], lacking), _amounts(best.left, lacking)
    return (
        f"beside what is guaranteed no host has {cost} left at once (most: {has} on host {best.host.name}); "
        f"add a host of {cost}"
    )


def _part_of(left: Amounts, cost: Amounts, lacking: Sequence[int]) -> float:
    """How much of what one takes and some host lacks is there, by what there is least of."""
    return min((left[at] / cost[at] for at in lacking), default=0.0)


def _amounts(amounts: Sequence[int], which: Sequence[int]) -> str:
    said = [_AMOUNTS[at](max(0, amounts[at])) for at in which if amounts[at] or len(which) == 1]
    return " and ".join(said) or "nothing"


def _cores(micro: int) -> str:
    cores = micro / MICRO
    return f"{cores:g} {'core' if cores == 1 else 'cores'}"


def _memory(size: int) -> str:
    return f"{size / GIB:.3g} GiB of memory" if size >= GIB else f"{size / MIB:.3g} MiB of memory"


def _gpus(count: int) -> str:
    return f"{count} {'GPU' if count == 1 else 'GPUs'}"


_AMOUNTS = (_cores, _memory, _gpus)
