"""Guaranteed workers on hosts, packed by first fit decreasing; some move where one more needs their place.

Within one host of an exact search: docs/decisions/0037-guarantees-by-first-fit-decreasing.md.
"""

from collections.abc import Mapping

from headway.scaling.placement.host_capacity import RemainingCapacity
from headway.scaling.placement.host_choice import HostCapacities

CLEARED_HOSTS_MAX = 6  # of so many hosts, the least full first, others are asked to make way

Amounts = tuple[int, ...]
"""Of each resource."""


class Arrangement:
    """How many guaranteed workers of each kind are on each host."""

    def __init__(self, rooms: HostCapacities, *, moves_max: int | None = None) -> None:
        """With nobody in ``rooms``. For those to come, no more than ``moves_max`` move in all."""
        self.rooms = rooms
        self.by_host: dict[str, dict[str, int]] = {}
        self.moves = 0
        """Workers that have been moved so far to let another in."""
        self._moves_max = moves_max
        self._hopeless: set[str] = set()

    def put(self, host_id: str, kind: str, workers: int) -> None:
        """Put ``workers`` on a host, or take them away if negative."""
        self.rooms.put(host_id, kind, workers)
        self._count(host_id, kind, workers)

    def add_evenly(self, kind: str) -> bool:
        """Put one on the host that is least full; nothing moves. Returns whether it has a place."""
        return self._added(self.rooms.add(kind), kind)

    def add(self, kind: str) -> bool:
        """Put one where it leaves the least, or where others can make way. Returns whether it has a place."""
        if kind in self._hopeless:
            return False
        if self._added(self.rooms.add_tightly(kind), kind) or self._make_way(kind):
            return True
        self._hopeless.add(kind)
        return False

    def add_all(self, counts: Mapping[str, int]) -> bool:
        """Put so many of each kind, largest first, where they leave the least; none if not all have a place."""
        added: list[tuple[str, str]] = []
        for kind in sorted(counts, key=self._largest_first):
            for _ in range(counts[kind]):
                host_id = self.rooms.add_tightly(kind)
                if host_id is None:
                    for there, of_kind in added:
                        self.put(there, of_kind, -1)
                    return False
                self._count(host_id, kind, 1)
                added.append((host_id, kind))
        return True

    def _added(self, host_id: str | None, kind: str) -> bool:
        if host_id is not None:
            self._count(host_id, kind, 1)
        return host_id is not None

    def _count(self, host_id: str, kind: str, workers: int) -> None:
        counts = self.by_host.setdefault(host_id, {})
        counts[kind] = counts.get(kind, 0) + workers

    def _largest_first(self, kind: str) -> tuple[float, str]:
        return -self.rooms.part_of(kind), kind

    def _make_way(self, kind: str) -> bool:
        able = [room for room in self.rooms.by_host.values() if self._could_hold(room, kind)]
        able.sort(key=lambda room: (room.load, room.host_id))
        return any(self._displaced(room, kind) for room in able[:CLEARED_HOSTS_MAX])

    def _could_hold(self, room: RemainingCapacity, kind: str) -> bool:
        """Whether it could if nothing guaranteed were there."""
        if kind not in room.costs or not self.rooms.is_open(room) or self.rooms.does_fail_on(room, kind):
            return False
        return does_hold(emptied(room, self.by_host), room.costs[kind])

    def _displaced(self, room: RemainingCapacity, kind: str) -> bool:
        """Put one of ``kind`` there, and each that stands in its way where there is room, the largest first."""
        self.put(room.host_id, kind, 1)  # so that nobody finds room there again
        moved: list[tuple[str, str]] = []
        there = [each for each, workers in self.by_host[room.host_id].items() if workers and each != kind]
        for each in sorted(there, key=self._largest_first):
            while min(room.left) < 0 and self.by_host[room.host_id][each] and self._may_move(len(moved) + 1):
                self.put(room.host_id, each, -1)
                place = self.rooms.add_tightly(each)
                if place is None:
                    self.put(room.host_id, each, 1)
                    break
                self._count(place, each, 1)
                if place == room.host_id:
                    break  # it takes nothing of what is short there
                moved.append((place, each))
        if min(room.left) >= 0:
            self.moves += len(moved)
            return True
        for place, each in moved:
            self.put(place, each, -1)
            self.put(room.host_id, each, 1)
        self.put(room.host_id, kind, -1)
        return False

    def _may_move(self, workers: int) -> bool:
        return self._moves_max is None or self.moves + workers <= self._moves_max


def emptied(room: RemainingCapacity, floors: Mapping[str, Mapping[str, int]]) -> Amounts:
    """What the host has left without its guaranteed workers, by host and kind in ``floors``."""
    left = list(room.left)
    for kind, workers in floors.get(room.host_id, {}).items():
        for at, amount in enumerate(room.costs[kind]):
            left[at] += amount * workers
    return tuple(left)


def does_hold(left: Amounts, cost: Amounts) -> bool:
    """Whether one worker of ``cost`` fits into what is ``left``."""
    return all(amount <= have for amount, have in zip(cost, left, strict=False))
