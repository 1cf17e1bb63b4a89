"""What can go wrong, each as something that begins and ends. What must hold afterwards is the soak's to ask.

A fault that this machine cannot make is not drawn: see ``host_faults`` and ``central_faults``.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lab.controls import Control
from lab.hosts import Host
from lab.installation import Installation

TAKEN_OVER_AFTER_S = 9.5  # a leader's lease and a standby's look, with a margin
LOST_S = 50.0  # longer than a host's lease
SKEW_S = 86_400.0
SKEW_OF_LEADER_S = 1_800.0  # counts that are set by hand hold for an hour
FREE_MB, KEPT_BACK_MB = 400, 480
KILLED = "leader killed"
HOST_LOST = "host parted for longer than its lease"
POSTGRES_LOST = "Postgres away for longer than the hosts' leases"
LONG = (HOST_LOST, POSTGRES_LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: what it is, on whom, and how long it lasts."""

    kind: str
    on: str
    lasts_s: float
    begin: Callable[[], None]
    end: Callable[[], None]
    ends_lead: bool = False
    """Whether another control plane must lead before it is over."""


def host_faults(lab: Installation, host: Host, rng: random.Random) -> list[Fault]:
    """What can go wrong with one host."""

    def made(kind: str, begin: Callable[[], None], end: Callable[[], None], *, lasts_s: float | None = None) -> Fault:
        seconds = rng.uniform(0.2, 5.0) if lasts_s is None else lasts_s
        return Fault(kind=kind, on=host.name, lasts_s=seconds, begin=begin, end=end)

    agent, network = host.agent, lab.network
    faults = [
        made("agent killed", agent.kill, lambda: _started_again(host)),
        made("agent paused", agent.pause, agent.resume),
        made("wall clock skewed", lambda: _skew(host, rng.uniform(-SKEW_S, SKEW_S)), lambda: _skew(host, 0.0)),
    ]
    if host.cgroup.is_there:
        faults += [
            made("host frozen", host.cgroup.freeze, host.cgroup.thaw),
            made("memory taken", lambda: _take_memory(host), lambda: _give_memory(host), lasts_s=rng.uniform(5.0, 8.0)),
        ]
    if network.can_part:
        control = lab.control_of(host).name
        part, rejoin = partial(network.part, host.name), partial(network.rejoin, host.name)
        faults += [
            made("host parted", part, rejoin),
            made(HOST_LOST, part, rejoin, lasts_s=LOST_S),
            made(
                "host parted from control",
                partial(network.silence, control, towards=host.name),
                partial(network.unsilence, control, towards=host.name),
            ),
        ]
    return faults


def central_faults(lab: Installation, leader: Control, rng: random.Random) -> list[Fault]:
    """What can go wrong with the leader, a standby and Postgres."""

    def short(kind: str, on: str, begin: Callable[[], None], end: Callable[[], None]) -> Fault:
        return Fault(kind=kind, on=on, lasts_s=rng.uniform(0.5, 4.0), begin=begin, end=end)

    def silent(kind: str, begin: Callable[[], None], end: Callable[[], None]) -> Fault:
        lasts_s = TAKEN_OVER_AFTER_S + rng.uniform(0.0, 3.0)
        return Fault(kind=kind, on=name, lasts_s=lasts_s, begin=begin, end=end, ends_lead=True)

    standby = rng.choice([each for each in lab.controls if each is not leader])
    name, program, database, network = leader.name, leader.program, lab.database, lab.network
    faults = [
        replace(short(KILLED, name, program.kill, lambda: _restarted(leader)), ends_lead=True),
        silent("leader hung", program.pause, program.resume),
        short("leader hung for a moment", name, program.pause, program.resume),
        short(
            "leader's wall clock skewed",
            name,
            lambda: _skew(leader, rng.uniform(-SKEW_OF_LEADER_S, SKEW_OF_LEADER_S)),
            lambda: _skew(leader, 0.0),
        ),
        short("standby killed", standby.name, standby.program.kill, lambda: _restarted(standby)),
        short("Postgres crashed", "db", database.crash, database.start),
        replace(short(POSTGRES_LOST, "db", database.crash, database.start), lasts_s=LOST_S),
        short("Postgres restarted", "db", lambda: _stop_and_back_up(lab), database.start),
    ]
    if database.has_backup:
        faults.append(short("Postgres restored", "db", lambda: _restore(lab), database.start))
    if network.can_part:
        faults += [
            silent(
                "leader parted from Postgres", lambda: _part_both_ways(lab, name), lambda: _rejoin_both_ways(lab, name)
            ),
            silent(
                "leader hears no answer of Postgres",
                partial(network.silence, name, towards="db"),
                partial(network.unsilence, name, towards="db"),
            ),
            silent("leader parted", partial(network.part, name), partial(network.rejoin, name)),
        ]
    return faults


def least_seen(faults: Sequence[Fault], had: Counter[str], rng: random.Random) -> Fault:
    """One of those whose kind ``had`` counts least of."""
    fewest = min(had[fault.kind] for fault in faults)
    return rng.choice([fault for fault in faults if had[fault.kind] == fewest])


def _started_again(host: Host) -> None:
    host.agent.start()
    host.agent.await_ready()


def _restarted(control: Control) -> None:
    control.program.start()
    control.program.await_ready()


def _skew(whose: Host | Control, seconds: float) -> None:
    whose.clock.write_text(str(seconds))


def _take_memory(host: Host) -> None:
    """Less is left than what runs takes: a cgroup limits the host, and ``host.toml`` keeps more back than is free.

    So nothing gets so close to the limit that the kernel would kill. The agent is started anew to look at once.
    """
    host.cgroup.limit(host.cgroup.used_bytes + FREE_MB * 1_000_000)
    host.reserve_memory(KEPT_BACK_MB)
    host.agent.kill()
    _started_again(host)


def _give_memory(host: Host) -> None:
    host.cgroup.limit(None)
    host.reserve_memory(0)
    host.agent.kill()
    _started_again(host)


def _stop_and_back_up(lab: Installation) -> None:
    lab.database.stop()
    lab.database.back_up()
    lab.wanted_at_backup = dict(lab.wanted)


def _restore(lab: Installation) -> None:
    lab.database.stop()
    lab.database.restore()
    lab.wanted = dict(lab.wanted_at_backup)  # what was asked for since is forgotten with all else


def _part_both_ways(lab: Installation, name: str) -> None:
    lab.network.silence(name, towards="db")
    lab.network.silence("db", towards=name)


def _rejoin_both_ways(lab: Installation, name: str) -> None:
    lab.network.unsilence(name, towards="db")
    lab.network.unsilence("db", towards=name)
