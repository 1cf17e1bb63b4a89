"""Law 1. Waiting longer, more backlog, slower jobs or more arrivals never lower a demand.

In particular not at the moment of breach, where the predecessor's demand fell by up to two hundred times.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Arrivals, Memory, QueueMetrics
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, by, views
from support.pools import NOW_S, profile, queue, view

FRESH_AGO_S = st.floats(0, 5)


def greatest(seen: PoolView, state: Mapping[str, Any], *, now_s: float = NOW_S) -> float:
    decision, _ = decide(seen, Memory(strategy_state=state), now_s=now_s)
    return max(demand.slots for demand in decision.demands)


def learned(seen: PoolView, ticks: int) -> Mapping[str, Any]:
    """What the strategy has come to know by evaluating ``seen`` for so many ticks."""
    memory = Memory()
    for tick in range(ticks, 0, -1):
        ago_s = 5.0 * tick
        earlier = tuple(replace(queue, arrived_until_s=NOW_S - ago_s) for queue in seen.queues)
        _, memory = decide(replace(seen, queues=earlier), memory, now_s=NOW_S - ago_s)
    return memory.strategy_state


def with_first(seen: PoolView, change: Callable[[QueueMetrics], QueueMetrics]) -> PoolView:
    first, *others = seen.queues
    return replace(seen, queues=(change(first), *others))


def exposed(seen: PoolView) -> PoolView:
    """The pool with an objective that no worker asked for at the next evaluation could meet."""
    target_s = seen.profile.objective.target_s
    return replace(seen, start_up_s=target_s * 1.5)


EVALUATIONS = st.one_of(*(views(sampled_ago_s=FRESH_AGO_S, is_plain=True).map(each) for each in (replace, exposed)))
TICKS = st.integers(0, 3)


@LAW
@given(view=EVALUATIONS, ticks=TICKS, more=st.integers(1, 1_000))
def test_more_backlog_never_lowers_a_demand(view: PoolView, ticks: int, more: int) -> None:
    """Older jobs than those that waited, and more of them."""
    seen = by("hybrid", view)
    worse = with_first(seen, lambda queue: replace(queue, waiting_jobs=(queue.waiting_jobs or 0) + more))
    assert_not_lower(seen, worse, ticks)


@LAW
@given(view=EVALUATIONS, ticks=TICKS, more=st.integers(1, 1_000))
def test_more_that_have_just_come_never_lower_a_demand(view: PoolView, ticks: int, more: int) -> None:
    def fuller(queue: QueueMetrics) -> QueueMetrics:
        newest = Arrivals(jobs=more, ended_ago_s=0.0)
        return replace(queue, waiting_jobs=(queue.waiting_jobs or 0) + more, arrivals=(newest, *queue.arrivals))

    seen = by("hybrid", view)
    assert_not_lower(seen, with_first(seen, fuller), ticks)


@LAW
@given(view=EVALUATIONS, ticks=TICKS, longer_s=st.floats(0, 1_000))
def test_waiting_longer_never_lowers_a_demand(view: PoolView, ticks: int, longer_s: float) -> None:
    def older(queue: QueueMetrics) -> QueueMetrics:
        aged = tuple(replace(each, ended_ago_s=each.ended_ago_s + longer_s) for each in queue.arrivals)
        return replace(queue, oldest_age_s=(queue.oldest_age_s or 0.0) + longer_s, arrivals=aged)

    known = with_first(by("hybrid", view), lambda queue: replace(queue, oldest_age_s=queue.oldest_age_s or 0.0))
    assert_not_lower(known, with_first(known, older), ticks)


@LAW
@given(view=EVALUATIONS, ticks=TICKS, slower=st.floats(1, 100))
def test_slower_jobs_never_lower_a_demand(view: PoolView, ticks: int, slower: float) -> None:
    def slow(queue: QueueMetrics) -> QueueMetrics:
        service_s, completed = queue.service_time_s, queue.completion_rate_per_s
        return replace(
            queue,
            service_time_s=None if service_s is None else service_s * slower,
            completion_rate_per_s=None if completed is None else completed / slower,
        )

    seen = by("hybrid", view)
    assert_not_lower(seen, with_first(seen, slow), ticks)


@LAW
@given(view=EVALUATIONS, ticks=TICKS, more=st.integers(1, 500))
def test_more_arrivals_never_lower_a_demand(view: PoolView, ticks: int, more: int) -> None:
    """From the same experience: that a pool learns from what came how well it foresees is no demand."""

    def fuller(queue: QueueMetrics) -> QueueMetrics:
        return replace(queue, arrival_rate_per_s=(queue.arrival_rate_per_s or 0.0) + more / 60.0)

    seen = by("hybrid", view)
    assert_not_lower(seen, with_first(seen, fuller), ticks)


def assert_not_lower(seen: PoolView, worse: PoolView, ticks: int) -> None:
    state = learned(seen, ticks)
    evaluations = [
        replace(evaluation, queues=tuple(replace(queue, arrived_until_s=None) for queue in evaluation.queues))
        for evaluation in (worse, seen)
    ]
    slots_worse, slots = (greatest(evaluation, state) for evaluation in evaluations)
    assert slots_worse >= slots * (1 - 1e-9) - 1e-9


@given(
    waiting=st.integers(1, 2_000),
    service_s=st.floats(0.05, 600),
    target_s=st.floats(1, 300),
    start_up_s=st.floats(0, 60),
    running=st.integers(0, 50),
)
def test_a_demand_never_falls_as_a_queue_ages_through_its_breach(
    waiting: int, service_s: float, target_s: float, start_up_s: float, running: int
) -> None:
    """Nothing starts and nothing comes: up to three times the objective, each evaluation asks for as much or more."""
    policy = profile(objective=replace(profile().objective, target_s=target_s), workers_max=10_000)
    before = 0.0
    for step in range(31):
        age_s = target_s * step / 10
        stalled = queue(waiting_jobs=waiting, oldest_age_s=age_s, in_flight_jobs=running, service_time_s=service_s)
        pool = view(stalled, profile=policy, running_workers=running, start_up_s=start_up_s)
        slots = greatest(by("hybrid", pool), {})
        assert slots >= before * (1 - 1e-9)
        before = slots
    assert before >= 1


def test_more_arrivals_never_lower_what_earlier_days_ask_for() -> None:
    """A pool that had 50 jobs at this minute of every day, exposed for half a tick, while 0, 1, 2 … jobs/s come."""
    policy = profile(objective=replace(profile().objective, target_s=3.0), workers_max=1_000)

    def at(now_s: float, *, arrived: int, recalled: float, rate_per_s: float = 0.0, is_new: bool = True) -> PoolView:
        jobs = queue(
            sampled_at_s=now_s,
            arrived_jobs=arrived,
            arrived_until_s=now_s if is_new else None,
            arrival_rate_per_s=rate_per_s,
            start_rate_per_s=rate_per_s,
            late_rate_per_s=0.0,
        )
        return by("hybrid", view(jobs, profile=policy, start_up_s=0.0, recalled_jobs=recalled))

    memory, now_s = Memory(), NOW_S
    for tick in range(2_000):  # a rush of 50 every 20 ticks, each foretold
        rush, foretold = 50 * (tick % 20 == 19), 50.0 * (tick % 20 == 18)
        _, memory = decide(at(now_s, arrived=rush, recalled=foretold), memory, now_s=now_s)
        now_s += 5.0
    slots = [
        greatest(at(now_s, arrived=0, recalled=50.0, rate_per_s=rate, is_new=False), memory.strategy_state, now_s=now_s)
        for rate in (0.0, 1.0, 2.0, 4.0, 8.0, 12.0)
    ]
    assert slots[0] > 10
    assert slots == sorted(slots)
