"""Hosts as they really are beside what the control plane knows of them, and what may happen to them."""

from collections import Counter
from dataclasses import dataclass, field, replace

from headway.scaling.model import Assignment, Host, HostCapacity, HostState, Template, Worker, WorkerState
from headway.scaling.reconcile import Drain, Start, reconcile

CORE_EACH = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)


@dataclass
class Machine:
    """A host as it really is, and as the control plane knows it."""

    known: Host
    workers: list[Worker] = field(default_factory=list)
    assigned: list[Assignment] = field(default_factory=list)
    is_reachable: bool = True
    has_power: bool = True
    is_idle: bool = False
    """What drains ends at once."""

    def act(self, rows: list[Assignment], numbers: "Counter[str]") -> None:
        if not self.has_power:
            self.workers = []
            return
        if self.is_reachable:
            self.assigned = [row for row in rows if row.host_id == self.known.host_id]
        there = [
            replace(each, state=WorkerState.RUNNING) if each.state is WorkerState.STARTING else each
            for each in self.workers
            if not (self.is_idle and each.state is WorkerState.DRAINING)
        ]
        actions = reconcile(there, self.assigned)
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
        does_report = self.is_reachable and self.has_power
        workers = tuple(self.workers) if does_report else self.known.workers
        self.known = replace(self.known, workers=workers, is_known=does_report, silent_s=0.0 if does_report else 60.0)


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
    elif what in {"finish jobs", "work long"}:
        machine.is_idle = what == "finish jobs"


def machines_of(*cores: float) -> dict[str, Machine]:
    """By name, hosts of so many cores that run nothing and whose workers take a core each."""
    return {
        f"h{number}": Machine(
            known=Host(
                host_id=f"h{number}",
                name=f"h{number}",
                capacity=HostCapacity(cpu_cores=each, memory_bytes=1),
                templates=(CORE_EACH,),
            )
        )
        for number, each in enumerate(cores)
    }
