"""Queues whose broker gives their jobs to few workers at a time: no more are started, and it is said."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.metrics.newest_sample import LISTED_GAP_S, useful_workers
from headway.scaling.model import Decision, Memory, QueueSample
from support.pools import NOW_S, predicted_pickup_s, profile, queue, view

LATE = queue(waiting_jobs=50, oldest_age_s=60.0, service_time_s=10.0)


def decided(*, useful: int | None, memory: Memory | None = None, floor: int = 0, **values: Any) -> Decision:
    seen = view(LATE, profile=profile(workers_min=floor, workers_max=20), useful_workers=useful, **values)
    decision, _ = decide(seen, memory or Memory(), now_s=NOW_S)
    return decision


def test_no_more_are_started_than_get_jobs_at_a_time() -> None:
    assert decided(useful=None).target_workers == 20
    decision = decided(useful=1)
    assert (decision.target_workers, decision.binding) == (1, "useful_workers")
    assert decided(useful=3).target_workers == 3


def test_a_person_may_keep_one_that_takes_over() -> None:
    assert decided(useful=1, floor=2).target_workers == 2


def test_it_is_said_why_and_what_cures_it() -> None:
    decision = decided(useful=1)
    (sentence,) = bottlenecks_of(decision)
    assert sentence.startswith("the broker gives jobs to 1 worker at a time (single active consumer)")
    assert any("to 1 worker at a time: of 50, the others would only wait." in each for each in explained(decision))
    assert from_mapping(Decision, to_mapping(decision)) == decision
    assert bottlenecks_of(decided(useful=None)) == ()


def test_nobody_counts_on_workers_that_only_wait() -> None:
    alone = view(LATE, profile=profile(), running_workers=1, useful_workers=1)
    both = view(LATE, profile=profile(), running_workers=8, useful_workers=1)
    assert predicted_pickup_s(both, target_workers=8) == predicted_pickup_s(alone, target_workers=1)


def sample(workers: int | None, name: str = "a") -> QueueSample:
    return QueueSample(queue=name, at_s=NOW_S, waiting_jobs=0, useful_workers=workers)


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({}, None),  # never read
        ({"a": 1}, None),  # b was never read, and may have no such bound
        ({"a": 1, "b": None}, None),  # b's jobs are for all
        ({"a": 1, "b": 1}, 2),
    ],
)
def test_each_queue_of_a_pool_may_have_an_active_consumer_of_its_own(
    bounds: dict[str, int | None], found: int | None
) -> None:
    samples = {name: sample(workers, name) for name, workers in bounds.items()}
    assert useful_workers(["a", "b"], samples, now_s=NOW_S) == found


@pytest.mark.parametrize(("age_s", "found"), [(LISTED_GAP_S, 2), (LISTED_GAP_S + 1.0, None)])
def test_a_reading_of_long_ago_sets_no_bound(age_s: float, found: int | None) -> None:
    """The queue may have been declared again meanwhile, for all workers."""
    samples = {name: sample(1, name) for name in ("a", "b")}
    assert useful_workers(["a", "b"], samples, now_s=NOW_S + age_s) == found


@given(
    waiting_jobs=st.integers(0, 500),
    age_s=st.floats(0.0, 600.0),
    running=st.integers(0, 12),
    useful=st.integers(1, 12),
    floor=st.integers(0, 4),
)
def test_the_bound_holds_but_for_a_floor_and_for_what_is_held_and_lowers_nothing_else(
    waiting_jobs: int, age_s: float, running: int, useful: int, floor: int
) -> None:
    metrics = queue(waiting_jobs=waiting_jobs, oldest_age_s=age_s, service_time_s=5.0)
    seen = {"profile": profile(workers_min=floor, workers_max=20), "running_workers": running}
    memory = Memory(target_workers=running)
    bounded, _ = decide(view(metrics, assigned_workers=running, useful_workers=useful, **seen), memory, now_s=NOW_S)
    free, _ = decide(view(metrics, assigned_workers=running, **seen), memory, now_s=NOW_S)
    assert bounded.target_workers <= free.target_workers
    assert bounded.target_workers <= max(useful, floor, running)
    assert bounded.target_workers >= min(useful, free.target_workers)
