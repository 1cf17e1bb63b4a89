"""Law 6 over time: whatever happens to hosts and loads, no start lets more exist than may, leavers included."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.unreachable_hosts import leaving_workers, unknown_workers
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, HostState, Memory
from headway.scaling.placement.host_choice import HostCapacities
from scaling.machines import Machine, done, machines_of
from support.pools import NOW_S, profile, queue, view

POOLS = ("mail", "news")
CORES = 2.0  # of a host; each worker takes one
DEEDS = ["cut off", "heal", "lose power", "forget", "drain", "cordon", "serve", "wait", "finish jobs", "work long"]


@dataclass
class Installation:
    """The pools and where they run, as the control plane has it stored."""

    machines: dict[str, Machine]
    ceilings: dict[str, int]
    rows: list[Assignment] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=lambda: dict.fromkeys(POOLS, Memory()))
    numbers: Counter[str] = field(default_factory=Counter)

    def tick(self, wanted: dict[str, int]) -> None:
        """Decide, place, and let every host act and report."""
        hosts = [each.known for each in self.machines.values()]
        self.rows = [row for row in self.rows if row.host_id in self.machines]
        outcomes = [self._decided(pool, min(wanted[pool], self.ceilings[pool])) for pool in POOLS]
        left, placed = allocate(outcomes, hosts, self.rows)
        self.memories = {outcome.decision.pool: outcome.memory for outcome in left}
        self.rows = list(placed)
        for machine in self.machines.values():
            machine.act(self.rows, self.numbers)

    def report(self) -> None:
        for machine in self.machines.values():
            machine.report()

    def _decided(self, pool: str, wanted: int) -> Outcome:
        hosts = [each.known for each in self.machines.values()]
        serving = {host.host_id for host in hosts if host.is_known and host.state is not HostState.DRAINING}
        seen = view(
            queue(queue=f"redis/{pool}"),
            profile=profile(pool=pool, queues=(f"redis/{pool}",), workers_min=wanted, workers_max=self.ceilings[pool]),
            capacity_workers=HostCapacities(hosts).capacity("mail"),
            assigned_workers=sum(row.workers for row in self.rows if row.pool == pool and row.host_id in serving),
            unknown_workers=unknown_workers(hosts, self.rows)[pool],
            leaving_workers=leaving_workers(hosts, self.rows)[pool],
        )
        before = self.memories[pool]
        decision, after = decide(seen, before, now_s=NOW_S)
        return Outcome(view=seen, before=before, decision=decision, memory=after)

    def existing(self, pool: str) -> int:
        return sum(each.pool == pool for machine in self.machines.values() for each in machine.workers)


STEPS = st.lists(
    st.tuples(st.sampled_from(DEEDS), st.integers(0, 3), st.integers(0, 4), st.integers(0, 4)), max_size=25
)


@settings(max_examples=max(100, settings.default.max_examples))
@given(ceilings=st.tuples(st.integers(1, 4), st.integers(1, 4)), names=st.integers(1, 3), steps=STEPS)
# Up, down and up again while the first ones finish long jobs: with a ceiling of two, four were at work.
@example(ceilings=(2, 1), names=2, steps=[("wait", 0, 2, 0), ("wait", 0, 0, 0), ("wait", 0, 2, 0)])
# One pool goes and the other comes while the first one's workers hold the host's cores.
@example(ceilings=(2, 2), names=1, steps=[("wait", 0, 2, 0), ("wait", 0, 0, 2), ("wait", 0, 0, 2)])
# A host is drained at the ceiling, and what leaves it works on.
@example(ceilings=(2, 1), names=2, steps=[("wait", 0, 2, 0), ("drain", 0, 2, 0), ("wait", 0, 2, 0)])
def test_law_6_no_start_exceeds_the_ceiling_or_the_host_while_others_still_leave(
    ceilings: tuple[int, int], names: int, steps: list[tuple[str, int, int, int]]
) -> None:
    site = Installation(machines_of(*[CORES] * names), dict(zip(POOLS, ceilings, strict=True)))
    for what, number, *wanted in [("wait", 0, 1, 1), *steps, *[("wait", 0, 1, 1)] * 3]:
        if site.machines:
            done(what, list(site.machines.values())[number % len(site.machines)], site.machines)
        site.tick(dict(zip(POOLS, wanted, strict=True)))
        for pool in POOLS:
            assert site.existing(pool) <= site.ceilings[pool], f"{site.existing(pool)} of {pool} exist after {what}"
        for machine in site.machines.values():
            assert len(machine.workers) <= CORES, f"{len(machine.workers)} take {CORES:.0f} cores after {what}"
        site.report()


@settings(max_examples=max(50, settings.default.max_examples))
@given(ceilings=st.tuples(st.integers(1, 4), st.integers(1, 4)), names=st.integers(1, 3), steps=STEPS)
def test_once_what_leaves_has_left_every_pool_has_what_it_wants(
    ceilings: tuple[int, int], names: int, steps: list[tuple[str, int, int, int]]
) -> None:
    """Waiting for what leaves comes to an end: nobody waits for ever, and nothing goes to and fro."""
    site = Installation(machines_of(*[CORES] * names), dict(zip(POOLS, ceilings, strict=True)))
    for what, number, *wanted in steps:
        if what not in {"lose power", "forget"}:
            done(what, list(site.machines.values())[number % names], site.machines)
        site.tick(dict(zip(POOLS, wanted, strict=True)))
        site.report()
    for machine in site.machines.values():
        for what in ("heal", "serve", "finish jobs"):
            done(what, machine, site.machines)
        machine.report()
    for _ in range(4 * names + 4):
        site.tick(dict.fromkeys(POOLS, 1))
        site.report()
    assert {pool: site.existing(pool) for pool in POOLS} == dict.fromkeys(POOLS, 1)
    before = list(site.rows)
    site.tick(dict.fromkeys(POOLS, 1))
    assert site.rows == before
