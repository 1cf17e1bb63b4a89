"""How the pools of a group share its cap: by guarantee, priority and weight, by the rule that shares hosts.

A cap counts every worker that exists or may exist: those that start, those that leave until they are gone, and those
that may still run on unreachable hosts.

Source: docs/why/share.md, "Groups".
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.scaling.allocation.fair_share import Claim, fill, ranked
from headway.scaling.allocation.unreachable_hosts import leaving_workers, unknown_workers
from headway.scaling.group import Group, memberships
from headway.scaling.model import Assignment, Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """The workers of each pool that exist or may exist, in three parts that have none in common."""

    assigned: Mapping[str, int]
    """On known hosts, those that drain included."""
    leaving: Mapping[str, int]
    unknown: Mapping[str, int]

    def of(self, pool: str) -> int:
        """All of one pool."""
        return self.assigned.get(pool, 0) + self.leaving.get(pool, 0) + self.unknown.get(pool, 0)


def existing(hosts: Sequence[Host], rows: Iterable[Assignment]) -> Existing:
    """The workers that ``rows`` assign to known hosts, and those that exist or may exist beside these."""
    there = tuple({(row.pool, row.host_id): row for row in rows}.values())
    known = {host.host_id for host in hosts if host.is_known}
    assigned: Counter[str] = Counter()
    for row in there:
        if row.host_id in known:
            assigned[row.pool] += row.workers
    return Existing(assigned=assigned, leaving=leaving_workers(hosts, there), unknown=unknown_workers(hosts, there))


class CapRooms:
    """What is left of the caps of groups, and what one worker of each pool takes of them. It is filled and emptied."""

    def __init__(self, groups: Iterable[Group], slots: Mapping[str, int]) -> None:
        """Whole caps; ``slots`` are those of one worker of each pool, 1 where it is not among them."""
        self._groups = tuple(groups)
        self._of_pool = memberships(self._groups)
        self._slots = slots
        self.left = {group.name: group.cap for group in self._groups}
        """Group -> what is left, in its unit; negative where more exists than the cap allows."""

    def groups_of(self, pool: str) -> Sequence[Group]:
        """The groups of ``pool``, by their names."""
        return self._of_pool.get(pool, ())

    def units(self, group: Group, pool: str, workers: int = 1) -> int:
        """What so many workers of ``pool`` take of ``group``."""
        return group.units(self._slots.get(pool, 1)) * workers

    def take(self, pool: str, workers: int) -> None:
        """Take so many workers of ``pool`` off all its groups, whether they have room or not."""
        for group in self.groups_of(pool):
            self.left[group.name] -= self.units(group, pool, workers)

    def fitting(self, pool: str) -> int | None:
        """How many more workers of ``pool`` all its groups have room for; ``None`` if it is in no group."""
        rooms = [self.left[group.name] // self.units(group, pool) for group in self.groups_of(pool)]
        return max(0, min(rooms)) if rooms else None

    def keep(self, pool: str, workers: int) -> int:
        """As many of ``workers`` as there is room for, which they take."""
        fitting = self.fitting(pool)
        kept = workers if fitting is None else min(workers, fitting)
        self.take(pool, kept)
        return kept

    def add(self, pool: str) -> bool:
        """Put one worker of ``pool`` into all its groups. Returns whether they have room for it."""
        return self.keep(pool, 1) == 1

    def part_of(self, pool: str) -> float:
        """The greatest part of a cap that one worker of ``pool`` takes."""
        return max((self.units(group, pool) / group.cap for group in self.groups_of(pool)), default=0.0)

    def full(self, pool: str) -> frozenset[str]:
        """The names of its groups that have no room for one worker more."""
        return frozenset(
            group.name for group in self.groups_of(pool) if self.left[group.name] < self.units(group, pool)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShares:
    """What came of sharing caps, of pools that are in groups."""

    granted: Mapping[str, int]
    """Pool -> workers."""
    full: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Pool that is granted less than it claims -> the groups that have no room for one worker more."""


def shared_caps(claims: Iterable[Claim], rooms: CapRooms) -> GroupShares:
    """What each pool gets of ``rooms``, never more than it claims, all together never more than there is room for.

    Guarantees come first, then priorities from the greatest down; within one, the pool that is furthest behind. Claims
    of pools that are in no group are passed over.
    """
    ranks = ranked(claim for claim in claims if rooms.groups_of(claim.pool))
    claimed = {claim.pool: claim.workers for rank in ranks for claim in rank}
    granted = dict.fromkeys(claimed, 0)
    guaranteed = {each.pool: min(each.guaranteed_workers, each.workers) for rank in ranks for each in rank}
    kinds = {pool: pool for pool in claimed}
    for wanted in (guaranteed, claimed):
        for rank in ranks:
            fill(rank, granted, wanted, rooms=rooms, kinds=kinds, add=rooms.add)
    full = {pool: rooms.full(pool) for pool, workers in claimed.items() if granted[pool] < workers}
    return GroupShares(granted=granted, full=full)
