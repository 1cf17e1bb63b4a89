"""Trouble drawn from a seed: rounds of faults that overlap, after each of which everything is as it should be again."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lab.faults import HOST_LOST, KILLED, LONG, POSTGRES_LOST, Fault, beside, central_faults, host_faults, least_seen
from lab.hosts import BRITTLE
from lab.installation import EXCLUSIVE, POOLS, Installation, Lead
from lab.watch import Watch

WORKERS = (0, 6)  # of each pool
FINISHERS = 4
BEGINS_WITHIN_S = 2.0
POLL_S = 0.1
LONG_FRACTION = 0.12  # of rounds: a fault in them may outlast a host's lease
POSTGRES_LOST_FRACTION = 0.15  # of rounds: Postgres does. One of many kinds of the centre, it would come once in days
CENTRAL_FRACTION = 0.7
PAIR_FRACTION = 0.25  # of what is drawn: another fault comes to the same host, or to the centre, at the same time
NOW, ALL = -1, 1_000_000
_KEY = re.compile(r"\b[0-9a-f]{32}\b")
TICK_S = 5.0
KILLED_S, SILENT_S = 1.0 + TICK_S, 15.0


@dataclass(slots=True)
class Findings:
    """What a soak has counted."""

    faults: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    """Faults that had another one on the same host, or in the centre, beside them."""
    slowest: tuple[float, str, str] = (0.0, "", "")
    """The longest time until all was settled, after what, and what was the last to settle."""
    settled_s: list[float] = field(default_factory=list)
    took_over_s: dict[str, list[float]] = field(default_factory=dict)
    """Kind of fault -> seconds from its begin until another control plane led."""
    epochs: list[int] = field(default_factory=list)
    asked_for: int = 0
    """Workers that there were not before, summed over all changes: what was started beyond is what faults moved."""


class Soak:
    """One installation under fire. ``only`` names the kinds of faults that may come; ``None``: all of them.

    It may change between rounds.
    """

    def __init__(self, lab: Installation, rng: random.Random, *, only: Collection[str] | None = None) -> None:
        self.found = Findings()
        self._lab = lab
        self._rng = rng
        self.only = only
        self._watch = Watch(lab.hosts, exclusive=EXCLUSIVE)
        self._started: Counter[str] = Counter()
        self._centre: list[Fault] = []

    @property
    def faults(self) -> int:
        """How many there have been."""
        return sum(self.found.faults.values())

    def begin(self) -> None:
        """Jobs come in, and workers run."""
        self._lab.traffic.start()
        for pool in POOLS:
            self._lab.scale(pool, self._rng.randint(2, WORKERS[1]))
        self._lab.scale(BRITTLE, len(self._lab.hosts))
        self._settle({}, after="the begin")
        self._started = self._lab.started()
        self._note_epoch()

    def round(self) -> None:
        """Some faults, one beside the other; then everything settles."""
        faults = self._drawn()
        shown = ", ".join(f"{fault.kind} ({fault.on}, {fault.lasts_s:.1f} s)" for fault in faults)
        try:
            self._through(faults, shown=shown)
        except AssertionError as error:
            raise AssertionError(f"after {shown}: {error}") from error

    def _through(self, faults: list[Fault], *, shown: str) -> None:
        plan = self._plan(faults)
        was = self._lab.lead()
        assert was is not None
        central = next((fault for fault in faults if fault.ends_lead), None)
        wanted = dict(self._lab.wanted)
        began_at_s, took = time.time(), None
        with self._watch.polling():
            for begins_s, act in plan:
                took = self._wait(began_at_s + begins_s, after=None if central is None or took else was) or took
                act()
            self._lab.start_again()
            for fault in faults:
                self.found.faults[fault.kind] += 1
                self._lab.was_host_lost |= fault.kind == HOST_LOST
            self._settle(wanted, after=shown)
        self._note_epoch()
        job_counts = self._lab.traffic.counts()
        assert not job_counts.cut_short, f"cut short: {job_counts.cut_short}"
        assert not self._watch.breaches, "; ".join(self._watch.breaches)
        late = self._lab.decided_late()
        assert not late, f"a leader that was replaced has decided: {late}"
        self._note_started(wanted, faults)
        if central is not None and sum(fault in self._centre for fault in faults) == 1:
            self._note_lead(central, took, began_at_s)

    def end(self) -> dict[str, Any]:
        """The jobs are done and the workers leave. Returns the ledger of the whole."""
        lab = self._lab
        before = dict(lab.wanted)
        for pool in POOLS:
            lab.scale(pool, max(FINISHERS, before[pool]))  # a pool may have been left without workers
        self._settle(before, after="the last round")
        lab.finish_jobs()
        for pool in POOLS:
            lab.scale(pool, 0)
        self._settle(lab.wanted, after="the end")
        lost = set(lab.traffic.left())
        assert not lost or (lab.was_host_lost and lost <= lab.traffic.stuck()), f"lost: {sorted(lost)}"
        shown = lab.traffic.counts()
        assert not shown.cut_short, f"cut short: {shown.cut_short}"
        forced = sum(host.agent.said("forcing pool=") for host in lab.hosts)
        assert forced == 0, f"{forced} workers were ended by force"
        assert shown.doubled == 0, f"begun more than once: {[job for job, count in shown.starts.items() if count > 1]}"
        return {
            "hosts": len(lab.hosts),
            "controls": len(lab.controls),
            "namespaces": lab.network.can_part or lab.network.why,
            "cgroups": lab.hosts[0].cgroup.is_there,
            "faults": self.faults,
            "in_pairs": self.found.pairs,
            "by_kind": dict(sorted(self.found.faults.items())),
            "jobs_in": len(lab.traffic.sent),
            "jobs_done": shown.done,
            "jobs_lost_by_rq": len(lab.traffic.left()),
            "jobs_requeued": len(lab.traffic.requeued),
            "jobs_doubled": shown.doubled,
            "busy_killed": len(shown.cut_short) + forced,
            "workers_started": sum(host.agent.said("started pool=") for host in lab.hosts),
            "workers_asked_for": self.found.asked_for,
            "workers_without_broker": lab.gave_up().total(),
            "epochs": len(set(self.found.epochs)),
            "stale_writes_refused": sum(each.program.said("stepping down: ") for each in lab.controls),
            "took_over_s": {kind: [round(each, 2) for each in took] for kind, took in self.found.took_over_s.items()},
            "settled_s": {
                "median": sorted(self.found.settled_s)[len(self.found.settled_s) // 2],
                "max": max(self.found.settled_s),
                "max_after": self.found.slowest[1],
                "max_waited_for": _KEY.sub("…", self.found.slowest[2]),
            },
        }

    def _settle(self, before: Mapping[str, int], *, after: str) -> None:
        took_s = round(self._lab.settle(), 1)
        self.found.settled_s.append(took_s)
        self.found.slowest = max(self.found.slowest, (took_s, after, "; ".join(self._lab.waited_for)))
        self.found.asked_for += sum(_more(before, self._lab.wanted).values())

    # --- one round ---------------------------------------------------------------------------------------------------

    def _drawn(self) -> list[Fault]:
        lab, rng = self._lab, self._rng
        faults: list[Fault] = []
        leader = lab.leader()
        had = self.found.faults.copy()
        if rng.random() > LONG_FRACTION:
            had.update(dict.fromkeys(LONG, ALL))
        is_postgres_lost = rng.random() < POSTGRES_LOST_FRACTION
        had[POSTGRES_LOST] = NOW if is_postgres_lost else ALL
        if leader is not None and (is_postgres_lost or rng.random() < CENTRAL_FRACTION):
            faults += self._some_of(central_faults(lab, leader, rng), had)
        self._centre = list(faults)
        for host in rng.sample(lab.hosts, rng.randint(1, len(lab.hosts) - 1)):
            faults += self._some_of(host_faults(lab, host, rng), had)
        return faults

    def _some_of(self, faults: list[Fault], had: Counter[str]) -> list[Fault]:
        """One of what can go wrong with one thing, or two at a time."""
        faults = [fault for fault in faults if self.only is None or fault.kind in self.only]
        if not faults:
            return []
        found = [least_seen(faults, had, self._rng)]
        others = [each for each in beside(found[0], faults) if had[each.kind] < ALL]
        if others and self._rng.random() < PAIR_FRACTION:
            found.append(least_seen(others, had, self._rng))
            self.found.pairs += 2
        had.update(fault.kind for fault in found)
        return found

    def _plan(self, faults: list[Fault]) -> list[tuple[float, Callable[[], None]]]:
        """What to do when, in seconds from the round's begin; of the fault that ends a lead, the begin comes first."""
        plan: list[tuple[float, Callable[[], None]]] = []
        for fault in faults:
            begins_s = 0.0 if fault.ends_lead else self._rng.uniform(0.05, BEGINS_WITHIN_S)
            plan += [(begins_s, fault.begin), (begins_s + fault.lasts_s, fault.end)]
        # While Postgres is away, or neither control plane answers, nobody takes an order. An operator would try again,
        # and so does scale(): until the fault is over, which it would keep from ending.
        is_received = len(self._centre) < 2 and not any(fault.on == "db" for fault in faults)
        for pool in POOLS:
            if self._rng.random() < 0.5 and is_received:
                workers = self._rng.randint(*WORKERS)
                plan.append((self._rng.uniform(0.1, BEGINS_WITHIN_S), partial(self._lab.scale, pool, workers)))
        return sorted(plan, key=lambda step: step[0])

    def _wait(self, until_s: float, *, after: Lead | None) -> Lead | None:
        """Wait. Returns who has led since ``after``, where that is to be checked."""
        next_lead: Lead | None = None
        while (left_s := until_s - time.time()) > 0:
            if after is not None and next_lead is None:
                lead = self._lab.lead()
                next_lead = lead if lead is not None and lead.epoch > after.epoch else None
            time.sleep(min(left_s, POLL_S))
        return next_lead

    # --- what is true ------------------------------------------------------------------------------------------------

    def _note_epoch(self) -> None:
        lead = self._lab.lead()
        assert lead is not None
        self.found.epochs.append(lead.epoch)

    def _note_started(self, wanted: Mapping[str, int], faults: list[Fault]) -> None:
        """That no worker was started for one that need not have left."""
        before, self._started = self._started, self._lab.started()
        if any(fault.moves for fault in faults):
            return
        more = _more(wanted, self._lab.wanted)
        for pool, count in (self._started - before).items():
            assert count <= more[pool], f"pool {pool}: {count} workers were started where {more[pool]} more were wanted"

    def _note_lead(self, fault: Fault, lead: Lead | None, began_at_s: float) -> None:
        """That another led in time."""
        lead = lead or self._lab.lead()
        assert lead is not None
        took_s = lead.taken_at_s - began_at_s
        assert took_s > 0, f"nobody took over after {fault.kind}"
        bound_s = KILLED_S if fault.kind == KILLED else SILENT_S
        assert took_s <= bound_s, f"{fault.kind}: {took_s:.1f} s until another led"
        self.found.took_over_s.setdefault(fault.kind, []).append(took_s)


def _more(before: Mapping[str, int], now: Mapping[str, int]) -> Counter[str]:
    """Pool -> workers that were asked for beyond those there were."""
    return Counter({pool: max(0, workers - before.get(pool, 0)) for pool, workers in now.items()})
