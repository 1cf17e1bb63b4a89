"""What can go wrong, each as something that begins and ends. What must hold afterwards is the soak's to ask.

A fault that this machine cannot make is not drawn: see ``host_faults`` and ``central_faults``. Faults of different
parts of one host, or of the centre, may come together.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lab.clocks import can_skew_boot, unshared
from lab.controls import Control
from lab.hosts import Host
from lab.installation import Installation

TAKEN_OVER_AFTER_S = 9.5  # a leader's lease and a standby's look, with a margin
LOST_S = 50.0  # longer than a host's lease
SKEW_S = 86_400.0
SKEW_OF_BOOT_S = (60.0, 3_600.0)
SKEW_OF_LEADER_S = 1_800.0  # counts that are set by hand hold for an hour
READ_AGAIN_S = (11.0, 16.0)  # an agent reads a file that has looked the same twice, five seconds apart
FREE_MB, KEPT_BACK_MB = 400, 480
KILLED = "leader killed"
HOST_LOST = "host parted for longer than its lease"
POSTGRES_LOST = "Postgres away for longer than the hosts' leases"
BOOT_SKEWED = "boot clock skewed"
CRASHED = "workers crash, one after the other"
LONG = (HOST_LOST, POSTGRES_LOST, CRASHED)
AGENT, NETWORK, CLOCK, DISK, FILE, WORKERS = "agent", "network", "clock", "disk", "host file", "workers"
LEADER, STANDBY, POSTGRES = "leader", "standby", "db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: what it is, on whom, and how long it lasts."""

    kind: str
    on: str
    parts: frozenset[str]
    """What of that it concerns: two faults of one part at a time would be in each other's way."""
    lasts_s: float
    begin: Callable[[], None]
    end: Callable[[], None]
    ends_lead: bool = False
    """Whether another control plane must lead before it is over."""
    moves: bool = False
    """Whether workers may leave and others start for it. For any other fault none does."""


def host_faults(lab: Installation, host: Host, rng: random.Random) -> list[Fault]:
    """What can go wrong with one host."""

    def made(kind: str, part: str, begin: Callable[[], None], end: Callable[[], None]) -> Fault:
        return Fault(
            kind=kind, on=host.name, parts=frozenset({part}), lasts_s=rng.uniform(0.2, 5.0), begin=begin, end=end
        )

    agent, network = host.agent, lab.network
    faults = [
        made("agent killed", AGENT, agent.kill, lambda: _started_again(host)),
        made("agent paused", AGENT, agent.pause, agent.resume),
        made("wall clock skewed", CLOCK, lambda: _skew(host, rng.uniform(-SKEW_S, SKEW_S)), lambda: _skew(host, 0.0)),
        replace(
            made("host file broken", FILE, host.break_file, lambda: _mended(host)), lasts_s=rng.uniform(*READ_AGAIN_S)
        ),
        replace(made(CRASHED, WORKERS, host.flaw.touch, host.flaw.unlink), lasts_s=rng.uniform(11.0, 25.0), moves=True),
    ]
    if can_skew_boot():
        skew_s = rng.choice([-1.0, 1.0]) * rng.uniform(*SKEW_OF_BOOT_S)
        faults.append(made(BOOT_SKEWED, AGENT, lambda: _skew_boot(host, skew_s), lambda: _skew_boot(host, 0.0)))
    if host.disk.is_small:
        fills = made("disk full", DISK, host.disk.fill, host.disk.free)
        # What starts meanwhile cannot print that it is ready, so that it is started again.
        faults.append(replace(fills, lasts_s=rng.uniform(3.0, 8.0), moves=True))
    if host.cgroup.is_there:
        faults += [
            made("host frozen", AGENT, host.cgroup.freeze, host.cgroup.thaw),
            replace(
                made("memory taken", AGENT, lambda: _take_memory(host), lambda: _give_memory(host)),
                parts=frozenset({AGENT, FILE}),
                lasts_s=rng.uniform(5.0, 8.0),
                moves=True,
            ),
        ]
    if network.can_part:
        control = lab.control_of(host).name
        part, rejoin = partial(network.part, host.name), partial(network.rejoin, host.name)
        faults += [
            made("host parted", NETWORK, part, rejoin),
            replace(made(HOST_LOST, NETWORK, part, rejoin), lasts_s=LOST_S, moves=True),
            made(
                "host parted from control",
                NETWORK,
                partial(network.silence, control, towards=host.name),
                partial(network.unsilence, control, towards=host.name),
            ),
        ]
    return faults


def central_faults(lab: Installation, leader: Control, rng: random.Random) -> list[Fault]:
    """What can go wrong with the leader, a standby and Postgres."""

    def short(kind: str, on: str, part: str, begin: Callable[[], None], end: Callable[[], None]) -> Fault:
        return Fault(kind=kind, on=on, parts=frozenset({part}), lasts_s=rng.uniform(0.5, 4.0), begin=begin, end=end)

    def silent(kind: str, part: str, begin: Callable[[], None], end: Callable[[], None]) -> Fault:
        lasts_s = TAKEN_OVER_AFTER_S + rng.uniform(0.0, 3.0)
        return Fault(kind=kind, on=name, parts=frozenset({part}), lasts_s=lasts_s, begin=begin, end=end, ends_lead=True)

    standby = rng.choice([each for each in lab.controls if each is not leader])
    name, program, database, network = leader.name, leader.program, lab.database, lab.network
    faults = [
        replace(short(KILLED, name, LEADER, program.kill, lambda: _restarted(leader)), ends_lead=True),
        silent("leader hung", LEADER, program.pause, program.resume),
        short("leader hung for a moment", name, LEADER, program.pause, program.resume),
        short(
            "leader's wall clock skewed",
            name,
            CLOCK,
            lambda: _skew(leader, rng.uniform(-SKEW_OF_LEADER_S, SKEW_OF_LEADER_S)),
            lambda: _skew(leader, 0.0),
        ),
        short("standby killed", standby.name, STANDBY, standby.program.kill, lambda: _restarted(standby)),
        short("Postgres crashed", "db", POSTGRES, database.crash, database.start),
        replace(short(POSTGRES_LOST, "db", POSTGRES, database.crash, database.start), lasts_s=LOST_S),
        short("Postgres restarted", "db", POSTGRES, lambda: _stop_and_back_up(lab), database.start),
    ]
    if database.has_backup:
        faults.append(
            replace(short("Postgres restored", "db", POSTGRES, lambda: _restore(lab), database.start), moves=True)
        )
    if network.can_part:
        faults += [
            silent(
                "leader parted from Postgres",
                NETWORK,
                lambda: _part_both_ways(lab, name),
                lambda: _rejoin_both_ways(lab, name),
            ),
            silent(
                "leader hears no answer of Postgres",
                NETWORK,
                partial(network.silence, name, towards="db"),
                partial(network.unsilence, name, towards="db"),
            ),
            silent("leader parted", NETWORK, partial(network.part, name), partial(network.rejoin, name)),
        ]
    return faults


def least_seen(faults: Sequence[Fault], had: Counter[str], rng: random.Random) -> Fault:
    """One of those whose kind ``had`` counts least of."""
    fewest = min(had[fault.kind] for fault in faults)
    return rng.choice([fault for fault in faults if had[fault.kind] == fewest])


def beside(fault: Fault, faults: Sequence[Fault]) -> list[Fault]:
    """Those of ``faults`` that may come while ``fault`` lasts: of another part, and no second end of a lead."""
    return [each for each in faults if not each.parts & fault.parts and not (each.ends_lead and fault.ends_lead)]


def _started_again(host: Host) -> None:
    """As a supervisor of services does: what ends is started again."""
    agent = host.agent
    if not agent.is_running:
        agent.start()
    if host.is_broken:
        return  # it says so and ends, until the file is mended
    if not agent.has_come_up():
        agent.start()
    agent.await_ready()


def _mended(host: Host) -> None:
    host.mend_file()
    _started_again(host)


def _skew_boot(host: Host, seconds: float) -> None:
    host.agent.under = unshared(seconds) if seconds else []
    host.agent.kill()
    _started_again(host)


def _restarted(control: Control) -> None:
    """Start it. Where no Postgres answers it ends and says so: ``Installation.start_again`` is for then."""
    control.program.start()
    if control.program.has_come_up() is False and control.misses_postgres:
        return
    control.program.await_ready()


def _skew(whose: Host | Control, seconds: float) -> None:
    whose.clock.write_text(str(seconds))


def _take_memory(host: Host) -> None:
    """Less is left than what runs takes: a cgroup limits the host, and ``host.toml`` keeps more back than is free.

    So nothing gets so close to the limit that the kernel would kill. The agent is started anew to poll at once.
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
