"""The model of what runs: what takes time there, how late what is seen is, and when it is decided."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.profile import Profile
from headway.simulate.controller import Controller
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import Rehearsal, Stepping, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import Script, Wish, always, by_time, jobs
from support.installed import INSTALLED

NOTHING = Spread(p50_s=0.0, p95_s=0.0)
ZERO = Behaviour(
    start_up=Spread(p50_s=2.0, p95_s=2.0),
    start_up_cpu_s=0.0,
    exit=NOTHING,
    dispatch_overhead_s=0.0,
    sample_lag=NOTHING,
    worker_lag=NOTHING,
    evaluation_delay=NOTHING,
    apply_delay=NOTHING,
)
workloads = st.lists(
    st.tuples(st.floats(0, 300).map(lambda at_s: round(at_s, 2)), st.floats(0.01, 40).map(lambda s: round(s, 2))),
    min_size=1,
    max_size=60,
).map(lambda pairs: jobs(*sorted(pairs)))


def exactly(value_s: float) -> Spread:
    return Spread(p50_s=value_s, p95_s=value_s)


def run(plan: PoolPlan, controller: Stepping, **rehearsal: object) -> Result:
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal(**rehearsal))  # type: ignore[arg-type]
    return result


def deciding(strategy: str, slots: int) -> Controller:
    return Controller(strategy=strategy, strategies=INSTALLED, slots_per_worker=slots)


@given(workloads, st.sampled_from(["hybrid", "jobs_per_worker", "backlog_only"]), st.sampled_from([1, 3]))
def test_what_takes_no_time_is_the_plain_model_to_the_last_digit(workload: Jobs, strategy: str, slots: int) -> None:
    plan = PoolPlan(jobs=workload, start_up_s=2.0, slots=slots)
    plain = run(plan, deciding(strategy, slots))
    zero = run(replace(plan, behaviour=ZERO), deciding(strategy, slots), behaviour=ZERO)
    assert zero == plain


@given(workloads, st.integers(1, 5), st.lists(st.floats(0, 5), min_size=2, max_size=4).map(sorted), st.integers(1, 2))
def test_more_overhead_never_improves_attainment_of_a_constant_pool(
    workload: Jobs, workers: int, overheads_s: list[float], slots: int
) -> None:
    reached = [
        run(
            PoolPlan(
                jobs=workload,
                warm_workers=workers,
                slots=slots,
                behaviour=Behaviour(dispatch_overhead_s=overhead_s),
            ),
            always(workers),
        ).attainment_percent
        for overhead_s in overheads_s
    ]
    assert reached == sorted(reached, reverse=True)


def test_a_job_costs_its_service_and_the_overhead_before_it() -> None:
    """One worker, half a second before each job of 1 s: starts at 0.5, 2.0 and 3.5 s, and again at 10.5 s."""
    script = always(1)
    behaviour = Behaviour(dispatch_overhead_s=0.5)
    plan = PoolPlan(jobs=jobs((0, 1), (0, 1), (0, 1), (10, 1)), warm_workers=1, behaviour=behaviour)
    result = run(plan, script)
    assert (result.pickup_p50_s, result.pickup_max_s) == (0.5, 3.5)
    assert result.ended_s == 11.5
    assert result.work_hours * 3600 == pytest.approx(4.0)  # what is measured of service leaves the overhead out
    assert sum(seen.service_sum_s for seen in script.seen) == pytest.approx(4.0)


def test_a_job_that_finds_an_idle_worker_waits_for_the_overhead() -> None:
    script = always(1)
    behaviour = Behaviour(dispatch_overhead_s=0.5)
    result = run(PoolPlan(jobs=jobs((10, 1), (20, 1)), warm_workers=1, behaviour=behaviour), script)
    assert (result.pickup_p50_s, result.pickup_max_s, result.ended_s) == (0.5, 0.5, 21.5)
    assert {seen.pickup_max_s for seen in script.seen} == {None, 0.5}


def test_an_exit_takes_time_that_is_paid() -> None:
    plan = PoolPlan(jobs=jobs((0, 3), (60, 1)), warm_workers=2, start_up_s=0.0, behaviour=Behaviour(exit=exactly(1.5)))
    result = run(plan, by_time((0, 2), (5, 0), (20, 1)))
    assert result.worker_hours * 3600 == pytest.approx(2 * 6.5 + (61 - 20))
    assert result.kills == 0


def test_a_busy_worker_takes_its_time_to_exit_after_its_job() -> None:
    plan = PoolPlan(jobs=jobs((0, 8), (60, 1)), warm_workers=1, start_up_s=0.0, behaviour=Behaviour(exit=exactly(1.5)))
    result = run(plan, by_time((0, 1), (5, 0), (20, 1)))
    assert result.worker_hours * 3600 == pytest.approx(9.5 + (61 - 20))


def test_a_deadline_that_passes_while_a_worker_exits_is_no_kill() -> None:
    plan = PoolPlan(
        jobs=jobs((0, 8), (60, 1)), warm_workers=1, drain_deadline_s=5.0, behaviour=Behaviour(exit=exactly(9.0))
    )
    result = run(plan, by_time((0, 1), (5, 0), (20, 1)))  # its job ends at 8 s, its time at 10 s
    assert (result.kills, result.unserved_jobs, result.spawns) == (0, 0, 2)
    assert result.worker_hours * 3600 == pytest.approx(10 + (61 - 20))


def test_the_queue_is_seen_as_it_was_and_the_workers_as_they_are() -> None:
    """Jobs at 3.5 s and 4.5 s, seen at 5 s as of 4 s; the worker that took the first is seen busy."""
    script = always(1)
    plan = PoolPlan(jobs=jobs((3.5, 2), (4.5, 2)), warm_workers=1, behaviour=Behaviour(sample_lag=exactly(1.0)))
    run(plan, script, begins_at_s=1000.0)
    second, third = script.seen[1:3]
    assert (second.at_s, second.arrived, second.waiting, second.busy, script.now_s[1]) == (1004.0, 1, 0, 1, 1005.0)
    assert (third.at_s, third.arrived, third.busy) == (1009.0, 1, 0)
    assert sum(seen.arrived for seen in script.seen) == 2


def test_workers_may_be_seen_later_than_the_queue() -> None:
    script = always(1)
    behaviour = Behaviour(start_up=exactly(3.0), worker_lag=exactly(2.5))
    run(PoolPlan(jobs=jobs((4.9, 2)), behaviour=behaviour), script)
    assert [(seen.workers, seen.starting, seen.arrived) for seen in script.seen[:3]] == [
        (0, 0, 0),
        (1, 1, 1),  # as of 2.5 s; it has been ready since 3 s
        (1, 0, 0),
    ]


def test_what_is_seen_during_an_outage_of_the_control_plane_is_not_lost() -> None:
    from headway.simulate.engine.faults import Stretch

    script = always(2)
    workload = jobs(*((float(number), 1.0) for number in range(30)))
    run(
        PoolPlan(jobs=workload, behaviour=Behaviour(sample_lag=exactly(0.7))),
        script,
        control_outages=(Stretch(from_s=10.0, until_s=20.0),),
    )
    assert sum(seen.arrived for seen in script.seen) == sum(seen.started for seen in script.seen) == 30


@given(workloads, st.floats(0, 4), st.floats(0, 4), st.floats(0, 1), st.floats(0, 1))
def test_whatever_is_late_no_job_is_lost_or_counted_twice(
    workload: Jobs, queue_s: float, workers_s: float, overhead_s: float, exit_s: float
) -> None:
    behaviour = Behaviour(
        start_up=Spread(p50_s=1.0, p95_s=3.0),
        exit=Spread(p50_s=exit_s, p95_s=2 * exit_s),
        dispatch_overhead_s=overhead_s,
        sample_lag=Spread(p50_s=queue_s, p95_s=2 * queue_s),
        worker_lag=exactly(workers_s),
        evaluation_delay=Spread(p50_s=0.1, p95_s=1.0),
        apply_delay=Spread(p50_s=0.2, p95_s=0.9),
        wake_delay=Spread(p50_s=0.8, p95_s=1.4),
    )
    script = Script(lambda seen: min(4, seen.waiting + seen.busy))
    plan = PoolPlan(jobs=workload, behaviour=behaviour, is_live=True)
    result = run(plan, script, behaviour=behaviour, begins_at_s=1_000_002.0, goes_on_s=60.0)
    assert result.unserved_jobs == 0
    assert sum(seen.arrived for seen in script.seen) == sum(seen.started for seen in script.seen) == len(workload)
    assert all(seen.workers == seen.busy + seen.idle + seen.starting for seen in script.seen)
    assert all(earlier.at_s <= later.at_s for earlier, later in zip(script.seen, script.seen[1:], strict=False))


def test_ticks_begin_at_their_phase() -> None:
    script = always(1)
    run(PoolPlan(jobs=jobs((0, 12))), script, tick_phase_s=1.25)
    assert [seen.at_s for seen in script.seen] == [1.25, 6.25, 11.25, 16.25]


@pytest.mark.parametrize("phase_s", [-1.0, 5.0, math.nan])
def test_a_phase_beyond_its_tick_is_refused(phase_s: float) -> None:
    with pytest.raises(Invalid, match="tick_phase_s"):
        Rehearsal(tick_phase_s=phase_s)


def test_evaluations_begin_late_and_never_a_tick_late() -> None:
    script = always(1)
    behaviour = Behaviour(evaluation_delay=Spread(p50_s=0.2, p95_s=2.0))
    run(PoolPlan(jobs=jobs((0, 600))), script, behaviour=behaviour)
    late_s = [seen.at_s - 5.0 * number for number, seen in enumerate(script.seen)]
    assert 0 < min(late_s) < 0.2 < max(late_s) <= 2.5
    assert sorted(late_s)[len(late_s) // 2] == pytest.approx(0.2, rel=0.5)


def test_workers_are_spawned_some_time_after_the_decision() -> None:
    result = run(PoolPlan(jobs=jobs((0, 1)), start_up_s=2.0), always(1), behaviour=Behaviour(apply_delay=exactly(0.4)))
    assert result.pickup_max_s == pytest.approx(2.4)
    assert result.worker_hours * 3600 == pytest.approx(3.0)


def test_a_pool_at_zero_wakes_between_two_ticks_and_no_other_pool_is_evaluated() -> None:
    asleep, awake = Script(lambda seen: seen.waiting and 1), always(1)
    plans = [PoolPlan(jobs=jobs((6.0, 1.0)), name="asleep"), PoolPlan(jobs=jobs((0, 8.0)), name="awake")]
    rehearsal = Rehearsal(behaviour=Behaviour(wake_delay=exactly(0.8)))
    results = simulate(plans, [asleep, awake], rehearsal=rehearsal)
    assert [seen.at_s for seen in asleep.seen] == pytest.approx([0.0, 5.0, 6.8, 10.0])
    assert [seen.at_s for seen in awake.seen] == [0.0, 5.0, 10.0]
    assert results[0].pickup_max_s == pytest.approx(0.8 + 2.0)


def test_who_wakes_has_seen_the_job_that_wakes_it() -> None:
    """Samples are older than the wake takes; the one that wakes is not."""
    script = Script(lambda seen: min(1, seen.waiting))
    behaviour = Behaviour(wake_delay=exactly(0.5), sample_lag=exactly(3.0))
    simulate(
        [PoolPlan(jobs=jobs((11.0, 60.0)), behaviour=behaviour)], [script], rehearsal=Rehearsal(behaviour=behaviour)
    )
    woken = script.seen[script.now_s.index(11.5)]
    assert (woken.at_s, woken.waiting) == (11.0, 1)


@pytest.mark.parametrize(
    ("at_s", "phase_s", "apply_s", "ticks_s"),
    [
        (0.2, 4.0, 0.1, [0.7, 4.0]),  # before the first tick
        (6.0, 2.0, 0.1, [2.0, 6.5, 7.0]),  # shortly before one
        (6.4, 2.0, 1.0, [2.0, 6.9, 7.0]),  # the tick finds done what the wake has decided
        (6.6, 2.0, 0.1, [2.0, 7.0]),  # a tick is sooner
    ],
)
def test_a_pool_wakes_as_soon_as_that_takes_wherever_the_ticks_are(
    at_s: float, phase_s: float, apply_s: float, ticks_s: list[float]
) -> None:
    script = Script(lambda seen: 1 if seen.waiting or seen.workers else 0)
    behaviour = Behaviour(wake_delay=exactly(0.5), apply_delay=exactly(apply_s))
    plan = PoolPlan(jobs=jobs((at_s, 20.0)), is_live=True)
    run(plan, script, behaviour=behaviour, tick_phase_s=phase_s)
    assert script.now_s[: len(ticks_s)] == pytest.approx(ticks_s)
    assert script.seen[len(ticks_s) - 1].workers == (len(ticks_s) > 2 or phase_s == 4.0)


def test_who_does_not_want_to_wake_is_evaluated_once_a_second_at_most() -> None:
    script = by_time((0, 0), (30, 1))
    run(PoolPlan(jobs=jobs((11.0, 1.0))), script, behaviour=Behaviour(wake_delay=exactly(0.5)))
    at_s = [seen.at_s for seen in script.seen]
    assert {11.5, 12.5, 13.5, 15.0, 16.0} <= set(at_s)
    wakes_s = [each_s for each_s in at_s if each_s % 5.0]
    assert min(later - earlier for earlier, later in itertools.pairwise(wakes_s)) >= 1.0


def test_starting_workers_leave_first_where_that_is_so_live() -> None:
    def left(*, is_live: bool) -> tuple[int, int, int]:
        script = by_time((0, 2), (5, 3), (10, 2))
        plan = PoolPlan(jobs=jobs((0, 60)), start_up_s=12.0, warm_workers=2, is_live=is_live)
        run(plan, script)
        seen = script.seen[3]
        return seen.busy, seen.idle, seen.starting

    assert left(is_live=False) == (1, 0, 1)
    assert left(is_live=True) == (1, 1, 0)


def test_jobs_of_leaving_workers_are_in_flight_where_that_is_seen() -> None:
    script = by_time((0, 2), (5, 1))
    run(PoolPlan(jobs=jobs((0, 60), (0, 60)), warm_workers=2, is_live=True), script)
    assert [(seen.workers, seen.in_flight) for seen in script.seen[1:3]] == [(2, 2), (1, 2)]


def test_start_ups_are_learned_as_the_control_plane_learns_them() -> None:
    """It begins with what is known, and the newest start counts 0.3."""
    for known_s, behaviour in (
        (6.0, Behaviour(start_up=exactly(1.0), start_up_of_late_s=6.0)),
        (1.0, Behaviour(start_up=exactly(1.0))),
    ):
        script = by_time((0, 1), (5, 2))
        run(PoolPlan(jobs=jobs((0, 30)), behaviour=behaviour, is_live=True), script, seed=3)
        known = [seen.start_up_s for seen in script.seen]
        assert known[:3] == pytest.approx([known_s, 0.7 * known_s + 0.3, 0.7 * (0.7 * known_s + 0.3) + 0.3])


def test_workers_are_paid_until_they_have_left_where_that_is_asked() -> None:
    plan = PoolPlan(jobs=jobs((0, 3)), warm_workers=1)
    script = by_time((0, 1), (20, 0))
    assert run(plan, by_time((0, 1), (20, 0))).worker_hours * 3600 == pytest.approx(3.0)
    result = run(plan, script, goes_on_s=60.0)
    assert result.worker_hours * 3600 == pytest.approx(20.0)
    assert result.ended_s == 3.0
    assert script.seen[-1].at_s == 65.0


LIVE = Behaviour(
    start_up=Spread(p50_s=1.3, p95_s=2.2),
    exit=Spread(p50_s=0.7, p95_s=1.3),
    dispatch_overhead_s=0.01,
    sample_lag=Spread(p50_s=0.7, p95_s=1.1),
    worker_lag=Spread(p50_s=0.1, p95_s=0.3),
    evaluation_delay=Spread(p50_s=0.02, p95_s=0.1),
    apply_delay=Spread(p50_s=0.15, p95_s=0.4),
    wake_delay=Spread(p50_s=0.9, p95_s=1.3),
)


@given(workloads, st.integers(0, 99), st.floats(0, 4.99))
def test_the_same_seed_and_phase_give_the_same_rehearsal(workload: Jobs, seed: int, phase_s: float) -> None:
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_max=20)
    setting = Setting(behaviour=LIVE, seed=seed, tick_phase_s=phase_s)
    first, second = (rehearse(workload, profile, setting, begins_at_s=1_760_000_003.0) for _ in range(2))
    assert first == second
    assert first.unserved_jobs == 0


def test_what_the_live_model_adds_is_paid() -> None:
    """Exits, lags and delays cost worker-seconds; the plain model has none of them."""
    chance = [(number * 3.7 % 600, 0.2 + number % 7) for number in range(300)]
    workload = jobs(*sorted(chance))
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_max=50)
    plain, live = (
        rehearse(workload, profile, Setting(behaviour=behaviour, start_up_s=1.3, goes_on_s=60.0))
        for behaviour in (None, LIVE)
    )
    assert live.worker_hours > plain.worker_hours
    assert live.attainment_percent > 95


def test_a_burst_worker_that_exits_slowly_takes_no_job_meanwhile() -> None:
    script = Script(lambda seen: Wish(target_workers=1, burst_workers=1) if seen.at_s == 0 else 0)
    plan = PoolPlan(jobs=jobs((0, 1), (3.5, 1), (60, 1)), start_up_s=2.0, behaviour=Behaviour(exit=exactly(2.0)))
    result = run(plan, script, behaviour=Behaviour(wake_delay=exactly(1e9)), objective_s=10.0)
    assert result.unserved_jobs == 2  # it was done at 3 s and gone at 5 s
    assert result.spawns == 1
