"""Starts that take longer than the mean: nine beside each other, after a lone one."""

import pytest

from headway.scaling.demands.trust import slow_start_s
from headway.scaling.metrics.behaviour import spread_of
from headway.scaling.model import Arrivals, Objective
from headway.scaling.policy.activation import wait_s
from headway.scaling.reading.pool_times import PoolTimes
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.strategies.hybrid import HYBRID
from headway.store.hosts.start_timings import folded
from support.pools import NOW_S, profile, queue, view

BESIDE_S = [1.0 + 0.35 * number for number in range(9)]
"""Nine that share two cores; the last is ready after 3.8 s."""
LONE_S = 0.6
OBJECTIVE = Objective(target_s=10.0, percentile=95.0, window_s=120.0)


def drained(*, age_s: float, start_ups_s: list[float]) -> float:
    """The slots for 13 jobs of 2 s that have waited for ``age_s`` beside one worker, with what was learned."""
    spread = spread_of(start_ups_s)
    assert spread is not None
    pool = view(
        queue(
            waiting_jobs=13,
            in_flight_jobs=1,
            oldest_age_s=age_s,
            service_time_s=2.0,
            arrivals=(Arrivals(jobs=14, ended_ago_s=0.0),),
        ),
        profile=profile(objective=OBJECTIVE, workers_max=24),
        running_workers=1,
        start_up_s=folded(start_ups_s).mean,
        start_up_p95_s=spread.p95_s,
    )
    advice = HYBRID.advise(pooled(pool.queues), pool, {}, NOW_S)
    return next(demand.slots for demand in advice.demands if demand.name == "backlog_drain")


def test_a_lone_start_does_not_put_off_the_workers_that_a_batch_needs() -> None:
    """At the next evaluation the jobs have waited for 6.35 s: who takes 3.8 s from then on is late, after 10.15 s."""
    start_ups_s = [*BESIDE_S, LONE_S] * 3
    assert folded(start_ups_s).mean < 2.4
    assert drained(age_s=1.35, start_ups_s=start_ups_s) > 1
    assert drained(age_s=0.6, start_ups_s=start_ups_s) == 1  # then 9.4 s


@pytest.mark.parametrize(
    ("percentile", "start_up_s", "p95_s", "slow_s"),
    [
        (99.0, 2.0, None, 1.0),  # not measured: half as long again
        (99.0, 2.0, 2.0, 1.0),  # nothing below that
        (99.0, 2.0, 3.5, 1.5),
        (95.0, 2.0, 3.5, 0.975 * 1.5),
        (50.0, 2.0, 3.5, 0.226 * 1.5),
        (1.0, 2.0, 3.5, 0.004),
        (99.9, 2.0, 3.5, 1.5),
        (99.0, 2.0, 30.0, 2.0),  # one cold start is no rule
        (99.0, 2.0, 1.0, 1.0),  # the newest are slower than those before
        (99.0, 0.0, 0.0, 0.0),
    ],
)
def test_a_start_may_be_slow_and_its_job_still_in_time(
    percentile: float, start_up_s: float, p95_s: float | None, slow_s: float
) -> None:
    pool = profile(objective=Objective(target_s=10.0, percentile=percentile))
    found_s = slow_start_s(pool, PoolTimes(known_start_up_s=start_up_s, start_up_p95_s=p95_s))
    assert found_s == pytest.approx(slow_s, rel=2e-3, abs=5e-3)


def test_a_pool_is_held_at_zero_no_longer_than_a_slow_start_lets_it() -> None:
    pool = profile(objective=OBJECTIVE)
    quick_s, slow_s = (
        wait_s(pool, pool.queues[0], PoolTimes(known_start_up_s=1.0, start_up_p95_s=p95_s)) for p95_s in (1.0, 1.9)
    )
    assert quick_s - slow_s == pytest.approx(0.975 * 0.9 - 0.325, abs=2e-3)
