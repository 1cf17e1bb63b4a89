"""The lab's own hosts: parting them parts them, and nothing of a lab outlives its test."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.cgroups import Cgroup
from lab.network import Loopback, Network, network
from support.processes import runs

PORT = 4711
REACHED_WITHIN_S = 60.0
SILENT_S = 0.3


@pytest.fixture
def lan() -> Iterator[Network]:
    made = network()
    yield made
    made.remove()


def _server(address: str) -> socket.socket:
    server = socket.create_server((address, PORT))
    server.setblocking(False)
    return server


def _reaches(lan: Network, name: str, address: str, *, within_s: float) -> bool:
    def connects() -> bool:
        try:
            socket.create_connection((address, PORT), timeout=within_s).close()
        except OSError:
            return False
        return True

    return lan.inside(name, connects)


def _sees(condition: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + REACHED_WITHIN_S
    while not condition() and time.monotonic() < until_s:
        time.sleep(0.02)
    return condition()


def test_hosts_reach_each_other_and_this_machine_reaches_them(lan: Network) -> None:
    one, _ = lan.join("one"), lan.join("two")
    with lan.inside("one", lambda: _server(one)):
        assert _sees(lambda: _reaches(lan, "two", one, within_s=1.0))
        socket.create_connection((one, PORT), timeout=REACHED_WITHIN_S).close()


def test_a_host_that_is_parted_is_reached_by_nobody_until_it_is_back(lan: Network) -> None:
    if not lan.can_part:
        with pytest.raises(NotImplementedError):
            lan.part("one")
        return
    one, _ = lan.join("one"), lan.join("two")
    with lan.inside("one", lambda: _server(one)):
        assert _sees(lambda: _reaches(lan, "two", one, within_s=1.0))
        lan.part("one")
        assert not _reaches(lan, "two", one, within_s=SILENT_S)
        lan.rejoin("one")
        assert _sees(lambda: _reaches(lan, "two", one, within_s=1.0))


def test_a_host_that_is_partitioned_from_one_reaches_the_others(lan: Network) -> None:
    if not lan.can_part:
        with pytest.raises(NotImplementedError):
            lan.silence("two", towards="one")
        return
    one, _, _ = lan.join("one"), lan.join("two"), lan.join("three")
    with lan.inside("one", lambda: _server(one)):
        lan.silence("two", towards="one")
        assert not _reaches(lan, "two", one, within_s=SILENT_S)
        assert _sees(lambda: _reaches(lan, "three", one, within_s=1.0))
        lan.unsilence("two", towards="one")
        assert _sees(lambda: _reaches(lan, "two", one, within_s=1.0))


def test_without_namespaces_hosts_are_addresses_of_this_machine() -> None:
    lan = Loopback()
    one, two = lan.join("one"), lan.join("two")
    assert one != two
    with _server(one):
        assert _reaches(lan, "two", one, within_s=REACHED_WITHIN_S)


LEAVER = """
import os, subprocess, sys
from lab.network import network
made = network()
made.join("one")
left = subprocess.Popen([*made.words("one"), "sleep", "600"])
print(left.pid, made.can_part, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_test_has_left_is_removed_by_the_next() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    leaver = subprocess.Popen(
        [sys.executable, "-c", LEAVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    )
    assert leaver.stdout is not None
    pid, can_part = leaver.stdout.readline().split()
    leaver.kill()
    leaver.wait()
    if can_part == "False":
        os.kill(int(pid), signal.SIGKILL)  # nothing but a namespace tells whose it was
        return
    network().remove()
    assert _sees(lambda: not runs(int(pid)))


# A signal that nobody handles kills also what version 2 has frozen.
OBEYS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print(flush=True)
time.sleep(600)
"""


def test_a_cgroup_freezes_what_runs_in_it_and_is_removed() -> None:
    group = Cgroup("test")
    if not group.is_there:
        assert group.words() == []
        return
    sleeper = subprocess.Popen([*group.words(), sys.executable, "-c", OBEYS], stdout=subprocess.PIPE)
    try:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()  # the shell that enters has become it, and it listens
        group.freeze()
        sleeper.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            sleeper.wait(SILENT_S)
        group.thaw()
        assert sleeper.wait(REACHED_WITHIN_S) == 0
        assert group.used_bytes >= 0
    finally:
        sleeper.kill()
        group.remove()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/headway-lab-{os.getpid()}-test"))
