"""Which host a worker goes to: how full each is, what fits there, and what fails there.

Placement and share fill the same rooms, so they never disagree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headway.scaling.arithmetic import ROUNDING
from headway.scaling.model import Assignment, Host, Template
from headway.scaling.placement.host_capacity import HOST_PROCESSES_MAX, MICRO, RemainingCapacity, is_open

SPREAD_HOSTS = "host"  # the one word that is no label
HOST_LOAD_LEVELS = 100  # a host's load counts in hundredths: what differs by less is equally full


class HostCapacities:
    """The rooms of the hosts that are known, by host id in its order.

    A kind of worker is its template's name, or what ``kind`` made of it and the labels that it asks of a host.
    """

    def __init__(self, hosts: Sequence[Host], *, held: Iterable[Assignment] = ()) -> None:
        """Rooms in which ``held`` workers have their place already."""
        known = sorted((host for host in hosts if host.is_known), key=lambda host: host.host_id)
        self.by_host = {host.host_id: RemainingCapacity(host) for host in known}
        self.shut = frozenset(room for room in self.by_host.values() if not is_open(room.host))
        """Those that get nothing new."""
        self._ailing = [room for room in self.by_host.values() if room.host.failing]
        self._templates: dict[str, str] = {}
        """Kind that asks for labels -> its template."""
        self._total = (
            max(1, sum(round(host.capacity.cpu_cores * MICRO) for host in known)),
            max(1, sum(host.capacity.memory_bytes for host in known)),
            max(1, sum(host.capacity.gpus for host in known)),
            max(1, len(known)) * HOST_PROCESSES_MAX,
        )
        self._levels: list[dict[RemainingCapacity, None]] | None = None
        """The rooms by how full they are; of equals, the one that was given a worker longest ago is first."""
        self._level_of: dict[str, int] = {}
        self._least_level = 0
        """No room is less full than this; the level itself may have emptied since."""
        self._parts: dict[str, float] = {}
        self._closed: dict[str, set[RemainingCapacity]] = {}
        """Kind -> rooms in which no worker of it fits any more, or none shall be while there is another place."""
        self._closed_at_last: dict[str, set[RemainingCapacity]] = {}
        """Kind that fails somewhere -> rooms in which no worker of it fits at all."""
        for row in held:
            if row.host_id in self.by_host:
                self.by_host[row.host_id].take(row.template, row.workers)

    def kind(self, template: str, labels: Mapping[str, str]) -> str:
        """The kind of the workers of ``template`` that may be only where ``labels`` are said."""
        if not labels:
            return template
        kind = "\0".join([template, *(f"{name}={value}" for name, value in sorted(labels.items()))])
        if kind not in self._templates:
            self._templates[kind] = template
            for room in self.by_host.values():
                if any(each.name == template and _has(room.host, each, labels) for each in room.host.templates):
                    room.costs[kind] = room.costs[template]
        return kind

    def is_open(self, room: RemainingCapacity) -> bool:
        """Whether ``room`` may get anything new."""
        return room not in self.shut

    def add(self, kind: str, *, is_last_resort: bool = True) -> str | None:
        """Put one worker on the host that is least full, in proportion to what the host is; ``None`` if nowhere.

        So hosts fill evenly, each by its capacity; of equal ones, that with the first id. Two workers of a pool may
        come to stand on one host: who wants them apart says so by ``spread``. A host where such workers fail gets one
        only if there is no other place, and with ``is_last_resort``.
        """
        room = self._least_full(self._closed_to(kind), kind)
        if room is None and is_last_resort and kind in self._closed_at_last:
            room = self._least_full(self._closed_at_last[kind], kind)
        return None if room is None else self._put_one(room, kind)

    def add_tightly(self, kind: str) -> str | None:
        """Like ``add``, but on the host that is fullest: what is left stays in large pieces."""
        room = self._fullest(self._closed_to(kind), kind)
        if room is None and kind in self._closed_at_last:
            room = self._fullest(self._closed_at_last[kind], kind)
        return None if room is None else self._put_one(room, kind)

    def add_apart(self, kind: str, key: str, counts: Mapping[str, int], *, is_last_resort: bool) -> str | None:
        """Like ``add``, but of the places there are, one with the fewest of ``counts``, by ``spread_value``."""
        room = self._furthest_apart(self._closed_to(kind), kind, key, counts)
        if room is None and is_last_resort and kind in self._closed_at_last:
            room = self._furthest_apart(self._closed_at_last[kind], kind, key, counts)
        return None if room is None else self._put_one(room, kind)

    def spread_value(self, host_id: str, key: str) -> str:
        """What the host has of what workers are spread across: its own id, or the label ``key``, empty without one."""
        return host_id if key == SPREAD_HOSTS else self.by_host[host_id].host.labels.get(key, "")

    def emptiest_first(self) -> Iterator[RemainingCapacity]:
        """The rooms, those that are least full first, while nothing is put there."""
        for level in self._leveled():
            yield from level

    def _closed_to(self, kind: str) -> set[RemainingCapacity]:
        closed = self._closed.get(kind)
        if closed is None:
            template = self._templates.get(kind, kind)
            failing = {room for room in self._ailing if template in room.host.failing}
            closed = self._closed[kind] = {*self.shut, *failing}
            if failing:
                self._closed_at_last[kind] = set(self.shut)
        return closed

    def _least_full(self, closed: set[RemainingCapacity], kind: str) -> RemainingCapacity | None:
        if len(closed) == len(self.by_host):
            return None
        levels = self._leveled()
        while not levels[self._least_level]:
            self._least_level += 1
        for level in range(self._least_level, len(levels)):
            for room in levels[level]:
                if room in closed:
                    continue
                if room.fitting(kind):
                    return room
                closed.add(room)
        return None

    def _fullest(self, closed: set[RemainingCapacity], kind: str) -> RemainingCapacity | None:
        for level in reversed(self._leveled()):
            for room in level:
                if room not in closed:
                    if room.fitting(kind):
                        return room
                    closed.add(room)
        return None

    def _furthest_apart(
        self, closed: set[RemainingCapacity], kind: str, key: str, counts: Mapping[str, int]
    ) -> RemainingCapacity | None:
        """The first, from the least full on, of those with the fewest of ``counts``."""
        found: RemainingCapacity | None = None
        fewest = 0
        for level in self._leveled():
            for room in level:
                count = counts.get(self.spread_value(room.host_id, key), 0)
                if room in closed or (found is not None and count >= fewest):
                    continue
                if room.fitting(kind):
                    found, fewest = room, count
                    if not count:
                        return found
                else:
                    closed.add(room)
        return found

    def _put_one(self, room: RemainingCapacity, kind: str) -> str:
        room.take(kind, 1)
        self._moved(room)
        return room.host_id

    def put(self, host_id: str, kind: str, workers: int) -> None:
        """Put ``workers`` on a host, or take them away if negative."""
        room = self.by_host[host_id]
        room.take(kind, workers)
        if self._levels is not None:
            self._moved(room)
        if workers < 0:
            self._closed.clear()
            self._closed_at_last.clear()

    def _leveled(self) -> list[dict[RemainingCapacity, None]]:
        if self._levels is None:
            self._levels = [{} for _ in range(HOST_LOAD_LEVELS + 1)]
            for room in self.by_host.values():
                self._arrive(room)
        return self._levels

    def _moved(self, room: RemainingCapacity) -> None:
        levels = self._leveled()
        levels[self._level_of[room.host_id]].pop(room)
        self._arrive(room)

    def _arrive(self, room: RemainingCapacity) -> None:
        level = min(HOST_LOAD_LEVELS, max(0, int(room.load * HOST_LOAD_LEVELS + ROUNDING)))
        self._leveled()[level][room] = None
        self._level_of[room.host_id] = level
        self._least_level = min(self._least_level, level)

    def capacity(self, kind: str) -> int | None:
        """Workers of ``kind`` that may still come; ``None`` where no known host can run it: not known is not zero."""
        rooms = [room for room in self.by_host.values() if kind in room.costs]
        return sum(room.fitting(kind) for room in rooms if room not in self.shut) if rooms else None

    def open_hosts(self, kind: str) -> int:
        """On how many hosts one more worker of ``kind`` has room now."""
        return sum(room.fitting(kind) > 0 for room in self.by_host.values() if room not in self.shut)

    def could_hold(self, counts: Mapping[str, int]) -> bool:
        """Whether there is enough of everything for so many of each kind, were all hosts one."""
        rooms = [room for room in self.by_host.values() if room not in self.shut]
        left = [
            sum(max(0, amount) for amount in amounts) for amounts in zip(*(room.left for room in rooms), strict=True)
        ]
        for kind, workers in counts.items():
            costs = [(*room.costs[kind], 1) for room in rooms if room.fitting(kind)]
            if not costs:
                return False
            for resource, amounts in enumerate(zip(*costs, strict=True)):
                left[resource] -= min(amounts) * workers
        return min(left, default=0) >= 0

    def does_fail(self, kind: str) -> bool:
        """Whether workers of ``kind`` fail wherever one could be."""
        rooms = [room for room in self.by_host.values() if kind in room.costs and room not in self.shut]
        return bool(rooms) and all(self.does_fail_on(room, kind) for room in rooms)

    def does_fail_on(self, room: RemainingCapacity, kind: str) -> bool:
        """Whether workers of ``kind`` fail on this host."""
        return bool(room.host.failing) and self._templates.get(kind, kind) in room.host.failing

    def part_of(self, kind: str) -> float:
        """The part that one worker of ``kind`` takes of all that the hosts had, by what it takes most of.

        Where hosts differ in the template, the greatest; never 0 where there is one, as a worker is a process at least.
        """
        if kind not in self._parts:
            costs = [room.costs[kind] for room in self.by_host.values() if kind in room.costs]
            self._parts[kind] = max((self._part(*cost) for cost in costs), default=0.0)
        return self._parts[kind]

    def _part(self, cpu: int, memory: int, gpus: int) -> float:
        cpu_total, memory_total, gpus_total, processes = self._total
        return max(cpu / cpu_total, memory / memory_total, gpus / gpus_total, 1 / processes)


def _has(host: Host, template: Template, labels: Mapping[str, str]) -> bool:
    """Whether ``labels`` are said of the template there, or else of the host."""
    return all(template.labels.get(name, host.labels.get(name)) == value for name, value in labels.items())
