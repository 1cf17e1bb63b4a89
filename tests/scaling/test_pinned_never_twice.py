"""Whatever happens to hosts and in whatever order, a pinned pool never runs more often than it is pinned to."""

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Assignment, Host, HostCapacity, HostState, Memory, Template, Worker, WorkerState
from headway.scaling.presence import leaving_workers, unknown_workers
from headway.scaling.reconcile import Drain, Start, reconcile
from headway.scaling.rollout import rolled
from headway.scaling.room import Rooms
from headway.scaling.settle import Outcome, settled
from scaling.pools import NOW_S, profile, queue, view

PINNED = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)
DEEDS = ["cut off", "heal", "lose power", "forget", "drain", "cordon", "serve", "wait", "finish jobs", "restart"]


@dataclass
class Machine:
    """A host as it really is, and as the control plane knows it."""

    known: Host
    workers: list[Worker] = field(default_factory=list)
    told: list[Assignment] = field(default_factory=list)
    is_reachable: bool = True
    has_power: bool = True
    is_idle: bool = False
    """What drains ends at once."""

    def act(self, rows: list[Assignment], numbers: "Counter[str]") -> None:
        if not self.has_power:
            self.workers = []
            return
        if self.is_reachable:
            self.told = [row for row in rows if row.host_id == self.known.host_id]
        there = [
            replace(each, state=WorkerState.RUNNING) if each.state is WorkerState.STARTING else each
            for each in self.workers
            if not (self.is_idle and each.state is WorkerState.DRAINING)
        ]
        actions = reconcile(there, self.told)
        drained = {each.worker_id for each in actions if isinstance(each, Drain)}
        self.workers = [
            replace(each, state=WorkerState.DRAINING) if each.worker_id in drained else each for each in there
        ]
        for action in actions:
            if isinstance(action, Start):
                numbers["started"] += 1
                self.workers.append(
                    Worker(
                        worker_id=f"w{numbers['started']}",
                        pool=action.pool,
                        template=action.template,
                        pid=numbers["started"],
                        state=WorkerState.STARTING,
                        started_at_s=0.0,
                        restart_generation=action.restart_generation,
                    )
                )

    def report(self) -> None:
        is_heard = self.is_reachable and self.has_power
        workers = tuple(self.workers) if is_heard else self.known.workers
        self.known = replace(self.known, workers=workers, is_known=is_heard, silent_s=0.0 if is_heard else 60.0)


def done(what: str, machine: Machine, machines: dict[str, Machine]) -> None:
    if what in {"cut off", "heal"}:
        machine.is_reachable = what == "heal"
    elif what == "lose power":
        machine.has_power, machine.workers = False, []
    elif what == "forget" and not machine.has_power and not machine.known.is_known:
        del machines[machine.known.host_id]  # an operator says so of what is gone for good
    elif what in {"drain", "cordon", "serve"}:
        state = {"drain": HostState.DRAINING, "cordon": HostState.CORDONED, "serve": HostState.SERVING}[what]
        machine.known = replace(machine.known, state=state)
    elif what == "finish jobs":
        machine.is_idle = True


def ticked(
    machines: dict[str, Machine], rows: list[Assignment], memory: Memory, pinned: int, generation: int
) -> tuple[list[Assignment], Memory]:
    """What a tick makes of what the control plane knows."""
    hosts = [each.known for each in machines.values()]
    rows = [row for row in rows if row.host_id in machines]
    seen = view(
        queue(),
        profile=profile(workers_min=pinned, workers_max=pinned, pinned=pinned),
        capacity_workers=Rooms(hosts).capacity("mail"),
        assigned_workers=sum(
            row.workers
            for row in rows
            if machines[row.host_id].known.is_known and machines[row.host_id].known.state is not HostState.DRAINING
        ),
        unknown_workers=unknown_workers(hosts, rows)["mail"],
        leaving_workers=leaving_workers(hosts, rows)["mail"],
    )
    decision, after = decide(seen, memory, now_s=NOW_S)
    (outcome,), placed = settled([Outcome(view=seen, before=memory, decision=decision, memory=after)], hosts, rows)
    exclusive = [replace(row, is_exclusive=True) for row in placed]
    return list(rolled(exclusive, hosts, {"mail": generation})), outcome.memory


@settings(max_examples=100)
@given(
    pinned=st.integers(1, 3),
    names=st.integers(1, 4),
    deeds=st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 3)), max_size=25),
)
def test_law_6_a_pinned_pool_never_exists_more_often_than_it_is_pinned_to(
    pinned: int, names: int, deeds: list[tuple[str, int]]
) -> None:
    capacity = HostCapacity(cpu_cores=2.0, memory_bytes=1)
    machines = {
        f"h{number}": Machine(
            known=Host(host_id=f"h{number}", name=f"h{number}", capacity=capacity, templates=(PINNED,))
        )
        for number in range(names)
    }
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
