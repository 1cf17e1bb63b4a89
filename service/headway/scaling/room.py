"""What hosts have left while workers are put on them. Placement and share fill the same rooms, so they never disagree.

A room is counted in CPU cores, memory and processes; a worker takes what its template on that host says. Amounts are
whole numbers, millionths of a core and bytes, so that the order in which workers come cannot matter.
"""

import heapq
from collections.abc import Iterable, Sequence

from headway.scaling.model import Assignment, Host, Template

MICRO = 1_000_000  # of a core
PROCESSES_MAX = 10_000  # a template that costs nothing still has an end: a host is no place for a million processes

LEVELS = 100  # a host's load counts in hundredths: what differs by less is equally full

_Place = tuple[int, int, str]
"""How full a host is, how many workers were added to it, its id: the least is where the next worker goes."""


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

    def take(self, template: str, workers: int) -> None:
        """Put ``workers`` here, or take them away if negative. One of a template that is not reported costs nothing."""
        cpu, memory = self.costs.get(template, (0, 0))
        self._cpu_left -= cpu * workers
        self._memory_left -= memory * workers
        self._workers += workers

    def load_with(self, template: str) -> float:
        """The part that is taken of the host's scarcest resource with one more worker of ``template``."""
        cpu, memory = self.costs[template]
        cpu_load = (self._cpu_total - self._cpu_left + cpu) / self._cpu_total if self._cpu_total else 0.0
        memory_left = self._memory_left - memory
        memory_load = (self._memory_total - memory_left) / self._memory_total if self._memory_total else 0.0
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
        self._least: dict[str, list[tuple[_Place, Room]]] = {}
        for row in held:
            if row.host_id in self.by_host:
                self.by_host[row.host_id].take(row.template, row.workers)

    def add(self, template: str) -> str | None:
        """Put one worker where it leaves the host least full, in proportion to what the host is; ``None`` if nowhere.

        So hosts fill evenly, each by its capacity, and no pool stands on one host alone while there are others.
        """
        least = self._least.get(template)
        if least is None:
            least = self._least[template] = self._ordered(template)
        while least:
            (level, added, host_id), room = least[0]
            if not room.fitting(template):
                heapq.heappop(least)
                continue
            now = int(room.load_with(template) * LEVELS)
            if now != level:  # fuller by now through other templates
                heapq.heapreplace(least, ((now, added, host_id), room))
                continue
            room.take(template, 1)
            heapq.heapreplace(least, ((int(room.load_with(template) * LEVELS), added + 1, host_id), room))
            return host_id
        return None

    def give_back(self, host_id: str, template: str, workers: int) -> None:
        """Take ``workers`` off a host."""
        self.by_host[host_id].take(template, -workers)
        self._least.clear()  # they hold only while hosts become fuller

    def capacity(self, template: str) -> int | None:
        """Workers of ``template`` that still fit; ``None`` where no known host reports it: not known is not zero."""
        rooms = [room for room in self.by_host.values() if template in room.costs]
        return sum(room.fitting(template) for room in rooms) if rooms else None

    def part_of(self, template: str) -> float:
        """The part that one worker of ``template`` takes of all that the hosts had, by what it takes most of.

        Where hosts differ in the template, the greatest; never 0 where there is one, as a worker is a process at least.
        """
        costs = [room.costs[template] for room in self.by_host.values() if template in room.costs]
        return max((self._part(cpu, memory) for cpu, memory in costs), default=0.0)

    def _part(self, cpu: int, memory: int) -> float:
        cpu_total, memory_total, processes = self._total
        return max(cpu / cpu_total if cpu else 0.0, memory / memory_total if memory else 0.0, 1 / processes)

    def _ordered(self, template: str) -> list[tuple[_Place, Room]]:
        least = [
            ((int(room.load_with(template) * LEVELS), 0, host_id), room)
            for host_id, room in self.by_host.items()
            if room.fitting(template)
        ]
        heapq.heapify(least)
        return least


def _cost(template: Template) -> tuple[int, int]:
    return round(template.cpu_cores * MICRO), template.memory_bytes
