"""Named loads: repeatable, of the size that their name says, and measured as a real queue library would report them."""

from itertools import pairwise

import pytest

from headway.errors import Invalid
from headway.simulate.controller import Observation
from headway.simulate.engine.simulated_pool import RunningPool
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.workloads.jobs import Jobs
from headway.simulate.workloads.loads import BURST_AT_S, LOADS


@pytest.mark.parametrize("name", LOADS)
def test_the_same_load_is_the_same_jobs_and_another_seed_is_as_many(name: str) -> None:
    first, again, other = LOADS[name].jobs(), LOADS[name].jobs(), LOADS[name].jobs(seed=2)
    assert (first.at_s, first.service_s) == (again.at_s, again.service_s)
    assert all(earlier <= later for earlier, later in pairwise(first.at_s))
    assert len(other) == pytest.approx(len(first), rel=0.02)


@pytest.mark.parametrize(
    ("name", "jobs", "busy_workers", "for_s"),
    [
        ("blips_and_blocks", 72_480, 1.5, 14_400.0),  # 5/s × 0.1 s + 40 × 30 s / 1200 s
        ("square_wave", 72_000, 20.0, 3600.0),  # 40/s × 1 s, half of the time
        ("square_wave_15", 72_000, 20.0, 3600.0),
        ("square_wave_40", 72_000, 20.0, 3600.0),
        ("metronome", 333, 0.308, 21_600.0),  # 20 s / 65 s
        ("giants", 776, 2.156, 216_000.0),  # 194 × 4 × 600 s / 60 h
        ("poison", 616, 5.133, 7200.0),  # 88 × 7 × 60 s / 2 h
        ("instant_backlog", 20_000, 0.2, 3600.0),  # 36 ms each
        ("dispatch", 108_000, 1.8, 1800.0),  # 60/s × 30 ms
        ("cron_burst", 14_400, 0.0333, 86_400.0),  # 288 × 50 × 0.2 s / 24 h
        ("over_ceiling", 290_000, 0.644, 4500.0),  # 60/s × 10 ms + 20,000 × 10 ms / 75 min
    ],
)
def test_a_load_is_as_great_as_its_parts(name: str, jobs: int, busy_workers: float, for_s: float) -> None:
    drawn = LOADS[name].jobs()
    assert len(drawn) == pytest.approx(jobs, rel=0.02)
    assert sum(drawn.service_s) / for_s == pytest.approx(busy_workers, rel=0.02)


def test_every_load_is_listed_here() -> None:
    assert len(LOADS) == 11


def test_the_burst_beyond_the_ceiling_comes_after_a_quarter_of_an_hour() -> None:
    drawn = LOADS["over_ceiling"].jobs()
    at_once = drawn.at_s.count(BURST_AT_S)
    assert at_once == 20_000
    left_s = at_once * 0.01 - 10.0 * LOADS["over_ceiling"].workers_max
    assert left_s > 0  # 200 s of work, of which all workers do 40 s within the objective


# --- dispatch: what a worker is busy for and no measurement shows ----------------------------------------------


def seen_at(now_s: float, jobs: Jobs, *, slots: int = 1) -> Observation:
    pool = RunningPool(PoolPlan(jobs=jobs, warm_workers=2, slots=slots))
    pool.advance(now_s)
    return pool.observe(now_s, at_s=now_s)


@pytest.mark.parametrize(
    ("now_s", "busy", "idle"),
    [
        (0.5, 1, 1),  # its second of service
        (1.5, 0, 2),  # the four of dispatch: no event shows them
        (6.0, 0, 2),
    ],
)
@pytest.mark.parametrize("slots", [1, 2])
def test_dispatch_keeps_a_worker_that_is_reported_as_idle(now_s: float, busy: int, idle: int, slots: int) -> None:
    seen = seen_at(now_s, Jobs(at_s=[0.0], service_s=[5.0], dispatch_s=4.0), slots=slots)
    assert (seen.busy, seen.idle, seen.workers) == (busy, idle, 2)
    assert seen.in_flight == busy


def test_dispatch_is_measured_once_a_job_has_ended() -> None:
    jobs = Jobs(at_s=[0.0], service_s=[5.0], dispatch_s=4.0)
    assert [seen_at(now_s, jobs).dispatch_overhead_s for now_s in (0.0, 4.9, 5.1)] == [None, None, 4.0]
    assert seen_at(9.0, Jobs(at_s=[0.0], service_s=[5.0])).dispatch_overhead_s is None


def test_the_next_job_waits_for_the_dispatch_of_the_one_before() -> None:
    jobs = Jobs(at_s=[0.0, 0.0, 0.0], service_s=[5.0, 5.0, 5.0], dispatch_s=4.0)
    assert seen_at(4.0, jobs).waiting == 1
    seen = seen_at(6.0, jobs)
    assert (seen.waiting, seen.pickup_max_s, seen.finished) == (0, 5.0, 2)
    assert seen.service_sum_s == pytest.approx(2.0)  # 2 × 5 s − 2 × 4 s


def test_dispatch_is_a_part_of_each_service_time() -> None:
    with pytest.raises(Invalid, match=r"dispatch_s=2\.0 must be at least 0 and at most each service time"):
        Jobs(at_s=[0.0], service_s=[1.0], dispatch_s=2.0)
