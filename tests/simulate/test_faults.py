"""What goes wrong in a rehearsal, and what does not go wrong with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.model import Host
from headway.simulate.controller import Controller
from headway.simulate.engine.faults import Faults, HostOutage, Stretch
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, Stepping, simulate
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import Script, Wish, always, by_time, jobs
from support.hosts import any_host, costing

GIB = 1024**3


def run(plan: PoolPlan, controller: Stepping, **rehearsal: object) -> Result:
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal(**rehearsal))  # type: ignore[arg-type]
    return result


def host(name: str, *, cores: float, templates: tuple[str, ...] = ("simulated",)) -> Host:
    """Room for one worker a core."""
    kinds = costing(dict.fromkeys(templates, 1.0))
    return any_host(name, cpu_cores=cores, memory_bytes=64 * GIB, templates=kinds)


steady = jobs(*((float(n), 2.0) for n in range(100)))


def test_a_failed_job_is_done_again_until_it_is_given_up() -> None:
    faults = Faults(job_failure_fraction=1.0, attempts_max=3, retry_after_s=10.0)
    script = always(1)
    result = run(PoolPlan(jobs=jobs((0, 2)), warm_workers=1, faults=faults), script)
    assert (result.given_up_jobs, result.unserved_jobs) == (1, 0)
    assert result.ended_s == 2 + 10 + 2 + 10 + 2
    assert sum(seen.started for seen in script.seen) == sum(seen.finished for seen in script.seen) == 3
    assert sum(seen.arrived for seen in script.seen) == 3


def test_the_wait_of_a_job_is_that_of_its_first_attempt() -> None:
    faults = Faults(job_failure_fraction=1.0, attempts_max=2)
    result = run(PoolPlan(jobs=jobs((0, 2), (0, 2)), warm_workers=1, faults=faults), always(1))
    assert result.pickup_max_s == 2.0  # not the 4 s after which each is tried again


def test_some_attempts_fail_and_every_job_ends() -> None:
    faults = Faults(job_failure_fraction=0.3, attempts_max=50)
    script = always(4)
    result = run(PoolPlan(jobs=steady, warm_workers=4, faults=faults), script)
    attempts = sum(seen.finished for seen in script.seen)
    assert (result.given_up_jobs, result.unserved_jobs) == (0, 0)
    assert attempts == pytest.approx(100 / 0.7, rel=0.25)


@given(st.integers(0, 50), st.sampled_from([5.0, 30.0, 300.0]), st.sampled_from([0.0, 7.0]), st.integers(1, 3))
def test_workers_that_die_lose_no_job(seed: int, life_s: float, redeliver_after_s: float, slots: int) -> None:
    faults = Faults(worker_life_s=life_s, redeliver_after_s=redeliver_after_s)
    script = Script(lambda seen: 3)
    result = run(PoolPlan(jobs=steady, slots=slots, faults=faults), script, seed=seed)
    assert result.unserved_jobs == 0
    assert sum(seen.finished for seen in script.seen) == len(steady)  # what died never finished
    assert sum(seen.started for seen in script.seen) >= len(steady)
    assert result.spawns >= 3 + result.deaths - 3
    assert all(seen.workers == seen.busy + seen.idle + seen.starting for seen in script.seen)


def test_the_job_of_a_worker_that_died_comes_back_after_the_brokers_delay() -> None:
    faults = Faults(redeliver_after_s=20.0)
    plan = PoolPlan(jobs=jobs((0, 12)), start_up_s=0.0, drain_deadline_s=4.0, faults=faults)
    result = run(plan, by_time((0, 1), (5, 0), (10, 1)))
    assert result.kills == 1
    assert result.ended_s == 9 + 20 + 12  # killed at 9 s, given out again at 29 s


def test_a_crash_loop_backs_off_and_ends_with_its_cause() -> None:
    faults = Faults(crash_loops=(Stretch(from_s=0.0, until_s=60.0),), back_off_s=1.0)
    script = always(1)
    result = run(PoolPlan(jobs=jobs((0, 1)), start_up_s=2.0, faults=faults), script)
    # It comes up at 2, and after pauses of 1, 2, 4, 8, 16 and 32 s at 5, 9, 15, 25, 43 and 77 s.
    assert result.crashes == 6
    assert result.spawns == 7
    assert result.ended_s == 78.0
    assert max(seen.workers for seen in script.seen) == 1  # a loop of one worker is not a crowd


def test_metrics_that_lag_are_reported_with_their_age_and_none_is_lost() -> None:
    faults = Faults(metric_lag_s=10.0)
    script = always(2)
    run(PoolPlan(jobs=steady, faults=faults), script, begins_at_s=1000.0)
    late_s = [now_s - seen.at_s for seen, now_s in zip(script.seen, script.now_s, strict=True)]
    assert set(late_s) == {10.0}
    assert [seen.at_s for seen in script.seen] == [1000.0 + 5 * n for n in range(len(script.seen))]


def test_metrics_that_do_not_come_are_reported_once_more_and_then_all_at_once() -> None:
    faults = Faults(metric_losses=(Stretch(from_s=20.0, until_s=40.0),))
    script = always(2)
    run(PoolPlan(jobs=steady, faults=faults), script)
    assert [seen.at_s for seen in script.seen[:10]] == [0, 5, 10, 15, 15, 15, 15, 15, 40, 45]
    assert script.now_s[:10] == [5 * n for n in range(10)]
    assert script.seen[8].arrived == 25  # of 20, 25, 30, 35 and 40 s


def test_stale_metrics_hold_the_product_controller_above_nothing() -> None:
    """Thirty seconds without metrics while jobs go on coming: nobody takes that for an empty queue."""
    faults = Faults(metric_losses=(Stretch(from_s=60.0, until_s=90.0),))
    result = run(PoolPlan(jobs=jobs(*((n / 4, 2.0) for n in range(600))), faults=faults), Controller(target_s=10.0))
    assert result.unserved_jobs == 0
    during = [point for point in result.points if 65 <= point.at_s <= 90]
    before = max(point.target_workers for point in result.points if 40 <= point.at_s < 60)
    assert min(point.target_workers for point in during) >= before - 3


def test_while_nobody_decides_workers_go_on() -> None:
    script = Script(lambda seen: min(3, seen.waiting + seen.busy))
    outage = Stretch(from_s=30.0, until_s=60.0)
    result = run(PoolPlan(jobs=steady, start_up_s=0.0), script, control_outages=(outage,))
    assert [seen.at_s for seen in script.seen if 20 <= seen.at_s <= 70] == [20, 25, 60, 65, 70]
    assert next(seen.arrived for seen in script.seen if seen.at_s == 60) == 35  # since 25 s
    assert result.unserved_jobs == 0


def test_no_host_holds_more_than_its_room() -> None:
    hosts = (host("a", cores=2), host("b", cores=1))
    script = always(10)
    result = run(PoolPlan(jobs=steady), script, hosts=hosts)
    assert max(seen.workers for seen in script.seen) == 3
    assert result.unserved_jobs == 0


def test_a_worker_that_is_leaving_keeps_its_room() -> None:
    """One place: the long job's pool gives it up at 10 s, the other pool gets it when the job has ended."""
    plans = (
        PoolPlan(name="long", jobs=jobs((0, 40)), start_up_s=0.0),
        PoolPlan(name="other", jobs=jobs((8, 1)), start_up_s=0.0),
    )
    _, other = simulate(
        plans, (by_time((0, 1), (10, 0)), by_time((0, 0), (10, 1))), rehearsal=Rehearsal(hosts=(host("a", cores=1),))
    )
    assert other.pickup_max_s == 40.0 - 8.0


def test_the_pool_of_greater_priority_gets_the_scarce_room() -> None:
    plans = [PoolPlan(name=name, jobs=steady, priority=priority) for name, priority in (("low", 1), ("high", 200))]
    scripts = (always(4), always(4))
    simulate(plans, scripts, rehearsal=Rehearsal(hosts=(host("a", cores=5),)))
    low, high = (max(seen.workers for seen in script.seen) for script in scripts)
    assert (low, high) == (1, 4)


def test_a_pool_gets_workers_only_where_its_template_is() -> None:
    script = always(3)
    simulate(
        [PoolPlan(name="mail", template="mail", jobs=jobs((0, 1)), warm_workers=0)],
        [script],
        rehearsal=Rehearsal(hosts=(host("a", cores=8, templates=("other",)), host("b", cores=1, templates=("mail",)))),
    )
    assert max(seen.workers for seen in script.seen) == 1


def test_what_ran_on_a_host_that_went_down_is_done_again_elsewhere() -> None:
    hosts = (host("a", cores=1), host("b", cores=1))
    outage = HostOutage(host_id="a", stretch=Stretch(from_s=10.0, until_s=100.0))
    script = Script(lambda seen: 2)
    workload = jobs((0, 30), (0, 30))
    result = run(PoolPlan(jobs=workload, start_up_s=0.0), script, hosts=hosts, host_outages=(outage,))
    assert result.deaths == 1
    assert result.unserved_jobs == 0
    assert result.ended_s == 60.0  # one ends at 30 s; the other begins again there
    assert sum(seen.finished for seen in script.seen) == 2
    assert max(seen.workers for seen in script.seen if 10 <= seen.at_s < 60) == 1


def test_burst_workers_are_placed_apart_and_leave_by_themselves() -> None:
    script = Script(lambda seen: Wish(target_workers=3, burst_workers=2) if seen.at_s == 0 else Wish(target_workers=1))
    result = run(
        PoolPlan(jobs=jobs((0, 3), (0, 3), (0, 3), (20, 1)), start_up_s=0.0), script, hosts=(host("a", cores=9),)
    )
    assert [seen.workers for seen in script.seen[:2]] == [0, 1]
    assert result.spawns == 3


@given(st.integers(0, 30))
def test_pools_do_not_touch_each_other_where_there_is_room(seed: int) -> None:
    plans = [PoolPlan(name=name, jobs=steady, start_up_spread=0.4) for name in ("a", "b")]
    alone = [run(plan, Script(lambda seen: seen.waiting + seen.busy), seed=seed) for plan in plans]
    wishes = [Script(lambda seen: seen.waiting + seen.busy) for _ in plans]
    assert list(simulate(plans, wishes, rehearsal=Rehearsal(seed=seed))) == alone


def test_the_product_controller_lives_through_all_of_it() -> None:
    faults = Faults(
        job_failure_fraction=0.05,
        worker_life_s=200.0,
        crash_loops=(Stretch(from_s=120.0, until_s=150.0),),
        metric_lag_s=5.0,
        metric_losses=(Stretch(from_s=200.0, until_s=230.0),),
    )
    workload = Jobs(at_s=[n / 2 for n in range(1000)], service_s=[3.0] * 1000)
    plan = PoolPlan(jobs=workload, faults=faults, slots=2)
    result = run(
        plan,
        Controller(target_s=10.0, slots_per_worker=2),
        hosts=tuple(host(name, cores=8) for name in "abc"),
        host_outages=(HostOutage(host_id="b", stretch=Stretch(from_s=300.0, until_s=330.0)),),
        control_outages=(Stretch(from_s=400.0, until_s=420.0),),
        objective_s=10.0,
    )
    assert result.unserved_jobs == 0
    assert result.attainment_percent > 50.0


def test_faults_that_make_no_sense_are_refused_together() -> None:
    with pytest.raises(Invalid) as refused:
        Faults(job_failure_fraction=2.0, attempts_max=0, worker_life_s=0.0, metric_lag_s=-1.0)
    assert len(refused.value.breaches) == 4
    with pytest.raises(Invalid):
        Stretch(from_s=5.0, until_s=5.0)
