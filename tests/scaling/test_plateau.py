"""Pools in which jobs wait beside idle slots: one step up at a time, and none where the last started no more jobs."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.bottlenecks import HELD, MEASURED, bottlenecks_of
from headway.scaling.decisions.change_detection import is_new
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.model import Decision, Memory, Plateau, QueueMetrics, Suspension
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.plateau import (
    AGAIN_LEAST_S,
    AGAIN_MOST_S,
    SILENT_S,
    WATCHED_S,
    bound_workers,
    do_jobs_wait_beside_idle_slots,
    plateau_of,
)
from headway.scaling.view import PoolView
from support.pools import NOW_S, profile, queue, view

WINDOW_S = 60.0


def metrics(starts_per_s: float | None, *, running_jobs: int = 0, waiting_jobs: int = 500) -> QueueMetrics:
    return queue(
        waiting_jobs=waiting_jobs,
        in_flight_jobs=running_jobs,
        oldest_age_s=60.0,
        start_rate_per_s=starts_per_s,
        service_time_s=0.1,
        window_s=WINDOW_S,
    )


def there(workers: int, **values: Any) -> PoolView:
    return view(running_workers=workers, assigned_workers=workers, **values)


# --- evidence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "pool", "is_so"),
    [
        (metrics(1.0), there(4), True),
        (metrics(0.0), there(4), True),
        (metrics(1.0, running_jobs=2), there(4), True),
        (metrics(1.0, running_jobs=3), there(4), False),  # more than half of the slots are busy
        (metrics(1.0, waiting_jobs=4), there(4), False),  # an idle slot for each that waits
        (metrics(None), there(4), False),  # nobody counts what starts
        (metrics(1.0), there(0), False),
        (metrics(3.4), there(4), False),  # 3.4/s × (0.1 s + at least 0.5 s to the next) is half of four slots
        (replace(metrics(1.0), service_time_s=None), there(4), False),  # how long they are busy is not known
        (replace(metrics(1.0), in_flight_jobs=None), there(4), False),  # nor who is idle
        (replace(metrics(1.0), in_flight_jobs=None, in_flight_min_jobs=0), there(4, idle_workers=2), True),
        (replace(metrics(1.0), in_flight_jobs=None, in_flight_min_jobs=0), there(4, idle_workers=1), False),
        (metrics(1.0), there(4, taken_jobs=3), False),  # begun since the sample
        (metrics(1.0), there(4, suspension=Suspension.LIBRARY), False),
        (metrics(1.0), there(4, is_teaching=False), False),
        (metrics(1.0), there(4, is_failing=True), False),
    ],
)
def test_jobs_wait_beside_idle_slots(seen: QueueMetrics, pool: PoolView, is_so: bool) -> None:
    assert do_jobs_wait_beside_idle_slots(seen, pool, slots_of(pool)) == is_so


# --- what is measured ------------------------------------------------------------------------------------------------


class Evaluations:
    """One after the other, each 5 s later."""

    def __init__(self) -> None:
        self.now_s, self.plateau = NOW_S, None

    def see(
        self, workers: int, starts_per_s: float, *, for_s: float = 5.0, is_fresh: bool = True, **values: Any
    ) -> int | None:
        until_s = self.now_s + for_s
        while self.now_s < until_s:
            self.now_s += 5.0
            seen = metrics(starts_per_s, **values)
            pool = there(workers)
            self.plateau = plateau_of(seen, pool, slots_of(pool), self.plateau, is_fresh=is_fresh, now_s=self.now_s)
        return bound_workers(self.plateau, now_s=self.now_s)


def test_a_moment_of_it_bounds_nothing() -> None:
    assert Evaluations().see(4, 1.0, for_s=WATCHED_S) is None


def test_then_the_pool_rises_by_a_step_and_no_further_until_that_is_measured() -> None:
    pool = Evaluations()
    assert pool.see(2, 1.0, for_s=WATCHED_S + 5.0) == 4
    assert pool.see(4, 1.0, for_s=WINDOW_S) == 4


@pytest.mark.parametrize(
    ("after_per_s", "bound"),
    [
        (1.0, 4),  # as many as before: held
        (1.2, 4),  # twice the workers, and less than half of what they should have brought
        (1.9, 6),  # more workers start more jobs
        (1.45, 6),  # 87 of 90 at most, and 87 may as well be 96
    ],
)
def test_the_next_step_needs_that_the_last_one_brought_something(after_per_s: float, bound: int) -> None:
    pool = Evaluations()
    pool.see(2, 1.0, for_s=WATCHED_S + 5.0)
    assert pool.see(4, after_per_s, for_s=WINDOW_S + 5.0) == bound


def test_one_more_step_is_tried_after_ever_longer_pauses() -> None:
    pool, pauses_s = Evaluations(), []
    workers = pool.see(2, 1.0, for_s=WATCHED_S + 5.0)
    for _ in range(6):
        assert workers is not None
        assert pool.see(workers, 1.0, for_s=WINDOW_S + 5.0) == workers
        began_s = pool.now_s
        while (bound := pool.see(workers, 1.0)) == workers:
            assert pool.now_s - began_s <= AGAIN_MOST_S
        pauses_s.append(pool.now_s - began_s)
        workers = bound
    assert pauses_s == [AGAIN_LEAST_S, 2 * AGAIN_LEAST_S, 4 * AGAIN_LEAST_S, 8 * AGAIN_LEAST_S, *2 * [AGAIN_MOST_S]]


def held() -> Evaluations:
    """Four workers, of which two brought nothing."""
    pool = Evaluations()
    pool.see(2, 1.0, for_s=WATCHED_S + 5.0)
    assert pool.see(4, 1.0, for_s=WINDOW_S + 5.0) == 4
    return pool


def test_nothing_is_bounded_while_no_job_waits_and_one_such_evaluation_forgets_nothing() -> None:
    pool = held()
    assert pool.see(4, 1.0, waiting_jobs=0) is None
    assert pool.see(4, 1.0) == 4


def test_more_such_evaluations_begin_a_new_watch() -> None:
    pool = held()
    pool.see(4, 1.0, waiting_jobs=0, for_s=15.0)
    assert pool.plateau is None
    assert pool.see(4, 1.0, for_s=WATCHED_S) is None
    assert pool.see(4, 1.0) == 6  # what an earlier time measured counts no more


def test_a_watch_needs_evaluations_in_a_row() -> None:
    """Bursts every 10 s, each met before its jobs are with the workers."""
    pool = Evaluations()
    for _ in range(20):
        assert pool.see(4, 1.0) is None
        assert pool.see(4, 1.0, running_jobs=4) is None


def test_late_metrics_bound_nothing_and_are_no_break() -> None:
    pool = held()
    assert pool.see(4, 1.0, is_fresh=False, for_s=SILENT_S - 5.0) is None
    assert pool.see(4, 1.0) == 4
    pool.see(4, 1.0, is_fresh=False, for_s=SILENT_S + 5.0)
    assert pool.plateau is None


@pytest.mark.parametrize("hours", [1, 24])
def test_a_memory_of_hours_ago_bounds_nothing(hours: int) -> None:
    pool = held()
    pool.now_s += 3600.0 * hours
    assert pool.see(4, 1.0) is None


def test_a_watch_that_an_evaluation_missed_begins_anew() -> None:
    pool = Evaluations()
    pool.see(4, 1.0)
    pool.now_s += 55.0
    assert pool.see(4, 1.0) is None
    assert pool.see(4, 1.0) == 6


# --- what is decided -------------------------------------------------------------------------------------------------


def test_every_burst_that_a_sample_meets_before_its_jobs_are_with_the_workers_gets_what_it_asks_for() -> None:
    """120 jobs of 0.5 s a minute for a floor of four: from the second on, each was held at one step for good."""
    memory, found = Memory(target_workers=4), []
    for number in range(12 * 10):  # ten bursts
        at_s, evaluation = NOW_S + 5.0 * number, number % 12
        waiting_jobs, running_jobs = {0: (120, 0), 1: (100, 4)}.get(evaluation, (0, 0))
        seen = queue(
            sampled_at_s=at_s,
            waiting_jobs=waiting_jobs,
            in_flight_jobs=running_jobs,
            oldest_age_s=1.0 if waiting_jobs else 0.0,
            start_rate_per_s=2.0,
            completion_rate_per_s=2.0,
            service_time_s=0.5,
        )
        pool = there(4, profile=profile(workers_min=4, workers_max=50), start_up_s=4.0)
        decision, memory = decide(replace(pool, queues=(seen,)), memory, now_s=at_s)
        assert decision.binding != "plateau"
        if not evaluation:
            found.append(decision.target_workers)
    assert found == [found[0]] * 10
    assert found[0] > 6


MEASURING = Plateau(since_s=NOW_S - 100.0, seen_at_s=NOW_S - 5.0, workers=2, starts_per_s=1.0)
STOPPED = replace(MEASURING, workers=4, again_s=NOW_S + 100.0, tries=1)


@pytest.mark.parametrize(("before", "workers", "said"), [(MEASURING, 4, MEASURED), (STOPPED, 4, HELD)])
def test_a_decision_stops_rising_and_says_why_and_what_cures_it(before: Plateau, workers: int, said: str) -> None:
    seen = there(2, profile=profile(workers_max=20))
    seen = replace(seen, queues=(metrics(1.0),))
    decision, memory = decide(seen, Memory(target_workers=2, plateau=before), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (workers, "plateau")
    assert bottlenecks_of(decision) == (said,)
    assert any("rate_limit_per_s" in sentence for sentence in explained(decision))
    assert from_mapping(Decision, to_mapping(decision)) == decision
    assert memory.plateau == replace(before, seen_at_s=NOW_S)
    assert is_new(decision, replace(decision, steps=decision.steps[:1]))  # also where another limit binds


@given(
    running=st.integers(1, 12),
    running_jobs=st.integers(0, 12),
    waiting_jobs=st.integers(0, 500),
    last=st.integers(0, 20),
    starts_per_s=st.floats(0.0, 20.0),
    before=st.sampled_from([None, MEASURING, STOPPED]),
)
def test_it_never_lowers_a_target_and_bounds_no_pool_whose_slots_are_busy(
    running: int, running_jobs: int, waiting_jobs: int, last: int, starts_per_s: float, before: Plateau | None
) -> None:
    seen = metrics(starts_per_s, running_jobs=min(running, running_jobs), waiting_jobs=waiting_jobs)
    pool = replace(there(running, profile=profile(workers_max=20)), queues=(seen,))
    bounded, _ = decide(pool, Memory(target_workers=last, plateau=before), now_s=NOW_S)
    free, _ = decide(pool, Memory(target_workers=last), now_s=NOW_S)
    assert min(free.target_workers, last) <= bounded.target_workers <= free.target_workers
    if running_jobs > running / 2 or waiting_jobs <= running - running_jobs:
        assert bounded == free
