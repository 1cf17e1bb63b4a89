"""Facts from ``/proc`` about processes and the kernel that runs them.

A process is known again by its pid and its start in clock ticks since boot, within one boot: a pid alone may be another
process's by now. Seconds are of the same clock, which counts from boot, sleep included, and never steps.

``/proc`` itself, and not psutil, because an agent reads this of each worker every few seconds, beside any number of
other processes. CPU time of a call in µs, here and by psutil 7.2, with 1,466 processes on the host: one process 12 and
70, the children of one 270 and 18,900 (psutil reads every process), memory 25 and 49, user 18 and 27, environment 48
and 44 (of any length), all pids 908 and 783. psutil's starts, and its boot time, are seconds of a clock that steps and
that knows no time namespace.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SIGNALS_MAX = 64
NS_PER_TICK = 1_000_000_000 // TICKS_PER_S
NS_WRAP = 2**64
TICKS_APART_MAX = 1  # the same start, read by two boot clocks: see signed_ticks
_PROC = "/proc"
PROC_ENVIRONMENT_BYTES_MAX = 2 * 1024 * 1024  # a process may make its own any length

PROC_COMMAND_LINE_BYTES_MAX = 64 * 1024  # the words that name a program come first


@dataclass(frozen=True, slots=True)
class Stat:
    """One process at one moment."""

    pid: int
    state: str
    parent_pid: int
    group: int
    session: int
    cpu_s: float
    """Its own, and that of its children that have ended."""
    started_ticks: int
    """Below 0 for a process that is older than the boot of this time namespace."""

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
    ahead_s = ahead_of_boot_s()
    return f"{kernel}{ahead_s:+d}" if ahead_s else kernel


def moved_s(then: str, now: str) -> int | None:
    """By how many seconds the clock of boot ``now`` is ahead of that of ``then``; ``None`` if the kernel booted since.

    A process that goes on has started by so much later, as that clock counts.
    """
    (kernel, ahead_s), (kernel_now, ahead_now_s) = _kernel_and_ahead_s(then), _kernel_and_ahead_s(now)
    return ahead_now_s - ahead_s if kernel == kernel_now else None


def _kernel_and_ahead_s(boot: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.{36})([+-]\d+)", boot)  # a UUID
    return (found[1], int(found[2])) if found else (boot, 0)


def ahead_of_boot_s() -> int:
    """By how many seconds this process's boot clock is ahead of the kernel's own; 0 outside of time namespaces."""
    with suppress(OSError):  # a kernel without time namespaces
        for line in Path(_PROC, "self/timens_offsets").read_text().splitlines():
            clock, seconds, _ = line.split()
            if clock == "boottime":
                return int(seconds)
    return 0


def processes_id() -> str:
    """Names the processes among which this one runs, as those of one run of a container; empty where it cannot be read.

    Once it is another, all that ran under the one before have been killed.
    """
    first = stat(1)
    with suppress(OSError):
        namespace = os.readlink(f"{_PROC}/self/ns/pid")  # noqa: PTH115
        return "" if first is None else f"{namespace} {first.started_ticks}"
    return ""


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
        group=int(fields[2]),
        session=int(fields[3]),
        cpu_s=sum(map(int, fields[11:15])) / TICKS_PER_S,
        started_ticks=signed_ticks(int(fields[19])),
    )


def signed_ticks(printed: int) -> int:
    """Ticks from boot to the start of a process, from the number in ``/proc/PID/stat``.

    The kernel adds the offset of the reader's time namespace to the start in ns, modulo 2^64, and then divides by the
    ns per tick. So a start before the namespace's boot is a number just below 2^64 ns in ticks (1844674407370 at 100
    ticks per second). 2^64 is no multiple of a tick: the result may be one tick early, never late.
    """
    printed_ns = printed * NS_PER_TICK
    return printed if printed_ns < NS_WRAP // 2 else (printed_ns - NS_WRAP) // NS_PER_TICK


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


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What the kernel's scheduler has given a thread so far."""

    cpu_s: float
    waited_s: float
    """How long it could have gone on and had no core."""


def scheduled(pid: int) -> Scheduled | None:
    """Of the process's main thread, also when it has ended and its parent has not taken note yet.

    ``None`` where it is gone, and where the kernel keeps no such figures.
    """
    try:
        with open(f"{_PROC}/{pid}/schedstat", "rb") as file:  # noqa: PTH123 - as above
            cpu_ns, waited_ns = map(int, file.read().split()[:2])
    except (OSError, ValueError):
        return None
    return Scheduled(cpu_s=cpu_ns / 1e9, waited_s=waited_ns / 1e9)


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
        if not _lists_children():
            return [each.pid for each in map(stat, pids()) if each is not None and each.parent_pid == pid]
    except OSError:
        return []
    return found


@lru_cache
def _lists_children() -> bool:
    # A kernel may be built without these files.
    return Path(f"{_PROC}/self/task/{os.getpid()}/children").exists()


def command_line(pid: int) -> tuple[str, ...]:
    """The words that the process was started with, or the title that it set in their place; empty where it has none."""
    try:
        with open(f"{_PROC}/{pid}/cmdline", "rb", buffering=0) as file:  # noqa: PTH123
            text = file.read(PROC_COMMAND_LINE_BYTES_MAX) or b""
    except OSError:
        return ()
    return tuple(word.decode(errors="replace") for word in text.rstrip(b"\0").split(b"\0")) if text else ()


def environment(pid: int, *, having: str = "") -> dict[str, str]:
    """The environment that the process was started with, if ``having`` occurs in it.

    Empty where it may not be read, was overwritten, or is longer than one that a program can be started with.
    """
    try:
        with open(f"{_PROC}/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123
            text = file.read(PROC_ENVIRONMENT_BYTES_MAX + 1) or b""
    except OSError:
        return {}
    if len(text) > PROC_ENVIRONMENT_BYTES_MAX or having.encode() not in text:
        return {}
    pairs = (entry.decode(errors="replace").partition("=") for entry in text.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def uid(pid: int) -> int | None:
    """Whose the process is: its real user, ``None`` if there is no such process."""
    try:
        text = Path(f"{_PROC}/{pid}/status").read_bytes()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(b"Uid:")), None)


def would_die_of(pid: int, number: int) -> bool:
    """Whether the process would end at once by this signal: it neither handles nor ignores it, nor holds it back."""
    try:
        text = Path(f"{_PROC}/{pid}/status").read_bytes()
    except OSError:
        return False
    masks = (line.split() for line in text.splitlines() if line.startswith((b"SigBlk:", b"SigIgn:", b"SigCgt:")))
    return not any(int(mask, 16) >> (number - 1) & 1 for _, mask in masks)


def output_files(pid: int) -> dict[int, str]:
    """Where the standard output and standard error of the process go, by the descriptor's number."""
    found = {}
    for number in (1, 2):
        with suppress(OSError):
            found[number] = os.readlink(f"{_PROC}/{pid}/fd/{number}")  # noqa: PTH115
    return found


def proportional_memory_bytes(pid: int) -> int:
    """The memory of the process, what it shares with others divided among them; 0 where it may not be read."""
    for name, label in (("smaps_rollup", b"Pss:"), ("status", b"VmRSS:")):
        with suppress(OSError):
            for line in Path(f"{_PROC}/{pid}/{name}").read_bytes().splitlines():
                if line.startswith(label):
                    return int(line.split()[1]) * 1024
    return 0
