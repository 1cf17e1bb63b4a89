"""A host that drains: what replaces its workers runs first, and no more than a pool's ceiling ever exist."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import (
    Assignment,
    Decision,
    Host,
    HostCapacity,
    HostState,
    Memory,
    Template,
    Worker,
    WorkerState,
)
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.profile import Profile
from headway.scaling.reconcile import Drain, Start, reconcile
from support.pools import NOW_S, profile, queue, view

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)
TURNS_MAX = 60


class Fleet:
    """Hosts that do what they are assigned, a turn at a time."""

    def __init__(self, policy: Profile, *, workers: int, **sizes: int) -> None:
        self.policy = policy
        self.last = workers
        self.hosts = [
            Host(
                host_id=name,
                name=name,
                capacity=HostCapacity(cpu_cores=float(size), memory_bytes=1),
                templates=(MAIL,),
            )
            for name, size in sizes.items()
        ]
        self.rows: tuple[Assignment, ...] = ()
        self.started = 0
        self.most = 0
        self.fewest_running = 10_000
        self.is_slow = False
        """Draining takes for ever."""

    def drain(self, name: str) -> None:
        self.set(name, state=HostState.DRAINING)

    def set(self, name: str, **values: Any) -> None:
        self.hosts = [replace(each, **values) if each.host_id == name else each for each in self.hosts]

    def states(self) -> Counter[WorkerState]:
        return Counter(each.state for host in self.hosts for each in host.workers)

    def on(self, name: str) -> int:
        return sum(len(host.workers) for host in self.hosts if host.host_id == name)

    def tick(self) -> None:
        seen = view(
            queue(),
            profile=self.policy,
            capacity_workers=HostCapacities(self.hosts).capacity("mail"),
            running_workers=self.states()[WorkerState.RUNNING],
        )
        memory = Memory(target_workers=self.last)
        decision, after = decide(seen, memory, now_s=NOW_S)
        outcome = Outcome(view=seen, before=memory, decision=decision, memory=after)
        (left,), self.rows = allocate([outcome], self.hosts, self.rows)
        self._says_what_is_missing(left.decision)

    def _says_what_is_missing(self, decision: Decision) -> None:
        missing = decision.target_workers - sum(row.workers for row in self.rows)
        notes = [note for note in decision.notes if "when draining workers have exited" in note]
        assert [note.split()[0] for note in notes] == ([f"{missing}"] if missing > 0 else [])

    def turn(self) -> None:
        """Every agent acts once; what starts runs at the next turn, what drains is gone then."""
        self.hosts = [replace(host, workers=tuple(self._acted(host))) for host in self.hosts]
        states = self.states()
        self.most = max(self.most, sum(states.values()))
        self.fewest_running = min(self.fewest_running, states[WorkerState.RUNNING])

    def _acted(self, host: Host) -> list[Worker]:
        moved = [
            replace(each, state=WorkerState.RUNNING) if each.state is WorkerState.STARTING else each
            for each in host.workers
            if self.is_slow or each.state is not WorkerState.DRAINING
        ]
        actions = reconcile(moved, [row for row in self.rows if row.host_id == host.host_id])
        drained = {each.worker_id for each in actions if isinstance(each, Drain)}
        there = [replace(each, state=WorkerState.DRAINING) if each.worker_id in drained else each for each in moved]
        for action in actions:
            if isinstance(action, Start):
                self.started += 1
                there.append(
                    Worker(
                        worker_id=f"w{self.started}",
                        pool=action.pool,
                        template=action.template,
                        pid=self.started,
                        state=WorkerState.STARTING,
                        started_at_s=0.0,
                    )
                )
        return there

    def come_to_rest(self) -> None:
        for _ in range(TURNS_MAX):
            before = (self.rows, self.hosts)
            self.tick()
            self.turn()
            if before == (self.rows, self.hosts):
                return
        raise AssertionError(f"no rest after {TURNS_MAX} turns")

    def begin(self) -> None:
        self.come_to_rest()
        self.most = 0
        self.fewest_running = 10_000


def fleet(*, workers: int, workers_max: int = 100, pinned: int | None = None, **sizes: int) -> Fleet:
    policy = profile(workers_min=workers, workers_max=workers_max, pinned=pinned)
    made = Fleet(policy, workers=workers, **sizes)
    made.begin()
    return made


def test_replacements_run_before_what_they_replace_leaves() -> None:
    it = fleet(workers=6, a=10, b=10)
    it.drain("a")
    it.come_to_rest()
    assert (it.on("a"), it.on("b")) == (0, 6)
    assert it.fewest_running == 6


def test_at_the_ceiling_one_leaves_at_a_time_and_the_ceiling_holds() -> None:
    it = fleet(workers=6, workers_max=6, a=10, b=10)
    it.drain("a")
    it.come_to_rest()
    assert (it.on("a"), it.on("b")) == (0, 6)
    assert (it.most, it.fewest_running) == (6, 5)


def test_a_pinned_pool_never_runs_twice() -> None:
    it = fleet(workers=1, workers_max=1, pinned=1, a=10)
    it.hosts += [replace(it.hosts[0], host_id="b", name="b", workers=())]
    it.drain("a")
    it.is_slow = True
    for _ in range(5):
        it.tick()
        it.turn()
    assert (it.on("a"), it.on("b"), it.most) == (1, 0, 1)  # it finishes its job, and nobody does its work beside it
    it.is_slow = False
    it.come_to_rest()
    assert (it.on("a"), it.on("b"), it.most) == (0, 1, 1)


def test_where_others_have_no_room_workers_leave_all_the_same() -> None:
    it = fleet(workers=6, a=3, b=3)
    it.drain("a")
    it.come_to_rest()
    assert (it.on("a"), it.on("b")) == (0, 3)


def test_a_host_that_serves_again_keeps_what_is_still_there() -> None:
    it = fleet(workers=6, a=10, b=10)
    it.drain("a")
    it.tick()
    it.turn()
    it.set("a", state=HostState.SERVING)
    it.come_to_rest()
    assert sum(it.states().values()) == 6


def test_two_hosts_may_drain_at_once() -> None:
    it = fleet(workers=6, a=4, b=4, c=8)
    it.drain("a")
    it.drain("b")
    it.come_to_rest()
    assert (it.on("a"), it.on("b"), it.on("c")) == (0, 0, 6)
    assert it.fewest_running == 6


@given(
    workers=st.integers(0, 8),
    spare=st.integers(0, 4),
    sizes=st.lists(st.integers(0, 8), min_size=2, max_size=4),
    drained=st.sets(st.integers(0, 3), min_size=1),
)
def test_law_6_a_drain_passes_no_ceiling_ends_and_loses_only_what_has_no_room(
    workers: int, spare: int, sizes: list[int], drained: set[int]
) -> None:
    it = fleet(workers=workers, workers_max=workers + spare, **{f"h{n}": size for n, size in enumerate(sizes)})
    before = it.states()[WorkerState.RUNNING]
    for number in drained:
        it.drain(f"h{number}")
    it.come_to_rest()
    left = sum(size for number, size in enumerate(sizes) if number not in drained)
    assert it.states()[WorkerState.RUNNING] == min(before, left)
    assert it.most <= workers + spare
    assert it.fewest_running >= min(before, left) - (0 if spare else 1)
