"""How many hosts more, or fewer, would be right: what has no place, and without which hosts all would still have one.

A sort of host is defined by what it can run: pools whose workers may be on the same hosts want the same sort. The
number is of this moment; for how long it has been so stands beside it, and who adds or removes hosts goes by that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from headway.scaling.allocation.allocate import pool_target
from headway.scaling.allocation.grants import all_placed
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Decision, Host, Mode
from headway.scaling.placement.host_capacity import HOST_PROCESSES_MAX, RemainingCapacity, is_open
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import placed_workers

SPARE_SCAN_EVERY_S = (
    60.0  # trying to do without hosts costs some tens of milliseconds, and nobody removes one in a hurry
)
HOST_DEMAND_TRIES_MAX = 12  # ten find how many of a thousand hosts can go
CUTS = frozenset({"capacity", "share"})


class Sign(StrEnum):
    """Whether there are too few hosts of a sort, or more than it takes."""

    MISSING = "missing"
    SPARE = "spare"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsWanted:
    """What is missing or spare of one sort of host."""

    sign: Sign
    hosts: int | None
    """So many of the typical size; ``None`` where no host that could run it was ever seen."""
    workers: int = 0
    """Those that have no place; 0 of spare hosts."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the pools ask of a host."""
    templates: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    """Spare hosts: those with the least on them."""
    since_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Sort:
    labels: Mapping[str, str]
    workers: dict[str, int] = field(default_factory=dict)
    """By kind."""
    templates: set[str] = field(default_factory=set)
    pools: set[str] = field(default_factory=set)


def hosts_wanted(
    outcomes: Sequence[Outcome],
    rows: Sequence[Assignment],
    hosts: Sequence[Host],
    *,
    before: Sequence[HostsWanted] = (),
    now_s: float,
    scan_for_spare: bool = True,
) -> tuple[HostsWanted, ...]:
    """What is missing; where nothing is, what is spare.

    Args:
        outcomes: one a pool, as ``allocate`` left them.
        rows: where their workers are.
        hosts: all hosts.
        before: the last result; its times are continued.
        now_s: the time that what is new dates from.
        scan_for_spare: False takes from ``before`` what is spare.
    """
    found = missing(outcomes, rows, hosts)
    if not found:
        found = spare(outcomes, rows, hosts) if scan_for_spare else _of_sign(before, Sign.SPARE)
    return tuple(replace(each, since_s=_since_s(each, before, now_s=now_s)) for each in found)


def missing(outcomes: Iterable[Outcome], rows: Iterable[Assignment], hosts: Sequence[Host]) -> tuple[HostsWanted, ...]:
    """The hosts for which there is work and no room, by what they must be able to run."""
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
    return tuple(
        sorted(
            (
                HostsWanted(
                    sign=Sign.MISSING,
                    hosts=empty.hosts_for(sort.workers),
                    workers=sum(sort.workers.values()),
                    labels=dict(sort.labels),
                    templates=tuple(sorted(sort.templates)),
                    pools=tuple(sorted(sort.pools)),
                )
                for sort in sorts.values()
            ),
            key=lambda each: (each.templates, each.pools),
        )
    )


def _lacking(decision: Decision, placed: int) -> int:
    """Workers that the pool would have if there were room."""
    if decision.mode is Mode.RECOMMEND:
        return 0
    wanted = decision.target_workers
    if decision.binding in CUTS:
        at = next(index for index, step in enumerate(decision.steps) if step.name in CUTS)
        wanted = decision.steps[at - 1].workers
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


def spare(outcomes: Sequence[Outcome], rows: Sequence[Assignment], hosts: Sequence[Host]) -> tuple[HostsWanted, ...]:
    """The hosts without which every worker would still have a place, and no other worker would move for it.

    As many as can be, those with the least on them first.
    """
    acting = [
        outcome
        for outcome in outcomes
        if outcome.decision.mode is not Mode.RECOMMEND and outcome.decision.target_workers
    ]
    targets = [pool_target(outcome, outcome.decision.target_workers) for outcome in acting]
    pools = {target.pool for target in targets}
    held = [row for row in rows if row.pool not in pools]
    current = [row for row in rows if row.pool in pools]
    serving = [host for host in hosts if is_open(host)]
    needed = {row.host_id for row in held}
    candidates = [host for host in _least_first(serving, rows) if host.host_id not in needed]

    def can_spare(gone: Sequence[Host]) -> bool:
        ids = {host.host_id for host in gone}
        left = [host for host in serving if host.host_id not in ids]
        return all_placed(targets, left, current, held=held) is not None

    gone = _most(candidates if targets else candidates[:-1], can_spare)
    if not gone:
        return ()
    return (HostsWanted(sign=Sign.SPARE, hosts=len(gone), host_names=tuple(sorted(host.name for host in gone))),)


def _least_first(hosts: Iterable[Host], rows: Iterable[Assignment]) -> list[Host]:
    """Those with the fewest workers first, and of equals those for which these are much."""
    rooms = {host.host_id: RemainingCapacity(host) for host in hosts}
    workers = dict.fromkeys(rooms, 0)
    for row in rows:
        if row.host_id in rooms:
            rooms[row.host_id].take(row.template, row.workers)
            workers[row.host_id] += row.workers
    order = sorted(rooms.values(), key=lambda room: (workers[room.host_id], -room.load, room.host_id))
    return [room.host for room in order]


def _most(candidates: Sequence[Host], can_spare: Callable[[Sequence[Host]], bool]) -> Sequence[Host]:
    """As many as can be spared together, the first ones first; who cannot be is passed over, while tries are left."""
    gone: list[Host] = []
    left, tries = candidates, HOST_DEMAND_TRIES_MAX
    while left and tries:
        low, high = 0, len(left)
        while low < high and tries:
            tries -= 1
            middle = (low + high + 1) // 2
            if can_spare([*gone, *left[:middle]]):
                low = middle
            else:
                high = middle - 1
        gone += left[:low]
        left = left[low + 1 :]
    return gone


def _of_sign(wanted: Iterable[HostsWanted], sign: Sign) -> tuple[HostsWanted, ...]:
    return tuple(each for each in wanted if each.sign is sign)


def _since_s(wanted: HostsWanted, before: Iterable[HostsWanted], *, now_s: float) -> float:
    """Since when something of this sort has been missing, or spare, without a pause."""
    same = (
        each.since_s
        for each in _of_sign(before, wanted.sign)
        if each.labels == wanted.labels and (wanted.sign is Sign.SPARE or set(each.templates) & set(wanted.templates))
    )
    return min(same, default=now_s)
