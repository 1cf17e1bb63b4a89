import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.demand import RULES, backlog_drain, steady_state, trend
from scaling.pools import queue, view


@pytest.mark.parametrize(
    ("rate_per_s", "service_s", "slots"),
    [
        (10.0, 2.0, 20.0),  # 10/s × 2 s
        (0.5, 8.0, 4.0),  # 0.5/s × 8 s
        (0.0, 2.0, 0.0),  # nothing arrives
    ],
)
def test_steady_state_is_arrivals_times_service_time(rate_per_s: float, service_s: float, slots: float) -> None:
    busy = queue(arrival_rate_per_s=rate_per_s, service_time_s=service_s)
    assert steady_state(busy, view()).slots == pytest.approx(slots)


@pytest.mark.parametrize(
    ("slope_per_s2", "slots"),
    [
        (
            0.1,
            2 * (1.0 + 0.1 * (30 + 1 + 5)),
        ),  # the line at half a window + start-up + tick past the middle: 4.6/s × 2 s
        (0.0, 0.0),
        (-0.1, 0.0),  # a falling line is no reason to want workers
    ],
)
def test_trend_is_the_rising_line_one_start_up_and_one_tick_ahead(slope_per_s2: float, slots: float) -> None:
    rising = queue(arrival_rate_per_s=1.0, arrival_trend_per_s2=slope_per_s2, service_time_s=2.0, window_s=60.0)
    assert trend(rising, view()).slots == pytest.approx(slots)


@pytest.mark.parametrize(
    ("waiting", "in_flight", "oldest_age_s", "service_s", "slots"),
    [
        (12, 0, 0.0, 1.0, 3.0),  # 10 − 0 − 1 − 5 = 4 s left: 4 jobs a slot, 12 / 4
        (12, 4, 0.0, 1.0, 4.0),  # (12 + 4) / 4
        (12, 0, 2.0, 1.0, 6.0),  # 2 s left: 2 jobs a slot
        (12, 0, 3.9, 1.0, 12.0),  # a tenth of a second left: one job a slot
        (12, 0, 60.0, 1.0, 12.0),  # long past the breach: still one job a slot
        (12, 0, 0.0, 30.0, 12.0),  # a job is longer than what is left
        (0, 7, 0.0, 1.0, 7.0),  # nothing waits: what works keeps its slots
        (0, 0, 0.0, 1.0, 0.0),
    ],
)
def test_backlog_drain_starts_every_waiting_job_in_what_is_left(
    waiting: int, in_flight: int, oldest_age_s: float, service_s: float, slots: float
) -> None:
    backlog = queue(waiting_jobs=waiting, in_flight_jobs=in_flight, oldest_age_s=oldest_age_s, service_time_s=service_s)
    assert backlog_drain(backlog, view()).slots == pytest.approx(slots)


def test_a_queue_without_finished_jobs_uses_the_profiles_guess() -> None:
    unknown = queue(arrival_rate_per_s=3.0, service_time_s=None)
    assert steady_state(unknown, view()).slots == pytest.approx(3.0)  # 3/s × 1 s guessed


RATES = st.floats(0, 1e4)
SECONDS = st.floats(0, 1e5)
JOBS = st.integers(0, 10**6)
QUEUES = st.fixed_dictionaries(
    {
        "waiting_jobs": JOBS,
        "in_flight_jobs": JOBS,
        "oldest_age_s": SECONDS,
        "arrival_rate_per_s": RATES,
        "arrival_trend_per_s2": st.floats(-100, 100),
        "service_time_s": st.floats(0.001, 1e4),
    }
)


@given(
    values=QUEUES,
    name=st.sampled_from(
        sorted(
            {
                "waiting_jobs",
                "in_flight_jobs",
                "oldest_age_s",
                "arrival_rate_per_s",
                "arrival_trend_per_s2",
                "service_time_s",
            }
        )
    ),
    more=st.floats(0, 1e5),
)
def test_more_of_anything_never_lowers_a_demand(values: dict[str, float], name: str, more: float) -> None:
    """Waiting longer, more backlog, slower jobs or more arrivals can only ask for more (law 1)."""
    added = int(more) if name.endswith("_jobs") else more
    worse = {**values, name: values[name] + added}
    for rule in RULES:
        before, after = rule(queue(**values), view()).slots, rule(queue(**worse), view()).slots
        assert after >= before * (1 - 1e-12), rule.__name__


@given(values=QUEUES)
def test_a_demand_is_never_negative(values: dict[str, float]) -> None:
    assert all(rule(queue(**values), view()).slots >= 0 for rule in RULES)
