"""Which host runs which of a pool's workers: what stays, what leaves first, and what comes.

Neither loses nor invents a worker, moves as few as it can, and is stable. What is not wanted leaves where it is idle,
then where it is fullest. A host that is not known gets nothing. One that is not open (cordoned, or its memory under
pressure) keeps what it has and gets nothing new; one that drains is none for placing:
scaling/allocation/host_drain.py says when what it has may leave.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from headway.scaling.model import Assignment, Host, HostState
from headway.scaling.placement.host_capacity import RemainingCapacity
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import Busy, Doing, Part, PoolTarget, parts_of, rows_of

_host_id = attrgetter("host_id")


class Placing:
    """All parts on their hosts. What is in place stays while it is wanted; what is not has left."""

    def __init__(
        self,
        targets: Iterable[PoolTarget],
        hosts: Sequence[Host],
        current: Iterable[Assignment],
        *,
        held: Iterable[Assignment] = (),
    ) -> None:
        ordered = sorted(targets, key=lambda target: (-target.priority, target.pool))
        self._hosts, self._held = hosts, tuple(held)
        self.rooms = HostCapacities(hosts, held=self._held)
        self.busy = Busy(hosts)
        self._present = _by_pool(current, self.rooms)
        self.parts = [
            part for target in ordered for part in parts_of(target, self._present.get(target.pool, ()), self.rooms)
        ]
        """Greatest priority first."""
        self._parts_on: dict[str, list[Part]] | None = None
        self._placed: dict[str, int] = {}
        for part in self.parts:
            self._placed[part.target.pool] = self._placed.get(part.target.pool, 0) + part.placed
        self._keep()
        for part in self.parts:
            if part.missing < 0:
                self.shrink(part, -part.missing)
        self._ailing = {
            host.host_id: host.failing for host in hosts if host.failing and host.host_id in self.rooms.by_host
        }

    def parts_on(self, host_id: str) -> Sequence[Part]:
        """The parts that have, or had, workers on a host, in no order that matters."""
        if self._parts_on is None:
            self._parts_on = {}
            for part in self.parts:
                for each in part.by_host:
                    self._parts_on.setdefault(each, []).append(part)
        return self._parts_on.get(host_id, ())

    def placed(self, pool: str) -> int:
        """The workers of a pool that have a place, base and burst."""
        return self._placed[pool]

    def put(self, part: Part, host_id: str, workers: int) -> None:
        """Put ``workers`` of ``part`` on a host, or take them away if negative."""
        self.rooms.put(host_id, part.kind, workers)
        self._count(part, host_id, workers)

    def _count(self, part: Part, host_id: str, workers: int) -> None:
        if host_id not in part.by_host:
            part.by_host[host_id] = 0
            if self._parts_on is not None:
                self._parts_on.setdefault(host_id, []).append(part)
        part.by_host[host_id] += workers
        part.placed += workers
        self._placed[part.target.pool] += workers

    def _keep(self) -> None:
        """Let what is present stay where it may be, and where there is room for it."""
        touched: dict[str, RemainingCapacity] = {}
        for part in self.parts:
            for host_id, workers in part.by_host.items():
                room = touched[host_id] = self.rooms.by_host[host_id]
                if part.kind in room.costs:
                    room.take(part.kind, workers)
                else:
                    part.by_host[host_id] = 0
                    part.placed -= workers
                    self._placed[part.target.pool] -= workers
        for room in touched.values():
            if min(room.left) < 0:
                self.refill(room)

    def refill(self, room: RemainingCapacity, fixed: Mapping[Part, int] | None = None) -> None:
        """Let leave what has no room on a host: what does not work first, then what is of the least priority.

        Args:
            room: the host's.
            fixed: part -> how many of it stay whatever leaves.
        """
        host_id = room.host_id
        there = sorted(
            self.parts_on(host_id), key=lambda part: (-part.target.priority, part.target.pool, part.is_burst)
        )
        loose = [part.by_host[host_id] - (fixed or {}).get(part, 0) for part in there]
        # Those at work stay first, then those that may be, then all others.
        staying = [
            [max(0, workers(part, host_id) - (fixed or {}).get(part, 0)) for part in there]
            for workers in (self.busy.at_work, self.busy.workers)
        ]
        for part, workers in zip(there, loose, strict=True):
            self.put(part, host_id, -workers)
        before = [0] * len(there)
        for upto in (*staying, loose):
            for part, workers, less in zip(there, upto, before, strict=True):
                self.put(part, host_id, min(workers - less, room.fitting(part.kind)))
            before = upto

    def shrink(self, part: Part, workers: int, *, may_stay_shut: bool = False) -> dict[str, int]:
        """Let ``workers`` of a part go: places without a busy worker first, then one by one from the fullest host.

        Workers of which nobody knows what they do go after idle ones and before busy ones.

        Args:
            part: whose.
            workers: how many.
            may_stay_shut: nobody leaves a host that gets nothing new, as nobody else could have the place.

        Returns:
            Host id -> workers that left it.
        """
        fullest = [
            self._cost_of_leaving(part, host_id)
            for host_id, there in part.by_host.items()
            if there and not (may_stay_shut and self.rooms.by_host[host_id] in self.rooms.shut)
        ]
        heapq.heapify(fullest)
        left: dict[str, int] = {}
        while workers and fullest:
            host_id = fullest[0][-1]
            if part.target.spread is not None and fullest[0] != (cost := self._cost_of_leaving(part, host_id)):
                heapq.heapreplace(fullest, cost)  # others have left its zone since
                continue
            self.put(part, host_id, -1)
            left[host_id] = left.get(host_id, 0) + 1
            workers -= 1
            if part.by_host[host_id]:
                heapq.heapreplace(fullest, self._cost_of_leaving(part, host_id))
            else:
                heapq.heappop(fullest)
        return left

    def _cost_of_leaving(self, part: Part, host_id: str) -> tuple[Doing, int, float, str]:
        """Least where one should leave first: where a place has no worker yet, or one without a job."""
        beside = 0
        if (key := part.target.spread) is not None:
            beside = part.spread_counts(self.rooms).get(self.rooms.spread_value(host_id, key), 0)
        return self.busy.next_does(part, host_id), -beside, -self.rooms.by_host[host_id].load, host_id

    def bare_rooms(self) -> HostCapacities:
        """Rooms with nothing in them but what is held, and what is on hosts that get nothing new."""
        rooms = HostCapacities(self._hosts, held=self._held)
        shut = {room.host_id for room in rooms.shut}
        for part in self.parts:
            kind = rooms.kind(part.target.template, part.target.labels)
            for host_id in part.by_host.keys() & shut:
                rooms.put(host_id, kind, part.by_host[host_id])
        return rooms

    def leave_ailing(self) -> int:
        """Let what fails where it is go to hosts where it may live, as far as they have room. Returns how many went."""
        return sum(self._leave_ailing(part) for part in self.parts) if self._ailing else 0

    def _leave_ailing(self, part: Part) -> int:
        went = 0
        for host_id in sorted(part.by_host.keys() & self._ailing.keys()):
            while part.by_host[host_id] and part.target.template in self._ailing[host_id]:
                if self.add(part, is_last_resort=False) is None:
                    return went
                self.put(part, host_id, -1)
                went += 1
        return went

    def add(self, part: Part, *, is_last_resort: bool = True) -> str | None:
        """Put one more of a part where it has its place now, and say where; ``None`` where there is none."""
        if (key := part.target.spread) is None:
            host_id = self.rooms.add(part.kind, is_last_resort=is_last_resort)
        else:
            counts = part.spread_counts(self.rooms)
            host_id = self.rooms.add_apart(part.kind, key, counts, is_last_resort=is_last_resort)
        if host_id is not None:
            self._count(part, host_id, 1)
        return host_id

    def add_tightly(self, part: Part) -> str | None:
        """Like ``add``, but where it leaves the least, whatever its pool's workers are to be spread across."""
        host_id = self.rooms.add_tightly(part.kind)
        if host_id is not None:
            self._count(part, host_id, 1)
        return host_id

    def hardest_first(self) -> list[Part]:
        """The parts that lack a place: those first for which the fewest hosts have one, then the largest."""
        missing = [part for part in self.parts if part.missing > 0]
        hosts = {kind: self.rooms.open_hosts(kind) for kind in {part.kind for part in missing}}
        return sorted(missing, key=lambda part: (hosts[part.kind], -self.rooms.part_of(part.kind)))

    def could_place_all(self) -> bool:
        """Whether what lacks a place is of several kinds, and the hosts, were they one, had room for all of it.

        Of one kind as many have a place in any order.
        """
        counts: dict[str, int] = {}
        for part in self.parts:
            if part.missing > 0:
                counts[part.kind] = counts.get(part.kind, 0) + part.missing
        return len(counts) > 1 and self.rooms.could_hold(counts)

    def add_home(self, part: Part) -> str | None:
        """Like ``add``, but where it was before if that is still free."""
        for host_id, workers in part.before.items():
            if part.by_host[host_id] < workers and self.may_return(part, host_id):
                self.put(part, host_id, 1)
                return host_id
        return self.add(part)

    def may_return(self, part: Part, host_id: str) -> bool:
        """Whether one that was on a host may stay there after all."""
        room = self.rooms.by_host[host_id]
        return room.fitting(part.kind) > 0 and self.rooms.is_open(room) and not self.rooms.does_fail_on(room, part.kind)

    def stay_where_shut(self) -> bool:
        """Let those stay that are on hosts that get nothing new, and others of their pools go: nobody else could have
        these places. Returns whether any did.
        """
        stayed = False
        for part in self.parts:
            for room in self.rooms.shut:
                workers = part.before.get(room.host_id, 0) - part.by_host.get(room.host_id, 0)
                for _ in range(min(workers, room.fitting(part.kind))):
                    if not self.shrink(part, 1, may_stay_shut=True):
                        break
                    self.put(part, room.host_id, 1)
                    stayed = True
        return stayed

    def rows(self) -> Iterator[Assignment]:
        """The assignments by pool and host. One in which nothing changed is the very one that was given."""
        by_pool: dict[str, list[Part]] = {}
        for part in self.parts:
            by_pool.setdefault(part.target.pool, []).append(part)
        for pool in sorted(by_pool):
            yield from rows_of(by_pool[pool], self._present.get(pool, ()))


def _by_pool(current: Iterable[Assignment], rooms: HostCapacities) -> dict[str, list[Assignment]]:
    """The rows on known hosts that do not drain by pool, by host id."""
    staying = {host_id for host_id, room in rooms.by_host.items() if room.host.state is not HostState.DRAINING}
    present: dict[str, list[Assignment]] = {}
    for row in current:
        if row.host_id in staying:
            present.setdefault(row.pool, []).append(row)
    for rows in present.values():
        rows.sort(key=_host_id)
    return present
