"""Whatever happens to hosts and in whatever order, a pinned pool never runs more often than it is pinned to."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.rollout import rolled
from headway.scaling.allocation.unreachable_hosts import leaving_workers, unknown_workers
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, HostState, Memory
from headway.scaling.placement.host_choice import HostCapacities
from scaling.machines import Machine, done, machines_of
from support.pools import NOW_S, profile, queue, view

DEEDS = ["cut off", "heal", "lose power", "forget", "drain", "cordon", "serve", "wait", "finish jobs", "restart"]


def ticked(
    machines: dict[str, Machine], rows: list[Assignment], memory: Memory, pinned: int, generation: int
) -> tuple[list[Assignment], Memory]:
    """What a tick makes of what the control plane knows."""
    hosts = [each.known for each in machines.values()]
    rows = [row for row in rows if row.host_id in machines]
    seen = view(
        queue(),
        profile=profile(workers_min=pinned, workers_max=pinned, pinned=pinned),
        capacity_workers=HostCapacities(hosts).capacity("mail"),
        assigned_workers=sum(
            row.workers
            for row in rows
            if machines[row.host_id].known.is_known and machines[row.host_id].known.state is not HostState.DRAINING
        ),
        unknown_workers=unknown_workers(hosts, rows)["mail"],
        leaving_workers=leaving_workers(hosts, rows)["mail"],
    )
    decision, after = decide(seen, memory, now_s=NOW_S)
    (outcome,), placed = allocate([Outcome(view=seen, before=memory, decision=decision, memory=after)], hosts, rows)
    exclusive = [replace(row, is_exclusive=True) for row in placed]
    return list(rolled(exclusive, hosts, {"mail": generation})), outcome.memory


@settings(max_examples=max(100, settings.default.max_examples))
@given(
    pinned=st.integers(1, 3),
    names=st.integers(1, 4),
    deeds=st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 3)), max_size=25),
)
def test_law_6_a_pinned_pool_never_exists_more_often_than_it_is_pinned_to(
    pinned: int, names: int, deeds: list[tuple[str, int]]
) -> None:
    machines = machines_of(*[2.0] * names)
    rows: list[Assignment] = []
    memory, numbers = Memory(), Counter[str]()
    for what, number in [("wait", 0), ("wait", 0), *deeds, *[("wait", 0)] * 3]:
        machine = list(machines.values())[number % len(machines)] if machines else None
        if machine is not None:
            done(what, machine, machines)
        numbers["restarts"] += what == "restart"
        rows, memory = ticked(machines, rows, memory, pinned, numbers["restarts"])
        for each in machines.values():
            each.act(rows, numbers)
        existing = sum(len(each.workers) for each in machines.values())
        assert existing <= pinned, f"{existing} exist after {what}"
        for each in machines.values():
            each.report()
