"""Hosts as values, for tests of the core."""

from collections.abc import Iterable, Mapping
from typing import Any

from headway.scaling.model import Host, HostCapacity, Template, Worker


def any_host(
    name: str = "a",
    *workers: Worker,
    cpu_cores: float = 1.0,
    memory_bytes: int = 1,
    gpus: int = 0,
    memory_pressure: float | None = None,
    templates: Iterable[Template] = (),
    **values: Any,
) -> Host:
    """A host that is called by its id, runs ``workers`` and has so much room; ``values`` are other fields of it."""
    capacity = HostCapacity(
        cpu_cores=float(cpu_cores), memory_bytes=memory_bytes, gpus=gpus, memory_pressure=memory_pressure
    )
    return Host(host_id=name, name=name, capacity=capacity, templates=tuple(templates), workers=workers, **values)


def costing(cores: Mapping[str, float]) -> tuple[Template, ...]:
    """Templates by name, each worker of which takes so much of a processor."""
    return tuple(Template(name=name, content_hash="1", cpu_cores=each) for name, each in cores.items())
