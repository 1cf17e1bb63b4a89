"""Hosts of one machine that a test can part from each other: network namespaces on one bridge.

Where namespaces cannot be made (no root, a kernel without them) hosts are addresses 127.x.x.x: everything but parting
them works; ``can_part`` says which it is and ``why`` what the machine said. What a killed run left behind is removed by
the next one.

    this machine ──┐
    each host ─────┴── bridge in the namespace "hub"
"""

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from headway.local import procfs
from support.processes import end, runs

PREFIX = "headway-lab-"
CLONE_NEWNET = 0x40000000
HUB, HERE = 1, 254  # last numbers of addresses
FIRST_JOINED = 2

T = TypeVar("T")


class Network(Protocol):
    """Where hosts live."""

    can_part: bool
    why: str
    """Why not."""

    def join(self, name: str) -> str:
        """Make a host. Returns its address."""

    def words(self, name: str) -> list[str]:
        """What is written before a command line so that it runs on the host."""

    def inside(self, name: str, call: Callable[[], T]) -> T:
        """What ``call`` returns, run in a thread that is on the host; so are the processes it starts."""

    def part(self, name: str) -> None:
        """Nothing reaches the host any more, and nothing leaves it; nobody is notified."""

    def rejoin(self, name: str) -> None: ...

    def silence(self, name: str, *, towards: str) -> None:
        """What ``towards`` sends to ``name`` is lost without an error; what it receives from there still arrives."""

    def unsilence(self, name: str, *, towards: str) -> None: ...

    def remove(self) -> None:
        """Take everything away that was made."""


class Namespaces:
    """Hosts as network namespaces. Their names carry this process's pid and start: a leftover shows whose it is."""

    can_part, why = True, ""

    def __init__(self) -> None:
        self._run = f"{PREFIX}{_identity(os.getpid())}-"
        self._subnet = _free_subnet()
        self._link = f"hl{os.getpid()}"
        self._addresses: dict[str, str] = {}
        self._make("hub")
        _ip("-n", self._named("hub"), "link add bridge0 type bridge")
        _ip("-n", self._named("hub"), f"addr add {self.address('hub', HUB)}/24 dev bridge0")
        _ip("-n", self._named("hub"), "link set bridge0 up")
        _ip(f"link add {self._link} type veth peer name port-here netns {self._named('hub')}")
        _ip("-n", self._named("hub"), "link set port-here master bridge0 up")
        _ip(f"addr add {self.address('here', HERE)}/24 dev {self._link}")
        _ip(f"link set {self._link} up")

    def address(self, name: str, number: int) -> str:
        return self._addresses.setdefault(name, f"{self._subnet}.{number}")

    def join(self, name: str) -> str:
        address = self.address(name, FIRST_JOINED + len(self._addresses) - 2)
        hub, own = self._named("hub"), self._named(name)
        self._make(name)
        _ip("-n", hub, f"link add port-{name} type veth peer name eth0 netns {own}")
        _ip("-n", hub, f"link set port-{name} master bridge0 up")
        _ip("-n", own, f"addr add {address}/24 dev eth0")
        _ip("-n", own, "link set eth0 up")
        return address

    def words(self, name: str) -> list[str]:
        # Not `ip netns exec`: it mounts another /sys, in which a program does not find its cgroup.
        return ["nsenter", f"--net=/run/netns/{self._named(name)}"]

    def inside(self, name: str, call: Callable[[], T]) -> T:
        outcome: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                with Path(f"/run/netns/{self._named(name)}").open() as namespace:
                    libc = ctypes.CDLL(None, use_errno=True)
                    assert libc.setns(namespace.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
                outcome.append(call())
            except BaseException as error:  # noqa: BLE001 - raised again below
                failure.append(error)

        thread = threading.Thread(target=run, name=f"in {name}")  # a namespace is a thread's, and this one ends
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]

    def part(self, name: str) -> None:
        _ip("-n", self._named("hub"), f"link set port-{name} down")

    def rejoin(self, name: str) -> None:
        _ip("-n", self._named("hub"), f"link set port-{name} up")

    def silence(self, name: str, *, towards: str) -> None:
        _ip("-n", self._named(towards), f"route replace blackhole {self._addresses[name]}/32")

    def unsilence(self, name: str, *, towards: str) -> None:
        _ip("-n", self._named(towards), f"route del blackhole {self._addresses[name]}/32")

    def remove(self) -> None:
        # A namespace that has gone takes its links along in its own time, and the next lab would find the name taken.
        subprocess.run(["ip", "link", "del", self._link], capture_output=True, check=False)
        _remove(self._run)

    def _named(self, name: str) -> str:
        return f"{self._run}{name}"

    def _make(self, name: str) -> None:
        _ip(f"netns add {self._named(name)}")
        _ip("-n", self._named(name), "link set lo up")


class Loopback:
    """Hosts as addresses of the loopback interface, where namespaces cannot be made."""

    can_part = False

    def __init__(self, why: str = "") -> None:
        self.why = why
        self._subnet = f"127.213.{os.getpid() % 256}"  # two labs at once have one each
        self._joined = FIRST_JOINED

    def join(self, name: str) -> str:
        self._joined += 1
        return f"{self._subnet}.{self._joined}"

    def words(self, name: str) -> list[str]:
        return []

    def inside(self, name: str, call: Callable[[], T]) -> T:
        return call()

    def part(self, name: str) -> None:
        raise NotImplementedError("addresses of the loopback interface cannot be parted")

    rejoin = part

    def silence(self, name: str, *, towards: str) -> None:
        self.part(name)

    unsilence = silence

    def remove(self) -> None:
        return


def network() -> Network:
    """The network that this machine lets us have; what earlier runs left is gone."""
    remove_leftovers()
    try:
        return Namespaces()
    except OSError as error:
        why = str(error)
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode().strip()
    remove_leftovers(also_ours=True)
    return Loopback(why)


def remove_leftovers(*, also_ours: bool = False) -> None:
    """Remove the namespaces, with their processes, of runs whose test is no more."""
    for name in _namespaces():
        owner = name.removeprefix(PREFIX).rpartition("-")[0]
        is_ours = owner == _identity(os.getpid())
        if (is_ours and also_ours) or not (is_ours or _lives(owner)):
            _remove(f"{PREFIX}{owner}-")


def _remove(run: str) -> None:
    names = [name for name in _namespaces() if name.startswith(run)]
    processes = [process for name in names for process in _processes_of(name)]
    end(processes, within_s=0)
    psutil.wait_procs(processes, timeout=10)
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _processes_of(name: str) -> list[psutil.Process]:
    printed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
    found: list[psutil.Process] = []
    for pid in map(int, printed.split()):
        with suppress(psutil.NoSuchProcess):  # it has ended since
            found += [psutil.Process(pid)] if pid != os.getpid() else []
    return found


def _namespaces() -> list[str]:
    try:
        printed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return []
    return [line.split()[0] for line in printed.splitlines() if line.startswith(PREFIX)]


def _identity(pid: int) -> str:
    """What no other process of this boot is called, whatever becomes of the wall clock."""
    known = procfs.stat(pid)
    return f"{pid}-{known.started_ticks if known else ''}"


def _lives(owner: str) -> bool:
    pid = owner.partition("-")[0]
    return pid.isdecimal() and runs(int(pid)) and _identity(int(pid)) == owner


def _free_subnet() -> str:
    """Three numbers of a network that this machine does not use: two labs at once have one each."""
    used = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    return next(
        subnet for number in range(256) if f" {(subnet := f'10.213.{(os.getpid() + number) % 256}')}." not in used
    )


def _ip(*words: str) -> None:
    subprocess.run(["ip", *(piece for word in words for piece in word.split())], check=True, capture_output=True)
