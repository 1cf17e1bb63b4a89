"""Who gets how many workers when the hosts cannot hold what all pools want together.

Guarantees come first, then priorities from the greatest down. Within a priority the pool that is furthest behind gets
the next worker, so the least that anybody has is as great as it can be (weighted max-min).

Source: docs/why/share.md.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from headway.errors import Invalid
from headway.scaling.conditions.member_waits import oldest_wait
from headway.scaling.decisions.worst_wait import worst_wait
from headway.scaling.model import Assignment, Decision, Host, HostState
from headway.scaling.placement.arrangement import Arrangement
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.profile import Profile
from headway.scaling.reading.sample_age import is_seen

# A pool weighs twice as much once half of its objective is used up, four times once all of it is. Steps, because a
# weight that followed every second of waiting would move workers at every tick; no more than four times, because a pool
# that cannot be saved must not take everything from those that can.
URGENCY_STEPS = ((0.5, 2.0), (1.0, 4.0))
WAITED_MAX = 2.0**100  # objectives: beyond it, who has waited longer makes no difference


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
    """The part of its queue's objective that the worst of its waits has used up."""
    waited: float = 0.0
    """The greatest part of its queue's objective that an oldest waiting job has used up."""
    present_workers: int = 0
    """What it has in place: among equals, who has a place keeps it."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What came of sharing."""

    granted: Mapping[str, int]
    """Pool -> workers, guaranteed ones included."""
    guaranteed: Mapping[str, int]
    """Pool -> how many of its guarantee have a place; all together have."""
    is_guaranteed: bool
    """Whether all guarantees have."""
    floors: Arrangement
    """Where they have it, on hosts that were empty but for what is shut."""


def shared(
    claims: Iterable[Claim],
    hosts: Sequence[Host],
    *,
    held: Iterable[Assignment] = (),
    current: Iterable[Assignment] = (),
) -> Shares:
    """What each pool gets, never more than it claims, all together never more than the known hosts can hold.

    Workers are put on the empty hosts one after the other, so that what is shared out is known to fit. Nothing is left
    that somebody wants and that fits. No pool has less because of one of lower priority, but for that one's guarantee.
    Guarantees of all sizes have their places if there is a way; scaling/placement/arrangement.py says how far one is
    searched for.

    Args:
        claims: at most one a pool.
        hosts: all hosts; what is not known has no room.
        held: rows of pools that claim nothing and stay.
        current: what is in place. It matters on hosts that keep what they have and get nothing new: nobody else could
            have these places, so who has them keeps them.
    """
    held, current = tuple(held), tuple(current)
    ranks = ranked(claims)
    ordered = [claim for rank in ranks for claim in rank]
    filling = _Filling(ordered, hosts, held, current)
    if not filling.is_guaranteed(ranks):
        filling = _Filling(ordered, hosts, held, current)
        filling.guarantee(ranks)
    guaranteed = filling.guaranteed()
    for rank in ranks:
        filling.fill(rank, {claim.pool: claim.workers for claim in rank}, filling.rooms.add)
    return Shares(
        granted=filling.granted,
        guaranteed=guaranteed,
        is_guaranteed=guaranteed == filling.wanted,
        floors=filling.floors,
    )


def ranked(claims: Iterable[Claim]) -> list[list[Claim]]:
    """The claims by their priority, the greatest first; those of one priority by their pools."""
    ordered = sorted(claims, key=lambda claim: (-claim.priority, claim.pool))
    return [list(rank) for _, rank in groupby(ordered, key=lambda claim: claim.priority)]


class _Filling:
    """Hosts that are filled, and how many workers each pool has been granted there."""

    def __init__(
        self, claims: Sequence[Claim], hosts: Sequence[Host], held: Iterable[Assignment], current: Iterable[Assignment]
    ) -> None:
        self.rooms = HostCapacities(hosts, held=held)
        self.floors = Arrangement(self.rooms)
        self.granted = dict.fromkeys((claim.pool for claim in claims), 0)
        self.wanted = {claim.pool: min(claim.guaranteed_workers, claim.workers) for claim in claims}
        self._kinds = {claim.pool: self.rooms.kind(claim.template, claim.labels) for claim in claims}
        self._keep_what_is_shut(claims, current)

    def _keep_what_is_shut(self, claims: Iterable[Claim], current: Iterable[Assignment]) -> None:
        shut = {room.host_id for room in self.rooms.shut if room.host.state is not HostState.DRAINING}
        if not shut:
            return
        kept = sorted((row for row in current if row.host_id in shut), key=lambda row: (row.pool, row.host_id))
        by_pool = {claim.pool: claim for claim in claims}
        for row in kept:
            if claim := by_pool.get(row.pool):
                wanted = min(row.workers, claim.workers - self.granted[row.pool])
                self.granted[row.pool] += self.rooms.by_host[row.host_id].keep(self._kinds[row.pool], wanted)

    def is_guaranteed(self, ranks: Iterable[Sequence[Claim]]) -> bool:
        """Whether all guarantees have their places where workers are spread as they come."""
        for rank in ranks:
            self.fill(rank, self.wanted, self.floors.add_evenly)
        return all(self.granted[pool] >= wanted for pool, wanted in self.wanted.items())

    def guarantee(self, ranks: Iterable[Sequence[Claim]]) -> None:
        """Grant the guarantees, packed tightly: those of a rank as if they were one, or one worker after the other."""
        for rank in ranks:
            missing: dict[str, int] = {}
            for claim in rank:
                kind = self._kinds[claim.pool]
                missing[kind] = missing.get(kind, 0) + max(0, self.wanted[claim.pool] - self.granted[claim.pool])
            if self.floors.add_all(missing):
                self.granted.update((each.pool, max(self.granted[each.pool], self.wanted[each.pool])) for each in rank)
            else:
                self.fill(rank, self.wanted, self.floors.add)

    def guaranteed(self) -> dict[str, int]:
        """How many of each guarantee have been granted so far."""
        return {pool: min(wanted, self.granted[pool]) for pool, wanted in self.wanted.items()}

    def fill(self, rank: Sequence[Claim], wanted: Mapping[str, int], add: Callable[[str], object]) -> None:
        """Grant up to ``wanted`` of the hosts, with ``add`` to put one worker of a kind there."""
        fill(rank, self.granted, wanted, rooms=self.rooms, kinds=self._kinds, add=add)


class Divided(Protocol):
    """What is shared out: all hosts, or the caps of groups."""

    def part_of(self, kind: str) -> float:
        """The part of all there is that one worker of ``kind`` takes, by what it takes most of."""


def fill(
    rank: Sequence[Claim],
    granted: dict[str, int],
    wanted: Mapping[str, int],
    *,
    rooms: Divided,
    kinds: Mapping[str, str],
    add: Callable[[str], object],
) -> None:
    """Grant up to ``wanted``: always one more worker to the pool that is furthest behind and has a place for it.

    How far a pool is, is the part of all there is that its workers take, by what they take most of, over its weight.

    Args:
        rank: claims of one priority.
        granted: pool -> workers; those that are granted here are added to it.
        wanted: pool -> how far it is granted at most.
        rooms: what is shared out.
        kinds: pool -> the kind of its workers.
        add: puts one worker of a kind into its place; false if there is none.

    Source: A. Ghodsi et al., "Dominant Resource Fairness", NSDI 2011; for hosts that differ "Choosy", EuroSys 2013.
    """
    by_pool = {claim.pool: claim for claim in rank}
    paces = {claim.pool: pace_of(claim, rooms, kinds[claim.pool]) for claim in rank}
    behind = [
        _turn(claim, granted[claim.pool], pace=paces[claim.pool])
        for claim in rank
        if granted[claim.pool] < wanted[claim.pool]
    ]
    heapq.heapify(behind)
    while behind:
        pool = behind[0][-1]
        if not add(kinds[pool]):
            heapq.heappop(behind)
            continue
        granted[pool] += 1
        if granted[pool] == wanted[pool]:
            heapq.heappop(behind)
        else:
            heapq.heapreplace(behind, _turn(by_pool[pool], granted[pool], pace=paces[pool]))


def _turn(claim: Claim, granted_workers: int, *, pace: float) -> tuple[float, int, bool, float, str]:
    """Orders claims of one priority: the least is next. Of those that are equally far behind, who has a place keeps it.

    Else the one that goes without would be the more urgent each time, and the place would change hands at every
    evaluation. It passes on once a job has waited for twice as long as any of the holder's, so that nobody is left out.
    """
    is_new = granted_workers >= claim.present_workers
    return granted_workers * pace, -_doublings(claim.waited), is_new, -claim.urgency, claim.pool


def _doublings(waited: float) -> int:
    """1 from half an objective on, 2 from a whole one, 3 from two, 4 from four: so a place seldom passes on."""
    if waited < URGENCY_STEPS[0][0]:
        return 0
    return 1 + math.floor(math.log2(min(waited, WAITED_MAX) / URGENCY_STEPS[0][0]))


def pace_of(claim: Claim, rooms: Divided, kind: str) -> float:
    """How far one worker more brings the pool."""
    return rooms.part_of(kind) / (claim.weight * urgency_weight(claim.urgency))


def urgency_weight(urgency: float) -> float:
    """How much more a pool weighs for the part of its objective that is used up; never falls as that rises."""
    return max((weight for from_urgency, weight in URGENCY_STEPS if urgency >= from_urgency), default=1.0)


def urgency(decision: Decision, profile: Profile) -> float:
    """The part of its queue's objective that the worst of the pool's waits, past or predicted, has used up.

    It is 0 if no wait is known.
    """
    wait = worst_wait(decision, profile)
    return 0.0 if wait is None else wait.used


def waited(decision: Decision, profile: Profile) -> float:
    """The greatest part of its queue's objective that an oldest waiting job has used up; 0 if no age is known."""
    wait = oldest_wait(profile, filter(is_seen, decision.metrics))
    return 0.0 if wait is None else wait.used
