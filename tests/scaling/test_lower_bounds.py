"""Depths of which only a lower bound is known: the bound is never taken for the figure."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.decide import decide
from headway.scaling.explain import explained
from headway.scaling.metrics.newest_sample import TOGETHER_S, with_newest
from headway.scaling.model import Memory, QueueMetrics, QueueSample
from headway.scaling.reading.direct_samples import overlaid
from headway.scaling.reading.pooled_queue import pooled
from support.pools import NOW_S, queue, view

COUNTS = st.integers(0, 50)
MAYBE = st.none() | COUNTS


def sampled(**values: Any) -> QueueSample:
    return QueueSample(**{"queue": "redis/mail", "at_s": NOW_S - 1.0, "waiting_jobs": 0, **values})


def member(name: str, waiting: int | None, in_flight: int | None, *, least: int) -> QueueMetrics:
    """A queue with bounds where the figures are unknown."""
    return queue(
        queue=name,
        waiting_jobs=waiting,
        waiting_min_jobs=least if waiting is None else None,
        in_flight_jobs=in_flight,
        in_flight_min_jobs=least if in_flight is None else None,
    )


@pytest.mark.parametrize(
    ("values", "breach"),
    [
        ({"waiting_jobs": 2, "waiting_min_jobs": 3}, "waiting_min_jobs=3 exceeds waiting_jobs=2"),
        ({"in_flight_jobs": 2, "in_flight_min_jobs": 3}, "in_flight_min_jobs=3 exceeds in_flight_jobs=2"),
        ({"waiting_jobs": None}, "give waiting_jobs, or at least waiting_min_jobs"),
        ({"in_flight_min_jobs": -1}, "in_flight_min_jobs=-1 is negative"),
    ],
)
def test_bounds_that_cross_are_refused(values: dict[str, Any], breach: str) -> None:
    with pytest.raises(Invalid, match=breach):
        sampled(**values)


@given(exact=COUNTS, least=COUNTS)
def test_a_sample_is_valid_where_its_bound_is_below_its_figure(exact: int, least: int) -> None:
    if least <= exact:
        assert sampled(in_flight_jobs=exact, in_flight_min_jobs=least).in_flight_jobs == exact
    else:
        with pytest.raises(Invalid):
            sampled(in_flight_jobs=exact, in_flight_min_jobs=least)


def test_the_newest_sample_gives_rows_without_a_figure_its_bound() -> None:
    known = queue(in_flight_jobs=None, sampled_at_s=NOW_S - 1.0)
    assert with_newest(known, sampled(in_flight_min_jobs=3)).in_flight_min_jobs == 3


def test_a_sample_of_another_time_gives_no_bound() -> None:
    known = queue(in_flight_jobs=None, sampled_at_s=NOW_S - 2.0 - TOGETHER_S)
    assert with_newest(known, sampled(in_flight_min_jobs=3)).in_flight_min_jobs is None


def test_a_bound_takes_the_place_of_no_figure() -> None:
    known = queue(in_flight_jobs=5, sampled_at_s=NOW_S - 1.0)
    assert with_newest(known, sampled(in_flight_min_jobs=3)) is known
    exact = queue(in_flight_jobs=None, sampled_at_s=NOW_S - 1.0)
    assert with_newest(exact, sampled(in_flight_jobs=3, in_flight_min_jobs=3)) is exact


def test_what_is_reserved_is_known_where_what_runs_is_not() -> None:
    known = queue(in_flight_jobs=None, sampled_at_s=NOW_S - 1.0)
    assert with_newest(known, sampled(in_flight_min_jobs=3, reserved_jobs=3)).reserved_jobs == 3


def test_a_direct_sample_takes_its_bounds_along() -> None:
    direct = overlaid(queue(sampled_at_s=NOW_S - 60.0), sampled(waiting_jobs=None, waiting_min_jobs=4))
    assert (direct.waiting_jobs, direct.waiting_min_jobs) == (None, 4)


@given(waiting=st.tuples(MAYBE, MAYBE), in_flight=st.tuples(MAYBE, MAYBE), least=st.tuples(COUNTS, COUNTS))
def test_the_members_of_a_pool_have_a_figure_together_only_where_each_has_one(
    waiting: tuple[int | None, int | None], in_flight: tuple[int | None, int | None], least: tuple[int, int]
) -> None:
    members = [
        member(name, *depths, least=bound)
        for name, depths, bound in zip("ab", zip(waiting, in_flight, strict=True), least, strict=True)
    ]
    together = pooled(members)
    assert (together.waiting_jobs is None) == (None in waiting)
    assert (together.in_flight_jobs is None) == (None in in_flight)
    assert together.waiting_least_jobs == sum(each.waiting_least_jobs for each in members)
    assert together.in_flight_least_jobs == sum(each.in_flight_least_jobs for each in members)
    assert (together.in_flight_min_jobs is None) == (None not in in_flight)


def test_at_least_so_many_waiting_jobs_ask_for_workers_and_lower_nothing() -> None:
    at_least = queue(waiting_jobs=None, waiting_min_jobs=6, oldest_age_s=9.0, service_time_s=30.0)
    asleep = view(at_least, running_workers=0, assigned_workers=0)
    assert decide(asleep, Memory(target_workers=0), now_s=NOW_S)[0].target_workers == 6
    none_for_sure = replace(at_least, waiting_min_jobs=0, oldest_age_s=0.0)
    awake = view(none_for_sure, running_workers=4, assigned_workers=4, busy_workers=0)
    decision, _ = decide(awake, Memory(target_workers=4), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (4, "hold_stale")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"waiting_jobs": None, "waiting_min_jobs": 1}, "In its queue at least 1 job waits"),
        ({"waiting_jobs": None, "waiting_min_jobs": 0}, "In its queue the number of waiting jobs is unknown"),
        (
            {"in_flight_jobs": None, "in_flight_min_jobs": 3},
            "In its queue no job waits to be taken, workers have at least 3 jobs, how many of them have not begun",
        ),
        (
            {"in_flight_jobs": None, "in_flight_min_jobs": 3, "reserved_jobs": 1},
            "In its queue no job waits, workers have at least 3 jobs, 1 job is reserved and not begun",
        ),
        (
            {"in_flight_jobs": None, "in_flight_min_jobs": 0},
            "In its queue no job waits, the number of running jobs is unknown",
        ),
    ],
)
def test_a_decision_says_what_is_a_bound(known: dict[str, Any], said: str) -> None:
    seen = view(queue(**known), running_workers=1, assigned_workers=1)
    decision, _ = decide(seen, Memory(target_workers=1), now_s=NOW_S)
    assert any(sentence.startswith(said) for sentence in explained(decision))


@pytest.mark.parametrize(
    ("known", "is_known"),
    [
        ({"in_flight_jobs": 3}, True),
        ({"in_flight_jobs": None}, True),  # its source counts no jobs that workers have
        ({"in_flight_jobs": None, "in_flight_min_jobs": 3}, False),
        ({"in_flight_jobs": None, "in_flight_min_jobs": 3, "reserved_jobs": 0}, True),
        ({"in_flight_jobs": None, "in_flight_min_jobs": 0}, True),  # workers hold none
        (
            {"in_flight_jobs": None, "in_flight_min_jobs": 0, "oldest_age_s": None},
            False,
        ),  # not all that they hold was read
    ],
)
def test_jobs_that_workers_hold_may_wait_where_it_is_unknown_how_many_are_reserved(
    known: dict[str, Any], is_known: bool
) -> None:
    assert queue(**known).is_wait_known is is_known


def test_an_unknown_wait_is_not_none_in_a_pool_and_in_its_decision() -> None:
    held = queue(in_flight_jobs=None, in_flight_min_jobs=2, oldest_age_s=None, has_unknown_rates=True)
    assert pooled([held, queue(queue="redis/news")]).oldest_age_s is None
    assert pooled([held, queue(queue="redis/news", waiting_jobs=1, oldest_age_s=3.0)]).oldest_age_s == 3.0
    decision, _ = decide(view(held, running_workers=1, assigned_workers=1), Memory(target_workers=1), now_s=NOW_S)
    assert decision.metrics[0].oldest_age_s is None
