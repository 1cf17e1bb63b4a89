"""Law 6 over time for groups: whatever happens to hosts, loads and restarts, no start exceeds a cap."""

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.rollout import rolled
from headway.scaling.allocation.unreachable_hosts import leaving_workers, unknown_workers
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.group import Group, memberships
from headway.scaling.model import Assignment, HostState, Memory
from headway.scaling.placement.host_choice import HostCapacities
from scaling.machines import Machine, done, machines_of
from support.pools import NOW_S, profile, queue, view

POOLS = ("mail", "news", "video")
CORES = 3.0  # of a host; each worker takes one
OF_HOSTS = ("cut off", "heal", "lose power", "forget", "drain", "cordon", "serve", "finish jobs", "work long")
DEEDS = [*OF_HOSTS, "wait", "restart"]


@dataclass
class Installation:
    """The pools, their groups, and where they run, as the control plane has it stored."""

    machines: dict[str, Machine]
    groups: tuple[Group, ...]
    rows: list[Assignment] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=lambda: dict.fromkeys(POOLS, Memory()))
    generations: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)

    def tick(self, wanted: dict[str, int]) -> None:
        """Decide, place, and let every host act."""
        hosts = [each.known for each in self.machines.values()]
        self.rows = [row for row in self.rows if row.host_id in self.machines]
        outcomes = [self._decided(pool, wanted[pool]) for pool in POOLS]
        left, placed = allocate(outcomes, hosts, self.rows, groups=self.groups)
        self.memories = {outcome.decision.pool: outcome.memory for outcome in left}
        of_pool = memberships(self.groups)
        marked = [replace(row, is_exclusive=row.pool in of_pool) for row in placed]
        self.rows = list(rolled(marked, hosts, self.generations))
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
            profile=profile(pool=pool, queues=(f"redis/{pool}",), workers_min=wanted, workers_max=9),
            capacity_workers=HostCapacities(hosts).capacity("mail"),
            assigned_workers=sum(row.workers for row in self.rows if row.pool == pool and row.host_id in serving),
            unknown_workers=unknown_workers(hosts, self.rows)[pool],
            leaving_workers=leaving_workers(hosts, self.rows)[pool],
            groups=memberships(self.groups).get(pool, ()),
        )
        before = self.memories[pool]
        decision, after = decide(seen, before, now_s=NOW_S)
        return Outcome(view=seen, before=before, decision=decision, memory=after)

    def existing(self, pool: str) -> int:
        return sum(each.pool == pool for machine in self.machines.values() for each in machine.workers)

    def require_caps(self, after: str) -> None:
        for group in self.groups:
            there = {pool: self.existing(pool) for pool in group.pools}
            assert sum(there.values()) <= group.cap, f"{there} exist of {group.name} after {after}"


def group(name: str, cap: int, *pools: str) -> Group:
    return Group(name=name, workers_max=cap, pools=pools)


COUNTS = st.integers(0, 4)
STEPS = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 3), COUNTS, COUNTS, COUNTS), max_size=25)
# Two groups with a pool in common: what the one has left, the other may not have.
GROUPS = st.tuples(st.integers(1, 6), st.integers(1, 6)).map(
    lambda caps: (group("database", caps[0], "mail", "news"), group("licences", caps[1], "news", "video"))
)


def stepped(site: Installation, what: str, number: int, wanted: dict[str, int]) -> None:
    if what == "restart":
        site.generations[POOLS[number % len(POOLS)]] += 1
    elif site.machines:
        done(what, list(site.machines.values())[number % len(site.machines)], site.machines)
    site.tick(wanted)


@settings(max_examples=max(100, settings.default.max_examples))
@given(groups=GROUPS, names=st.integers(1, 3), steps=STEPS)
# One pool falls and another rises while the first one's workers finish long jobs.
@example(groups=(group("database", 3, "mail", "news"),), names=2, steps=[("wait", 0, 3, 0, 0), ("wait", 0, 0, 3, 0)])
# A restart of a pool that fills its group.
@example(
    groups=(group("database", 3, "mail", "news"),),
    names=2,
    steps=[("wait", 0, 3, 0, 0), ("restart", 0, 3, 0, 0), ("wait", 0, 3, 0, 0), ("finish jobs", 0, 3, 0, 0)],
)
# A host is cut off: what runs there counts, while the other pool wants more.
@example(groups=(group("database", 4, "mail", "news"),), names=2, steps=[("wait", 0, 4, 0, 0), ("cut off", 0, 4, 4, 0)])
# A host is drained at the cap.
@example(groups=(group("database", 3, "mail", "news"),), names=2, steps=[("wait", 0, 3, 0, 0), ("drain", 0, 3, 0, 0)])
def test_law_6_no_start_exceeds_a_cap_in_any_phase_of_a_restart_a_drain_or_the_loss_of_a_host(
    groups: tuple[Group, ...], names: int, steps: list[tuple[str, int, int, int, int]]
) -> None:
    site = Installation(machines_of(*[CORES] * names), groups)
    for what, number, *wanted in [("wait", 0, 1, 1, 1), *steps, *[("wait", 0, 1, 1, 1)] * 3]:
        stepped(site, what, number, dict(zip(POOLS, wanted, strict=True)))
        site.require_caps(what)
        site.report()


@settings(max_examples=max(50, settings.default.max_examples))
@given(groups=GROUPS, names=st.integers(1, 3), steps=STEPS)
@example(  # a drained host empties, one worker after the other, where the cap leaves no room for both
    groups=(group("database", 3, "mail", "news"),), names=2, steps=[("wait", 0, 3, 0, 0), ("drain", 0, 3, 0, 0)]
)
def test_once_what_leaves_has_left_the_caps_are_used_and_nothing_moves(
    groups: tuple[Group, ...], names: int, steps: list[tuple[str, int, int, int, int]]
) -> None:
    """Waiting for what leaves comes to an end: nobody waits for ever, and nothing goes to and fro."""
    site = Installation(machines_of(*[CORES] * names), groups)
    for what, number, *wanted in steps:
        if what not in {"lose power", "forget"}:
            stepped(site, what, number, dict(zip(POOLS, wanted, strict=True)))
            site.report()
    draining = {name for name, each in site.machines.items() if each.known.state is HostState.DRAINING}
    for name, machine in site.machines.items():
        if len(draining) == len(site.machines) or name not in draining:
            done("serve", machine, site.machines)
        for what in ("heal", "finish jobs"):
            done(what, machine, site.machines)
        machine.report()
    wanted = dict.fromkeys(POOLS, 2)
    for _ in range(8 * names + 12):
        site.tick(wanted)
        site.report()
    hosts = [name for name, each in site.machines.items() if each.known.state is HostState.SERVING]
    assert sum(map(site.existing, POOLS)) <= CORES * len(hosts)
    assert all(not site.machines[name].workers for name in site.machines if name not in hosts)
    if len(hosts) >= 2:  # room for all: only the caps count
        for pool in POOLS:
            caps = [each for each in groups if pool in each.pools]
            spare = [each.cap - sum(map(site.existing, each.pools)) for each in caps]
            assert site.existing(pool) == 2 or min(spare) == 0, f"{pool} has {site.existing(pool)}"
    before = list(site.rows)
    site.tick(wanted)
    assert site.rows == before
