"""A pool whose broker knows nothing of running jobs, from evaluation to evaluation."""

from dataclasses import dataclass, field

from headway.scaling.decide import decide
from headway.scaling.metrics.worker_evidence import evidence_of
from headway.scaling.model import Assignment, Decision, Memory, Worker, WorkerState
from headway.scaling.profile import Profile
from headway.scaling.reconcile import Drain, reconcile
from support.pools import NOW_S, queue, view

TICK_S = 5.0
EXIT_S = 2.0


@dataclass
class UnseenPool:
    """On one host, evaluated and reconciled every 5 s. A worker that is asked ends when its job has."""

    profile: Profile
    ends_s: dict[str, float]
    """Worker -> when its job ends; 0 for one without."""
    reporting: frozenset[str] = frozenset()
    """Workers that say what they do; of the others nobody knows."""
    now_s: float = NOW_S
    memory: Memory = field(default_factory=Memory)
    asked_s: dict[str, float] = field(default_factory=dict)
    decision: Decision | None = None

    def __post_init__(self) -> None:
        self.memory = Memory(target_workers=len(self.ends_s))
        self.assigned = len(self.ends_s)

    def worker(self, name: str) -> Worker:
        """As it is reported now."""
        is_busy = self.ends_s[name] > self.now_s if name in self.reporting else None
        state = WorkerState.DRAINING if name in self.asked_s else WorkerState.RUNNING
        return Worker(
            worker_id=name, pool="mail", template="mail", pid=1, state=state, started_at_s=0.0, is_busy=is_busy
        )

    def step(self) -> list[Worker]:
        """Who is asked to leave at this evaluation, as each was reported."""
        for name, at_s in list(self.asked_s.items()):
            if max(at_s, self.ends_s[name]) + EXIT_S <= self.now_s:
                del self.ends_s[name], self.asked_s[name]
        workers = [self.worker(name) for name in sorted(self.ends_s)]
        running = [each for each in workers if each.state is WorkerState.RUNNING]
        evidence = evidence_of(running, running_workers=len(running))
        seen = view(
            queue(in_flight_jobs=None, in_flight_min_jobs=0, sampled_at_s=self.now_s),
            profile=self.profile,
            assigned_workers=self.assigned,
            running_workers=len(running),
            leaving_workers=len(self.asked_s),
            idle_workers=evidence.idle_workers,
            unknown_activity_workers=evidence.unknown_workers,
            certain_jobs=evidence.certain_jobs,
            busy_workers=evidence.may_be_busy_workers,
            busy_slots=evidence.most_slots(1),
        )
        self.decision, self.memory = decide(seen, self.memory, now_s=self.now_s)
        self.assigned = self.decision.target_workers
        row = Assignment(pool="mail", host_id="a", template="mail", base_workers=self.assigned)
        drained = {action.worker_id for action in reconcile(workers, [row]) if isinstance(action, Drain)}
        self.asked_s |= dict.fromkeys(drained, self.now_s)
        self.now_s += TICK_S
        return [each for each in running if each.worker_id in drained]
