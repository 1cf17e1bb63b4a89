"""What a stepping controller does with observations that no sane queue gives: it refuses them by name, or it holds."""

import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.simulate import Controller, Observation
from support.installed import INSTALLED

NOW_S = 1_760_000_000.0
COUNTS = st.integers(0, 500)
OBSERVATIONS = st.builds(
    Observation,
    at_s=st.just(NOW_S),
    waiting=COUNTS,
    oldest_age_s=st.none() | st.floats(0, 10_000),
    arrived=COUNTS,
    started=COUNTS,
    finished=COUNTS,
    service_sum_s=st.floats(0, 10_000),
    workers=COUNTS,
    busy=COUNTS,
    idle=COUNTS,
    starting=COUNTS,
    pickup_max_s=st.none() | st.floats(0, 10_000),
)
STEPS_S = st.sampled_from([0.0, 0.001, 5.0, 5.0, 5.0, 60.0, 86_400.0, 3e7, -5.0, -86_400.0])


@pytest.mark.parametrize("strategy", sorted(INSTALLED))
@given(
    observations=st.lists(st.tuples(STEPS_S, OBSERVATIONS), max_size=8),
    low=st.integers(0, 5),
    room=st.integers(0, 50),
    start_up_s=st.sampled_from([0.0, 2.0, 30.0]),
)
def test_any_observations_keep_the_bounds_and_never_crash(
    strategy: str, observations: list[tuple[float, Observation]], low: int, room: int, start_up_s: float
) -> None:
    """Counts that contradict each other, the same observation twice, silences of a year, clocks that are set back."""
    bounds = {"workers_min": low, "workers_max": low + room}
    controller = Controller(strategy=strategy, strategies=INSTALLED, start_up_s=start_up_s, **bounds)
    at_s = NOW_S
    for step_s, observation in observations:
        at_s += step_s
        decision = controller.step(replace(observation, at_s=at_s))
        assert low <= decision.target_workers <= low + room
        assert 0 <= decision.burst_workers <= decision.target_workers
        assert all(0 <= demand.slots < math.inf for demand in decision.demands)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("name", sorted(set(asdict(Observation(at_s=0.0, waiting=0))) - {"at_s", "rows", "delayed"}))
def test_an_observation_with_what_is_no_number_is_refused_by_name(name: str, nonsense: float) -> None:
    with pytest.raises(Invalid, match=f"{name}="):
        replace(Observation(at_s=NOW_S, waiting=20, oldest_age_s=9.0), **{name: nonsense})


def test_all_values_that_are_no_numbers_are_reported_together() -> None:
    with pytest.raises(Invalid) as refused:
        Observation(at_s=math.nan, waiting=-1, oldest_age_s=math.inf)
    assert len(refused.value.breaches) == 3


@pytest.mark.parametrize("at_s", [math.nan, math.inf, -math.inf])
def test_an_observation_at_no_time_is_refused(at_s: float) -> None:
    with pytest.raises(Invalid, match="at_s"):
        Controller().step(Observation(at_s=at_s, waiting=1))


def test_nothing_but_zeroes_wants_nothing() -> None:
    controller = Controller()
    for tick in range(20):
        decision = controller.step(Observation(at_s=NOW_S + 5.0 * tick, waiting=0))
    assert (decision.target_workers, decision.binding) == (0, "idle")


def test_jobs_that_take_no_time_are_decided_on() -> None:
    """A start-up beyond the objective: a worker that stands is weighed by the jobs that it could start."""
    controller = Controller(start_up_s=30.0)
    decision = controller.step(Observation(at_s=NOW_S, waiting=0, arrived=1, finished=1, service_sum_s=0.0))
    assert decision.target_workers >= 0
