"""The rehearsal: first come, first served, on workers that start, run and leave; a controller is called every tick."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.simulate.controller import Controller
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.replay import RecordedJob
from headway.simulate.studies.fixed_pool import pickup_times
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import Script, Wish, always, by_time, jobs

TICK_S = 5.0


def run(plan: PoolPlan, controller: object, **rehearsal: float) -> Result:
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal(**rehearsal))  # type: ignore[list-item,arg-type]
    return result


def erlang_c(offered: float, servers: int) -> float:
    """The part of the arrivals that wait in M/M/c, by Erlang's recursion for B."""
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


workloads = st.lists(
    st.tuples(st.floats(0, 200).map(lambda at_s: round(at_s, 2)), st.floats(0.01, 40).map(lambda s: round(s, 2))),
    min_size=1,
    max_size=40,
).map(lambda pairs: jobs(*sorted(pairs)))


def test_a_queue_with_fixed_gaps_and_service_times_is_what_the_sum_says() -> None:
    """A job each second for ten seconds, 2 s of work each, one worker: job n waits n × (2 − 1) seconds."""
    result = run(PoolPlan(jobs=jobs(*((float(n), 2.0) for n in range(10))), warm_workers=1), always(1), objective_s=4.0)
    assert result.attainment_percent == 50.0  # waits 0 … 9, of which 0 … 4 are in time
    assert (result.pickup_p50_s, result.pickup_max_s) == (4.0, 9.0)
    assert result.ended_s == 20.0
    assert result.worker_hours == pytest.approx(20 / 3600)
    assert result.work_multiple == pytest.approx(1.0)


@given(workloads, st.integers(1, 5))
def test_a_warm_pool_of_constant_size_serves_first_come_first_served(workload: Jobs, workers: int) -> None:
    result = run(PoolPlan(jobs=workload, warm_workers=workers), always(workers))
    served = [RecordedJob(at_s=at_s, service_s=s) for at_s, s in zip(workload.at_s, workload.service_s, strict=True)]
    waits, ends_at_s = pickup_times(served, workers=workers)
    assert result.pickup_max_s == pytest.approx(max(waits), abs=1e-6)
    assert result.ended_s == pytest.approx(max(ends_at_s, workload.at_s[-1]))
    assert result.unserved_jobs == 0


@given(
    workloads, st.lists(st.integers(0, 4), min_size=1, max_size=20), st.sampled_from([0.0, 2.0, 8.0]), st.integers(1, 3)
)
def test_whatever_the_targets_no_job_is_lost_and_none_is_served_twice(
    workload: Jobs, targets: list[int], start_up_s: float, slots: int
) -> None:
    script = Script(lambda seen: targets[int(seen.at_s / TICK_S) % len(targets)] or (1 if seen.at_s > 300 else 0))
    result = run(PoolPlan(jobs=workload, start_up_s=start_up_s, slots=slots), script)
    assert result.unserved_jobs == 0
    assert sum(seen.arrived for seen in script.seen) == sum(seen.started for seen in script.seen) == len(workload)
    assert sum(seen.finished for seen in script.seen) == len(workload)
    assert sum(seen.service_sum_s for seen in script.seen) == pytest.approx(sum(workload.service_s))
    assert result.worker_hours * slots >= result.work_hours - 1e-9
    for seen in script.seen:
        assert seen.workers == seen.busy + seen.idle + seen.starting


@given(workloads, st.integers(0, 99))
def test_the_same_seed_gives_the_same_rehearsal(workload: Jobs, seed: int) -> None:
    plan = PoolPlan(jobs=workload, start_up_s=3.0, start_up_spread=0.5)
    first, second = (run(plan, Script(lambda seen: seen.waiting + seen.busy), seed=seed) for _ in range(2))
    assert first == second


def test_waits_agree_with_erlang_c() -> None:
    """M/M/c at load 0.8: part that waits C, mean wait of those that do 1 / (c/S − λ)."""
    chance, rate_per_s, service_s, workers = Random(4), 0.8, 4.0, 4
    at_s, now_s = [], 0.0
    for _ in range(60_000):
        now_s += chance.expovariate(rate_per_s)
        at_s.append(now_s)
    work_s = [chance.expovariate(1 / service_s) for _ in at_s]
    waits = erlang_c(rate_per_s * service_s, workers)
    for objective_s in (0.0, 4.0):
        result = run(
            PoolPlan(jobs=Jobs(at_s=at_s, service_s=work_s), warm_workers=workers),
            always(workers),
            objective_s=objective_s,
        )
        late = waits * 2.718281828 ** (-(workers / service_s - rate_per_s) * objective_s)
        assert 100 - result.attainment_percent == pytest.approx(100 * late, rel=0.06)


def test_the_controller_is_called_each_tick_with_the_counts_since_the_last() -> None:
    script = by_time((0, 1))
    run(PoolPlan(jobs=jobs((1, 4), (4, 2), (12, 1))), script, begins_at_s=1000.0)  # ready at 2 s, free at 6 and 8 s
    assert [seen.at_s for seen in script.seen] == [1000.0, 1005.0, 1010.0, 1015.0]
    first, second, third, last = script.seen
    assert (first.arrived, first.workers, first.pickup_max_s) == (0, 0, None)
    assert (second.arrived, second.started, second.finished, second.waiting, second.busy) == (2, 1, 0, 1, 1)
    assert (second.oldest_age_s, second.pickup_max_s) == (1.0, 1.0)
    assert (third.started, third.finished, third.service_sum_s, third.pickup_max_s) == (1, 2, 6.0, 2.0)
    assert (last.arrived, last.started, last.finished, last.busy, last.idle) == (1, 1, 1, 0, 1)


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (3, (2, 0, 1)),  # the idle one leaves
        (2, (2, 0, 0)),  # then the one that starts
        (1, (1, 0, 0)),  # then a busy one, which is no longer counted while it finishes
    ],
)
def test_idle_workers_leave_first_then_starting_ones_then_busy_ones(target: int, left: tuple[int, int, int]) -> None:
    script = by_time((0, 3), (5, 4), (10, target))
    run(PoolPlan(jobs=jobs((0, 60), (0, 60)), start_up_s=12.0, warm_workers=3), script)
    assert [(seen.busy, seen.idle, seen.starting) for seen in script.seen[2:4]] == [(2, 1, 1), left]


def test_a_busy_worker_asked_to_leave_ends_its_job_is_paid_for_it_and_takes_no_other() -> None:
    plan = PoolPlan(jobs=jobs((0, 12), (1, 3), (30, 1)), warm_workers=1)
    result = run(plan, by_time((0, 1), (5, 0), (25, 1)))
    assert result.kills == 0
    assert result.spawns == 2
    assert result.pickup_max_s == 26.0  # the second job waits for the worker of 25 s, ready at 27 s
    assert result.worker_hours * 3600 == pytest.approx(12 + (31 - 25))


def test_a_worker_that_exceeds_its_drain_deadline_is_killed_and_its_job_done_again() -> None:
    plan = PoolPlan(jobs=jobs((0, 12)), warm_workers=1, drain_deadline_s=4.0)
    script = by_time((0, 1), (5, 0), (20, 1))
    result = run(plan, script)
    assert (result.kills, result.spawns, result.unserved_jobs) == (1, 2, 0)
    assert result.ended_s == 20 + 2 + 12
    assert result.pickup_max_s == 0.0  # its first pickup is what counts
    assert sum(seen.finished for seen in script.seen) == 1


def test_a_burst_worker_leaves_between_ticks_once_the_queue_is_empty() -> None:
    script = Script(lambda seen: Wish(target_workers=3, burst_workers=2) if seen.at_s == 0 else seen.workers)
    result = run(PoolPlan(jobs=jobs((0, 4), (0, 5), (0, 1), (0, 6), (40, 1))), script)
    # Ready at 2 s. One job each until 6, 7 and 3 s; the fourth from 3 s to 9 s. Whoever is base stays.
    assert [seen.workers for seen in script.seen][:3] == [0, 3, 1]
    assert result.spawns == 3


def test_start_up_and_draining_are_paid() -> None:
    plan = PoolPlan(jobs=jobs((0, 1), (60, 1)), start_up_s=8.0)
    result = run(plan, by_time((0, 2), (5, 0), (10, 1)))
    assert result.worker_hours * 3600 == pytest.approx(2 * 5 + (61 - 10))  # two leave while they start


def test_a_worker_that_leaves_after_the_last_job_is_paid_no_longer_than_one_that_stays() -> None:
    """Who is paid until the last job ends must not pay for releasing a worker at the evaluation that follows."""
    plan = PoolPlan(jobs=jobs((0, 4), (0, 3)), start_up_s=3.0)  # both ready at 3 s, the last job ends at 7 s
    stays, leaves = run(plan, always(2)), run(plan, by_time((0, 2), (10, 0)))
    assert (leaves.ended_s, leaves.worker_hours * 3600) == (7.0, pytest.approx(2 * 7))
    assert leaves.worker_hours == stays.worker_hours
    early = run(plan, by_time((0, 2), (5, 0)))  # both have a job, and go as soon as each has ended
    assert early.worker_hours * 3600 == pytest.approx(7 + 6)


def test_a_worker_with_slots_takes_that_many_jobs_at_once() -> None:
    result = run(PoolPlan(jobs=jobs((0, 4), (0, 4), (0, 4)), warm_workers=1, slots=2), always(1))
    assert result.pickup_max_s == 4.0
    assert result.ended_s == 8.0


def test_the_target_never_exceeds_the_ceiling_of_the_plan() -> None:
    script = always(50)
    result = run(PoolPlan(jobs=jobs((0, 30)), workers_max=4), script)
    assert result.spawns == 4
    assert max(seen.workers for seen in script.seen) == 4


def test_start_up_times_vary_around_the_same_mean() -> None:
    workload = jobs((0.0, 1.0))
    plan = PoolPlan(jobs=workload, start_up_s=8.0, start_up_spread=0.6)
    waits = [run(plan, always(1), seed=seed).pickup_max_s or 0.0 for seed in range(400)]
    assert sum(waits) / len(waits) == pytest.approx(8.0, rel=0.1)
    assert max(waits) > 16.0 > 8.0 > min(waits)


def test_jobs_that_nobody_serves_end_the_rehearsal_a_day_after_the_last_came() -> None:
    result = run(PoolPlan(jobs=jobs((0, 1), (100, 1))), always(0))
    assert (result.unserved_jobs, result.attainment_percent) == (2, 0.0)
    assert result.ended_s == pytest.approx(100 + 86400, abs=5)


def test_a_change_of_the_targets_direction_is_a_flip() -> None:
    result = run(
        PoolPlan(jobs=jobs((0, 1), (33, 1))), by_time((0, 1), (5, 3), (10, 2), (15, 2), (20, 4), (25, 5), (30, 1))
    )
    assert result.flips == 3  # up, down at 10, up at 20, down at 30


def test_the_product_controller_serves_a_workload() -> None:
    workload = jobs(*((float(n), 1.0) for n in range(120)))
    result = run(PoolPlan(jobs=workload), Controller(target_s=10.0), objective_s=10.0)
    assert result.unserved_jobs == 0
    assert result.attainment_percent >= 99.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"at_s": [1.0, 0.5], "service_s": [1.0, 1.0]}, "not in order"),
        ({"at_s": [1.0], "service_s": []}, "1 arrivals and 0 service times"),
        ({"at_s": [-1.0], "service_s": [1.0]}, "before the start"),
        ({"at_s": [1.0], "service_s": [float("nan")]}, "not a number"),
    ],
)
def test_jobs_that_make_no_sense_are_refused(wrong: dict[str, list[float]], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Jobs(**wrong)


def test_a_plan_that_makes_no_sense_is_refused_with_all_that_is_wrong() -> None:
    with pytest.raises(Invalid) as refused:
        PoolPlan(jobs=jobs((0, 1)), slots=0, start_up_s=-1.0)
    assert len(refused.value.breaches) == 2
