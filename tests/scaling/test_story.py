"""What makes a decision worth a row: a target, a reason, a circumstance; never a figure that is measured anew."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decisions.change_detection import is_new
from headway.scaling.model import Decision, Memory, Mode
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by_every_strategy, views
from support.installed import decide
from support.pools import NOW_S, held, profile, queue, view

EVALUATIONS = 100
TICK_S = 5.0
DECISION = Decision(pool="mail", at_s=NOW_S, target_workers=3, binding="wake", notes=("no host has room",))


def rows(decisions: list[Decision]) -> int:
    """How many of them are stored, heartbeats apart."""
    stored: list[Decision] = []
    for each in decisions:
        if is_new(each, stored[-1] if stored else None):
            stored.append(each)
    return len(stored)


@pytest.mark.parametrize(
    "changes",
    [
        {"target_workers": 4},
        {"binding": "hold_down"},
        {"mode": Mode.PAUSE},
        {"notes": ()},
        {"notes": ("no host has room", "metrics are older than 20 s")},
        {"notes": ("no host is known",)},
    ],
)
def test_a_new_target_reason_or_circumstance_is_news(changes: dict[str, object]) -> None:
    assert is_new(DECISION, None)
    assert not is_new(replace(DECISION, at_s=NOW_S + TICK_S), DECISION)
    assert is_new(replace(DECISION, **changes), DECISION)


@pytest.mark.parametrize(
    ("one", "other", "are_news"),
    [
        ("metrics are 60 s old", "metrics are 65 s old", False),
        ("what arrives keeps 12.5 workers busy", "what arrives keeps 9 workers busy", False),
        ("0.04 of 1.2e+02 jobs a second are retries", "0.5 of 3 jobs a second are retries", False),
        ("1,200 jobs arrive together", "90 jobs arrive together", False),
        ("workers_max=4 cannot keep up", "workers_max=5 cannot keep up", True),
        ("queue redis/mail-1 has not been seen", "queue redis/mail-2 has not been seen", True),
        ("queue redis/1 has not been seen", "queue redis/2 has not been seen", True),
        ("paused until 2026-11-27T08:00Z", "paused until 2026-11-27T09:30Z", True),
        ("workers 4..100 by schedule", "workers 4..6 by schedule", True),
    ],
)
def test_figures_are_none_and_names_settings_and_moments_are(one: str, other: str, are_news: bool) -> None:
    assert is_new(replace(DECISION, notes=(one,)), replace(DECISION, notes=(other,))) is are_news


@LAW
@given(view=views(sampled_ago_s=st.floats(21, 3_000), is_plain=True), memory=MEMORIES)
def test_a_pool_that_stays_stale_makes_at_most_one_row_of_its_notes(view: PoolView, memory: Memory) -> None:
    """With every strategy; a target that still rises, or its reason, is a row of its own."""
    for seen in by_every_strategy(replace(view, direct=())):
        decisions, after = [], memory
        for number in range(0, EVALUATIONS, 2):  # stale metrics are the same at each
            decision, after = decide(seen, after, now_s=NOW_S + TICK_S * number)
            decisions.append(replace(decision, target_workers=0, binding="any"))
        # What may be spent grows meanwhile, until it pays for all that is wanted: one row more.
        assert rows(decisions) <= (2 if seen.profile.strategy == "budget_aware" else 1), seen.profile.strategy


def test_a_fallback_that_comes_into_force_is_one_row_more() -> None:
    seen = replace(view(queue(in_flight_jobs=6)), profile=profile(fallback_workers=2))
    decisions, memory = [], held(6)
    for number in range(EVALUATIONS):
        decision, memory = decide(seen, memory, now_s=NOW_S + TICK_S * number)
        decisions.append(decision)
    assert decisions[-1].target_workers == 2
    assert rows(decisions) == 3  # fresh, stale, on the fallback


def test_a_load_that_scatters_makes_no_rows_of_a_ceiling_that_cannot_keep_up() -> None:
    decisions, memory = [], held(2)
    for number in range(EVALUATIONS):
        now_s = NOW_S + TICK_S * number
        member = queue(
            sampled_at_s=now_s, in_flight_jobs=2, arrival_rate_per_s=5.0 + number % 7 / 10, service_time_s=1.0
        )
        seen = replace(view(member), profile=profile(workers_max=2))
        decision, memory = decide(seen, memory, now_s=now_s)
        decisions.append(replace(decision, binding="any"))
    assert any("cannot keep up" in note for note in decisions[-1].notes)
    assert rows(decisions) == 1
