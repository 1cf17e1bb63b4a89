"""A decision's sentences, read off the value alone."""

from dataclasses import replace
from typing import Any

import pytest

from headway.scaling.decide import decide
from headway.scaling.explain import explained
from headway.scaling.explanations.explanation import explanation_of
from headway.scaling.explanations.own_wording import OWN
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.model import (
    Decision,
    Demand,
    Memory,
    Mode,
    Note,
    NoteFact,
    NoteKind,
    Objective,
    QueueMetrics,
    Step,
)
from headway.scaling.policy.limits import in_order
from headway.scaling.profile import Profile
from headway.scaling.strategies.shared import at_once
from headway.scaling.view import PoolView
from support.installed import INSTALLED
from support.pools import NOW_S as POOL_NOW_S
from support.pools import queue
from support.pools import view as pool_view

NOW_S = 1_800_000_000.0
QUEUE = QueueMetrics(
    queue="redis/mail",
    sampled_at_s=NOW_S,
    waiting_jobs=24,
    in_flight_jobs=6,
    oldest_age_s=4.0,
    arrival_rate_per_s=10.0,
    service_time_s=2.0,
)
EMPTY = replace(QUEUE, waiting_jobs=0, in_flight_jobs=0, oldest_age_s=0.0, arrival_rate_per_s=0.0)
DECISION = Decision(
    pool="mail",
    at_s=NOW_S,
    target_workers=9,
    binding="backlog_drain",
    objective=Objective(target_s=10.0, percentile=99.0),
    demands=(
        Demand(name="steady_state", slots=2.5),
        Demand(name="trend", slots=0.0),
        Demand(name="backlog_drain", slots=8.75),
    ),
    steps=(Step(name="wanted", workers=9), Step(name="hold_down", workers=9)),
    metrics=(QUEUE,),
    running_workers=4,
    starting_workers=2,
    predicted_pickup_s=4.5,
)

SEEN = (
    "In its queue 24 jobs wait (the oldest for 4 s), 6 jobs are running and 10 a second arrive, "
    "each with a service time of 2 s."
)


def decided(
    memory: Memory | None = None, *, queue: QueueMetrics = QUEUE, capacity_workers: int | None = 100, **changes: object
) -> str:
    """The explanation of a pool that is as ``changes`` say."""
    of_view = {name: changes.pop(name) for name in list(changes) if name.endswith("_workers")}
    profile = replace(Profile(pool="mail", queues=("redis/mail",), template="rq"), **changes)
    view = PoolView(profile=profile, queues=(queue,), start_up_s=1.0, capacity_workers=capacity_workers, **of_view)
    decision, _ = decide(view, memory or Memory(), now_s=NOW_S)
    return " ".join(explained(decision))


def test_a_decision_is_explained_from_the_outcome_to_its_grounds() -> None:
    assert explained(DECISION, previous_workers=6) == (
        "Pool mail should have 9 workers; the previous target was 6.",
        "4 run and 2 are starting, so 3 more are needed.",
        SEEN,
        "The greatest demand decides: starting every waiting job in time takes 8.8 slots; that is 9 workers.",
        "Lower demands: arriving jobs keep 2.5 slots busy.",
        "No workers are asked for by trend.",
        "No limit changes the count.",
        "A job that arrives now should start after about 4.5 s, in time: 99 % are to start within 10 s.",
    )


@pytest.mark.parametrize("name", OWN.demands)
def test_each_demand_that_decides_is_shown_with_its_slots(name: str) -> None:
    explanation = explained(replace(DECISION, demands=(Demand(name=name, slots=3.25),), binding=name))
    assert any(
        sentence.startswith("The greatest demand decides") and "3.2 slots" in sentence for sentence in explanation
    )


def test_a_demand_or_limit_of_another_strategy_is_shown_by_its_name() -> None:
    decision = replace(
        DECISION,
        demands=(Demand(name="moon_phase", slots=1.0),),
        steps=(Step(name="wanted", workers=9), Step(name="full_moon", workers=4)),
    )
    explanation = " ".join(explained(decision))
    assert "moon phase wants 1 slot; that is 9 workers" in explanation
    assert "The limit “full moon” lowers the count from 9 to 4." in explanation


def test_every_limit_that_headway_has_is_explained_in_words() -> None:
    ways_down = {strategy.come_down for strategy in INSTALLED.values()} - {at_once}
    names = {limit.name for way in ways_down for limit in in_order(way)}
    of_strategies = {name for strategy in INSTALLED.values() for name in strategy.wording.limits}
    assert sorted(names - OWN.limits.keys() - of_strategies) == []


@pytest.mark.parametrize(
    ("retry_rate_per_s", "says"),
    [
        (4.0, "10 a second arrive, 40 % of them retries, each with a service time of 2 s"),
        (0.01, "10 a second arrive, each"),
    ],
)
def test_how_many_of_the_arrivals_came_back_is_said_where_any_did(retry_rate_per_s: float, says: str) -> None:
    busy = queue(
        waiting_jobs=1, arrival_rate_per_s=10.0, retry_rate_per_s=retry_rate_per_s, service_time_s=2.0, oldest_age_s=0.0
    )
    explanation = explained(decide(pool_view(busy), Memory(), now_s=POOL_NOW_S)[0])
    assert any(says in sentence for sentence in explanation)


def moved(name: str, before: int, after: int, **changes: Any) -> str:
    """The explanation where the limit ``name`` takes the count from ``before`` to ``after``."""
    steps = (Step(name="wanted", workers=before), Step(name=name, workers=after))
    return " ".join(explained(replace(DECISION, steps=steps, binding=name, target_workers=after, **changes)))


@pytest.mark.parametrize(
    ("explanation", "sentence"),
    [
        (moved("workers_max", 20, 5), "The profile allows at most 5, so 20 become 5."),
        (moved("workers_min", 0, 2), "The profile keeps at least 2."),
        (
            moved("workers_max", 20, 17, unknown_workers=3),
            "The profile's ceiling leaves 17 of 20, because 3 workers may still run on unreachable hosts.",
        ),
        (
            moved("workers_max", 20, 15, unknown_workers=3, leaving_workers=2),
            (
                "The profile's ceiling leaves 15 of 20, because 3 workers may still run on unreachable hosts and "
                "2 workers asked to stop have not ended yet."
            ),
        ),
        (moved("capacity", 20, 12), "The hosts have capacity for 12 only: 8 workers short."),
        (
            moved("capacity", 20, 4, notes=("nothing can be started",), note_facts=(NoteFact(kind=NoteKind.NO_HOST),)),
            "No known host can run them: the count stays at 4.",
        ),
        (moved("pause", 20, 7), "The pool is paused: 7 stay, where 20 would be right."),
        (moved("hold_down", 0, 8), "None would be enough now, but not yet for long enough: 8 stay."),
        (moved("hold_down", 3, 8), "3 would be enough now, but not yet for long enough: 8 stay."),
        (moved("hold_up", 9, 4), "9 are needed, but not yet for long enough: 4 for now."),
        (moved("step", 20, 6), "20 would be right; the profile's steps lead to 6 for now."),
        (moved("override", 9, 3), "An operator has set an override of 3, where 9 would be right."),
        (moved("budget", 9, 3), "The budget pays for 3, not for 9."),
        (moved("rate_limit", 9, 3), "The rate limit allows 3; of 9, the others would only wait for the service."),
        (moved("pinned", 9, 3), "The pool is pinned to 3."),
        (moved("fallback", 0, 3), "Metrics have been missing for long: the fallback is 3."),
        (moved("share", 9, 3), "the pool's share is 3 of the 9 that it asks for."),
    ],
)
def test_each_limit_that_moved_the_count_has_its_sentence(explanation: str, sentence: str) -> None:
    assert sentence in explanation


@pytest.mark.parametrize("name", sorted(OWN.limits))
def test_a_limit_that_moved_nothing_is_not_shown(name: str) -> None:
    assert "No limit changes the count." in moved(name, 9, 9)


def test_a_real_decision_names_its_ceiling_and_its_pause() -> None:
    assert "The profile allows at most 7, so" in decided(workers_max=7)
    assert "The pool is paused: 6 stay" in decided(
        Memory(target_workers=6), mode=Mode.PAUSE, running_workers=6, queue=replace(QUEUE, waiting_jobs=500)
    )


def test_stale_figures_are_named_as_such_and_why_nothing_goes_down() -> None:
    explanation = decided(Memory(target_workers=9), queue=replace(EMPTY, sampled_at_s=NOW_S - 60), running_workers=9)
    assert "These metrics are stale: the oldest are from 60 s before the decision." in explanation
    assert "The metrics are stale, so the count does not fall: 9 stay, where 0 would be enough." in explanation
    assert "Metrics are older than 20 s: they lower nothing until fresh ones arrive." in explanation


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        (replace(EMPTY, waiting_jobs=None, waiting_min_jobs=0), "How many jobs wait is known only as a lower bound"),
        (replace(EMPTY, sampled_at_s=NOW_S - 7.0), "A queue has not been read for more than 6 s"),
    ],
)
def test_fresh_figures_that_lower_nothing_are_not_called_stale(queue: QueueMetrics, why: str) -> None:
    explanation = decided(Memory(target_workers=9), queue=queue, running_workers=9)
    assert f"{why}, so the count does not fall: 9 stay, where 0 would be enough." in explanation
    assert "stale" not in explanation


def test_advice_is_shown_as_advice() -> None:
    explanation = decided(mode=Mode.RECOMMEND, running_workers=1)
    assert "Headway starts and stops no worker for it" in explanation
    assert "advice" not in decided(running_workers=1)


def test_a_quiet_pool_says_so_in_few_words() -> None:
    explanation = decided(queue=EMPTY)
    assert "Pool mail should have no workers. None run: no change." in explanation
    assert "In its queue no job waits, no jobs are running and none arrives." in explanation
    assert "No demand asks for a worker. No limit changes the count." in explanation
    assert "A job that arrives now waits until a worker has started." in explanation


@pytest.mark.parametrize("mode", [Mode.PAUSE, Mode.PAUSE_UP])
def test_a_job_of_a_paused_pool_without_workers_waits_for_the_end_of_the_pause(mode: Mode) -> None:
    explanation = explained(
        replace(DECISION, mode=mode, target_workers=0, running_workers=0, starting_workers=0, predicted_pickup_s=None)
    )
    assert "A job that arrives now waits until the pause ends: `headway resume mail`." in explanation


def test_a_pool_that_was_never_seen_is_not_shown_as_empty() -> None:
    explanation = decided(queue=QueueMetrics(queue="redis/mail"), workers_min=1)
    assert "Its queues have no metrics yet." in explanation
    assert "no job waits" not in explanation
    assert "The wait of a new job is unknown." in explanation


def test_several_queues_are_explained_together_and_one_by_one() -> None:
    explanation = " ".join(
        explained(replace(DECISION, metrics=(QUEUE, replace(QUEUE, queue="redis/news", waiting_jobs=1))))
    )
    assert "In its queues together 25 jobs wait" in explanation
    assert "In redis/news 1 job waits (the oldest for 4 s)" in explanation


def test_too_many_workers_leave_idle_ones_first() -> None:
    explanation = explained(replace(DECISION, target_workers=5, running_workers=6, starting_workers=0, burst_workers=2))
    assert "6 run, so 1 is to stop, idle ones first." in explanation
    assert "2 of them are burst workers: they exit when the queue is empty." in explanation


def test_an_objective_that_will_be_breached_is_reported() -> None:
    explanation = explained(replace(DECISION, predicted_pickup_s=65.0))
    assert (
        "A job that arrives now should start after about 65 s, too late: 99 % are to start within 10 s." in explanation
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (1.0, "1 s"), (4.25, "4.2 s"), (119.0, "119 s"), (180.0, "3 min"), (9000.0, "2.5 h")],
)
def test_durations_are_shown_in_the_unit_a_reader_thinks_in(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_one_thing_is_not_explained_as_several() -> None:
    assert [counted(number, "worker") for number in (0, 1, 2)] == ["no workers", "1 worker", "2 workers"]


@pytest.mark.parametrize(
    ("jobs", "weeks", "explanation"),
    [
        (None, None, ""),
        (0.0, None, ""),
        (12.0, None, "The same minute of earlier days predicts 12 jobs more."),
        (1.2, 3, "This hour of the week, known from 3 earlier weeks, predicts 1 job more."),
        (0.4, 2, "This hour of the week, known from 2 earlier weeks, predicts no more jobs than arrive now."),
    ],
)
def test_what_the_past_predicts_is_shown_with_how_much_of_it_predicts_so(
    jobs: float | None, weeks: int | None, explanation: str
) -> None:
    pool = PoolView(
        profile=Profile(pool="mail", queues=("redis/mail",), template="rq"),
        queues=(QUEUE,),
        start_up_s=30.0,
        recalled_jobs=jobs,
        recalled_weeks=weeks,
    )
    decision, _ = decide(pool, Memory(), now_s=NOW_S)
    assert (decision.recalled_jobs, decision.recalled_weeks) == (jobs, weeks)
    sentences = explained(decision)
    assert (explanation in sentences) if explanation else not any("tells of" in sentence for sentence in sentences)


# What pages and tables show


def test_a_decision_has_labels_and_sentences_beside_its_names_and_numbers() -> None:
    steps = (Step(name="wanted", workers=20), Step(name="hold_down", workers=20), Step(name="workers_max", workers=9))
    shown = explanation_of(replace(DECISION, steps=steps, binding="workers_max"), previous_workers=6)
    assert (shown.change, shown.binding_label) == ("6 → 9", "profile's maximum")
    assert [(each.name, each.label, each.slots) for each in shown.demands] == [
        ("backlog_drain", "starting all waiting jobs in time", 8.75),
        ("steady_state", "keeping up with arrivals", 2.5),
        ("trend", "rising arrivals", 0.0),
    ]
    assert shown.demands[0].sentence == "Starting every waiting job in time takes 8.8 slots."
    assert [(each.label, each.workers, each.sentence, each.moved) for each in shown.steps] == [
        ("wanted", 20, None, False),
        ("delay before scaling down", 20, None, False),
        ("profile's maximum", 9, "The profile allows at most 9, so 20 become 9.", True),
    ]
    assert shown.why == (
        "24 jobs wait (the oldest for 4 s) and 6 jobs are running: starting every waiting job in time takes 8.8 slots. "
        "The profile allows at most 9, so 20 become 9."
    )


@pytest.mark.parametrize(("previous_workers", "change"), [(None, "set to 9"), (9, "kept at 9"), (12, "12 → 9")])
def test_what_changed_is_a_few_words(previous_workers: int | None, change: str) -> None:
    assert explanation_of(DECISION, previous_workers=previous_workers).change == change


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"demands": (Demand(name="steady_state", slots=20.0),)},
            "Of its jobs, 10 a second arrive, each with a service time of 2 s: arriving jobs keep 20 slots busy.",
        ),
        (
            {"demands": (Demand(name="standing", slots=1.0),)},
            "Workers start too slowly to react in time, so 1 slot must be pre-warmed.",
        ),
        ({"demands": (Demand(name="moon_phase", slots=1.0),)}, "Moon phase wants 1 slot."),
        ({"demands": (Demand(name="standing", slots=0.0),), "metrics": (EMPTY,)}, "Nothing waits and nothing arrives."),
        (
            {"demands": (), "metrics": (replace(EMPTY, arrival_rate_per_s=None),)},
            "No job waits and no jobs are running.",
        ),
        ({"demands": (), "metrics": (EMPTY,), "is_fresh": False}, ""),
        ({"demands": (), "metrics": (QueueMetrics(queue="redis/mail"),)}, ""),
    ],
)
def test_the_reason_begins_with_the_figures_that_the_greatest_demand_follows_from(
    changes: dict[str, Any], why: str
) -> None:
    assert explanation_of(replace(DECISION, steps=(), **changes), previous_workers=None).why == why


def test_a_note_that_a_limit_says_as_well_is_not_repeated() -> None:
    stale = Note(kind=NoteKind.STALE_METRICS, text="metrics are older than 20 s: they lower nothing")
    other = Note(kind=NoteKind.NO_ROOM, text="no host has room")
    steps = (Step(name="wanted", workers=4), Step(name="hold_stale", workers=9))
    held = replace(DECISION, steps=steps, is_fresh=False).with_notes(stale, other)
    assert explanation_of(held, previous_workers=9).why.endswith(
        "The metrics are stale, so the count does not fall: 9 stay, where 4 would be enough. No host has room."
    )
    kept = replace(DECISION, is_fresh=False).with_notes(stale)
    assert explanation_of(kept, previous_workers=9).why.endswith("Metrics are older than 20 s: they lower nothing.")


@pytest.mark.parametrize("strategy", sorted(INSTALLED))
def test_what_a_strategy_asks_for_has_words_of_its_own_or_of_headway(strategy: str) -> None:
    busy = queue(waiting_jobs=3, in_flight_jobs=1, oldest_age_s=60.0)
    decision, _ = decide(
        replace(pool_view(busy), profile=replace(pool_view(busy).profile, strategy=strategy)),
        Memory(),
        now_s=POOL_NOW_S,
        strategies=INSTALLED,
    )
    shown = explanation_of(decision, previous_workers=None, strategies=INSTALLED)
    assert shown.demands
    assert not [each.sentence for each in shown.demands if " wants " in each.sentence]


def test_the_words_of_a_strategy_are_for_its_own_decisions() -> None:
    balance = replace(DECISION, demands=(Demand(name="balance", slots=3.0),))
    own = explanation_of(replace(balance, strategy="horizon_time"), previous_workers=None, strategies=INSTALLED)
    assert own.demands[0].sentence == "The strategy's balance of the queues is at 3 slots."
    for strategy, known in (("hybrid", INSTALLED), ("horizon_time", {}), ("", INSTALLED)):
        shown = explanation_of(replace(balance, strategy=strategy), previous_workers=None, strategies=known)
        assert shown.demands[0].sentence == "Balance wants 3 slots."
