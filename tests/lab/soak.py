"""Trouble drawn from a seed: rounds of faults that overlap, after each of which everything is as it should be again."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lab.faults import KILLED, LONG, Fault, central_faults, host_faults, least_seen
from lab.installation import POOLS, Installation, Lead

WORKERS = (0, 6)  # of each pool
FINISHERS = 2
BEGINS_WITHIN_S = 2.0
LOOK_S = 0.1
LONG_FRACTION = 0.08  # of rounds: a fault in them may outlast a host's lease
CENTRAL_FRACTION = 0.7
ALL = 1_000_000
TICK_S = 5.0
KILLED_S, SILENT_S = 1.0 + TICK_S, 15.0


@dataclass(slots=True)
class Findings:
    """What a soak has counted."""

    faults: Counter[str] = field(default_factory=Counter)
    settled_s: list[float] = field(default_factory=list)
    took_over_s: dict[str, list[float]] = field(default_factory=dict)
    """Kind of fault -> seconds from its begin until another control plane led."""
    epochs: list[int] = field(default_factory=list)
    asked_for: int = 0
    """Workers that there were not before, summed over all changes: what was started beyond is what faults moved."""


class Soak:
    """One installation under fire."""

    def __init__(self, lab: Installation, rng: random.Random) -> None:
        self.found = Findings()
        self._lab = lab
        self._rng = rng
        self._told: dict[str, int] = {}

    @property
    def faults(self) -> int:
        """How many there have been."""
        return sum(self.found.faults.values())

    def begin(self) -> None:
        """Jobs come in, and workers run."""
        self._lab.traffic.start()
        for pool in POOLS:
            self._lab.scale(pool, self._rng.randint(2, WORKERS[1]))
        self._settle({})
        self._note_epochs()

    def round(self) -> None:
        """Some faults, one beside the other; then everything settles."""
        faults = self._drawn()
        plan = self._plan(faults)
        was = self._lab.lead()
        assert was is not None
        central = next((fault for fault in faults if fault.ends_lead), None)
        wanted = dict(self._lab.wanted)
        began_at_s, took = time.time(), None
        for begins_s, act in plan:
            took = self._wait(began_at_s + begins_s, after=None if central is None or took else was) or took
            act()
        for fault in faults:
            self.found.faults[fault.kind] += 1
        try:
            self._settle(wanted)
        except AssertionError as error:
            told = ", ".join(f"{fault.kind} ({fault.on}, {fault.lasts_s:.1f} s)" for fault in faults)
            raise AssertionError(f"after {told}: {error}") from error
        self._note_epochs()
        if central is not None:
            self._note_lead(central, took, began_at_s)

    def end(self) -> dict[str, Any]:
        """The jobs are done and the workers leave. Returns the ledger of the whole."""
        lab = self._lab
        before = dict(lab.wanted)
        for pool in POOLS:
            lab.scale(pool, max(FINISHERS, before[pool]))  # a pool may have been left without workers
        self._settle(before)
        lab.finish_jobs()
        for pool in POOLS:
            lab.scale(pool, 0)
        self._settle(lab.wanted)
        told = lab.traffic.told()
        assert not told.cut_short, f"cut short: {told.cut_short}"
        forced = sum(host.agent.said("forcing pool=") for host in lab.hosts)
        assert forced == 0, f"{forced} workers were ended by force"
        return {
            "hosts": len(lab.hosts),
            "controls": len(lab.controls),
            "namespaces": lab.network.can_part or lab.network.why,
            "cgroups": lab.hosts[0].cgroup.is_there,
            "faults": self.faults,
            "by_kind": dict(sorted(self.found.faults.items())),
            "jobs_in": len(lab.traffic.sent),
            "jobs_done": told.done,
            "jobs_doubled": told.doubled,
            "busy_killed": len(told.cut_short) + forced,
            "workers_started": sum(host.agent.said("started pool=") for host in lab.hosts),
            "workers_asked_for": self.found.asked_for,
            "epochs": len(set(self.found.epochs)),
            "stale_writes_refused": sum(each.program.said("stepping down: ") for each in lab.controls),
            "took_over_s": {kind: [round(each, 2) for each in took] for kind, took in self.found.took_over_s.items()},
            "settled_s": {
                "median": sorted(self.found.settled_s)[len(self.found.settled_s) // 2],
                "max": max(self.found.settled_s),
            },
        }

    def _settle(self, before: Mapping[str, int]) -> None:
        self.found.settled_s.append(round(self._lab.settle(), 1))
        self.found.asked_for += sum(max(0, workers - before.get(pool, 0)) for pool, workers in self._lab.wanted.items())

    # --- one round ---------------------------------------------------------------------------------------------------

    def _drawn(self) -> list[Fault]:
        lab, rng = self._lab, self._rng
        faults: list[Fault] = []
        leader = lab.leader()
        had = self.found.faults.copy()
        if rng.random() > LONG_FRACTION:
            had.update(dict.fromkeys(LONG, ALL))
        if leader is not None and rng.random() < CENTRAL_FRACTION:
            faults.append(least_seen(central_faults(lab, leader, rng), had, rng))
        for host in rng.sample(lab.hosts, rng.randint(1, len(lab.hosts) - 1)):
            faults.append(least_seen(host_faults(lab, host, rng), had, rng))
            had[faults[-1].kind] += 1
        return faults

    def _plan(self, faults: list[Fault]) -> list[tuple[float, Callable[[], None]]]:
        """What to do when, in seconds from the round's begin; of the fault that ends a lead, the begin comes first."""
        plan: list[tuple[float, Callable[[], None]]] = []
        for fault in faults:
            begins_s = 0.0 if fault.ends_lead else self._rng.uniform(0.05, BEGINS_WITHIN_S)
            plan += [(begins_s, fault.begin), (begins_s + fault.lasts_s, fault.end)]
        for pool in POOLS:
            # While Postgres is away nobody takes an order: an operator would try again, and so does scale().
            if self._rng.random() < 0.5 and not any(fault.on == "db" for fault in faults):
                workers = self._rng.randint(*WORKERS)
                plan.append((self._rng.uniform(0.1, BEGINS_WITHIN_S), partial(self._lab.scale, pool, workers)))
        return sorted(plan, key=lambda step: step[0])

    def _wait(self, until_s: float, *, after: Lead | None) -> Lead | None:
        """Wait. Returns who has led since ``after``, where that is to be looked for."""
        next_lead: Lead | None = None
        while (left_s := until_s - time.time()) > 0:
            if after is not None and next_lead is None:
                lead = self._lab.lead()
                next_lead = lead if lead is not None and lead.epoch > after.epoch else None
            time.sleep(min(left_s, LOOK_S))
        return next_lead

    # --- what is true ------------------------------------------------------------------------------------------------

    def _note_epochs(self) -> None:
        lead = self._lab.lead()
        assert lead is not None
        self.found.epochs.append(lead.epoch)
        for host in self._lab.hosts:
            epoch = host.epoch
            assert epoch >= self._told.get(host.name, 0), (
                f"{host.name} obeys epoch {epoch} after {self._told[host.name]}"
            )
            self._told[host.name] = epoch

    def _note_lead(self, fault: Fault, lead: Lead | None, began_at_s: float) -> None:
        """That another led in time."""
        lead = lead or self._lab.lead()
        assert lead is not None
        took_s = lead.taken_at_s - began_at_s
        assert took_s > 0, f"nobody took over after {fault.kind}"
        bound_s = KILLED_S if fault.kind == KILLED else SILENT_S
        assert took_s <= bound_s, f"{fault.kind}: {took_s:.1f} s until another led"
        self.found.took_over_s.setdefault(fault.kind, []).append(took_s)
