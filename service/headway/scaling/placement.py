"""Which host runs which of a pool's workers. Neither loses nor invents a worker, moves as few as it can, and is stable.

A host's room is counted in CPU cores and memory; a worker takes what its template on that host says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.scaling.model import Assignment, Host, Template

ROUNDING = 1e-9  # ten workers of 0.1 core fit into one core


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """How many workers of a pool to place. Greater ``priority`` is placed first when room is short."""

    pool: str
    template: str
    workers: int
    priority: int = 100


def place(
    targets: Iterable[PoolTarget], hosts: Sequence[Host], current: Iterable[Assignment]
) -> tuple[Assignment, ...]:
    """The assignments that give each pool its target where the known hosts have room, and as much of it where not.

    What is in place stays while it is wanted. A host that is not known gets nothing. Pools without workers get no row.
    """
    rooms = {host.host_id: _Room(host) for host in sorted(hosts, key=lambda host: host.host_id) if host.is_known}
    ordered = sorted(targets, key=lambda target: (-target.priority, target.pool))
    present = {(row.pool, row.host_id): row for row in current}
    counts: dict[tuple[str, str], int] = {}
    for target in ordered:
        counts.update(_kept(target, rooms, present))
    for target in ordered:
        _grow(target, rooms, counts)
    return tuple(
        Assignment(
            pool=target.pool,
            host_id=host_id,
            template=target.template,
            base_workers=counts[target.pool, host_id],
            restart_generation=_generation(present.get((target.pool, host_id))),
        )
        for target in sorted(ordered, key=lambda target: target.pool)
        for host_id in rooms
        if counts.get((target.pool, host_id))
    )


def capacity_workers(pool: str, template: str, hosts: Sequence[Host], current: Iterable[Assignment]) -> int | None:
    """Workers of ``pool`` that the known hosts can hold beside the other pools' workers.

    Returns:
        ``None`` where no known host reports the template: that is not a room of zero, it is not known.
    """
    rooms = {host.host_id: _Room(host) for host in hosts if host.is_known and _template(host, template)}
    if not rooms:
        return None
    for row in current:
        if row.pool != pool and row.host_id in rooms:
            rooms[row.host_id].take(row.template, row.workers)
    return sum(room.fitting(template) for room in rooms.values())


class _Room:
    """What is left of one host while workers are placed on it."""

    def __init__(self, host: Host) -> None:
        self.cpu_cores = host.capacity.cpu_cores
        self.memory_bytes = host.capacity.memory_bytes
        self.templates: Mapping[str, Template] = {template.name: template for template in host.templates}

    def fitting(self, template_name: str) -> int:
        template = self.templates.get(template_name)
        if template is None:
            return 0
        by_cpu = self.cpu_cores / template.cpu_cores if template.cpu_cores > 0 else float("inf")
        by_memory = self.memory_bytes / template.memory_bytes if template.memory_bytes > 0 else float("inf")
        fitting = min(by_cpu, by_memory)
        # A template that costs nothing still has an end: a host is no place for a million processes.
        return max(0, int(min(fitting, FREE_WORKERS_MAX) + ROUNDING))

    def take(self, template_name: str, workers: int) -> None:
        template = self.templates.get(template_name)
        if template is not None:
            self.cpu_cores -= template.cpu_cores * workers
            self.memory_bytes -= template.memory_bytes * workers


FREE_WORKERS_MAX = 10_000


def _kept(
    target: PoolTarget, rooms: Mapping[str, _Room], present: Mapping[tuple[str, str], Assignment]
) -> dict[tuple[str, str], int]:
    """What stays of a pool: its present workers up to the target, taken off the fullest hosts first."""
    counts = {
        host_id: min(present[target.pool, host_id].workers, room.fitting(target.template))
        for host_id, room in rooms.items()
        if (target.pool, host_id) in present
    }
    surplus = sum(counts.values()) - target.workers
    for host_id in sorted(counts, key=lambda host_id: (rooms[host_id].fitting(target.template), host_id)):
        taken = max(0, min(surplus, counts[host_id]))
        counts[host_id] -= taken
        surplus -= taken
    for host_id, workers in counts.items():
        rooms[host_id].take(target.template, workers)
    return {(target.pool, host_id): workers for host_id, workers in counts.items()}


def _grow(target: PoolTarget, rooms: Mapping[str, _Room], counts: dict[tuple[str, str], int]) -> None:
    """Add what is missing, each worker to the host with the most room for it."""
    missing = target.workers - sum(counts.get((target.pool, host_id), 0) for host_id in rooms)
    for _ in range(max(0, missing)):
        host_id = max(rooms, key=lambda host_id: rooms[host_id].fitting(target.template), default=None)
        if host_id is None or rooms[host_id].fitting(target.template) == 0:
            return
        rooms[host_id].take(target.template, 1)
        counts[target.pool, host_id] = counts.get((target.pool, host_id), 0) + 1


def _template(host: Host, name: str) -> Template | None:
    return next((template for template in host.templates if template.name == name), None)


def _generation(row: Assignment | None) -> int:
    return row.restart_generation if row else 0
