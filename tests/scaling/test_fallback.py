"""What holds while a pool's metrics stay away: which count, and from when on."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Memory, QueueMetrics, QueueSample
from headway.scaling.policy.fallback import missed_evaluations
from headway.scaling.profile import Fallback, Profile, profile_from_mapping, profile_to_mapping
from headway.scaling.reading.sample_age import freshness_of
from headway.scaling.view import PoolView
from support.pools import NOW_S, held, profile, queue, view

GONE = queue(sampled_at_s=NOW_S - 400.0)
TICK_S = 5.0


def seen(member: QueueMetrics = GONE, *, direct: tuple[QueueSample, ...] = (), **values: Any) -> PoolView:
    return replace(view(member, direct=direct), profile=profile(**values))


def target(pool: PoolView, memory: Memory) -> int:
    return decide(pool, memory, now_s=NOW_S)[0].target_workers


@pytest.mark.parametrize(
    ("rule", "present", "left"),
    [
        ("fixed", 2, 4),
        ("fixed", 6, 4),
        ("if_higher", 2, 4),
        ("if_higher", 6, 6),  # never lowers
        ("if_lower", 2, 2),  # never raises
        ("if_lower", 6, 4),
        ("if_lower", 0, 0),
        ("current", 2, 2),
        ("current", 6, 6),
        ("current", 0, 0),
    ],
)
def test_the_rule_says_which_of_the_two_counts_holds(rule: str, present: int, left: int) -> None:
    workers = None if rule == "current" else 4
    pool = seen(fallback=Fallback(rule), fallback_workers=workers)
    assert target(pool, held(present)) == left


def test_the_present_count_holds_against_what_old_figures_ask_for() -> None:
    """Without a fallback the old backlog grows older and asks for more; ``current`` neither raises nor lowers."""
    old = queue(sampled_at_s=NOW_S - 400.0, waiting_jobs=30, oldest_age_s=8.0)
    assert target(seen(old), held(6)) > 6
    assert target(seen(old, fallback=Fallback.CURRENT), held(6)) == 6


def test_the_present_count_is_that_of_hosts_that_are_back_too() -> None:
    pool = replace(seen(fallback=Fallback.CURRENT), assigned_workers=9)
    assert target(pool, held(6)) == 9


@pytest.mark.parametrize("rule", list(Fallback))
def test_fresh_readings_of_the_collector_raise_above_any_fallback_and_lower_nothing(rule: Fallback) -> None:
    workers = None if rule is Fallback.CURRENT else 4
    flood = QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=80, in_flight_jobs=0, oldest_age_s=7.0)
    quiet = replace(flood, waiting_jobs=0, oldest_age_s=0.0)
    for sample, least in ((flood, 27), (quiet, 6)):
        pool = seen(direct=(sample,), fallback=rule, fallback_workers=workers)
        assert target(pool, held(6)) == least


@given(
    rule=st.sampled_from([Fallback.IF_HIGHER, Fallback.IF_LOWER, Fallback.CURRENT]),
    present=st.integers(0, 60),
    given_workers=st.integers(1, 60),
    waiting_jobs=st.integers(0, 200),
)
def test_a_rule_that_compares_moves_the_count_one_way_only(
    rule: Fallback, present: int, given_workers: int, waiting_jobs: int
) -> None:
    old = queue(sampled_at_s=NOW_S - 400.0, waiting_jobs=waiting_jobs, oldest_age_s=3.0 * bool(waiting_jobs))
    workers = None if rule is Fallback.CURRENT else given_workers
    left = target(seen(old, fallback=rule, fallback_workers=workers), held(present))
    if rule is not Fallback.IF_LOWER:
        assert left >= present
    if rule is not Fallback.IF_HIGHER:
        assert left <= present
    assert left in {present, given_workers}


# --- from when on ----------------------------------------------------------------------------------------------------


def evaluated(ages_s: list[float], memory: Memory, **values: Any) -> tuple[list[int], Memory]:
    """The targets of one evaluation after the other, each with metrics of such an age."""
    targets = []
    for number, age_s in enumerate(ages_s):
        now_s = NOW_S + TICK_S * number
        decision, memory = decide(seen(queue(sampled_at_s=now_s - age_s), **values), memory, now_s=now_s)
        targets.append(decision.target_workers)
    return targets, memory


def test_so_many_evaluations_in_a_row_without_fresh_metrics_begin_the_fallback_and_not_one_less() -> None:
    targets, memory = evaluated([60.0] * 4, held(6), fallback_workers=2, fallback_after_evaluations=3)
    assert targets == [6, 6, 2, 2]
    assert memory.missed_evaluations == 3  # no further: what does not change is not written again


def test_the_number_of_evaluations_takes_the_place_of_the_age() -> None:
    """Neither an age beyond ``fallback_after_s`` begins it sooner, nor one below it later."""
    soon, _ = evaluated([1_000.0, 1_000.0], held(6), fallback_workers=2, fallback_after_evaluations=3)
    late, _ = evaluated([25.0], held(6), fallback_workers=2, fallback_after_evaluations=1)
    assert (soon, late) == ([6, 6], [2])


def test_one_fresh_evaluation_begins_the_count_anew() -> None:
    ages_s = [60.0, 60.0, 1.0, 60.0, 60.0, 60.0]
    targets, _ = evaluated(ages_s, held(6), fallback_workers=9, fallback_after_evaluations=3)
    assert targets == [6, 6, 0, 0, 0, 9]


def test_the_fallback_misses_no_metrics_of_a_queue_that_was_never_seen() -> None:
    never = seen(QueueMetrics(queue="redis/mail"), fallback_workers=2, fallback_after_evaluations=1)
    assert missed_evaluations(never.profile, held(6), freshness_of(never.queues, never.profile, now_s=NOW_S)) == 0
    assert target(never, held(6)) == 6


def test_a_pool_that_waits_for_no_evaluations_remembers_none() -> None:
    _, memory = evaluated([60.0] * 4, held(6), fallback_workers=2)
    assert memory.missed_evaluations == 0


# --- what is said ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ({"fallback": "current"}, "no metrics for more than 300 s: the profile keeps the present count"),
        (
            {"fallback": "if_higher", "fallback_workers": 4},
            "no metrics for more than 300 s: the profile falls back on 4 workers, where that is more than there are",
        ),
        (
            {"fallback": "if_lower", "fallback_workers": 4, "fallback_after_evaluations": 1},
            (
                "no metrics at the last evaluation: the profile falls back on 4 workers, "
                "where that is fewer than there are"
            ),
        ),
    ],
)
def test_a_decision_says_which_fallback_is_in_force(values: dict[str, Any], note: str) -> None:
    decision, _ = decide(replace(seen(), profile=made(values)), held(6), now_s=NOW_S)
    assert note in decision.notes


def made(values: dict[str, Any]) -> Profile:
    return profile_from_mapping("mail", {"queues": ["redis/mail"], "template": "mail", **values})


@given(st.sampled_from(list(Fallback)), st.none() | st.integers(1, 17_280))
def test_a_profile_with_a_fallback_is_written_and_read_alike(rule: Fallback, evaluations: int | None) -> None:
    workers = None if rule is Fallback.CURRENT else 3
    one = profile(fallback=rule, fallback_workers=workers, fallback_after_evaluations=evaluations)
    assert profile_from_mapping("mail", profile_to_mapping(one)) == one
