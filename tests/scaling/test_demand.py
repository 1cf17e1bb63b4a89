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
    ("slope_per_s2", "start_up_s", "slots"),
    [
        # 8 + 5 − 10 = 3 s too late: the line 30 + 3 s past the window's middle, 1 + 0.1 × 33 = 4.3/s × 2 s
        (0.1, 8.0, 8.6),
        (0.1, 5.0, 0.0),  # a tick and a start-up fit into the objective: reacting is soon enough
        (0.0, 8.0, 0.0),
        (-0.1, 8.0, 0.0),  # a falling line is no reason to want workers
    ],
)
def test_trend_looks_ahead_as_far_as_reacting_comes_too_late(
    slope_per_s2: float, start_up_s: float, slots: float
) -> None:
    rising = queue(arrival_rate_per_s=1.0, arrival_trend_per_s2=slope_per_s2, service_time_s=2.0, window_s=60.0)
    assert trend(rising, view(start_up_s=start_up_s)).slots == pytest.approx(slots)


@pytest.mark.parametrize(
    ("waiting", "in_flight", "oldest_age_s", "service_s", "slots"),
    [
        (24, 0, 0.0, 1.0, 3.0),  # 10 − 0 − 2 margin = 8 s left, 7 after the start-up: a new slot starts 1 + 7, 24 / 8
        (24, 2, 0.0, 1.0, 3.0),  # the two that work start 8 each: 2 + (24 − 16) / 8
        (24, 4, 0.0, 1.0, 4.0),  # 4 × 8 is more than enough: nothing new
        (24, 0, 4.0, 1.0, 6.0),  # 4 s left, 3 after the start-up: 24 / 4
        (24, 6, 7.0, 1.0, 24.0),  # 1 s left: the six start one each, 6 + (24 − 6) / 1
        (24, 6, 8.0, 1.0, 30.0),  # nothing left: one job a slot, and none for those that work
        (24, 6, 60.0, 1.0, 30.0),  # long past the breach: the same
        (24, 0, 0.0, 70.0, 24 / 1.1),  # jobs longer than what is left: a slot starts one, and a tenth of the next
        (0, 7, 0.0, 1.0, 7.0),  # nothing waits: what works keeps its slots
        (0, 0, 0.0, 1.0, 0.0),
    ],
)
def test_backlog_drain_starts_every_waiting_job_in_what_is_left(
    waiting: int, in_flight: int, oldest_age_s: float, service_s: float, slots: float
) -> None:
    backlog = queue(waiting_jobs=waiting, in_flight_jobs=in_flight, oldest_age_s=oldest_age_s, service_time_s=service_s)
    assert backlog_drain(backlog, view()).slots == pytest.approx(slots)


@pytest.mark.parametrize(
    ("waiting", "running", "slots"),
    [
        (18, 4, 2.0),  # a free slot starts 1 + 8: two would do
        (36, 4, 4.0),  # 4 × 9: just enough
        (52, 4, 6.0),  # 16 more for new ones, which start 1 + 7 each
    ],
)
def test_only_what_running_workers_cannot_start_in_time_asks_for_new_ones(
    waiting: int, running: int, slots: float
) -> None:
    assert backlog_drain(queue(waiting_jobs=waiting), view(running_workers=running)).slots == pytest.approx(slots)


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
    running=st.integers(0, 1_000),
    start_up_s=st.floats(0, 60),
)
def test_more_of_anything_never_lowers_a_demand(
    values: dict[str, float], name: str, more: float, running: int, start_up_s: float
) -> None:
    """Waiting longer, more backlog, slower jobs or more arrivals can only ask for more (law 1)."""
    added = int(more) if name.endswith("_jobs") else more
    worse = {**values, name: values[name] + added}
    for rule in RULES:
        pool = view(running_workers=running, start_up_s=start_up_s)
        before, after = rule(queue(**values), pool).slots, rule(queue(**worse), pool).slots
        assert after >= before * (1 - 1e-12), rule.__name__


@given(values=QUEUES)
def test_a_demand_is_never_negative(values: dict[str, float]) -> None:
    assert all(rule(queue(**values), view()).slots >= 0 for rule in RULES)
