"""What this host can give to workers: cores and memory, within the limits of its cgroups, less what is kept back.

Cgroups of version 1 and 2 are both read, each from the own one up to the root: the tightest counts. Pressure is how
long tasks wait for the processor or for memory, which neither load nor use shows: a host can be full at 100 % and well,
or at 60 % and waiting.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from headway.scaling.model import HostCapacity

CAPACITY_MEMORY_BAND = 0.05  # of the memory: a change of less is noise
CAPACITY_UNLIMITED_BYTES = 1 << 60  # version 1 writes "no limit" as a number near 2^63


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCapacity:
    """The kernel's figures, before anything is kept back."""

    cpu_cores: float
    memory_bytes: int
    used_bytes: int
    """By everything that counts against ``memory_bytes``, our workers included."""


def capacity(
    machine: MachineCapacity, *, workers_bytes: int, reserve_cpu_cores: float, reserve_memory_bytes: int, gpus: int = 0
) -> HostCapacity:
    """What workers may take in all, present ones included: what others use and what is reserved is taken off."""
    others_bytes = max(0, machine.used_bytes - workers_bytes)
    return HostCapacity(
        cpu_cores=max(0.0, machine.cpu_cores - reserve_cpu_cores),
        memory_bytes=max(0, machine.memory_bytes - others_bytes - reserve_memory_bytes),
        gpus=gpus,
    )


def steadied(before: HostCapacity | None, now: HostCapacity) -> HostCapacity:
    """The capacity that is reported after ``before``, so that what other programs take for a moment moves no worker.

    Memory goes half of the way with each sample, and stays as it is while that is little. Cores and GPUs are settings.
    """
    if before is None:
        return now
    difference_bytes = now.memory_bytes - before.memory_bytes
    if abs(difference_bytes) <= CAPACITY_MEMORY_BAND * max(before.memory_bytes, now.memory_bytes):
        return replace(now, memory_bytes=before.memory_bytes)
    return replace(now, memory_bytes=before.memory_bytes + difference_bytes // 2)


def measure(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> MachineCapacity:
    """This machine, as far as this process may use it. psutil knows no cgroup: their limits are read here."""
    memory = psutil.virtual_memory()
    total_bytes, used_bytes = memory.total, memory.total - memory.available
    cores = float(len(psutil.Process().cpu_affinity()))
    for limit in _limits(proc, cgroups):
        cores = min(cores, limit.cpu_cores or cores)
        if limit.memory_bytes is not None and limit.memory_bytes < total_bytes:
            total_bytes, used_bytes = limit.memory_bytes, limit.used_bytes
    return MachineCapacity(cpu_cores=cores, memory_bytes=total_bytes, used_bytes=used_bytes)


def pressure(resource: str, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The share of the time, 0 to 1, in which some task waited for ``resource`` (``cpu`` or ``memory``).

    The worst of the machine's and of our cgroup's, where a limit makes tasks wait of which the machine knows nothing.
    ``None`` where the kernel keeps no pressure stall information.
    """
    own = [path.lstrip("/") for controllers, path in _own(proc) if not controllers]
    folders = [root / path for path in own for root in _trees(cgroups)]
    paths = [proc / "pressure" / resource, *(folder / f"{resource}.pressure" for folder in folders)]
    return max((share for path in paths if (share := _some(path)) is not None), default=None)


def _some(path: Path) -> float | None:
    """The average of the line ``some avg10=1.53 avg60=…``, as a share."""
    found = re.search(r"^some .*?\bavg10=([\d.]+)", _text(path), re.MULTILINE)
    return float(found[1]) / 100 if found else None  # over the last ten seconds


def _own(proc: Path) -> Iterator[tuple[str, str]]:
    """The controllers and the path of each cgroup that this process is in; version 2 names no controller."""
    for line in _text(proc / "self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        yield controllers, path


def _trees(cgroups: Path) -> tuple[Path, ...]:
    """Where version 2 may be mounted: beside version 1 in a folder of it."""
    return cgroups, cgroups / "unified"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """The limits of one cgroup."""

    cpu_cores: float | None = None
    memory_bytes: int | None = None
    used_bytes: int = 0


def _limits(proc: Path, cgroups: Path) -> Iterator[_Limit]:
    for controllers, path in _own(proc):
        if not controllers:
            for root in _trees(cgroups):
                yield from map(_limit_v2, _up_from(root, path))
        for controller in controllers.split(","):
            if controller in {"cpu", "memory"}:
                for root in (cgroups / controller, cgroups / controllers):
                    yield from map(_limit_v1, _up_from(root, path))


def _up_from(root: Path, path: str) -> Iterator[Path]:
    """The folders of a cgroup and its ancestors. In a container the path may be of the host: then the root is ours."""
    folder = root / path.lstrip("/")
    while folder != root:
        yield folder
        folder = folder.parent
    yield root


def _limit_v2(folder: Path) -> _Limit:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    memory = _number(folder / "memory.max")
    used_bytes = _number(folder / "memory.current") or 0
    return _Limit(
        cpu_cores=int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else None,
        memory_bytes=memory,
        used_bytes=max(0, used_bytes - _table(folder / "memory.stat").get("inactive_file", 0)),
    )


def _limit_v1(folder: Path) -> _Limit:
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    memory = _number(folder / "memory.limit_in_bytes")
    used_bytes = _number(folder / "memory.usage_in_bytes") or 0
    return _Limit(
        cpu_cores=quota / period if quota and period and quota > 0 else None,
        memory_bytes=memory if memory is not None and memory < CAPACITY_UNLIMITED_BYTES else None,
        used_bytes=max(0, used_bytes - _table(folder / "memory.stat").get("total_inactive_file", 0)),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.removeprefix("-").isdecimal() else None


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number, as in ``inactive_file 16384``."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
