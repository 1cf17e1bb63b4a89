"""What one host has left while workers are put on it.

A room is counted in CPU cores, memory, GPUs and processes; a worker takes what its template on that host says.
Amounts are whole numbers, millionths of a core and bytes, so that the order in which workers come cannot matter.
"""

from headway.scaling.model import Host, HostState

MICRO = 1_000_000  # of a core
HOST_PROCESSES_MAX = (
    10_000  # a template that costs nothing still has an end: a host is no place for a million processes
)
# Tasks that wait for memory in a tenth of the time say that what is there is too much already, whatever sizes say.
HOST_MEMORY_PRESSURE_MAX = 0.1


def is_open(host: Host) -> bool:
    """Whether the host may get anything new: it serves, can record it, and its memory is not under pressure."""
    pressure = host.capacity.memory_pressure
    is_serving = host.is_known and host.state is HostState.SERVING and host.can_write
    return is_serving and (pressure is None or pressure < HOST_MEMORY_PRESSURE_MAX)


class RemainingCapacity:
    """What is left of one host."""

    __slots__ = (
        "_cpu_left",
        "_cpu_total",
        "_gpus_left",
        "_gpus_total",
        "_memory_left",
        "_memory_total",
        "_workers",
        "costs",
        "host",
        "host_id",
    )

    def __init__(self, host: Host) -> None:
        self.host = host
        self.host_id = host.host_id
        self.costs = {
            each.name: (round(each.cpu_cores * MICRO), each.memory_bytes, each.gpus) for each in host.templates
        }
        """Kind of worker -> millionths of a core, bytes and GPUs of one."""
        self._cpu_left = self._cpu_total = round(host.capacity.cpu_cores * MICRO)
        self._memory_left = self._memory_total = host.capacity.memory_bytes
        self._gpus_left = self._gpus_total = host.capacity.gpus
        self._workers = 0

    def fitting(self, kind: str) -> int:
        """How many more workers of ``kind`` fit; none where the host cannot run it."""
        cost = self.costs.get(kind)
        if cost is None:
            return 0
        cpu, memory, gpus = cost
        fitting = HOST_PROCESSES_MAX - self._workers
        if cpu:
            fitting = min(fitting, self._cpu_left // cpu)
        if memory:
            fitting = min(fitting, self._memory_left // memory)
        if gpus:
            fitting = min(fitting, self._gpus_left // gpus)
        return max(0, fitting)

    def keep(self, kind: str, workers: int) -> int:
        """Put here as many of ``workers`` as fit, and say how many."""
        kept = min(workers, self.fitting(kind))
        self.take(kind, kept)
        return kept

    def take(self, kind: str, workers: int) -> None:
        """Put ``workers`` here, or take them away if negative. Of a kind that the host cannot run they cost nothing."""
        cpu, memory, gpus = self.costs.get(kind, NOTHING)
        self._cpu_left -= cpu * workers
        self._memory_left -= memory * workers
        self._gpus_left -= gpus * workers
        self._workers += workers

    @property
    def left(self) -> tuple[int, int, int, int]:
        """Millionths of a core, bytes, GPUs and processes; negative where more is taken than there is."""
        return self._cpu_left, self._memory_left, self._gpus_left, HOST_PROCESSES_MAX - self._workers

    @property
    def load(self) -> float:
        """The part that is taken of the host's scarcest resource."""
        cpu_load = 1 - self._cpu_left / self._cpu_total if self._cpu_total else 0.0
        memory_load = 1 - self._memory_left / self._memory_total if self._memory_total else 0.0
        if not self._gpus_total:
            return max(cpu_load, memory_load)
        return max(cpu_load, memory_load, 1 - self._gpus_left / self._gpus_total)


NOTHING = (0, 0, 0)
