import os
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.system.capacity import MachineCapacity, capacity, measure, steadied
from headway.scaling.model import HostCapacity

GIB = 1024**3
CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 GiB, 12 of them available, without limits."""
    memory = SimpleNamespace(total=16 * GIB, available=12 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    write(tmp_path / "proc/self/cgroup", "0::/")
    return tmp_path


def write(path: Path, text: str | int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def measured(system: Path) -> MachineCapacity:
    return measure(system / "proc", system / "cgroup")


def test_without_limits_the_machine_counts(system: Path) -> None:
    assert measured(system) == MachineCapacity(cpu_cores=CORES, memory_bytes=16 * GIB, used_bytes=4 * GIB)


def test_the_tightest_of_the_own_cgroup_and_its_ancestors_counts_in_version_2(system: Path) -> None:
    write(system / "proc/self/cgroup", "0::/system.slice/agent.service")
    slice_, service = system / "cgroup/system.slice", system / "cgroup/system.slice/agent.service"
    write(service / "cpu.max", "max 100000")
    write(slice_ / "cpu.max", "50000 100000")
    write(service / "memory.max", 2 * GIB)
    write(service / "memory.current", 1 * GIB)
    write(service / "memory.stat", f"anon 5\ninactive_file {GIB // 4}")  # given back as soon as it is wanted
    write(slice_ / "memory.max", "max")
    assert measured(system) == MachineCapacity(cpu_cores=0.5, memory_bytes=2 * GIB, used_bytes=3 * GIB // 4)


def test_version_1_counts_as_well(system: Path) -> None:
    write(system / "proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n0::/")
    write(system / "cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", 25_000)
    write(system / "cgroup/cpu,cpuacct/job/cpu.cfs_period_us", 100_000)
    write(system / "cgroup/memory/job/memory.limit_in_bytes", 3 * GIB)
    write(system / "cgroup/memory/job/memory.usage_in_bytes", 1 * GIB)
    write(system / "cgroup/memory/memory.limit_in_bytes", 9_223_372_036_854_771_712)  # none
    assert measured(system) == MachineCapacity(cpu_cores=0.25, memory_bytes=3 * GIB, used_bytes=1 * GIB)


def test_no_quota_and_a_path_of_the_hosts_are_no_limits(system: Path) -> None:
    write(system / "proc/self/cgroup", "4:memory:/../of/the/host\n2:cpu:/gone\n0::/../..")
    write(system / "cgroup/cpu/cpu.cfs_quota_us", -1)
    write(system / "cgroup/cpu/cpu.cfs_period_us", 100_000)
    assert measured(system).cpu_cores == CORES
    assert measured(system).memory_bytes == 16 * GIB


@pytest.mark.parametrize(
    ("values", "given"),
    [
        ({}, (4.0, 11 * GIB)),  # 16 − (6 used − 1 ours)
        ({"reserve_cpu_cores": 1.5, "reserve_memory_bytes": 2 * GIB}, (2.5, 9 * GIB)),
        ({"reserve_cpu_cores": 9.0, "reserve_memory_bytes": 99 * GIB}, (0.0, 0)),
        ({"workers_bytes": 7 * GIB}, (4.0, 16 * GIB)),  # shared memory counted otherwise by the kernel
    ],
)
def test_workers_may_have_what_neither_others_use_nor_the_owner_keeps_back(values: dict, given: tuple) -> None:
    machine = MachineCapacity(cpu_cores=4.0, memory_bytes=16 * GIB, used_bytes=6 * GIB)
    asked = {"workers_bytes": 1 * GIB, "reserve_cpu_cores": 0.0, "reserve_memory_bytes": 0, **values}
    assert capacity(machine, **asked) == HostCapacity(cpu_cores=given[0], memory_bytes=given[1])


def test_this_machine_can_be_measured() -> None:
    machine = measure()
    assert 0 < machine.cpu_cores <= CORES
    assert 0 < machine.used_bytes < machine.memory_bytes


def of(memory_gib: float, cpu_cores: float = 4.0) -> HostCapacity:
    return HostCapacity(cpu_cores=cpu_cores, memory_bytes=int(memory_gib * GIB))


@pytest.mark.parametrize(
    ("before", "now", "reported"),
    [
        (None, of(8.0), of(8.0)),
        (of(8.0), of(8.3), of(8.0)),  # noise
        (of(8.0), of(7.7), of(8.0)),
        (of(8.0), of(4.0), of(6.0)),  # half of the way
        (of(8.0), of(12.0), of(10.0)),
        (of(8.0), of(8.0, 2.0), of(8.0, 2.0)),  # cores are a setting
        (of(0.0), of(0.0), of(0.0)),
    ],
)
def test_what_is_reported_of_memory_follows_what_stays_and_not_what_comes_and_goes(
    before: HostCapacity | None, now: HostCapacity, reported: HostCapacity
) -> None:
    assert steadied(before, now) == reported


@given(st.lists(st.floats(0.97, 1.03), max_size=20))
def test_noise_is_never_reported(noise: list[float]) -> None:
    reported = of(8.0)
    for factor in noise:
        reported = steadied(reported, of(8.0 * factor))
    assert reported == of(8.0)
