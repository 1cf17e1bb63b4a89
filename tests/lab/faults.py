"""What can go wrong, each as something that begins and ends. What must hold afterwards is the soak's to ask.

A fault that this machine cannot make is not drawn: see ``host_faults`` and ``central_faults``.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lab.hosts import Host
from lab.installation import Control, Installation

TAKEN_OVER_AFTER_S = 9.5  # a leader's lease and a standby's look, with a margin
LOST_S = 50.0  # longer than a host's lease
SKEW_S = 86_400.0
KEPT_BACK_MB, LEFT_MB = 400, 20


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


def host_fault(lab: Installation, host: Host, rng: random.Random, *, had: Counter[str], may_be_long: bool) -> Fault:
    """A fault of one host, of a kind that ``had`` counts least of."""
    kinds: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
        ("agent killed", host.agent.kill, lambda: _started_again(host)),
        ("agent paused", host.agent.pause, host.agent.resume),
        ("wall clock skewed", lambda: _skew(host, rng.uniform(-SKEW_S, SKEW_S)), lambda: _skew(host, 0.0)),
    ]
    if host.cgroup.is_there:
        kinds += [
            ("host frozen", host.cgroup.freeze, host.cgroup.thaw),
            ("memory taken", lambda: _take_memory(host), lambda: _give_memory(host)),
        ]
    if lab.network.can_part:
        control = lab.control_of(host)
        kinds += [
            ("host parted", lambda: lab.network.part(host.name), lambda: lab.network.rejoin(host.name)),
            (
                "host parted from control",
                lambda: lab.network.silence(control.name, towards=host.name),
                lambda: lab.network.unsilence(control.name, towards=host.name),
            ),
        ]
    kind, begin, end = _least(kinds, had, rng)
    lasts_s = rng.uniform(0.2, 5.0)
    if may_be_long and kind.startswith("host parted"):
        kind, lasts_s = f"{kind} for longer than its lease", LOST_S
    return Fault(kind=kind, on=host.name, lasts_s=lasts_s, begin=begin, end=end)


def central_fault(lab: Installation, leader: Control, rng: random.Random, *, had: Counter[str]) -> Fault:
    """A fault of the leader, of a standby or of Postgres, of a kind that ``had`` counts least of."""
    standby = rng.choice([each for each in lab.controls if each is not leader])
    long_s, short_s = rng.uniform(0.0, 3.0) + TAKEN_OVER_AFTER_S, rng.uniform(0.5, 4.0)
    name = leader.name
    kinds: list[tuple[str, str, float, bool, Callable[[], None], Callable[[], None]]] = [
        ("leader killed", name, short_s, True, leader.program.kill, lambda: _restarted(leader)),
        ("leader hung", name, long_s, True, leader.program.pause, leader.program.resume),
        ("leader hung for a moment", name, short_s, False, leader.program.pause, leader.program.resume),
        ("standby killed", standby.name, short_s, False, standby.program.kill, lambda: _restarted(standby)),
        ("Postgres crashed", "db", short_s, False, lab.database.crash, lab.database.start),
        ("Postgres restarted", "db", short_s, False, lambda: _stop_and_back_up(lab), lab.database.start),
    ]
    if lab.database.has_backup:
        kinds.append(("Postgres restored", "db", short_s, False, lambda: _restore(lab), lab.database.start))
    if lab.network.can_part:
        network = lab.network
        kinds += [
            (
                "leader parted from Postgres",
                *(name, long_s, True),
                lambda: _part_both_ways(lab, leader),
                lambda: _rejoin_both_ways(lab, leader),
            ),
            (
                "leader hears no answer of Postgres",
                *(name, long_s, True),
                lambda: network.silence(leader.name, towards="db"),
                lambda: network.unsilence(leader.name, towards="db"),
            ),
            ("leader parted", name, long_s, True, lambda: network.part(name), lambda: network.rejoin(name)),
        ]
    kind, on, lasts_s, ends_lead, begin, end = _least(kinds, had, rng)
    return Fault(kind=kind, on=on, lasts_s=lasts_s, begin=begin, end=end, ends_lead=ends_lead)


def _least(kinds: Sequence[Any], had: Counter[str], rng: random.Random) -> Any:
    fewest = min(had[kind[0]] for kind in kinds)
    return rng.choice([kind for kind in kinds if had[kind[0]] == fewest])


def _started_again(host: Host) -> None:
    host.agent.start()
    host.agent.await_ready()


def _restarted(control: Control) -> None:
    control.program.start()
    control.program.await_ready()


def _skew(host: Host, seconds: float) -> None:
    host.clock.write_text(str(seconds))


def _take_memory(host: Host) -> None:
    """Next to nothing is left beside what runs: a cgroup limits it, and ``host.toml`` keeps most of the rest back.

    So nothing gets so close to the limit that the kernel would kill. The agent is started anew to look at once.
    """
    host.cgroup.limit(host.cgroup.used_bytes + (KEPT_BACK_MB + LEFT_MB) * 1_000_000)
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


def _part_both_ways(lab: Installation, control: Control) -> None:
    lab.network.silence(control.name, towards="db")
    lab.network.silence("db", towards=control.name)


def _rejoin_both_ways(lab: Installation, control: Control) -> None:
    lab.network.unsilence(control.name, towards="db")
    lab.network.unsilence("db", towards=control.name)
