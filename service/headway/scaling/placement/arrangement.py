"""Guaranteed workers on hosts, moved among each other until one more fits.

On up to six hosts with up to twelve guaranteed workers a place is found wherever there is one. Beyond, a few hosts at a
time are tried, for a bounded number of steps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from headway.scaling.placement.host_capacity import RemainingCapacity
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.packing import Amounts, Bin, Counts, Packed, packed

WINDOW_HOSTS = 6  # so many hosts are filled anew together
PAIRED_HOSTS = 4  # of those that may take the worker, and of those that may take what makes way: two move the fewest
SMALL_WORKERS = 12
SMALL_STEPS_MAX = 500_000  # ten times the most that twelve workers on six hosts were seen to take
WINDOW_STEPS_MAX = 2_000
STEPS_MAX = 40_000  # in all, of a large installation: about a tenth of a second


class Arrangement:
    """How many guaranteed workers of each kind are on each host."""

    def __init__(self, rooms: HostCapacities, *, steps_max: int = STEPS_MAX, moves_max: int | None = None) -> None:
        """With nobody in ``rooms``. For those to come, no more than ``moves_max`` move in all."""
        self.rooms = rooms
        self.by_host: dict[str, dict[str, int]] = {}
        self.moves = 0
        """Workers that have been moved so far to let another in."""
        self._steps_left = steps_max
        self._moves_max = moves_max
        self._hopeless: set[str] = set()
        self._open = [room for room in rooms.by_host.values() if rooms.is_open(room)]

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
        for kind in sorted(counts, key=lambda each: (-self.rooms.part_of(each), each)):
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

    def _make_way(self, kind: str) -> bool:
        able = [room for room in self._open if self._could_hold(room, kind)]
        if not able or not self._is_enough_left(able, kind):
            return False
        is_far = False
        for window in self._windows(able):
            if self._steps_left <= 0:
                break
            found, is_filled = self._refilled(window, kind)
            if is_filled:
                return True
            is_far = is_far or found.fills is not None
        # Refilling accepts any way. Where that moves too many, one host gives up as few as have places elsewhere.
        return is_far and any(self._displaced(room, kind) for room in sorted(able, key=_emptiest)[:WINDOW_HOSTS])

    def _displaced(self, room: RemainingCapacity, kind: str) -> bool:
        """Put one of ``kind`` there, and each that stands in its way where there is room, the largest first."""
        self.put(room.host_id, kind, 1)  # so that nobody finds room there again
        moved: list[tuple[str, str]] = []
        there = [each for each, workers in self.by_host[room.host_id].items() if workers and each != kind]
        for each in sorted(there, key=lambda each: (-self.rooms.part_of(each), each)):
            while min(room.left) < 0 and self.by_host[room.host_id][each] and self._may_move(len(moved) + 1):
                self.put(room.host_id, each, -1)
                place = self.rooms.add_tightly(each)
                if place is None:
                    self.put(room.host_id, each, 1)
                    break
                self._count(place, each, 1)
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

    def _could_hold(self, room: RemainingCapacity, kind: str) -> bool:
        """Whether it could if nothing guaranteed were there."""
        cost = _cost(room, kind, self.by_host.get(room.host_id, {}), self.rooms)
        return cost is not None and all(amount <= have for amount, have in zip(cost, self._emptied(room), strict=True))

    def _is_enough_left(self, able: Iterable[RemainingCapacity], kind: str) -> bool:
        """Whether the hosts have what one takes, were they one."""
        left = [
            sum(max(0, amount) for amount in amounts) for amounts in zip(*(r.left for r in self._open), strict=True)
        ]
        costs = [_amounts(room.costs[kind]) for room in able]
        return all(min(each) <= have for each, have in zip(zip(*costs, strict=True), left, strict=True))

    def _emptied(self, room: RemainingCapacity) -> Amounts:
        left = list(room.left)
        for kind, workers in self.by_host.get(room.host_id, {}).items():
            for resource, amount in enumerate(_amounts(room.costs[kind])):
                left[resource] += amount * workers
        return tuple(left)

    def _windows(self, able: list[RemainingCapacity]) -> Iterator[list[RemainingCapacity]]:
        """Hosts to be filled anew together: few first, as the fewest move then."""
        takers = sorted(able, key=_emptiest)
        others = sorted(self._open, key=_emptiest)
        firsts = product(islice(takers, PAIRED_HOSTS), islice(others, PAIRED_HOSTS))
        yield from ([taker, other] for taker, other in firsts if taker is not other)
        window = dict.fromkeys([*takers[: WINDOW_HOSTS // 2], *others[:WINDOW_HOSTS]])
        yield list(window)[:WINDOW_HOSTS]

    def _refilled(self, window: list[RemainingCapacity], kind: str) -> tuple[Packed, bool]:
        """Give the workers of ``window`` and one more of ``kind`` their places, if few enough move for it."""
        there = [self.by_host.get(room.host_id, {}) for room in window]
        kinds = sorted({kind, *(each for counts in there for each, workers in counts.items() if workers)})
        counts = tuple(sum(each.get(one, 0) for each in there) + (one == kind) for one in kinds)
        is_small = len(self._open) <= WINDOW_HOSTS and sum(counts) <= SMALL_WORKERS
        bins = [
            Bin(left=self._emptied(room), costs=[_cost(room, one, has, self.rooms) for one in kinds])
            for room, has in zip(window, there, strict=True)
        ]
        steps_max = SMALL_STEPS_MAX if is_small else min(WINDOW_STEPS_MAX, self._steps_left)
        found = packed(bins, counts, steps_max=steps_max)
        self._steps_left -= 0 if is_small else found.steps
        return found, found.fills is not None and self._fill(window, kinds, found.fills)

    def _fill(self, window: Iterable[RemainingCapacity], kinds: Sequence[str], fills: Iterable[Counts]) -> bool:
        """Have the workers where ``fills`` say, unless too many would move. Returns whether they are."""
        changes = [
            (room.host_id, kind, workers - self.by_host.get(room.host_id, {}).get(kind, 0))
            for room, fill in zip(window, fills, strict=True)
            for kind, workers in zip(kinds, fill, strict=True)
        ]
        moves = sum(max(0, more) for _, _, more in changes) - 1  # but for the new one
        if not self._may_move(moves):
            return False
        for host_id, kind, more in changes:
            if more:
                self.put(host_id, kind, more)
        self.moves += moves
        return True


def _emptiest(room: RemainingCapacity) -> tuple[float, str]:
    return room.load, room.host_id


def _cost(room: RemainingCapacity, kind: str, there: Mapping[str, int], rooms: HostCapacities) -> Amounts | None:
    """What one takes there. ``None`` where it cannot run, or fails and is not there already."""
    cost = room.costs.get(kind)
    if cost is None or (rooms.does_fail_on(room, kind) and not there.get(kind)):
        return None
    return _amounts(cost)


def _amounts(cost: tuple[int, int, int]) -> Amounts:
    return (*cost, 1)
