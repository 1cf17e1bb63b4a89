"""Law 2. Units cancel: ``rate_per_s × service_s`` is busy slots; ``backlog / service_s`` is nothing.

So whoever counts in minutes instead of seconds, or in another currency, must come to the same numbers of workers.
"""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.planning import queueing
from headway.scaling.policy import limits
from headway.scaling.strategies.shared import backlog_drain, steady_state
from scaling.laws.drawn import RATES, SERVICE_S
from support.pools import ground_of, profile, queue, view

CLOCKS = st.sampled_from([1 / 60, 0.001, 4.0, 1_000.0])
"""How many of the other clock's seconds are one of ours."""


@given(rate_per_s=RATES, service_s=SERVICE_S, clock=CLOCKS)
def test_steady_state_is_the_same_by_every_clock(rate_per_s: float, service_s: float, clock: float) -> None:
    ours = queue(arrival_rate_per_s=rate_per_s, service_time_s=max(service_s, 1.0))
    theirs = queue(arrival_rate_per_s=rate_per_s / clock, service_time_s=max(service_s, 1.0) * clock)
    slots = steady_state(ours, view(ours)).slots
    assert slots == pytest.approx(rate_per_s * max(service_s, 1.0))
    assert steady_state(theirs, view(theirs)).slots == pytest.approx(slots)


@given(
    load=st.floats(0.01, 200), spare=st.integers(1, 50), service_s=SERVICE_S, target_s=st.floats(0, 60), clock=CLOCKS
)
def test_queueing_is_the_same_by_every_clock(
    load: float, spare: int, service_s: float, target_s: float, clock: float
) -> None:
    slots = math.ceil(load) + spare
    exceeds = queueing.wait_exceeds_probability(slots, load, service_s, target_s)
    assert queueing.wait_exceeds_probability(slots, load, service_s * clock, target_s * clock) == pytest.approx(exceeds)
    wait_s = queueing.mean_wait_s(slots, load, service_s)
    assert queueing.mean_wait_s(slots, load, service_s * clock) == pytest.approx(wait_s * clock)


@given(rate_per_s=st.floats(0.1, 100), service_s=st.floats(1, 60), clock=st.sampled_from([4.0, 60.0]))
def test_a_rate_limit_is_the_same_by_every_clock(rate_per_s: float, service_s: float, clock: float) -> None:
    def ceiling(scale: float) -> int:
        seen = view(queue(service_time_s=service_s * scale), profile=profile(rate_limit_per_s=rate_per_s / scale))
        ground = ground_of(seen)
        return limits.rate_limit(10_000_000, ground)

    assert abs(ceiling(clock) - ceiling(1.0)) <= (0 if (rate_per_s * service_s) % 1 > 1e-6 else 1)
    assert ceiling(1.0) == max(1, math.floor(rate_per_s * service_s + limits.ROUNDING))


@given(
    price=st.floats(0.01, 10), hourly=st.floats(1, 1_000), daily=st.floats(1, 1_000), currency=st.sampled_from([2, 64])
)
def test_a_budget_is_the_same_in_every_currency(price: float, hourly: float, daily: float, currency: int) -> None:
    def payable(scale: float) -> int:
        paid = profile(cost_per_worker_hour=price * scale, budget_per_hour=hourly * scale, budget_per_day=daily * scale)
        ground = ground_of(view(profile=paid))
        return limits.budget(1_000_000, ground)

    assert payable(float(currency)) == payable(1.0)  # powers of two: not a bit is lost


@given(waiting=st.integers(1, 5_000), age_s=st.floats(0, 100), service_s=st.floats(0.01, 60), slower=st.floats(1, 10))
def test_slower_jobs_never_need_fewer_slots(waiting: int, age_s: float, service_s: float, slower: float) -> None:
    """The predecessor divided the backlog by the job time once the objective was missed."""
    jobs = queue(waiting_jobs=waiting, oldest_age_s=age_s, service_time_s=service_s)
    slow = replace(jobs, service_time_s=service_s * slower)
    for rule in (steady_state, backlog_drain):
        assert rule(slow, view(slow)).slots >= rule(jobs, view(jobs)).slots * (1 - 1e-9)
