"""Who gets how many workers when the hosts cannot hold what all pools want together.

Guarantees come first, then priorities from the greatest down. Within a priority the pool that is furthest behind gets
the next worker, so the least that anybody has is as great as it can be (weighted max-min).

Source: docs/why/share.md.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from headway.errors import Invalid
from headway.scaling.decide import worst_wait_s
from headway.scaling.model import Assignment, Decision, Host, HostState
from headway.scaling.room import Rooms

# A pool weighs twice as much once half of its objective is used up, four times once all of it is. Steps, because a
# weight that followed every second of waiting would move workers at every tick; no more than four times, because a pool
# that cannot be saved must not take everything from those that can.
URGENCY_STEPS = ((0.5, 2.0), (1.0, 4.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a pool wants of the hosts."""

    pool: str
    template: str
    workers: int
    guaranteed_workers: int = 0
    """How many of them come before anybody's further wishes."""
    priority: int = 100
    weight: float = 1.0
    urgency: float = 0.0
    """The part of its objective that the worst of its waits has used up."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a host, or the template there, must be labelled with."""

    def __post_init__(self) -> None:
        breaches = []
        if self.workers < 0 or self.guaranteed_workers < 0:
            breaches.append(f"workers={self.workers}, guaranteed_workers={self.guaranteed_workers}: none is negative")
        if not self.weight > 0:
            breaches.append(f"weight={self.weight} must be above 0")
        if breaches:
            raise Invalid(*(f"claim of pool {self.pool!r}: {breach}" for breach in breaches))


def share(
    claims: Iterable[Claim],
    hosts: Sequence[Host],
    *,
    held: Iterable[Assignment] = (),
    current: Iterable[Assignment] = (),
) -> dict[str, int]:
    """Pool -> workers, never more than it claims, all together never more than the known hosts can hold.

    Workers are put on the empty hosts one after the other, so that what is shared out is known to fit. Nothing is left
    that somebody wants and that fits. No pool has less because of one of lower priority, but for that one's guarantee.

    Args:
        claims: at most one a pool.
        hosts: all hosts; what is not known has no room.
        held: rows of pools that claim nothing and stay.
        current: what is in place. It matters on hosts that keep what they have and get nothing new: nobody else could
            have these places, so who has them keeps them.
    """
    ordered = sorted(claims, key=lambda claim: (-claim.priority, claim.pool))
    rooms = Rooms(hosts, held=held)
    granted = dict.fromkeys((claim.pool for claim in ordered), 0)
    _keep_what_is_shut(ordered, current, granted, rooms)
    ranks = [list(rank) for _, rank in groupby(ordered, key=lambda claim: claim.priority)]
    for rank in ranks:
        _fill(rank, {claim.pool: min(claim.guaranteed_workers, claim.workers) for claim in rank}, granted, rooms)
    for rank in ranks:
        _fill(rank, {claim.pool: claim.workers for claim in rank}, granted, rooms)
    return granted


def _keep_what_is_shut(
    claims: Iterable[Claim], current: Iterable[Assignment], granted: dict[str, int], rooms: Rooms
) -> None:
    shut = {room.host_id for room in rooms.shut if room.host.state is not HostState.DRAINING}
    if not shut:
        return
    kept = sorted((row for row in current if row.host_id in shut), key=lambda row: (row.pool, row.host_id))
    by_pool = {claim.pool: claim for claim in claims}
    for row in kept:
        if claim := by_pool.get(row.pool):
            wanted = min(row.workers, claim.workers - granted[row.pool])
            kind = rooms.kind(claim.template, claim.labels)
            granted[row.pool] += rooms.by_host[row.host_id].keep(kind, wanted)


def _fill(rank: Iterable[Claim], wanted: Mapping[str, int], granted: dict[str, int], rooms: Rooms) -> None:
    """Grant up to ``wanted``: always one more worker to the pool that is furthest behind and has a place for it.

    How far a pool is, is the part of all hosts that its workers take, by what they take most of, over its weight.

    Source: A. Ghodsi et al., "Dominant Resource Fairness", NSDI 2011; "Choosy", EuroSys 2013, for hosts that differ.
    """
    kinds = {claim.pool: rooms.kind(claim.template, claim.labels) for claim in rank}
    paces = {
        claim.pool: rooms.part_of(kinds[claim.pool]) / (claim.weight * urgency_weight(claim.urgency)) for claim in rank
    }
    behind = [
        (granted[claim.pool] * paces[claim.pool], -claim.urgency, claim.pool, kinds[claim.pool])
        for claim in rank
        if granted[claim.pool] < wanted[claim.pool]
    ]
    heapq.heapify(behind)
    while behind:
        _, calm, pool, kind = behind[0]
        if rooms.add(kind) is None:
            heapq.heappop(behind)
            continue
        granted[pool] += 1
        if granted[pool] == wanted[pool]:
            heapq.heappop(behind)
        else:
            heapq.heapreplace(behind, (granted[pool] * paces[pool], calm, pool, kind))


def urgency_weight(urgency: float) -> float:
    """How much more a pool weighs for the part of its objective that is used up; never falls as that rises."""
    return max((weight for from_urgency, weight in URGENCY_STEPS if urgency >= from_urgency), default=1.0)


def urgency(decision: Decision) -> float:
    """The part of the objective that the worst of the pool's waits, past or predicted, has used up; 0 if not known."""
    if decision.objective is None:
        return 0.0
    return (worst_wait_s(decision) or 0.0) / decision.objective.target_s
