"""Who makes way where there is room in pieces only: enough of it, but nowhere enough for one worker.

A pool gives what it has beyond its guarantee to any guarantee that has no place. To a wish it gives only workers that
have no job: if it is of lower priority, or in exchange for others of its own that must go anyway, as its share fell.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

from headway.scaling.placement.host_capacity import RemainingCapacity
from headway.scaling.placement.pool_parts import Doing, Part
from headway.scaling.placement.worker_placer import Placing

DISPLACEMENT_OFFERS_MAX = 32  # of so many hosts the best is taken, those that are least full first
DISPLACEMENTS_MAX = 400  # at one evaluation; the next goes on

Freed = dict[Part, dict[str, int]]
"""Whose workers have left which hosts for now, and how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaver:
    """A worker that may leave a host; the order is that in which they are asked."""

    part: Part
    doing: Doing = Doing.NOTHING
    is_exchanged: bool = False
    """For one of the same part that was freed elsewhere."""


_order = attrgetter("doing", "part.target.priority", "part.target.pool")


@dataclass(frozen=True, slots=True)
class _Offer:
    room: RemainingCapacity
    leavers: list[_Leaver]

    @property
    def cost(self) -> tuple[int, int, int]:
        busy = sum(leaver.doing is Doing.WORK for leaver in self.leavers)
        unknown = sum(leaver.doing is Doing.UNKNOWN for leaver in self.leavers)
        return busy, unknown, len(self.leavers)


BEST = (0, 0, 1)


class Takeover:
    """Finds places that others give."""

    def __init__(self, placing: Placing, keeps: Mapping[str, int], freed: Freed | None = None) -> None:
        """Each pool has at least what it ``keeps``; for a place that it gives, it may have one back that was freed."""
        self._placing = placing
        self._keeps = keeps
        self._freed = freed or {}
        self._left = DISPLACEMENTS_MAX
        self._hopeless: set[tuple[str, bool]] = set()
        """Kinds for which nobody has a place to give, and whether for a guarantee."""

    def take(self, part: Part, *, is_guarantee: bool) -> str | None:
        """The host on which one more of ``part`` is now, and the fewest made way; ``None`` if there is none.

        Without a guarantee: parts must ask in the order of priority, greatest first.
        """
        key = part.kind, is_guarantee
        if not self._left or key in self._hopeless:
            return None
        offer = self._best(part, is_guarantee=is_guarantee)
        if offer is None or not self._have_returned(offer):
            self._hopeless.add(key)
            return None
        for leaver in offer.leavers:
            self._placing.put(leaver.part, offer.room.host_id, -1)
        self._placing.put(part, offer.room.host_id, 1)
        self._left -= 1
        self._hopeless.clear()  # a large worker that left may have made room for more than this one
        return offer.room.host_id

    def _best(self, part: Part, *, is_guarantee: bool) -> _Offer | None:
        """Of the hosts that are least full the one that the fewest busy workers must leave, then the fewest others."""
        best = None
        for offer in islice(self._offers(part, is_guarantee=is_guarantee), DISPLACEMENT_OFFERS_MAX):
            if best is None or offer.cost < best.cost:
                best = offer
            if best.cost == BEST:
                break
        return best

    def _offers(self, part: Part, *, is_guarantee: bool) -> Iterator[_Offer]:
        for room in self._placing.rooms.emptiest_first():
            if part.kind in room.costs and self._placing.rooms.is_open(room):
                leavers = self._leavers(part, room, is_guarantee=is_guarantee)
                if leavers is not None:
                    yield _Offer(room, leavers)

    def _leavers(self, part: Part, room: RemainingCapacity, *, is_guarantee: bool) -> list[_Leaver] | None:
        """Those that make way on a host, as few as need be and idle ones before others; ``None``: it is not enough."""
        asked: list[_Leaver] = []
        for leaver in sorted(self._able(part, room, is_guarantee=is_guarantee), key=_order):
            if room.fitting(part.kind):
                break
            room.take(leaver.part.kind, -1)
            asked.append(leaver)
        is_enough = room.fitting(part.kind) > 0
        needed = []
        for leaver in reversed(asked):  # busy ones are left out first
            room.take(leaver.part.kind, 1)
            if is_enough and not room.fitting(part.kind):
                room.take(leaver.part.kind, -1)
                needed.append(leaver)
        for leaver in needed:
            room.take(leaver.part.kind, 1)
        return needed if is_enough else None

    def _able(self, part: Part, room: RemainingCapacity, *, is_guarantee: bool) -> Iterator[_Leaver]:
        """One for each worker that may leave a host for one of ``part``."""
        spare: dict[str, int] = {}
        for giver in self._placing.parts_on(room.host_id):
            there, pool = giver.by_host[room.host_id], giver.target.pool
            if not there or pool == part.target.pool:
                continue
            idle = there - self._placing.busy.workers(giver, room.host_id)
            not_at_work = there - self._placing.busy.at_work(giver, room.host_id)
            if is_guarantee or giver.target.priority < part.target.priority:
                left = spare.setdefault(pool, self._placing.placed(pool) - self._keeps.get(pool, 0))
                count = max(0, min(there if is_guarantee else idle, left))
                spare[pool] -= count
                for number in range(count):
                    known = Doing.UNKNOWN if number < not_at_work else Doing.WORK
                    yield _Leaver(part=giver, doing=Doing.NOTHING if number < idle else known)
            elif giver in self._freed:
                count = min(idle, sum(workers for _, workers in self._places_to_return(giver, room)))
                yield from (_Leaver(part=giver, is_exchanged=True) for _ in range(count))

    def _places_to_return(self, giver: Part, room: RemainingCapacity) -> Iterator[tuple[str, int]]:
        """Hosts but for that of ``room`` from which some of ``giver`` were freed, and how many may come back."""
        for host_id, workers in self._freed[giver].items():
            if host_id != room.host_id:
                fitting = min(workers, self._placing.rooms.by_host[host_id].fitting(giver.kind))
                if fitting:
                    yield host_id, fitting

    def _have_returned(self, offer: _Offer) -> bool:
        """Whether those that were freed elsewhere are back in exchange for those that leave; else none is."""
        returned: list[tuple[Part, str]] = []
        for leaver in offer.leavers:
            if leaver.is_exchanged:
                place = next(self._places_to_return(leaver.part, offer.room), None)
                if place is None:  # another that leaves has had it
                    for part, host_id in returned:
                        self._bring_back(part, host_id, -1)
                    return False
                self._bring_back(leaver.part, place[0], 1)
                returned.append((leaver.part, place[0]))
        return True

    def _bring_back(self, part: Part, host_id: str, workers: int) -> None:
        self._placing.put(part, host_id, workers)
        self._freed[part][host_id] -= workers
