"""Queues whose sources report how many jobs wait, and nothing else. Unknown is not zero."""

import json
import math
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.rehearse.trace_files import Columns, read_trace
from headway.scaling.demands.deadlines import backlog_drain, ceiling_slots, supply, waiting
from headway.scaling.demands.trust import slow_start_s
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping
from headway.scaling.measure import BucketRow, queue_metrics, read_again
from headway.scaling.model import Decision, Memory, Objective, PoolDepths, QueueMetrics, QueueOrder
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.depth_only import (
    CYCLE_MAX_S,
    RATE_MEMORY_S,
    SIGHTINGS_MAX,
    learned,
    with_ages,
    with_rates,
)
from headway.scaling.reading.pool_times import times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.view import PoolView
from headway.simulate.controller import Controller
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.workloads.jobs import Jobs
from support.installed import INSTALLED, decide
from support.pools import NOW_S, ordered, profile, queue, view

TICK_S = 5.0
QUEUE = "redis/mail"


def depth(waiting_jobs: int, *, at_s: float = NOW_S, name: str = QUEUE, **known: Any) -> QueueMetrics:
    """What is known of a queue by the depth of its newest sample."""
    row = BucketRow(queue=name, bucket_s=at_s, sampled_at_s=at_s, waiting_jobs=waiting_jobs)
    return replace(queue_metrics([row], queue=name, now_s=at_s, objective=Objective()), **known)


def learned_of(before: PoolDepths | None, seen: PoolView) -> PoolDepths | None:
    """What is known after the samples of ``seen``."""
    return learned(
        before,
        ordered(seen),
        profile=seen.profile,
        busy_by_workers=slots_of(seen).busy_by_workers,
        tick_s=seen.tick_s,
    )


def followed(depths: list[int], *, slots: int | list[int], **values: Any) -> tuple[PoolDepths, PoolView]:
    """What is learned of ``depths``, one an evaluation, while so many slots are busy; and the last view."""
    known, seen = None, view()
    for number, waiting_jobs in enumerate(depths):
        busy = slots if isinstance(slots, int) else slots[number]
        seen = view(
            depth(waiting_jobs, at_s=NOW_S + TICK_S * number), running_workers=busy, busy_workers=busy, **values
        )
        known = learned_of(known, seen)
    assert known is not None
    return known, seen


def decided(depths: list[int], *, slots: int = 2, **values: Any) -> list[Decision]:
    """The decisions on ``depths``, one an evaluation, of a pool whose workers stay ``slots``."""
    memory, decisions = Memory(target_workers=slots), []
    for number, waiting_jobs in enumerate(depths):
        at_s = NOW_S + TICK_S * number
        seen = view(
            depth(waiting_jobs, at_s=at_s),
            running_workers=slots,
            busy_workers=slots,
            assigned_workers=slots,
            **values,
        )
        decision, memory = decide(seen, memory, now_s=at_s)
        decisions.append(decision)
    return decisions


# What is not known


def test_depth_without_events_leaves_every_rate_unknown() -> None:
    seen = depth(5_000)
    assert seen.has_unknown_rates
    assert seen.waiting_jobs == 5_000
    rates = [getattr(seen, name) for name in QueueMetrics.__slots__ if name.endswith("_per_s")]
    assert rates == [None] * len(rates)
    assert (seen.arrived_jobs, seen.arrived_until_s, seen.oldest_age_s) == (None, None, None)


@pytest.mark.parametrize(
    ("rows", "is_unknown"),
    [
        ([{"waiting_jobs": 3, "oldest_age_s": 1.0}], False),  # whoever knows the age has seen each job come
        ([{"waiting_jobs": 0, "oldest_age_s": 0.0}], False),
        ([{"waiting_jobs": 3}], True),
        ([{"waiting_jobs": 0}], True),
        ([{"started_jobs": 1}, {"waiting_jobs": 3}], False),  # events come, so those that do not are none
        ([{"started_jobs": 1}, {}], False),
    ],
)
def test_a_source_without_age_and_without_an_event_in_minutes_reports_no_rates(
    rows: list[dict[str, Any]], is_unknown: bool
) -> None:
    given_rows = [
        BucketRow(
            queue=QUEUE, bucket_s=5.0 * number, sampled_at_s=5.0 * number if "waiting_jobs" in row else None, **row
        )
        for number, row in enumerate(rows)
    ]
    seen = queue_metrics(given_rows, queue=QUEUE, now_s=20.0, objective=Objective())
    assert seen.has_unknown_rates is is_unknown
    assert seen.arrival_rate_per_s == (None if is_unknown else 0.0)
    assert seen.completion_rate_per_s == (None if is_unknown else 0.0)


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.floats(0, 9)), min_size=2, max_size=4))
def test_a_quiet_queue_that_is_read_again_is_as_if_worked_out_anew(samples: list[tuple[int, float | None]]) -> None:
    rows = [
        BucketRow(
            queue=QUEUE, bucket_s=5.0 * number, sampled_at_s=5.0 * number, waiting_jobs=waiting_jobs, oldest_age_s=age_s
        )
        for number, (waiting_jobs, age_s) in enumerate(samples)
    ]
    seen = queue_metrics(rows[:1], queue=QUEUE, now_s=3_000.0, objective=Objective())
    for number, row in enumerate(rows[1:], start=2):
        seen = read_again(seen, row)
        assert seen == queue_metrics(rows[:number], queue=QUEUE, now_s=3_000.0, objective=Objective())


def test_the_rate_of_a_pool_is_unknown_where_that_of_a_member_is() -> None:
    together = pooled([queue(arrival_rate_per_s=2.0), depth(3)])
    assert together.waiting_jobs == 3
    assert together.arrival_rate_per_s is None


def test_explain_shows_unknown_arrivals_as_unknown_and_the_age_as_bounded() -> None:
    first, _, last = decided([7, 7, 7])
    sentences = explained(first)
    assert "In its queue 7 jobs wait (the oldest for at least 0 ms) and how many arrive is unknown." in sentences
    assert "In its queue 7 jobs wait (the oldest for at least 10 s) and how many arrive is unknown." in explained(last)
    assert last.metrics[0].arrival_rate_per_s is None
    assert f"What arrives, starts and ends in {QUEUE} is not reported, and estimated from its depth." in sentences
    later = decided([0, 7, 7])[-1]
    assert "In its queue 7 jobs wait (the oldest for 5 s to 10 s) and how many arrive is unknown." in explained(later)


# What depths show


@pytest.mark.parametrize(
    ("depths", "slots", "cycle_s", "sightings"),
    [
        ([5, 5, 5], 2, None, [(0, 5)]),  # nothing shows that anything started
        ([0, 3, 5], 0, None, [(1, 3), (2, 2)]),  # nobody works: two more have come
        ([9, 7, 9], 0, None, [(0, 7), (2, 2)]),  # two are gone, which must be the oldest
        ([9, 9, 0], 3, 2.5, []),  # 3 slots x 5 s for 9 jobs, of which 9 - √9 surely ended
        ([100, 0, 40, 40], 10, 50 / 90 * 1.0869, [(3, 40)]),  # not confirmed for 5 s; then 89 have started: all are new
    ],
)
def test_jobs_that_wait_are_as_old_as_their_first_sighting(
    depths: list[int], slots: int, cycle_s: float | None, sightings: list[tuple[int, int]]
) -> None:
    """Expected sightings are the number of the sample and the jobs."""
    known, _ = followed(depths, slots=slots)
    found = [((each.at_s - NOW_S) / TICK_S, each.jobs) for each in known.queues[0].sightings] if known.queues else []
    assert found == sightings
    assert known.cycle_s == (None if cycle_s is None else pytest.approx(cycle_s, rel=0.01))


def test_arrivals_are_the_change_of_depth_and_the_starts() -> None:
    """Ten slots start 200 jobs in 5 s, and a little fewer are expected of them as no drain confirms it."""
    depths = [1_000, 800, 600, 400, 400, 450]
    known, seen = followed(depths, slots=10)
    assert known.cycle_s == pytest.approx(0.31, rel=0.02)  # 0.26 after the drain of 600, and 10 s of a minute since
    assert known.queues[0].arrived_jobs == pytest.approx(50 + 50 / 0.31, rel=0.02)
    estimated = with_rates(seen.queues, known, dispatch_s=0.0, now_s=NOW_S + 25)[0]
    assert estimated.service_time_s == pytest.approx(known.cycle_s)
    assert estimated.arrival_rate_per_s is not None
    assert 0 < estimated.arrival_rate_per_s < 50


@pytest.mark.parametrize(("passed_s", "arrived_jobs"), [(5.0, 30), (1.0, 30), (20.0, 8)])
def test_what_arrives_is_given_by_the_evaluation_interval_and_no_job_twice(passed_s: float, arrived_jobs: int) -> None:
    """A pool at zero is evaluated more often, and one whose control plane was away more seldom."""
    known = learned_of(None, view(depth(10)))
    known = learned_of(known, view(depth(40, at_s=NOW_S + passed_s)))
    assert known is not None
    assert known.queues[0].arrived_jobs == arrived_jobs


def test_a_pool_at_rest_that_works_again_is_followed_also_while_nothing_waits() -> None:
    quiet, seen = followed([0, 0], slots=0)
    assert quiet.queues == ()
    at_work = replace(seen, queues=(depth(0, at_s=NOW_S + 10),), running_workers=3, busy_workers=3)
    after = learned_of(quiet, at_work)
    assert after is not None
    assert (after.busy_slots, after.queues[0].arrived_jobs) == (3, 3)


def test_ages_of_the_source_and_rates_that_it_reports_stay_as_they_are() -> None:
    seen = view(depth(8, oldest_age_s=3.0, start_rate_per_s=2.0, service_time_s=0.7), running_workers=2)
    known = learned_of(None, seen)
    assert with_ages(seen.queues, known, now_s=NOW_S) == seen.queues
    estimated = with_rates(seen.queues, known, dispatch_s=0.0, now_s=NOW_S)[0]
    assert (estimated.start_rate_per_s, estimated.service_time_s, estimated.oldest_age_s) == (2.0, 0.7, 3.0)
    assert estimated.arrival_rate_per_s == 0.0


def test_starts_that_are_reported_give_the_arrivals_without_a_cycle() -> None:
    seen = [
        view(depth(8, at_s=NOW_S + TICK_S * number, start_rate_per_s=2.0), running_workers=2, busy_workers=2)
        for number in range(3)
    ]
    known = None
    for each in seen:
        known = learned_of(known, each)
    assert known is not None
    assert known.queues[0].arrived_jobs == 10  # 2/s x 5 s started, and as many wait
    assert known.queues[0].sightings[-1].at_s == NOW_S + 2 * TICK_S


@pytest.mark.parametrize(
    ("ages_s", "late"),
    [
        ([None, None, None, None, None], (50, 150)),  # first seen 12.5 s before the middle of the last step
        ([0.0, 1.0, 6.0, 9.0, 8.0], (0, 0)),
        ([0.0, 5.0, 11.0, 11.0, 12.0], (150, 200)),  # all that started in the last two steps
    ],
)
def test_jobs_are_late_by_their_age_or_else_by_their_first_sighting(
    ages_s: list[float | None], late: tuple[int, int]
) -> None:
    known, jobs = None, 0.0
    for number, (waiting_jobs, age_s) in enumerate(zip([0, 300, 300, 200, 100], ages_s, strict=True)):
        one = depth(waiting_jobs, at_s=NOW_S + TICK_S * number, oldest_age_s=age_s)
        known = learned_of(known, view(one, running_workers=9, busy_workers=9))
        kept = math.exp(-TICK_S / RATE_MEMORY_S)
        if known is not None and known.queues:
            jobs = known.queues[0].late_rate_per_s / (1 - kept) * TICK_S
    assert late[0] <= jobs <= late[1]


def test_a_member_whose_ends_are_reported_says_how_long_jobs_take() -> None:
    """What the pool loses is that member's work as well: depths say nothing of it."""
    known = None
    for number, waiting_jobs in enumerate([90, 60, 30]):
        at_s = NOW_S + TICK_S * number
        reported = queue(queue="redis/slow", sampled_at_s=at_s, service_time_s=None)
        seen = view(reported, depth(waiting_jobs, at_s=at_s), running_workers=20, busy_workers=20)
        known = learned_of(known, seen)
    assert known is not None
    assert known.cycle_s is not None
    assert with_rates(seen.queues, known, dispatch_s=0.0, now_s=NOW_S + 10)[1].service_time_s is None
    assert with_rates(seen.queues[1:], known, dispatch_s=0.0, now_s=NOW_S + 10)[0].service_time_s is not None


def test_it_is_learned_what_was_late_while_jobs_only_start() -> None:
    known, seen = followed([0, 300, 300, 200, 100, 0], slots=9)
    estimated = with_rates(seen.queues, known, dispatch_s=0.0, now_s=NOW_S + 25)[0]
    assert estimated.arrived_jobs == 0
    assert estimated.arrived_until_s == NOW_S + 25
    assert estimated.late_rate_per_s is not None
    assert 0 < estimated.late_rate_per_s <= (estimated.start_rate_per_s or 0)


def test_workers_that_leave_are_no_ends_of_jobs_and_jobs_in_flight_are() -> None:
    left, _ = followed([50, 50, 50], slots=[30, 20, 10])
    assert left.cycle_s is None
    known = None
    for number, in_flight_jobs in enumerate([30, 20, 10]):
        seen = view(depth(50, at_s=NOW_S + TICK_S * number, in_flight_jobs=in_flight_jobs), running_workers=30)
        known = learned_of(known, seen)
    assert known is not None
    assert known.cycle_s is not None


@pytest.mark.parametrize(
    ("order", "parts"),
    [
        (QueueOrder.STRICT, (1.0, 0.0)),  # the first in which jobs wait has all
        (QueueOrder.IN_TURN, (0.5, 0.5)),
        (QueueOrder.RANDOM, (0.5, 0.5)),
        (QueueOrder.BY_ARRIVAL, (200 / 240, 40 / 240)),
        (None, (0.5, 0.5)),  # they start all the same
    ],
)
def test_starts_that_depths_do_not_show_are_shared_by_the_order(
    order: QueueOrder | None, parts: tuple[float, float]
) -> None:
    known = None
    for number, (first, second) in enumerate([(300, 40), (200, 40), (200, 40)]):
        at_s = NOW_S + TICK_S * number
        members = depth(first, at_s=at_s, name="redis/a"), depth(second, at_s=at_s, name="redis/b")
        of_order = {"queue_order": order, "strict_queues": ("a", "b")}
        known = learned_of(known, view(*members, running_workers=10, busy_workers=10, **of_order))
    assert known is not None
    arrived_jobs = [each.arrived_jobs for each in known.queues]
    assert sum(arrived_jobs) >= 50 * sum(parts)
    # Nothing is lost in the last step: what arrived is what started. Arrivals are whole jobs.
    assert arrived_jobs == pytest.approx([part * sum(arrived_jobs) for part in parts], abs=1.0)
    if order in {QueueOrder.STRICT, None}:
        assert [each.at_s for each in known.queues[1].sightings] == [NOW_S]
    if order is None:  # and no job is younger than it may be
        assert [each.at_s for each in known.queues[0].sightings] == [NOW_S]


def test_no_fewer_workers_stand_where_the_order_of_the_queues_is_unknown() -> None:
    """A rush on two queues that goes on as a flow, which shows in busy slots only."""
    depths, standing = [*range(60, 0, -6), *[3] * 16], {}
    for order in (QueueOrder.STRICT, QueueOrder.IN_TURN, None):
        memory = Memory(target_workers=6)
        for number, jobs in enumerate(depths):
            at_s = NOW_S + TICK_S * number
            members = [depth(jobs, at_s=at_s, name=f"redis/{name}", in_flight_jobs=3) for name in ("a", "b")]
            of_order = {"queue_order": order, "strict_queues": ("a", "b")}
            seen = view(*members, running_workers=6, assigned_workers=6, start_up_s=8.0, **of_order)
            decision, memory = decide(seen, memory, now_s=at_s)
        standing[order] = next(each.slots for each in decision.demands if each.name == "standing")
    assert standing[None] >= min(standing[QueueOrder.STRICT], standing[QueueOrder.IN_TURN]) > 12


def test_what_is_remembered_is_bounded_and_nothing_is_where_nothing_happens() -> None:
    known, _ = followed(list(range(1, 400)), slots=0)
    assert len(known.queues[0].sightings) <= SIGHTINGS_MAX
    assert known.queues[0].sightings[0].at_s == NOW_S
    assert sum(each.jobs for each in known.queues[0].sightings) == 399
    quiet, seen = followed([3, 0, *[0] * 60], slots=[1, 1, *[0] * 60])
    assert quiet.queues == ()
    later = replace(seen, queues=(depth(0, at_s=NOW_S + 9_000),))
    assert learned_of(quiet, later) is quiet
    assert learned_of(quiet, replace(seen, queues=(queue(),))) is None


@pytest.mark.parametrize("step_s", [60.0, 3_600.0, 14 * 86_400.0])
def test_however_long_no_drain_confirms_a_cycle_it_stays_a_finite_time(step_s: float) -> None:
    known, seen = followed([9, 7, 5, 3, 3], slots=2)
    assert known.cycle_s is not None
    for number in range(1, 1_000):
        at_s = NOW_S + 20.0 + step_s * number
        seen = view(depth(3, at_s=at_s), running_workers=2, busy_workers=2)
        after = learned_of(known, seen)
        assert after is not None
        assert after.cycle_s is not None
        assert known.cycle_s <= after.cycle_s < math.inf
        known = after
    assert known.cycle_s == CYCLE_MAX_S
    decision, _ = decide(seen, Memory(target_workers=2, depths=known), now_s=at_s)
    assert decision.target_workers >= 2
    assert decision.predicted_pickup_s is not None
    assert math.isfinite(decision.predicted_pickup_s)


def test_a_stored_memory_goes_on_where_it_was() -> None:
    known, _ = followed([0, 3, 5], slots=2)
    for memory in (Memory(depths=known), Memory()):
        assert from_mapping(Memory, json.loads(json.dumps(asdict(memory)))) == memory


# What is decided


def test_five_thousand_waiting_jobs_raise_the_target_within_two_evaluations() -> None:
    first, second, *_ = decided([5_000] * 3)
    assert max(first.target_workers, second.target_workers) == 100
    assert decided([0, 5_000])[-1].target_workers == 100


@given(
    depths=st.lists(st.integers(0, 5_000), min_size=1, max_size=12),
    slots=st.integers(0, 40),
    target_s=st.floats(1, 600),
    start_up_s=st.floats(0, 30),
)
def test_a_target_is_never_below_what_the_deadlines_of_the_depth_ask_for(
    depths: list[int], slots: int, target_s: float, start_up_s: float
) -> None:
    policy = profile(objective=Objective(target_s=target_s))
    memory, known = Memory(target_workers=slots), None
    for number, waiting_jobs in enumerate(depths):
        at_s = NOW_S + TICK_S * number
        seen = view(
            depth(waiting_jobs, at_s=at_s),
            profile=policy,
            start_up_s=start_up_s,
            running_workers=slots,
            busy_workers=slots,
            assigned_workers=slots,
        )
        decision, memory = decide(seen, memory, now_s=at_s)
        known = learned_of(known, seen)
        estimated = with_rates(
            with_ages(seen.queues, known, now_s=at_s), known, dispatch_s=times_of(seen).dispatch_s, now_s=at_s
        )
        one, times = estimated[0], times_of(seen)
        slow_s = slow_start_s(policy, times)
        due = waiting(one, target_s=target_s, slow_start_s=slow_s, tick_s=times.tick_s)
        assert sum(each.jobs for each in due) == waiting_jobs
        # The oldest has at most what is left since its first sighting.
        if known is not None and known.queues and known.queues[0].sightings:
            assert due[0].within_s <= target_s - (at_s - known.queues[0].sightings[0].at_s)
        given_ = supply(one, slots_of(seen), times, coming=(), caution=1.0)
        need = backlog_drain(due, given_, slots_max=ceiling_slots(seen, at_s))
        asked = min(100, given_.busy_slots + need.slots) if slots <= 100 else 100
        assert decision.target_workers >= asked


@given(waiting_jobs=st.integers(1, 5_000), slots=st.integers(0, 50), start_up_s=st.floats(0, 8))
def test_waiting_jobs_that_nobody_starts_raise_the_target_within_two_evaluations(
    waiting_jobs: int, slots: int, start_up_s: float
) -> None:
    """Where the objective leaves no time to wait for a third: with 10 s that is any start-up."""
    decisions = decided([waiting_jobs] * 2, slots=slots, start_up_s=start_up_s)
    assert max(each.target_workers for each in decisions) > slots


@pytest.mark.parametrize("name", INSTALLED)
def test_every_strategy_decides_on_depth_alone(name: str) -> None:
    memory = Memory()
    for number, waiting_jobs in enumerate([0, 40, 400, 300, 200, 100, 0, 0]):
        at_s = NOW_S + TICK_S * number
        seen = view(depth(waiting_jobs, at_s=at_s), profile=profile(strategy=name), running_workers=4, busy_workers=4)
        decision, memory = decide(seen, memory, now_s=at_s)
        assert 0 <= decision.target_workers <= 100


# Rehearsals


TRACES = {"bursty_llm_code": 4_000, "day_flights": 40, "day_tweets": 25}
"""Of each, so many jobs: some minutes, and some hours of a day."""


@cache
def trace(name: str, jobs_max: int) -> Jobs:
    path = Path(str(files("headway.simulate.traces") / f"{name}.csv.gz"))
    jobs = read_trace(path, Columns()).jobs
    return Jobs(at_s=jobs.at_s[:jobs_max], service_s=jobs.service_s[:jobs_max])


@cache
def rehearsed(name: str, *, is_depth_only: bool, is_live: bool = False) -> Result:
    controller = Controller(target_s=10.0, start_up_s=2.0, workers_max=100)
    plan = PoolPlan(
        jobs=trace(name, TRACES[name]), start_up_s=2.0, workers_max=100, is_depth_only=is_depth_only, is_live=is_live
    )
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal(objective_s=10.0))
    return result


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("name", TRACES)
def test_depth_alone_keeps_the_objective_at_no_more_than_half_as_much_again(name: str, is_live: bool) -> None:
    with_events = rehearsed(name, is_depth_only=False, is_live=is_live)
    alone = rehearsed(name, is_depth_only=True, is_live=is_live)
    assert with_events.attainment_percent >= 95
    assert alone.attainment_percent >= 95
    assert alone.worker_hours <= 1.5 * with_events.worker_hours


def test_one_burst_whose_service_time_was_unknown_is_not_paid_for_afterwards() -> None:
    """Start-up and interval exceed the objective, so the pool pre-warms for what it has seen. Depths show how long a
    job takes only as the burst ends.
    """
    burst = [62.5 + number / 500 for number in range(10_000)]
    jobs = Jobs(at_s=[*burst, 3_600.0], service_s=[0.1] * (len(burst) + 1))
    controller = Controller(target_s=10.0, start_up_s=4.9, workers_max=20, slots_per_worker=4)
    plan = PoolPlan(jobs=jobs, start_up_s=4.9, workers_max=20, slots=4, is_depth_only=True)
    (alone,) = simulate([plan], [controller], rehearsal=Rehearsal(objective_s=10.0))
    assert alone.attainment_percent == 100
    assert alone.worker_hours < 0.5  # twice what the jobs take
