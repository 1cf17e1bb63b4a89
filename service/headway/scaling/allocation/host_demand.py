"""How many hosts more would be right for the workers that have no place.

A sort of host is defined by what it can run: pools whose workers may be on the same hosts want the same sort. The
number is of this moment; for how long it has been so stands beside it, and who adds or removes hosts goes by that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.scaling.decisions.group_uses import GROUP_SHARE
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Decision, Host, Mode
from headway.scaling.placement.host_capacity import HOST_PROCESSES_MAX, RemainingCapacity
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import placed_workers

CUTS = frozenset({"capacity", "share"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsWanted:
    """Hosts of one sort that are missing."""

    hosts: int | None
    """So many of the typical size; ``None`` where no host that could run it was ever seen."""
    workers: int = 0
    """Those that have no place."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the pools ask of a host."""
    templates: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    since_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Sort:
    labels: Mapping[str, str]
    workers: dict[str, int] = field(default_factory=dict)
    """By kind."""
    templates: set[str] = field(default_factory=set)
    pools: set[str] = field(default_factory=set)


def hosts_wanted(
    outcomes: Iterable[Outcome],
    rows: Iterable[Assignment],
    hosts: Sequence[Host],
    *,
    before: Sequence[HostsWanted] = (),
    now_s: float,
) -> tuple[HostsWanted, ...]:
    """The hosts for which there is work and no room, by what they must be able to run.

    Args:
        outcomes: one a pool, as ``allocate`` left them.
        rows: where their workers are.
        hosts: all hosts.
        before: the last result; its times are continued.
        now_s: the time that what is new dates from.
    """
    known = {host.host_id for host in hosts if host.is_known}
    placed = placed_workers(row for row in rows if row.host_id in known)
    empty = _EmptyHosts(hosts)
    sorts: dict[object, _Sort] = {}
    for outcome in outcomes:
        workers = _lacking(outcome.decision, placed.get(outcome.decision.pool, 0))
        if not workers:
            continue
        profile = outcome.view.profile
        labels = profile.placement.labels
        kind, able = empty.able(profile.template, labels)
        sort = sorts.setdefault(able or kind, _Sort(labels=labels))
        sort.workers[kind] = sort.workers.get(kind, 0) + workers
        sort.templates.add(profile.template)
        sort.pools.add(profile.pool)
    found = (
        HostsWanted(
            hosts=empty.hosts_for(sort.workers),
            workers=sum(sort.workers.values()),
            labels=dict(sort.labels),
            templates=tuple(sorted(sort.templates)),
            pools=tuple(sorted(sort.pools)),
            since_s=_since_s(sort, before, now_s=now_s),
        )
        for sort in sorts.values()
    )
    return tuple(sorted(found, key=lambda each: (each.templates, each.pools)))


def _lacking(decision: Decision, placed: int) -> int:
    """Workers that the pool would have if there were room."""
    if decision.mode is Mode.RECOMMEND:
        return 0
    wanted = decision.target_workers
    if decision.binding in CUTS:
        at = next(index for index, step in enumerate(decision.steps) if step.name in CUTS)
        # What a group's cap took away, no host could bring back.
        shares = [step.workers for step in decision.steps if step.name == GROUP_SHARE]
        wanted = min([decision.steps[at - 1].workers, *shares])
    return max(0, wanted - placed)


class _EmptyHosts:
    """What hosts could hold if they were empty. Hosts that are unreachable or shut count."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._rooms: HostCapacities | None = None
        self._able: dict[str, frozenset[str]] = {}

    def able(self, template: str, labels: Mapping[str, str]) -> tuple[str, frozenset[str]]:
        """The kind of such a worker, and the ids of the hosts that could hold one."""
        if self._rooms is None:  # most evaluations leave nobody without a place
            self._rooms = HostCapacities([replace(host, is_known=True) for host in self._hosts])
        kind = self._rooms.kind(template, labels)
        if kind not in self._able:
            rooms = self._rooms.by_host.values()
            self._able[kind] = frozenset(room.host_id for room in rooms if 0 < room.fitting(kind) < HOST_PROCESSES_MAX)
        return kind, self._able[kind]

    def hosts_for(self, workers: Mapping[str, int]) -> int | None:
        """How many hosts of the typical size hold so many of each kind, all of which may be on the same hosts."""
        rooms = [] if self._rooms is None else list(self._rooms.by_host.values())
        sizes = {
            room: sum(count / room.fitting(kind) for kind, count in workers.items())
            for room in rooms
            if all(room.host_id in self._able[kind] for kind in workers)
        }
        if not sizes:
            return None
        by_size = sorted(sizes, key=lambda room: (-sizes[room], room.left))
        return _filled(by_size[(len(by_size) - 1) // 2], workers)


def _filled(typical: RemainingCapacity, workers: Mapping[str, int]) -> int:
    """How many hosts like ``typical`` are filled: the largest workers come first, each where it leaves the least."""
    rooms: list[RemainingCapacity] = []
    for kind in sorted(workers, key=lambda kind: (typical.fitting(kind), kind)):
        left = workers[kind]
        rooms.sort(key=lambda room: -room.load)
        for room in rooms:
            left -= room.keep(kind, left)
        while left:
            room = RemainingCapacity(typical.host)
            room.costs = typical.costs
            left -= room.keep(kind, left)
            rooms.append(room)
    return len(rooms)


def _since_s(sort: _Sort, before: Iterable[HostsWanted], *, now_s: float) -> float:
    """Since when hosts of this sort have been missing without a pause."""
    same = (each.since_s for each in before if each.labels == sort.labels and sort.templates & set(each.templates))
    return min(same, default=now_s)
