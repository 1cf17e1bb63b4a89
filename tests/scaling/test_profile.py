from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.model import Mode, Objective
from headway.scaling.profile import Forecast, Override, Pause, Profile, profile_from_mapping, profile_to_mapping
from headway.scaling.profile_keys.presets import PRESETS
from headway.scaling.profile_keys.schedule import Schedule
from support.pools import profile

SMALLEST = {"queues": ["redis/mail"], "template": "rq"}
STORED_BY_0_1 = {
    "queues": ["redis/mail"],
    "template": "rq",
    "mode": "pause_up",
    "objective": {"target_s": 5.0, "percentile": 95.0, "window_s": 60.0},
    "workers_min": 1,
    "workers_max": 8,
    "priority": 50,
    "strategy": "hybrid",
    "hold_down_s": 20.0,
    "stale_after_s": 30.0,
    "service_time_guess_s": 2.0,
}


def breaches(values: dict[str, Any]) -> list[str]:
    with pytest.raises(Invalid) as raised:
        profile_from_mapping("mail", SMALLEST | values)
    return [breach.removeprefix("profile 'mail': ") for breach in raised.value.breaches]


def test_a_profile_survives_its_mapping() -> None:
    original = profile(
        mode=Mode.PAUSE_UP,
        objective=Objective(target_s=3.0, percentile=95.0),
        queues=("redis/mail", "redis/news"),
        member_objectives={"redis/news": Objective(target_s=60.0)},
        pause=Pause(mode=Mode.PAUSE_DOWN, reason="a migration", until_s=1.7e9),
        override=Override(workers=4, until_s=1.8e9, reason="sale"),
        schedules=(Schedule(starts="22:00", ends="06:00", days=("fri",), time_zone="Europe/Berlin", workers_max=3),),
        preset="bursty",
        workers_min=1,
        forecast=Forecast.HINT,
        strategy_options={"threshold_jobs": 10.0},
        step_down_fraction=0.25,
        cost_per_worker_hour=0.04,
        budget_per_day=5.0,
    )
    assert profile_from_mapping("mail", profile_to_mapping(original)) == original


def test_a_profile_stored_by_the_first_version_is_read_as_it_was_meant() -> None:
    read = profile_from_mapping("mail", STORED_BY_0_1)
    assert read == Profile(
        pool="mail",
        queues=("redis/mail",),
        template="rq",
        mode=Mode.PAUSE_UP,
        objective=Objective(target_s=5.0, percentile=95.0, window_s=60.0),
        workers_min=1,
        workers_max=8,
        priority=50,
        hold_down_s=20.0,
        stale_after_s=30.0,
        service_time_guess_s=2.0,
    )


def test_without_a_preset_the_defaults_hold() -> None:
    assert profile_from_mapping("mail", SMALLEST) == Profile(pool="mail", queues=("redis/mail",), template="rq")


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_is_a_valid_profile_and_survives_its_mapping(name: str) -> None:
    made = profile_from_mapping("mail", {**SMALLEST, "preset": name})
    assert made.preset == name
    assert profile_from_mapping("mail", profile_to_mapping(made)) == made


def test_a_presets_values_are_overridden_key_by_key() -> None:
    made = profile_from_mapping(
        "mail", {**SMALLEST, "preset": "critical", "workers_max": 80, "objective": {"target_s": 5}}
    )
    assert (made.workers_min, made.workers_max) == (5, 80)
    assert made.objective == Objective(target_s=5.0, percentile=99.0, window_s=120.0)


def test_a_preset_and_a_key_that_contradicts_it_are_reported() -> None:
    assert breaches({"preset": "critical", "workers_max": 3}) == ["workers_min=5 exceeds workers_max=3"]
    assert breaches({"preset": "exclusive", "workers_min": 0, "workers_max": 0}) == [
        "pinned=1 lies outside workers_min=0..workers_max=0"
    ]


def test_a_members_objective_takes_the_rest_from_the_pools() -> None:
    made = profile_from_mapping(
        "mail",
        {
            "queues": ["redis/mail", "redis/news"],
            "template": "rq",
            "objective": {"target_s": 5, "percentile": 95},
            "member_objectives": {"redis/news": {"target_s": 60}},
        },
    )
    assert made.objective_of("redis/news") == Objective(target_s=60.0, percentile=95.0)
    assert made.objective_of("redis/mail") == made.objective


def test_a_pool_helps_with_queues_of_others_by_name() -> None:
    made = profile_from_mapping("mail", {**SMALLEST, "helps": ["redis/news", "redis/bulk"]})
    assert made.helps == ("redis/news", "redis/bulk")
    assert profile_from_mapping("mail", profile_to_mapping(made)) == made


def test_a_queue_that_a_pool_cannot_help_with_is_refused_by_name() -> None:
    """Its own, one named twice, a pattern, the pool itself, and one that shares its own name with another."""
    assert breaches(
        {
            "queues": ["redis/mail", "redis/news"],
            "helps": ["redis/mail", "redis/bulk", "redis/bulk", "redis/shop-*", "mail", "bulk", "eu/news", "eu/bulk"],
        }
    ) == [
        "helps: queue 'redis/mail' is among queues: the pool owns it and serves it anyway",
        "helps names queue 'redis/bulk' twice",
        "helps: 'redis/shop-*' is a pattern; name each queue, as the template's command line does",
        "helps: 'mail' is this pool itself; name queues of other pools, as 'connection/queue'",
        "helps: 'bulk' is no queue; name queues of other pools, as 'connection/queue'",
        "helps: queue 'eu/news' has the name of 'redis/news': whose job a worker runs is unknown",
        "helps names 2 queues called 'bulk': whose job a worker runs is unknown",
    ]


def test_every_mistake_is_reported_at_once() -> None:
    """Unknown keys, wrong types and contradictions in one answer, and no rule about a value that nobody wrote."""
    reported = breaches(
        {
            "queues": "redis/mail",
            "wokers_max": 3,
            "objective": {"target": 1},
            "mode": "go",
            "workers_min": 30,
            "workers_max": "many",
            "hold_up_s": -1,
            "budget_per_hour": 3,
            "member_objectives": {"redis/other": {"target_s": "soon"}},
            "schedules": [{"starts": "8", "ends": "09:00"}, {"starts": "08:00", "ends": "09:00", "workers_min": 40}],
            "override": {"workers": 3, "until_s": "tomorrow", "reason": "x"},
            "strategy_options": {"x": "y"},
        }
    )
    assert reported[1] == "unknown key 'wokers_max'; did you mean 'workers_max'?"
    del reported[1]
    assert reported == [
        "queues='redis/mail': expected a list of text",
        "objective: unknown key 'target'; did you mean 'target_s'?",
        "mode='go': expected one of act, recommend, pause, pause_up, pause_down",
        "workers_max='many': expected a whole number in 0..10000",
        "hold_up_s=-1 must lie in 0..86400 seconds",
        "member_objectives.redis/other.target_s='soon': expected a number above 0, up to 86400 seconds",
        "schedules[0]: starts='8' is no time as 08:00 and no date and time as 2026-11-27T08:00",
        "schedules[0]: names neither workers_min nor workers_max: it would move nothing",
        "override.until_s='tomorrow': expected a time with its zone, as 2026-11-27T08:00+01:00 or 2026-11-27T07:00Z",
        "strategy_options.x='y': expected a number in -1000000000..1000000000",
        "budget_per_hour needs cost_per_worker_hour: without it no count of workers has a price",
    ]


def test_what_is_missing_is_reported_beside_what_is_wrong() -> None:
    with pytest.raises(Invalid) as raised:
        profile_from_mapping("mail", {"queues": ["q"], "workers_min": 5, "workers_max": 3})
    assert raised.value.breaches == (
        "profile 'mail': template is missing",
        "profile 'mail': workers_min=5 exceeds workers_max=3",
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"preset": "urgent"}, "preset 'urgent' is not known; known: critical, high_volume, balanced"),
        ({"pinned": 30}, "pinned=30 lies outside workers_min=0..workers_max=20"),
        (
            {"pinned": 2, "schedules": [{"starts": "08:00", "ends": "09:00", "workers_min": 1}]},
            "pinned=2 and schedules contradict each other: a pinned count does not move",
        ),
        (
            {"schedules": [{"starts": "08:00", "ends": "09:00", "workers_min": 30}]},
            "schedules[0]: workers_min=30 exceeds workers_max=20 while it is active",
        ),
        (
            {"member_objectives": {"redis/other": {"target_s": 5}}},
            "member_objectives: queue 'redis/other' is not among queues",
        ),
        ({"fallback_workers": 0}, "fallback_workers=0 must lie in 1..10000: no failed source empties a pool"),
        (
            {"fallback_workers": 2, "fallback_after_s": 10},
            "fallback_after_s=10 is below stale_after_s=20",
        ),
        (
            {"fallback": "if_highr", "fallback_workers": 2},
            "fallback='if_highr': expected one of fixed, current, if_higher, if_lower; did you mean 'if_higher'?",
        ),
        ({"fallback": "currentReplicas"}, "fallback='currentReplicas': expected one of fixed, current"),
        ({"fallback": "if_lower"}, "fallback=if_lower needs fallback_workers, to compare the present count with"),
        (
            {"fallback": "current", "fallback_workers": 2},
            "fallback=current keeps the present count, not fallback_workers=2: leave out one of them",
        ),
        (
            {"fallback_workers": 2, "fallback_after_evaluations": 0},
            "fallback_after_evaluations=0 must lie in 1..17280",
        ),
        (
            {"fallback_after_evaluations": 3},
            "fallback_after_evaluations=3 needs fallback_workers, or fallback: current",
        ),
        (
            {"fallback_workers": 2, "fallback_after_evalutions": 3},
            "unknown key 'fallback_after_evalutions'; did you mean 'fallback_after_evaluations'?",
        ),
        ({"pause": {"reason": " "}}, "pause: reason is empty"),
        ({"pause": {"mode": "act"}}, "pause: pause.mode='act': expected one of pause, pause_up, pause_down"),
        ({"pause": {"mode": "stop"}}, "pause.mode='stop': expected one of"),
        ({"pause": {"until_s": "tomorrow"}}, "pause.until_s='tomorrow': expected a time with its zone"),
        ({"pause": {"until_s": float("nan")}}, "pause.until_s=nan is no time of this age"),
        ({"pause": {"for": "30m"}}, "pause: unknown key 'for'; known: mode, reason, until_s"),
        ({"pause": "30m"}, "pause: expected keys and values, got str"),
        ({"pause": {}, "mode": "recommend"}, "pause: mode is recommend: nothing moves that could be paused"),
        ({"override": {"workers": 1, "until_s": 1, "reason": " "}}, "override: reason is empty"),
        ({"override": {"workers": 1, "reason": "x"}}, "override: until_s is missing"),
        ({"tolerance_fraction": 1.0}, "tolerance_fraction=1.0 must lie in 0..1"),
        ({"risk": 0}, "risk=0 must lie above 0, up to 100"),
        ({"objective": {"target_s": 0}}, "objective.target_s=0 must lie above 0, up to 86400 seconds"),
        ({"failure_limit": {"share": 20}}, "failure_limit.share=20 must lie in 0..1, exclusive of 1: 0.2 is 20 %"),
        ({"strategy_options": {"x": 1e10}}, "strategy_options.x=10000000000.0 must lie in -1000000000..1000000000"),
        ({"weight": float("nan")}, "weight=nan must lie above 0"),
        ({"step_up_workers": 0}, "step_up_workers=0 must lie in 1..10000"),
        ({"forecast": "sure"}, "forecast='sure': expected one of auto, off, hint, moderate, aggressive"),
        ({"schedules": ["08:00"]}, "schedules[0]: expected keys and values, got str"),
        ({"schedules": "08:00"}, "schedules='08:00': expected a list of keys and values"),
        ({"member_objectives": ["x"]}, "member_objectives=['x']: expected names and values"),
    ],
)
def test_contradictions_are_refused_by_name(values: dict[str, Any], says: str) -> None:
    (reported,) = breaches(values)
    assert reported.startswith(says)


def test_bounds_are_those_of_a_value_as_of_a_mapping() -> None:
    wrong = {
        "objective": Objective(percentile=100.0),
        "member_objectives": {"redis/mail": Objective(window_s=901.0)},
        "schedules": (Schedule(starts="08:00", ends="09:00", workers_max=10_001),),
        "strategy_options": {"x": float("inf")},
        "step_up_fraction": 0.0,
    }
    with pytest.raises(Invalid) as raised:
        profile(queues=("redis/mail",), **wrong)
    assert [breach.partition(": ")[2] for breach in raised.value.breaches] == [
        "objective.percentile=100.0 must lie between 0 and 100",
        "member_objectives.redis/mail.window_s=901.0 must lie above 0, up to 900",
        "schedules[0].workers_max=10001 must lie in 0..10000",
        "strategy_options.x=inf must lie in -1000000000..1000000000",
        "step_up_fraction=0.0 must lie above 0, up to 10000: 0.5 is half of the last target",
    ]


def test_contradictions_are_refused_in_a_value_as_in_a_mapping() -> None:
    with pytest.raises(Invalid, match=r"profile 'mail': workers_min=5 exceeds workers_max=3"):
        profile(workers_min=5, workers_max=3)


@pytest.mark.parametrize(
    "values",
    [
        {"queues": ()},
        {"queues": ("a", "a")},
        {"pool": ""},
        {"pool": "a/b"},
        {"objective": Objective(target_s=0.0)},
        {"objective": Objective(percentile=100.0)},
        {"objective": Objective(target_s=float("inf"))},
        {"objective": Objective(target_s=float("nan"))},
        {"objective": Objective(window_s=901.0)},
        {"pool": "ma\0il"},
        {"priority": -1},
        {"priority": 10**9},
        {"override": Override(workers=1, until_s=float("nan"), reason="x")},
        {"strategy_options": {"x": float("inf")}},
    ],
)
def test_nonsense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        profile(**values)


def test_a_number_too_great_for_a_float_is_a_mistake_and_no_crash() -> None:
    with pytest.raises(Invalid, match="hold_down_s"):
        profile_from_mapping("mail", {"queues": ["q"], "template": "t", "hold_down_s": 10**400})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from([*profile_to_mapping(profile()), "colour"])


@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_any_mapping_is_a_profile_or_a_list_of_mistakes(values: dict[str, Any]) -> None:
    try:
        made = profile_from_mapping("mail", SMALLEST | values)
    except Invalid:
        return
    assert profile_from_mapping("mail", profile_to_mapping(made)) == made
