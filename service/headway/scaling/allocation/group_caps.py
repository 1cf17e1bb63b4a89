"""The caps of all groups at one moment, and the workers that count against them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from headway.scaling.allocation.fair_share import Claim
from headway.scaling.allocation.group_share import CapRooms, Existing, GroupShares, existing, shared_caps
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.group import Group, memberships
from headway.scaling.model import Assignment, Host, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCaps:
    """The groups, and what exists or may exist of each pool."""

    groups: tuple[Group, ...]
    of_pool: Mapping[str, tuple[Group, ...]]
    """Pool -> the groups that it is in, by their names."""
    slots: Mapping[str, int]
    """Pool -> the slots of one of its workers, on the host where it has the most."""
    there: Existing
    listed: Mapping[str, int] = field(default_factory=dict)
    """Pool that others scale -> its workers, as its broker lists them."""
    is_any_unconfirmed: bool = False
    """Whether a host may run what is not known here, as after the restore of a backup."""

    @classmethod
    def of(
        cls, groups: Iterable[Group], outcomes: Iterable[Outcome], hosts: Sequence[Host], rows: Iterable[Assignment]
    ) -> Self:
        """The caps of ``groups``, whose order changes nothing, beside what ``hosts`` and ``rows`` say."""
        ordered = tuple(sorted(groups, key=lambda group: group.name))
        pools = memberships(ordered)
        there, members = tuple(rows), [each for each in outcomes if each.decision.pool in pools]
        return cls(
            groups=ordered,
            of_pool=pools,
            slots=_slots(members, hosts, there, pools) if any(group.is_in_slots for group in ordered) else {},
            there=existing(hosts, there),
            listed={
                outcome.decision.pool: outcome.view.running_workers + outcome.view.starting_workers
                for outcome in members
                if outcome.decision.mode is Mode.RECOMMEND
            },
            is_any_unconfirmed=any(host.is_known and not host.is_confirmed for host in hosts),
        )

    @property
    def is_any_unknown(self) -> bool:
        """Whether any worker of a group may run on an unreachable host."""
        return any(self.there.unknown.get(pool, 0) for pool in self.of_pool)

    def groups_of(self, pool: str) -> Sequence[Group]:
        """The groups of ``pool``."""
        return self.of_pool.get(pool, ())

    def shared(self, claims: Sequence[Claim], *, busy: Mapping[str, int]) -> GroupShares:
        """What each pool gets beside what may run on unreachable hosts and what others scale.

        What leaves takes nothing of a share: starts wait until it is gone (``startable``). Unknown workers keep others
        from being started, but no ``busy`` worker is asked to leave for them; ``busy`` holds workers by pool, and only
        matters while workers are unknown.
        """
        claiming = {claim.pool for claim in claims}
        rooms = self._rooms()
        for pool in self.of_pool:
            if pool not in claiming:
                rooms.take(pool, self._existing(pool))
        within = dict(rooms.left)
        for pool in claiming:
            rooms.take(pool, self.there.unknown.get(pool, 0))
        for group in self.groups:
            at_work = sum(rooms.units(group, pool, busy.get(pool, 0)) for pool in group.pools)
            rooms.left[group.name] = max(rooms.left[group.name], min(within[group.name], at_work))
        return shared_caps(claims, rooms)

    def taken(self, granted: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Group -> what each of its pools takes, in its unit: its share, what is unknown, and what others scale."""
        rooms = self._rooms()
        workers = {
            pool: granted[pool] + self.there.unknown.get(pool, 0) if pool in granted else self._existing(pool)
            for pool in self.of_pool
        }
        return {
            group.name: {pool: rooms.units(group, pool, workers[pool]) for pool in group.pools} for group in self.groups
        }

    def ceilings_while_moving(
        self, ceilings: Mapping[str, int], targets: Mapping[str, int], on_draining: Mapping[str, int]
    ) -> dict[str, int]:
        """How many may exist of each pool that leaves a draining host, its present workers included.

        Args:
            ceilings: what each of these pools may have by itself.
            targets: what each pool is to have in all.
            on_draining: the workers of each of these pools that exist on draining hosts.
        """
        rooms = self._rooms()
        for pool in self.of_pool:
            beside = self.there.leaving.get(pool, 0) + self.there.unknown.get(pool, 0)
            rooms.take(pool, max(targets.get(pool, 0) + beside, self._existing(pool)))
        found = {}
        for pool in sorted(ceilings):
            more = min(on_draining[pool], ceilings[pool] - targets[pool])
            found[pool] = targets[pool] + rooms.keep(pool, more) if rooms.groups_of(pool) else ceilings[pool]
        return found

    def startable(self) -> CapRooms:
        """What the caps have left for starts now, beside every worker that exists or may exist."""
        rooms = self._rooms()
        for pool in self.of_pool:
            rooms.take(pool, self._existing(pool))
        if self.is_any_unconfirmed:
            rooms.left = dict.fromkeys(rooms.left, 0)
        return rooms

    def _rooms(self) -> CapRooms:
        return CapRooms(self.groups, self.slots)

    def _existing(self, pool: str) -> int:
        return max(self.there.of(pool), self.listed.get(pool, 0))


def _slots(
    outcomes: Iterable[Outcome], hosts: Iterable[Host], rows: Iterable[Assignment], pools: Iterable[str]
) -> dict[str, int]:
    """Pool -> the slots of one of its workers, on the host where it has the most; not known is 1."""
    of_template: dict[str, int] = {}
    for host in hosts:
        for template in host.templates:
            of_template[template.name] = max(template.slots, of_template.get(template.name, 1))
    slots = dict.fromkeys(pools, 1)
    for outcome in outcomes:
        pool, template_name = outcome.decision.pool, outcome.view.profile.template
        slots[pool] = max(outcome.view.slots_per_worker, of_template.get(template_name, 1))
    for row in rows:
        if row.pool in slots:
            slots[row.pool] = max(slots[row.pool], of_template.get(row.template, 1))
    return slots
