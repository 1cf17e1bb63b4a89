"""What a rehearsal decides on is what the live loop would decide on: both read the same buckets to the same values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.control.scheduler.bucket_cache import BucketCache
from headway.control.scheduler.history_cache import HistoryCache
from headway.control.scheduler.learning import Learning
from headway.control.scheduler.view_builder import ViewBuilder
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.metrics.behaviour import Behaviour, Spread, mean_s
from headway.scaling.model import (
    ActivitySource,
    Assignment,
    Decision,
    Host,
    HostCapacity,
    Memory,
    Objective,
    Template,
    Worker,
    WorkerState,
)
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_reading import reading_of
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.workloads.jobs import Jobs
from headway.store.pools.evaluation_io import Gathered
from simulate.stepping import jobs

BEGINS_AT_S = 1_000_000.123
ROOM = 20
EXIT = Spread(p50_s=0.5, p95_s=2.0)
POOL, HOST, TEMPLATE = "simulated", "host", "simulated"


class LiveLoop:
    """The scheduler's part of an evaluation, on the buckets and workers of an observation."""

    def __init__(self, profile: Profile) -> None:
        self.memory = Memory()
        self._profile = profile
        self._recent, self._learning = BucketCache(), Learning()

    def evaluate(self, seen: Observation, *, slots: int, now_s: float) -> Outcome:
        self._recent.take(seen.rows or (), revision=1)
        self._recent.forget(now_s=now_s)
        assigned = Assignment(pool=POOL, host_id=HOST, template=TEMPLATE, base_workers=seen.workers)
        gathered = Gathered(
            at_s=now_s,
            revision=1,
            buckets=(),
            profiles={POOL: {}},
            states={},
            hosts=(self._host(seen, slots=slots),),
            assignments=(assigned,),
            direct={},
            worker_hours_today={POOL: 0.0},
        )
        builder = ViewBuilder(gathered, self._recent, HistoryCache(), learning=self._learning, now_s=now_s)
        view, before = builder.of(self._profile), self.memory
        decision, self.memory = decide(view, before, now_s=now_s)
        outcome = Outcome(view=view, before=before, decision=decision, memory=self.memory)
        self._learning.learn([outcome], (assigned,), gathered, self._recent, now_s=now_s, is_whole=True)
        return outcome

    def _host(self, seen: Observation, *, slots: int) -> Host:
        """A host whose agent reports the workers of ``seen``; those that the samples cannot know yet are just ready."""
        states = [(True, 0.0)] * seen.busy + [(False, 0.0)] * seen.idle + [(False, seen.at_s + 0.01)] * seen.starting
        running = [
            self._worker(number, WorkerState.RUNNING, is_busy=is_busy, since_s=since_s, begun_s=seen.at_s - 100.0)
            for number, (is_busy, since_s) in enumerate(states)
        ]
        # So many of them have begun a job since the samples.
        for number in range(seen.taken):
            _, since_s = states[-1 - number]
            is_busy = states[-1 - number][0] or since_s > seen.at_s
            running[-1 - number] = self._worker(
                len(running) - 1 - number,
                WorkerState.RUNNING,
                is_busy=is_busy,
                since_s=since_s,
                begun_s=seen.at_s + 0.01,
            )
        leaving = [
            self._worker(1_000 + number, WorkerState.DRAINING, is_busy=True, since_s=0.0, begun_s=0.0)
            for number in range(seen.leaving)
        ]
        template = Template(
            name=TEMPLATE,
            content_hash="",
            slots=slots,
            cpu_cores=1.0,
            memory_bytes=1,
            start_up_s=seen.start_up_s,
            start_up_p95_s=seen.start_up_p95_s,
            exit_s=mean_s(EXIT),
        )
        return Host(
            host_id=HOST,
            name=HOST,
            capacity=HostCapacity(cpu_cores=float(ROOM), memory_bytes=ROOM),
            templates=(template,),
            workers=(*running, *leaving),
        )

    def _worker(self, number: int, state: WorkerState, *, is_busy: bool, since_s: float, begun_s: float) -> Worker:
        return Worker(
            worker_id=str(number),
            pool=POOL,
            template=TEMPLATE,
            pid=1 + number,
            state=state,
            started_at_s=0.0,
            state_since_s=since_s,
            is_busy=is_busy,
            busy_since_s=begun_s,
            activity_source=ActivitySource.BROKER,
        )


class BesideLive:
    """The simulator's controller, each step of which is held beside the live loop on the same observation."""

    def __init__(self, profile: Profile, behaviour: Behaviour, *, slots: int) -> None:
        self.compared = 0
        self._controller = Controller(
            profile=profile, behaviour=behaviour, slots_per_worker=slots, host_cores=float(ROOM)
        )
        self._live = LiveLoop(profile)
        self._slots = slots

    def step(self, seen: Observation, *, now_s: float | None = None) -> Decision:
        at_s = seen.at_s if now_s is None else now_s
        before = self._controller.outcome
        decision = self._controller.step(seen, now_s=now_s)
        live, ours = self._live.evaluate(seen, slots=self._slots, now_s=at_s), self._controller.outcome
        assert ours is not None
        if before is not None and ours.decision is before.decision:  # it stands: nothing was read
            assert live.decision.target_workers == decision.target_workers
            self._live.memory = ours.memory
            return decision
        assert ours.view == live.view
        assert reading_of(ours.view, ours.before, now_s=at_s) == reading_of(live.view, live.before, now_s=at_s)
        assert (ours.decision, ours.memory) == (live.decision, live.memory)
        self.compared += 1
        return decision


def compared(workload: Jobs, *, target_s: float = 10.0, window_s: float = 120.0, slots: int = 1, seed: int = 0) -> int:
    """How many evaluations of ``workload`` were the same in both."""
    profile = Profile(
        pool=POOL,
        queues=("simulated/jobs",),
        template=TEMPLATE,
        objective=Objective(target_s=target_s, percentile=99.0, window_s=window_s),
        workers_max=ROOM,
    )
    behaviour = Behaviour(
        start_up=Spread(p50_s=2.0, p95_s=4.0),
        exit=EXIT,
        sample_lag=Spread(p50_s=0.7, p95_s=1.4),
        worker_lag=Spread(p50_s=0.2, p95_s=0.5),
        apply_delay=Spread(p50_s=0.1, p95_s=0.3),
    )
    beside = BesideLive(profile, behaviour, slots=slots)
    simulate(
        [PoolPlan(jobs=workload, behaviour=behaviour, is_live=True, slots=slots, workers_max=ROOM)],
        [beside],
        rehearsal=Rehearsal(begins_at_s=BEGINS_AT_S, tick_phase_s=0.37, seed=seed, behaviour=behaviour),
    )
    return beside.compared


workloads = st.lists(
    st.tuples(st.floats(0, 200).map(lambda at_s: round(at_s, 3)), st.floats(0.01, 40).map(lambda s: round(s, 3))),
    min_size=1,
    max_size=60,
).map(lambda pairs: jobs(*sorted(pairs)))


@given(workloads, st.sampled_from([(3.0, 120.0), (10.0, 120.0), (10.0, 900.0)]), st.integers(0, 3))
def test_every_evaluation_reads_and_decides_the_same(
    workload: Jobs, promised_s: tuple[float, float], seed: int
) -> None:
    """View, reading, decision and memory, bit for bit."""
    target_s, window_s = promised_s
    assert compared(workload, target_s=target_s, window_s=window_s, seed=seed) > 0


@pytest.mark.parametrize("slots", [1, 4])
def test_a_backlog_and_what_its_jobs_took_are_read_the_same(slots: int) -> None:
    """Also minutes later, when dispatch is learned and the first rows are out of every window."""
    backlog = [(0.0, 0.5)] * 1_000
    later = [(400.0 + number, 3.0) for number in range(200)]
    assert compared(jobs(*backlog, *later), slots=slots) > 80
