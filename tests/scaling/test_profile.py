import pytest

from headway.errors import Invalid
from headway.scaling.model import Mode, Objective
from headway.scaling.profile import profile_from_mapping, profile_to_mapping
from scaling.pools import profile


def test_a_profile_survives_its_mapping() -> None:
    original = profile(mode=Mode.PAUSE_UP, objective=Objective(target_s=3.0, percentile=95.0), workers_min=1)
    assert profile_from_mapping("mail", profile_to_mapping(original)) == original


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        profile_from_mapping(
            "mail", {"queues": "redis/mail", "wokers_max": 3, "objective": {"target": 1}, "mode": "go"}
        )
    told = str(caught.value)
    for word in (
        "wokers_max",
        "queues='redis/mail'",
        "objective: unknown key 'target'",
        "mode='go'",
        "template is missing",
    ):
        assert word in told


def test_contradictions_are_refused_by_name() -> None:
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
        {"pool": "ma\0il"},
        {"priority": -1},
        {"priority": 10**9},
    ],
)
def test_nonsense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        profile(**values)


def test_a_number_too_great_for_a_float_is_a_mistake_and_no_crash() -> None:
    with pytest.raises(Invalid, match="hold_down_s"):
        profile_from_mapping("mail", {"queues": ["q"], "template": "t", "hold_down_s": 10**400})
