"""What hosts have left while workers are put on them. Placement and share fill the same rooms, so they never disagree.

A room is counted in CPU cores, memory and processes; a worker takes what its template on that host says. Amounts are
whole numbers, millionths of a core and bytes, so that the order in which workers come cannot matter.
"""

from collections.abc import Iterable, Sequence

from headway.scaling.model import Assignment, Host, Template

MICRO = 1_000_000  # of a core
PROCESSES_MAX = 10_000  # a template that costs nothing still has an end: a host is no place for a million processes

ROUNDING = 1e-9  # a load of 0.29 is of level 29, whatever binary fractions make of it
LEVELS = 100  # a host's load counts in hundredths: what differs by less is equally full


class Room:
    """What is left of one host."""

    __slots__ = ("_cpu_left", "_cpu_total", "_memory_left", "_memory_total", "_workers", "costs", "host_id")

    def __init__(self, host: Host) -> None:
        self.host_id = host.host_id
        self.costs = {template.name: _cost(template) for template in host.templates}
        """Template -> millionths of a core and bytes of one of its workers."""
        self._cpu_left = self._cpu_total = round(host.capacity.cpu_cores * MICRO)
        self._memory_left = self._memory_total = host.capacity.memory_bytes
        self._workers = 0

    def fitting(self, template: str) -> int:
        """How many more workers of ``template`` fit; none where the host does not report it."""
        cost = self.costs.get(template)
        if cost is None:
            return 0
        cpu, memory = cost
        fitting = PROCESSES_MAX - self._workers
        if cpu:
            fitting = min(fitting, self._cpu_left // cpu)
        if memory:
            fitting = min(fitting, self._memory_left // memory)
        return max(0, fitting)

    def keep(self, template: str, workers: int) -> int:
        """Put here as many of ``workers`` as fit, and say how many."""
        kept = min(workers, self.fitting(template))
        self.take(template, kept)
        return kept

    def take(self, template: str, workers: int) -> None:
        """Put ``workers`` here, or take them away if negative. One of a template that is not reported costs nothing."""
        cpu, memory = self.costs.get(template, (0, 0))
        self._cpu_left -= cpu * workers
        self._memory_left -= memory * workers
        self._workers += workers

    @property
    def load(self) -> float:
        """The part that is taken of the host's scarcest resource."""
        cpu_load = 1 - self._cpu_left / self._cpu_total if self._cpu_total else 0.0
        memory_load = 1 - self._memory_left / self._memory_total if self._memory_total else 0.0
        return max(cpu_load, memory_load)


class Rooms:
    """The rooms of the hosts that are known, by host id in its order."""

    def __init__(self, hosts: Sequence[Host], *, held: Iterable[Assignment] = ()) -> None:
        """Rooms in which ``held`` workers have their place already."""
        known = sorted((host for host in hosts if host.is_known), key=lambda host: host.host_id)
        self.by_host = {host.host_id: Room(host) for host in known}
        self._total = (
            max(1, sum(round(host.capacity.cpu_cores * MICRO) for host in known)),
            max(1, sum(host.capacity.memory_bytes for host in known)),
            max(1, len(known)) * PROCESSES_MAX,
        )
        self._levels: list[dict[Room, None]] | None = None
        """The rooms by how full they are; of equals, the one that was given a worker longest ago is first."""
        self._level_of: dict[str, int] = {}
        self._least_level = 0
        """No room is less full than this; the level itself may have emptied since."""
        self._parts: dict[str, float] = {}
        self._closed: dict[str, set[Room]] = {}
        """Template -> rooms in which no worker of it fits any more."""
        for row in held:
            if row.host_id in self.by_host:
                self.by_host[row.host_id].take(row.template, row.workers)

    def add(self, template: str) -> str | None:
        """Put one worker on the host that is least full, in proportion to what the host is; ``None`` if nowhere.

        So hosts fill evenly, each by its capacity, and no pool stands on one host alone while there are others.
        """
        closed = self._closed.setdefault(template, set())
        if len(closed) == len(self.by_host):
            return None
        levels = self._leveled()
        while not levels[self._least_level]:
            self._least_level += 1
        for level in range(self._least_level, len(levels)):
            for room in levels[level]:
                if room in closed:
                    continue
                if room.fitting(template):
                    room.take(template, 1)
                    self._moved(room)
                    return room.host_id
                closed.add(room)
        return None

    def put(self, host_id: str, template: str, workers: int) -> None:
        """Put ``workers`` on a host, or take them away if negative."""
        room = self.by_host[host_id]
        room.take(template, workers)
        if self._levels is not None:
            self._moved(room)
        if workers < 0:
            self._closed.clear()

    def _leveled(self) -> list[dict[Room, None]]:
        if self._levels is None:
            self._levels = [{} for _ in range(LEVELS + 1)]
            for room in self.by_host.values():
                self._arrive(room)
        return self._levels

    def _moved(self, room: Room) -> None:
        levels = self._leveled()
        levels[self._level_of[room.host_id]].pop(room)
        self._arrive(room)

    def _arrive(self, room: Room) -> None:
        level = min(LEVELS, max(0, int(room.load * LEVELS + ROUNDING)))
        self._leveled()[level][room] = None
        self._level_of[room.host_id] = level
        self._least_level = min(self._least_level, level)

    def capacity(self, template: str) -> int | None:
        """Workers of ``template`` that still fit; ``None`` where no known host reports it: not known is not zero."""
        rooms = [room for room in self.by_host.values() if template in room.costs]
        return sum(room.fitting(template) for room in rooms) if rooms else None

    def part_of(self, template: str) -> float:
        """The part that one worker of ``template`` takes of all that the hosts had, by what it takes most of.

        Where hosts differ in the template, the greatest; never 0 where there is one, as a worker is a process at least.
        """
        if template not in self._parts:
            costs = [room.costs[template] for room in self.by_host.values() if template in room.costs]
            self._parts[template] = max((self._part(cpu, memory) for cpu, memory in costs), default=0.0)
        return self._parts[template]

    def _part(self, cpu: int, memory: int) -> float:
        cpu_total, memory_total, processes = self._total
        return max(cpu / cpu_total if cpu else 0.0, memory / memory_total if memory else 0.0, 1 / processes)


def _cost(template: Template) -> tuple[int, int]:
    return round(template.cpu_cores * MICRO), template.memory_bytes
