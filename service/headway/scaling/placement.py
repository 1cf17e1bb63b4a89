"""Which host runs which of a pool's workers. Neither loses nor invents a worker, moves as few as it can, and is stable.

Base and burst workers of a pool are two parts that are placed apart: a worker that exits by itself never turns into one
that stays.

A host that is not open (cordoned, or its memory under pressure) keeps what it has and gets nothing new; one that drains
is none for placing: scaling/evacuation.py says when what it has may leave.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from headway.errors import Invalid
from headway.scaling.model import Assignment, Host, HostState, WorkerState
from headway.scaling.room import Rooms

_host_id = attrgetter("host_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """How many workers of a pool to place. Greater ``priority`` is placed first when room is short."""

    pool: str
    template: str
    workers: int
    burst_workers: int = 0
    """How many of ``workers`` are burst."""
    priority: int = 100
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a host, or the template there, must be labelled with."""
    spread: str | None = None
    """What workers are spread across where there is a choice: ``host``, or a label's name."""

    def __post_init__(self) -> None:
        if not 0 <= self.burst_workers <= self.workers:
            raise Invalid(f"target of pool {self.pool!r}: {self.burst_workers} burst workers of {self.workers}")


def place(
    targets: Iterable[PoolTarget],
    hosts: Sequence[Host],
    current: Iterable[Assignment],
    *,
    held: Iterable[Assignment] = (),
    may_take_over: bool = True,
) -> tuple[Assignment, ...]:
    """The assignments that give each pool its target where the known hosts have room, and as much of it where not.

    What is in place stays while it is wanted. Only a pool that has no other place takes one over, from a pool of lower
    priority. What is not wanted leaves where it is idle, then where it is fullest. A host that is not known gets
    nothing. Pools without workers get no row.

    Args:
        targets: at most one a pool.
        hosts: all hosts.
        current: what is in place of these pools; what is there of others is dropped.
        held: rows of other pools that stay whatever is decided here. They take their room first and are not returned.
        may_take_over: False leaves every place with whom it is, and pools without a place short.
    """
    ordered = sorted(targets, key=lambda target: (-target.priority, target.pool))
    rooms = Rooms(hosts, held=held)
    present = _by_pool(current, rooms)
    parts = [part for target in ordered for part in _parts(target, present.get(target.pool, ()), rooms)]
    for part in parts:
        part.keep(rooms)
    busy = _Busy(hosts)
    for part in parts:
        if part.missing < 0:
            part.shrink(rooms, busy)
    ailing = {host.host_id: host.failing for host in hosts if host.failing and host.host_id in rooms.by_host}
    if ailing:
        for part in parts:
            part.leave_ailing(rooms, ailing)
    growth = _Growth(rooms, parts if may_take_over else ())
    for part in parts:
        if part.missing > 0:  # asked at its turn: a part before it may have taken a place of it
            growth.grow(part)
    return tuple(_rows(parts, present))


def placed_workers(rows: Iterable[Assignment]) -> dict[str, int]:
    """Pool -> its workers in ``rows``."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.pool] = counts.get(row.pool, 0) + row.workers
    return counts


class _Part:
    """The base workers of a pool, or its burst workers: how many are wanted, and where they are so far."""

    __slots__ = ("by_host", "is_burst", "kind", "missing", "target")

    def __init__(self, target: PoolTarget, kind: str, *, is_burst: bool, present: Mapping[str, int]) -> None:
        self.target = target
        self.kind = kind
        self.is_burst = is_burst
        self.by_host = dict(present)
        self.missing = (target.burst_workers if is_burst else target.workers - target.burst_workers) - sum(
            present.values()
        )

    def keep(self, rooms: Rooms) -> None:
        """Let what is present stay where there is room for it."""
        for host_id, workers in self.by_host.items():
            kept = rooms.by_host[host_id].keep(self.kind, workers)
            if kept != workers:
                self.by_host[host_id] = kept
                self.missing += workers - kept

    def shrink(self, rooms: Rooms, busy: "_Busy") -> None:
        """Let go what is too much: places without a busy worker first, then one by one from the fullest host."""
        fullest = [self._cost_of_leaving(rooms, host_id, busy) for host_id, workers in self.by_host.items() if workers]
        heapq.heapify(fullest)
        while self.missing < 0:
            host_id = fullest[0][-1]
            if self.target.spread is not None and fullest[0] != (cost := self._cost_of_leaving(rooms, host_id, busy)):
                heapq.heapreplace(fullest, cost)  # others have left its zone since
                continue
            rooms.put(host_id, self.kind, -1)
            self.by_host[host_id] -= 1
            self.missing += 1
            if self.by_host[host_id]:
                heapq.heapreplace(fullest, self._cost_of_leaving(rooms, host_id, busy))
            else:
                heapq.heappop(fullest)

    def _cost_of_leaving(self, rooms: Rooms, host_id: str, busy: "_Busy") -> tuple[bool, int, float, str]:
        """Least where one should leave first: where a place has no worker yet, or one without a job."""
        has_idle = self.by_host[host_id] > busy.workers(self.target.pool, host_id, is_burst=self.is_burst)
        beside = 0
        if (key := self.target.spread) is not None:
            beside = self.spread_counts(rooms).get(rooms.spread_value(host_id, key), 0)
        return not has_idle, -beside, -rooms.by_host[host_id].load, host_id

    def spread_counts(self, rooms: Rooms) -> dict[str, int]:
        """The workers by what they are spread across."""
        counts: dict[str, int] = {}
        for host_id, workers in self.by_host.items():
            value = rooms.spread_value(host_id, self.target.spread or "")
            counts[value] = counts.get(value, 0) + workers
        return counts

    def leave_ailing(self, rooms: Rooms, ailing: Mapping[str, frozenset[str]]) -> None:
        """Let what fails where it is go to hosts where it may live, as far as they have room."""
        for host_id in sorted(self.by_host.keys() & ailing.keys()):
            while self.by_host[host_id] and self.target.template in ailing[host_id]:
                other = self.add(rooms, is_last_resort=False)
                if other is None:
                    return
                rooms.put(host_id, self.kind, -1)
                self.by_host[host_id] -= 1
                self.by_host[other] = self.by_host.get(other, 0) + 1

    def add(self, rooms: Rooms, *, is_last_resort: bool = True) -> str | None:
        """The host on which one more has its place now; ``None`` where there is none."""
        if (key := self.target.spread) is None:
            return rooms.add(self.kind, is_last_resort=is_last_resort)
        return rooms.add_apart(self.kind, key, self.spread_counts(rooms), is_last_resort=is_last_resort)


class _Busy:
    """Busy workers by pool and host, counted when first asked for: most evaluations take nobody away."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._counts: dict[tuple[str, str, bool], int] | None = None

    def workers(self, pool: str, host_id: str, *, is_burst: bool) -> int:
        if self._counts is None:
            self._counts = {}
            for host in self._hosts:
                for worker in host.workers:
                    # One that starts has hardly had the time to take a job. Unknown is treated as busy.
                    if worker.state is WorkerState.RUNNING and worker.is_busy is not False:
                        key = (worker.pool, host.host_id, worker.is_burst)
                        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts.get((pool, host_id, is_burst), 0)


class _Growth:
    """Finds places for what is missing, in the order of priority."""

    def __init__(self, rooms: Rooms, givers: Sequence[_Part]) -> None:
        self._rooms = rooms
        self._givers = givers
        self._by_host: dict[str, list[_Part]] | None = None
        self._full: set[str] = set()
        """Kinds of worker for which no part of lower priority has a place to give."""

    def grow(self, part: _Part) -> None:
        """Add what is missing while there is a place."""
        while part.missing > 0:
            host_id = part.add(self._rooms) or self._taken_over(part)
            if host_id is None:
                return
            part.by_host[host_id] = part.by_host.get(host_id, 0) + 1
            part.missing -= 1

    def _taken_over(self, part: _Part) -> str | None:
        """The host on which the fewest workers of lower priority gave ``part`` a place; ``None`` if none can.

        What was shared out fits, so this is for room in pieces: enough of it, but nowhere enough for one worker.
        """
        kind = part.kind
        if not self._givers or kind in self._full:
            return None
        found = min(self._offers(part), key=lambda offer: len(offer[1]), default=None)
        if found is None:
            self._full.add(kind)
            return None
        host_id, leavers = found
        for leaver in leavers:
            self._rooms.put(host_id, leaver.kind, -1)
            leaver.by_host[host_id] -= 1
            leaver.missing += 1
        self._rooms.put(host_id, kind, 1)
        self._full.clear()  # a large worker that left may have made room for more than this one
        return host_id

    def _offers(self, part: _Part) -> Iterator[tuple[str, list[_Part]]]:
        """Hosts that can give ``part`` a place, with the parts that lose a worker there, lowest priority first."""
        kind = part.kind
        for host_id, room in self._rooms.by_host.items():
            if kind not in room.costs or not self._rooms.is_open(room):
                continue
            leavers: list[_Part] = []
            for each in self._lowest_first(host_id):
                if each.target.priority >= part.target.priority or room.fitting(kind):
                    break
                for _ in range(each.by_host[host_id]):
                    if room.fitting(kind):
                        break
                    room.take(each.kind, -1)
                    leavers.append(each)
            if room.fitting(kind):
                yield host_id, list(leavers)
            for leaver in leavers:
                room.take(leaver.kind, 1)

    def _lowest_first(self, host_id: str) -> Sequence[_Part]:
        # Parts that may give have not grown yet, as their turn comes later: where they are does not change meanwhile.
        if self._by_host is None:
            self._by_host = {}
            for part in reversed(self._givers):
                for each in part.by_host:
                    self._by_host.setdefault(each, []).append(part)
        return self._by_host.get(host_id, ())


def _by_pool(current: Iterable[Assignment], rooms: Rooms) -> dict[str, list[Assignment]]:
    """The rows on known hosts that do not drain by pool, by host id."""
    staying = {host_id for host_id, room in rooms.by_host.items() if room.host.state is not HostState.DRAINING}
    present: dict[str, list[Assignment]] = {}
    for row in current:
        if row.host_id in staying:
            present.setdefault(row.pool, []).append(row)
    for rows in present.values():
        rows.sort(key=_host_id)
    return present


def _parts(target: PoolTarget, present: Sequence[Assignment], rooms: Rooms) -> Iterator[_Part]:
    kind = rooms.kind(target.template, target.labels)
    yield _Part(target, kind, is_burst=False, present={row.host_id: row.base_workers for row in present})
    if target.burst_workers or any(row.burst_workers for row in present):
        yield _Part(target, kind, is_burst=True, present={row.host_id: row.burst_workers for row in present})


def _rows(parts: Iterable[_Part], present: Mapping[str, Sequence[Assignment]]) -> Iterator[Assignment]:
    """The assignments by pool and host. One in which nothing changed is the very one that was given."""
    base: dict[str, Mapping[str, int]] = {}
    burst: dict[str, Mapping[str, int]] = {}
    targets = {}
    for part in parts:
        (burst if part.is_burst else base)[part.target.pool] = part.by_host
        targets[part.target.pool] = part.target
    for pool in sorted(base):
        rows = {row.host_id: row for row in present.get(pool, ())}
        bursts = burst.get(pool, {})
        for host_id in sorted(base[pool].keys() | bursts.keys()):
            row = rows.get(host_id)
            counts = (targets[pool].template, base[pool].get(host_id, 0), bursts.get(host_id, 0))
            if row is not None and counts == (row.template, row.base_workers, row.burst_workers):
                yield row
            elif counts[1] or counts[2]:
                yield Assignment(
                    pool=pool,
                    host_id=host_id,
                    template=counts[0],
                    base_workers=counts[1],
                    burst_workers=counts[2],
                    restart_generation=row.restart_generation if row else 0,
                )
