"""What a pause keeps: the count at which it began, whatever becomes of hosts meanwhile, and every busy worker."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.unreachable_hosts import unknown_workers
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Decision, Host, Memory, Mode, Template, Worker, WorkerState
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.profile import Pause, Profile
from headway.scaling.reconcile import Drain, Start, reconcile
from headway.scaling.view import PoolView
from support.hosts import any_host
from support.installed import INSTALLED, decide
from support.pools import NOW_S, held, profile, queue

PAUSES = (Mode.PAUSE, Mode.PAUSE_UP, Mode.PAUSE_DOWN)
TICK_S = 5.0
MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=1)
SEARCH = settings(max_examples=max(60, 2 * settings.default.max_examples))
"""2,000 sequences under the profile ``searching``."""


def seen(workers: int, *, mode: Mode = Mode.PAUSE, lost: int = 0, **values: Any) -> PoolView:
    """A pool with busy ``workers`` on hosts that are full, and ``lost`` more on hosts that are unreachable."""
    plain: dict[str, Any] = {
        "profile": profile(mode=mode, workers_max=20),
        "queues": (queue(in_flight_jobs=workers + lost, completion_rate_per_s=1.0),),
        "start_up_s": 1.0,
        "capacity_workers": workers,
        "assigned_workers": workers,
        "running_workers": workers,
        "unknown_workers": lost,
    }
    return PoolView(**{**plain, **values})


def targets(views: Sequence[PoolView], memory: Memory) -> list[int]:
    found = []
    for number, each in enumerate(views):
        now_s = NOW_S + TICK_S * number
        fresh = replace(each, queues=tuple(replace(member, sampled_at_s=now_s) for member in each.queues))
        decision, memory = decide(fresh, memory, now_s=now_s)
        found.append(decision.target_workers)
    return found


@pytest.mark.parametrize("mode", PAUSES)
def test_a_pool_is_back_at_its_paused_count_when_its_hosts_are(mode: Mode) -> None:
    """Paused at 10 on two hosts, all busy; one of them is unreachable for two evaluations."""
    there, away = seen(10, mode=mode), seen(5, mode=mode, lost=5)
    assert targets([there, away, away, there, there], held(10)) == [10, 5, 5, 10, 10]


@pytest.mark.parametrize("mode", [Mode.PAUSE, Mode.PAUSE_DOWN])
def test_a_quiet_pool_is_back_at_its_paused_count_too(mode: Mode) -> None:
    quiet = (queue(),)
    there, away = seen(10, mode=mode, queues=quiet), seen(5, mode=mode, lost=5, queues=quiet)
    assert targets([there, away, there], held(10)) == [10, 5, 10]


def test_a_pause_that_begins_while_a_host_is_unreachable_counts_what_runs_there() -> None:
    away, back = seen(5, lost=5), seen(10)
    idle = replace(back, queues=(queue(),))
    assert targets([away, away, back, idle], held(5)) == [5, 5, 10, 10]


@pytest.mark.parametrize(("mode", "idle_target"), [(Mode.PAUSE, 10), (Mode.PAUSE_DOWN, 15)])
def test_a_pause_that_begins_after_lost_workers_were_replaced_counts_none_twice(mode: Mode, idle_target: int) -> None:
    """Five were started in the place of five that were lost: ten are paused, and the busy ones beyond them stay.

    What the target rose to, ``pause_down`` keeps.
    """
    policy = profile(mode=mode, workers_max=40, strategy="fixed")
    roomy: dict[str, Any] = {"capacity_workers": 40, "profile": policy}
    away = seen(10, lost=5, **roomy)
    busy = seen(15, **roomy)
    idle = replace(busy, queues=(queue(),))
    ten = replace(away, queues=(queue(in_flight_jobs=10),))
    assert targets([ten, busy, idle], held(10)) == [10, 15, idle_target]


def test_a_pause_that_begins_without_metrics_keeps_what_there_is() -> None:
    stale = queue(sampled_at_s=NOW_S - 100.0)
    decision, memory = decide(replace(seen(10), queues=(stale,)), held(10), now_s=NOW_S)
    assert (decision.target_workers, memory.paused_workers) == (10, 10)
    away = replace(seen(5, lost=5), queues=(stale,))
    decision, memory = decide(away, memory, now_s=NOW_S + TICK_S)
    assert (decision.target_workers, memory.paused_workers) == (5, 10)
    decision, _ = decide(replace(seen(10), queues=(queue(),)), memory, now_s=NOW_S)
    assert decision.target_workers == 10


def paused_through(*steps: tuple[Mode, int]) -> list[tuple[int, int | None]]:
    """The target and the paused count, mode by mode, with so many jobs at work each time."""
    memory, found = held(10), []
    for number, (mode, jobs) in enumerate(steps):
        now_s = NOW_S + TICK_S * number
        member = queue(in_flight_jobs=jobs, sampled_at_s=now_s)
        decision, memory = decide(seen(0, mode=mode, capacity_workers=100, queues=(member,)), memory, now_s=now_s)
        found.append((decision.target_workers, memory.paused_workers))
    return found


def test_the_paused_count_goes_on_from_one_pause_to_another_and_ends_with_it() -> None:
    assert paused_through(
        (Mode.ACT, 10),
        (Mode.PAUSE, 30),
        (Mode.PAUSE_DOWN, 12),  # up is allowed, and what was gone up to is kept
        (Mode.PAUSE_DOWN, 3),
        (Mode.PAUSE, 30),
        (Mode.PAUSE_UP, 7),  # down is allowed, and it stays there
        (Mode.PAUSE_UP, 9),
        (Mode.ACT, 9),
        (Mode.PAUSE, 30),
    ) == [(10, None), (10, 10), (12, 12), (12, 12), (12, 12), (7, 7), (7, 7), (9, None), (9, 9)]


def test_a_pause_that_is_over_acts_again_and_keeps_nothing() -> None:
    """Of another pause that begins later the count is a new one."""
    policy = profile(workers_max=40, pause=Pause(until_s=NOW_S + 10, reason="deploying"))
    memory, found = held(10), []
    for number, jobs in enumerate([30, 30, 20, 20]):
        now_s = NOW_S + TICK_S * number
        member = queue(in_flight_jobs=jobs, sampled_at_s=now_s)
        view = seen(0, capacity_workers=100, queues=(member,), profile=policy)
        decision, memory = decide(view, memory, now_s=now_s)
        note = any("deploying" in note for note in decision.notes)
        found.append((decision.mode, decision.target_workers, memory.paused_workers, note))
    assert found == [(Mode.PAUSE, 10, 10, True)] * 2 + [(Mode.ACT, 20, None, False)] * 2
    again = replace(view, profile=replace(policy, pause=Pause()))
    assert decide(again, memory, now_s=now_s)[1].paused_workers == 20


def test_a_pool_that_shares_its_room_is_guaranteed_its_paused_count() -> None:
    """Both hosts are back, and a pool of higher priority would take everything."""
    before = Memory(target_workers=5, paused_workers=10)
    paused = profile(mode=Mode.PAUSE, workers_max=20, priority=1)
    view = replace(seen(10, mode=Mode.PAUSE), profile=paused)
    decision, memory = decide(view, before, now_s=NOW_S)
    greedy = profile(pool="greedy", queues=("redis/greedy",), priority=9, workers_min=0)
    wants = replace(
        seen(0, capacity_workers=12, queues=(queue(queue="redis/greedy", in_flight_jobs=12),)), profile=greedy
    )
    taken, kept = decide(wants, Memory(), now_s=NOW_S)
    outcomes = (
        Outcome(view=view, before=before, decision=decision, memory=memory),
        Outcome(view=wants, before=Memory(), decision=taken, memory=kept),
    )
    left, _ = allocate(outcomes, [host("a", 12)], [])
    assert [each.decision.target_workers for each in left] == [10, 2]


def test_a_pool_that_others_leave_less_does_not_keep_what_it_never_had() -> None:
    """It asks for 20, is paused at 4 and gets 6: six it keeps from now on, and takes no more from others."""
    before = Memory(target_workers=4, paused_workers=4)
    upwards = profile(mode=Mode.PAUSE_DOWN, workers_max=20, priority=1)
    view = seen(4, capacity_workers=20, queues=(queue(in_flight_jobs=20),), profile=upwards)
    decision, memory = decide(view, before, now_s=NOW_S)
    assert (decision.target_workers, memory.paused_workers) == (20, 20)
    (left,), _ = allocate([Outcome(view=view, before=before, decision=decision, memory=memory)], [host("a", 6)], [])
    assert (left.decision.target_workers, left.memory.paused_workers) == (6, 6)


def test_a_paused_pool_exchanges_no_base_worker_for_a_burst_worker() -> None:
    rows = [Assignment(pool="mail", host_id="a", template="mail", base_workers=2, burst_workers=1)]
    view, before = seen(3, capacity_workers=9), Memory(target_workers=3, paused_workers=3)
    decision, memory = decide(view, before, now_s=NOW_S)
    asked = replace(decision, burst_workers=3)
    (left,), placed = allocate([Outcome(view=view, before=before, decision=asked, memory=memory)], [host("a", 9)], rows)
    assert (left.decision.burst_workers, list(placed)) == (1, rows)


def host(name: str, cores: int) -> Host:
    return any_host(name, cpu_cores=cores, memory_bytes=1_000, templates=(MAIL,))


@dataclass(slots=True)
class Fleet:
    """One pool on hosts that are lost and come back, and the workers that follow what their hosts last received."""

    profile: Profile
    hosts: dict[str, Host]
    now_s: float = NOW_S
    memory: Memory = field(default_factory=Memory)
    rows: tuple[Assignment, ...] = ()
    reported: dict[str, tuple[Worker, ...]] = field(default_factory=dict)
    workers: dict[str, tuple[Worker, ...]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    started: int = 0
    dismissed_busy: list[str] = field(default_factory=list)

    def evaluate(self, *, stale_s: float = 0.0, waiting: int = 0, lost_hosts: frozenset[str] = frozenset()) -> Decision:
        """One evaluation; ``lost_hosts`` are lost before they receive what it makes of them."""
        self.now_s += TICK_S
        seen = [self._seen(each) for each in self.hosts.values()]
        view = self._view(seen, stale_s=stale_s, waiting=waiting)
        decision, memory = decide(view, self.memory, now_s=self.now_s)
        outcome = Outcome(view=view, before=self.memory, decision=decision, memory=memory)
        before = self.rows
        (outcome,), self.rows = allocate((outcome,), seen, before)
        self.memory = outcome.memory
        self._note_dismissals(before)
        self.lost |= lost_hosts
        for name in self.hosts.keys() - self.lost:
            self._follow(name)
        return outcome.decision

    def jobs(self, busy: Sequence[bool]) -> None:
        """Who works on a job from now on, over all workers in order."""
        draws = iter(busy)
        for name, workers in self.workers.items():
            worked = [replace(worker, is_busy=next(draws, True)) for worker in workers]
            # One that drains and has no job ends.
            self.workers[name] = tuple(each for each in worked if each.is_busy or each.state is WorkerState.RUNNING)
        self.report()

    @property
    def busy(self) -> int:
        return sum(bool(worker.is_busy) for workers in self.workers.values() for worker in workers)

    def report(self) -> None:
        self.reported.update({name: self.workers.get(name, ()) for name in self.hosts.keys() - self.lost})

    def _seen(self, each: Host) -> Host:
        return replace(each, is_known=each.host_id not in self.lost, workers=self.reported.get(each.host_id, ()))

    def _view(self, seen: Sequence[Host], *, stale_s: float, waiting: int) -> PoolView:
        known = {each.host_id for each in seen if each.is_known}
        running = [worker for each in seen if each.is_known for worker in each.workers]
        return PoolView(
            profile=self.profile,
            queues=(
                queue(
                    sampled_at_s=self.now_s - stale_s,
                    in_flight_jobs=self.busy,
                    waiting_jobs=waiting,
                    oldest_age_s=1.0 if waiting else 0.0,
                    service_time_s=30.0,
                ),
            ),
            start_up_s=1.0,
            capacity_workers=HostCapacities([each for each in seen if each.is_known]).capacity(MAIL.name),
            assigned_workers=sum(row.workers for row in self.rows if row.host_id in known),
            running_workers=sum(worker.state is WorkerState.RUNNING for worker in running),
            unknown_workers=unknown_workers(seen, self.rows)["mail"],
        )

    def _note_dismissals(self, before: Iterable[Assignment]) -> None:
        """Hosts that are to keep fewer than they were to and than are busy there."""
        now = {row.host_id: row.workers for row in self.rows}
        for row in before:
            there = self.workers.get(row.host_id, ())
            busy = sum(bool(worker.is_busy) and worker.state is WorkerState.RUNNING for worker in there)
            if now.get(row.host_id, 0) < min(row.workers, busy):
                left = now.get(row.host_id, 0)
                self.dismissed_busy.append(
                    f"{row.host_id} at {self.now_s - NOW_S:g} s: {left} of {busy} busy ones stay"
                )

    def _follow(self, name: str) -> None:
        """A reachable host does what it is assigned: who starts is ready at once, who is idle leaves at once."""
        mine = [row for row in self.rows if row.host_id == name]
        there = {worker.worker_id: worker for worker in self.workers.get(name, ())}
        for action in reconcile(there.values(), mine):
            if isinstance(action, Start):
                self.started += 1
                there[f"{self.started}"] = _worker(f"{self.started}")
            elif isinstance(action, Drain) and there[action.worker_id].is_busy:
                there[action.worker_id] = replace(there[action.worker_id], state=WorkerState.DRAINING)
            else:
                del there[action.worker_id]
        self.workers[name] = tuple(there.values())
        self.report()


def _worker(worker_id: str) -> Worker:
    return Worker(
        worker_id=worker_id,
        pool="mail",
        template=MAIL.name,
        pid=1,
        state=WorkerState.RUNNING,
        started_at_s=0.0,
        is_busy=True,
    )


NAMES = "abc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What has become of hosts and jobs by an evaluation, and who does not receive what the evaluation makes of it."""

    lost: frozenset[str]
    busy: tuple[bool, ...] | None
    """Of the workers in order, the others are busy; ``None``: as before."""
    stale_s: float
    waiting: int
    lost_hosts: frozenset[str]


HOSTS = st.frozensets(st.sampled_from(NAMES), max_size=2)
MOMENTS = st.lists(
    st.builds(
        Moment,
        lost=HOSTS,
        busy=st.none() | st.lists(st.booleans(), max_size=12).map(tuple),
        stale_s=st.sampled_from([0.0, 0.0, 100.0, 1_000.0]),
        waiting=st.sampled_from([0, 0, 40]),
        lost_hosts=st.just(frozenset()) | HOSTS,
    ),
    min_size=2,
    max_size=10,
)
SIZES = st.lists(st.integers(0, 8), min_size=3, max_size=3).filter(any)


def fleet(sizes: Sequence[int], workers: int, **policy: Any) -> Fleet:
    """A pool that runs ``workers``, all of them busy, on reachable hosts."""
    made = Fleet(
        profile=profile(pinned=None, **policy),
        hosts={name: host(name, size) for name, size in zip(NAMES, sizes, strict=True)},
    )
    wanted = replace(made.profile, mode=Mode.ACT, workers_min=workers)
    acting, made.profile = made.profile, wanted
    made.memory = held(workers)
    made.evaluate()
    made.profile = acting
    return made


def play(made: Fleet, moments: Sequence[Moment]) -> None:
    for each in moments:
        made.lost = set(each.lost)
        made.jobs(each.busy or ()) if each.busy is not None else made.report()
        made.evaluate(stale_s=each.stale_s, waiting=each.waiting, lost_hosts=each.lost_hosts)


@SEARCH
@given(
    sizes=SIZES,
    workers=st.integers(1, 12),
    spare=st.integers(0, 10),
    mode=st.sampled_from(PAUSES),
    strategy=st.sampled_from(sorted(INSTALLED)),
    moments=MOMENTS,
)
def test_no_busy_worker_is_asked_to_leave_by_a_pause_or_by_unreachable_hosts(
    sizes: list[int], workers: int, spare: int, mode: Mode, strategy: str, moments: list[Moment]
) -> None:
    """Whatever the sequence of hosts lost and back, of jobs that begin and end, and of evaluations."""
    workers = min(workers, sum(sizes))
    # Where going down is allowed a strategy may ask for fewer than are busy: this one does not.
    named = "hybrid" if mode is Mode.PAUSE_UP else strategy
    made = fleet(sizes, workers, mode=mode, strategy=named, workers_max=workers + spare)
    play(made, moments)
    event(f"{mode}: {'hosts were lost' if any(each.lost for each in moments) else 'none was lost'}")
    assert made.dismissed_busy == []


@SEARCH
@given(
    sizes=SIZES,
    workers=st.integers(1, 12),
    spare=st.integers(0, 10),
    moments=MOMENTS,
)
def test_unreachable_hosts_ask_no_busy_worker_of_an_acting_pool_to_leave(
    sizes: list[int], workers: int, spare: int, moments: list[Moment]
) -> None:
    workers = min(workers, sum(sizes))
    made = fleet(sizes, workers, mode=Mode.ACT, workers_max=workers + spare)
    play(made, moments)
    assert made.dismissed_busy == []


@SEARCH
@given(
    sizes=SIZES,
    workers=st.integers(1, 12),
    spare=st.integers(0, 10),
    moments=MOMENTS,
)
def test_with_all_hosts_back_and_idle_a_paused_pool_is_what_it_was(
    sizes: list[int], workers: int, spare: int, moments: list[Moment]
) -> None:
    workers = min(workers, sum(sizes))
    made = fleet(sizes, workers, mode=Mode.PAUSE, workers_max=workers + spare)
    made.evaluate()
    play(made, moments)
    made.lost.clear()
    for _ in range(3):
        made.jobs([False] * 100)
        last = made.evaluate()
    assert last.target_workers == workers
    assert sum(len(there) for there in made.workers.values()) == workers
