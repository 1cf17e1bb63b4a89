"""What ``/proc`` tells of processes and of the kernel that runs them.

A process is known again by its pid and its start in clock ticks since boot, within one boot: a pid alone may be another
process's by now. Seconds are of the same clock, which counts from boot, sleep included, and never steps.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROC = "/proc"


@dataclass(frozen=True, slots=True)
class Stat:
    """One process at one moment."""

    pid: int
    state: str
    parent_pid: int
    session: int
    cpu_s: float
    """Its own, and that of its children that have ended."""
    started_ticks: int

    @property
    def is_over(self) -> bool:
        """Whether it has ended and only its parent has not taken note yet: in containers that may be so for ever."""
        return self.state in {"Z", "X"}

    @property
    def started_at_s(self) -> float:
        """Seconds from boot to its start."""
        return self.started_ticks / TICKS_PER_S


@lru_cache
def boot_id() -> str:
    """Names this run of the kernel and the clock that counts from its begin: a time namespace has another one."""
    kernel = Path(_PROC, "sys/kernel/random/boot_id").read_text().strip()
    ahead_s = _ahead_of_boot_s()
    return f"{kernel}{ahead_s:+d}" if ahead_s else kernel


def _ahead_of_boot_s() -> int:
    with suppress(OSError):  # a kernel without time namespaces
        for line in Path(_PROC, "self/timens_offsets").read_text().splitlines():
            clock, seconds, _ = line.split()
            if clock == "boottime":
                return int(seconds)
    return 0


def since_boot_s() -> float:
    """The clock of everything on this host that must not step."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def stat(pid: int) -> Stat | None:
    """The process with this pid, ``None`` if there is none."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - Path costs as much as the reading
            text = file.read()
    except OSError:
        return None
    # The program's name stands in brackets and may itself hold brackets and spaces.
    fields = text[text.rindex(b")") + 2 :].split()
    return Stat(
        pid=pid,
        state=fields[0].decode(),
        parent_pid=int(fields[1]),
        session=int(fields[3]),
        cpu_s=sum(map(int, fields[11:15])) / TICKS_PER_S,
        started_ticks=int(fields[19]),
    )


def is_there(pid: int, started_ticks: int) -> bool:
    """Whether the process that started then runs: another one with its pid does not count, nor one that is over."""
    known = stat(pid)
    return known is not None and known.started_ticks == started_ticks and not known.is_over


def pids() -> Iterator[int]:
    """Every process there is."""
    return (int(name) for name in os.listdir(_PROC) if name.isdecimal())  # noqa: PTH208 - as above


def descendants(pid: int) -> list[Stat]:
    """The children of the process, theirs, and so on. Those that were handed to another parent are not among them."""
    found: list[Stat] = []
    left = [pid]
    while left:
        for child in children(left.pop()):
            found.append(child)
            left.append(child.pid)
    return found


def family_cpu_s(pid: int) -> float | None:
    """What the process and its descendants have taken of processors so far; ``None`` where it is gone."""
    process = stat(pid)
    return None if process is None else process.cpu_s + sum(child.cpu_s for child in descendants(pid))


def children(pid: int) -> list[Stat]:
    """The children of the process."""
    return [known for known in map(stat, _children(pid)) if known is not None]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"{_PROC}/{pid}/task")  # noqa: PTH208
        for thread in threads:
            with open(f"{_PROC}/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    except FileNotFoundError:
        if not _tells_children():
            return [each.pid for each in map(stat, pids()) if each is not None and each.parent_pid == pid]
    except OSError:
        return []
    return found


@lru_cache
def _tells_children() -> bool:
    # A kernel may be built without these files.
    return Path(f"{_PROC}/self/task/{os.getpid()}/children").exists()


def environment(pid: int) -> dict[str, str]:
    """The environment that the process was started with; empty where it may not be read, or was overwritten."""
    try:
        text = Path(f"{_PROC}/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.decode(errors="replace").partition("=") for entry in text.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def would_die_of(pid: int, number: int) -> bool:
    """Whether the process would end at once by this signal: it neither handles nor ignores it, nor holds it back."""
    try:
        text = Path(f"{_PROC}/{pid}/status").read_bytes()
    except OSError:
        return False
    masks = (line.split() for line in text.splitlines() if line.startswith((b"SigBlk:", b"SigIgn:", b"SigCgt:")))
    return not any(int(mask, 16) >> (number - 1) & 1 for _, mask in masks)


def output_files(pid: int) -> list[str]:
    """Where the standard output and standard error of the process go."""
    found = []
    for number in (1, 2):
        with suppress(OSError):
            found.append(os.readlink(f"{_PROC}/{pid}/fd/{number}"))  # noqa: PTH115
    return found


def proportional_memory_bytes(pid: int) -> int:
    """The memory of the process, what it shares with others divided among them; 0 where it may not be read."""
    for name, label in (("smaps_rollup", b"Pss:"), ("status", b"VmRSS:")):
        with suppress(OSError):
            for line in Path(f"{_PROC}/{pid}/{name}").read_bytes().splitlines():
                if line.startswith(label):
                    return int(line.split()[1]) * 1024
    return 0
