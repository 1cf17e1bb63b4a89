from pathlib import Path

import pytest

from headway.agent.system.capacity import pressure

QUIET = "some avg10={some} avg60=50.00 avg300=3.00 total=1\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=0\n"


@pytest.fixture
def system(tmp_path: Path) -> Path:
    write(tmp_path / "proc/self/cgroup", "1:cpu:/v1\n0::/job\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def reported(system: Path, resource: str = "cpu") -> float | None:
    return pressure(resource, system / "proc", system / "cgroup")


def test_it_is_the_share_of_the_last_ten_seconds_in_which_some_task_waited(system: Path) -> None:
    write(system / "proc/pressure/cpu", QUIET.format(some="12.50"))
    assert reported(system) == 0.125
    assert reported(system, "memory") is None


@pytest.mark.parametrize("root", ["cgroup", "cgroup/unified"])
def test_the_worst_of_the_machine_and_of_the_own_cgroup_counts(system: Path, root: str) -> None:
    write(system / "proc/pressure/memory", QUIET.format(some="1.00"))
    write(system / root / "job/memory.pressure", QUIET.format(some="40.00"))
    assert reported(system, "memory") == 0.4
    write(system / "proc/pressure/memory", QUIET.format(some="60.00"))
    assert reported(system, "memory") == 0.6


@pytest.mark.parametrize("text", ["", "some\n", "some avg10=\n", "some avg10=x avg60=1\n", "full avg10=1.00\n"])
def test_what_the_kernel_does_not_show_is_not_known(system: Path, text: str) -> None:
    write(system / "proc/pressure/cpu", text)
    assert reported(system) is None


def test_this_machines_pressure_is_a_share_where_it_is_known() -> None:
    assert all(share is None or 0.0 <= share <= 1.0 for share in (pressure("cpu"), pressure("memory")))
