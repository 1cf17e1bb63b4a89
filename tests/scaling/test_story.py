"""What makes a decision worth a row: a target, a reason, a circumstance; never a figure that is measured anew."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decisions.change_detection import is_new
from headway.scaling.model import Decision, Memory, Mode, Note, NoteFact, NoteKind, QueueMetrics
from headway.scaling.planning.feasibility import feasibility
from headway.scaling.profile import Pause
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.reading.pool_times import PoolTimes
from headway.scaling.strategy import note_of
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, by_every_strategy, views
from support.installed import decide
from support.pools import NOW_S, held, profile, queue, view

EVALUATIONS = 100
TICK_S = 5.0
NO_ROOM = Note(kind=NoteKind.NO_ROOM, text="no host has room", about=("workers_min", "no host has room"))
DECISION = Decision(pool="mail", at_s=NOW_S, target_workers=3, binding="wake").with_notes(NO_ROOM)


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
        {"note_facts": ()},
        {"note_facts": (NO_ROOM.fact, NoteFact(kind=NoteKind.STALE_METRICS, about=("20 s",)))},
        {"note_facts": (NoteFact(kind=NoteKind.NO_HOST, about=("rq",)),)},
    ],
)
def test_a_new_target_reason_or_circumstance_is_news(changes: dict[str, object]) -> None:
    assert is_new(DECISION, None)
    assert not is_new(replace(DECISION, at_s=NOW_S + TICK_S), DECISION)
    assert is_new(replace(DECISION, **changes), DECISION)


def short_of(workers_max: int, rate_per_s: float, burst_jobs: float = 0.0) -> tuple[Note, ...]:
    """What is said of a pool of jobs of 1 s that so many workers do not keep up with."""
    of = profile(workers_max=workers_max)
    return feasibility(
        of,
        PoolTimes(known_start_up_s=8.0),
        arrival_rate_per_s=rate_per_s,
        service_time_s=1.0,
        burst_jobs=burst_jobs or None,
    )


def said_of(name: str = "redis/mail", **values: Any) -> tuple[Note, ...]:
    """What is said of a pool with a profile of ``values`` whose queue was never seen."""
    of = replace(view(QueueMetrics(queue=name)), profile=profile(queues=(name,), **values))
    decision, _ = decide(of, Memory(), now_s=NOW_S)
    notes = zip(decision.notes, decision.note_facts, strict=True)
    return tuple(Note(kind=NoteKind(fact.kind), text=text, about=fact.about) for text, fact in notes)


def paused(until_s: float) -> Pause:
    return Pause(mode=Mode.PAUSE, until_s=until_s, reason="deploying")


def lunch(workers_min: int) -> tuple[Schedule, ...]:
    return (Schedule(starts="13:00", ends="14:00", workers_min=workers_min, name="lunch"),)


@pytest.mark.parametrize(
    ("one", "other", "are_news"),
    [
        (short_of(4, 12.5), short_of(4, 9.0), False),
        (short_of(4, 1.0, burst_jobs=1_200), short_of(4, 1.0, burst_jobs=900), False),
        ((note_of("0.04 of 120 jobs are retries"),), (note_of("0.5 of 3 jobs are retries"),), False),
        (short_of(4, 12.5), short_of(5, 12.5), True),
        (said_of("redis/mail-1"), said_of("redis/mail-2"), True),
        (said_of("redis/1"), said_of("redis/2"), True),
        (said_of(pause=paused(NOW_S + 60)), said_of(pause=paused(NOW_S + 3_600)), True),
        (said_of(schedules=lunch(4)), said_of(schedules=lunch(6)), True),
    ],
)
def test_figures_are_none_and_names_settings_and_moments_are(
    one: tuple[Note, ...], other: tuple[Note, ...], are_news: bool
) -> None:
    assert [note.text for note in one] != [note.text for note in other]
    bare = replace(DECISION, notes=(), note_facts=())
    assert is_new(bare.with_notes(*one), bare.with_notes(*other)) is are_news


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
