"""What was measured of a pool's workers, and its way through JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.metrics.behaviour import (
    Behaviour,
    Spread,
    alone,
    behaviour_from_mapping,
    behaviour_to_mapping,
    mean_s,
    spread_of,
)

SECONDS = st.floats(min_value=0.0, max_value=1e6)
SPREADS = st.lists(SECONDS, min_size=1, max_size=200).map(spread_of)
BEHAVIOURS = st.builds(
    Behaviour,
    start_up=st.none() | SPREADS,
    start_up_of_late_s=st.none() | SECONDS,
    start_up_cpu_s=st.none() | SECONDS,
    start_up_alone=st.none() | SPREADS,
    exit=st.none() | SPREADS,
    exit_cpu_s=st.none() | SECONDS,
    exit_alone=st.none() | SPREADS,
    dispatch_overhead_s=st.none() | SECONDS,
    sample_lag=st.none() | SPREADS,
    worker_lag=st.none() | SPREADS,
    evaluation_delay=st.none() | SPREADS,
)


@given(BEHAVIOURS)
def test_a_behaviour_comes_back_from_json_as_it_was(behaviour: Behaviour) -> None:
    assert behaviour_from_mapping(json.loads(json.dumps(behaviour_to_mapping(behaviour)))) == behaviour


def test_what_is_not_in_the_mapping_is_unknown_and_what_a_later_version_adds_is_passed_over() -> None:
    assert behaviour_from_mapping({"later": {"p50_s": 1.0}}) == Behaviour()


def test_unknown_is_written_as_null_and_not_left_out() -> None:
    assert set(behaviour_to_mapping(Behaviour()).values()) == {None}
    assert "dispatch_overhead_s" in behaviour_to_mapping(Behaviour())


def test_where_no_worker_waits_for_a_core_it_takes_what_was_measured_so() -> None:
    took, less = Spread(p50_s=2.0, p95_s=3.0), Spread(p50_s=0.5, p95_s=1.0)
    assert alone(Behaviour(start_up=took, start_up_alone=less, exit=took)) == Behaviour(
        start_up=less, start_up_of_late_s=mean_s(took), start_up_alone=less, exit=took
    )
    assert alone(Behaviour(start_up=took, start_up_of_late_s=9.0)).start_up_of_late_s == 9.0
    assert alone(Behaviour()) == Behaviour()


@pytest.mark.parametrize(
    ("values_s", "p50_s", "p95_s"),
    [
        ([3.0], 3.0, 3.0),
        ([2.0, 1.0], 1.0, 2.0),
        ([float(each) for each in range(1, 101)], 50.0, 95.0),
        ([1.0] * 19 + [9.0], 1.0, 1.0),  # the 95th of a hundred is the 19th of twenty
        ([1.0] * 18 + [9.0, 9.0], 1.0, 9.0),
    ],
)
def test_a_spread_is_the_median_and_the_95th_percentile_by_nearest_rank(
    values_s: list[float], p50_s: float, p95_s: float
) -> None:
    assert spread_of(values_s) == Spread(p50_s=p50_s, p95_s=p95_s, count=len(values_s))


def test_nothing_observed_is_no_spread() -> None:
    assert spread_of([]) is None


@pytest.mark.parametrize(
    ("p50_s", "p95_s", "count"),
    [(2.0, 1.0, 3), (-1.0, 1.0, 3), (1.0, math.inf, 3), (math.nan, 1.0, 3), (1.0, math.nan, 3), (1.0, 1.0, 0)],
)
def test_a_spread_that_cannot_be_is_refused(p50_s: float, p95_s: float, count: int) -> None:
    with pytest.raises(Invalid):
        Spread(p50_s=p50_s, p95_s=p95_s, count=count)


@pytest.mark.parametrize("body", [{"start_up": 3}, {"start_up": {"p50_s": 1}}, {"dispatch_overhead_s": "x"}])
def test_a_mapping_that_holds_something_else_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        behaviour_from_mapping(body)


@pytest.mark.parametrize("value_s", [-0.1, math.inf, math.nan])
def test_a_figure_that_is_no_duration_is_refused(value_s: float) -> None:
    with pytest.raises(Invalid):
        Behaviour(dispatch_overhead_s=value_s)
