"""An observation that has counts alone, written as rows: deciding then reads it as it reads everything."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.measure import BUCKET_S, SERVICE_WINDOW_S, late_jobs, queue_metrics
from headway.scaling.model import Objective, QueueMetrics
from headway.simulate.controller import Controller, Observation
from headway.simulate.counted_rows import counted_rows

QUEUE, AT_S = "simulated/jobs", 1_000_000.0
JOBS = st.integers(0, 500)
counts = st.fixed_dictionaries(
    {
        "arrived": JOBS,
        "retried": JOBS,
        "started": JOBS,
        "finished": JOBS,
        "service_sum_s": st.floats(0, 1e5),
        "pickup_max_s": st.none() | st.floats(0, 1e4),
        "waiting": JOBS,
        "busy": JOBS,
    }
)


def seen(**values: Any) -> Observation:
    return Observation(**{"at_s": AT_S, "waiting": 0, **values})


def metrics(*steps: Observation, tick_s: float = BUCKET_S) -> QueueMetrics:
    """What a controller goes by after the last of ``steps``."""
    controller = Controller(tick_s=tick_s)
    for step in steps:
        decision = controller.step(step)
    return decision.metrics[0]


@given(counts, st.floats(0.01, SERVICE_WINDOW_S), st.floats(0.0, 5.0))
def test_the_rows_add_up_to_the_counts(values: dict[str, Any], passed_s: float, phase_s: float) -> None:
    observation = seen(**{**values, "at_s": AT_S + phase_s})
    rows = list(counted_rows(QUEUE, observation, since_s=AT_S + phase_s - passed_s))
    for name in ("arrived", "retried", "started", "finished"):
        assert sum(getattr(row, f"{name}_jobs") for row in rows) == values[name]
    timed = values["started"] if values["pickup_max_s"] is not None else 0
    assert sum(sum(row.pickup_sketch.values()) for row in rows) == timed
    if values["finished"]:
        assert sum(row.service_sum_s for row in rows) == pytest.approx(values["service_sum_s"])
    assert [row.sampled_at_s for row in rows] == [*[None] * (len(rows) - 1), observation.at_s]
    assert (rows[-1].waiting_jobs, rows[-1].in_flight_jobs) == (values["waiting"], values["busy"])
    assert all(min(row.arrived_jobs, row.started_jobs, row.finished_jobs, row.retried_jobs) >= 0 for row in rows)


def test_what_no_window_reaches_has_no_row() -> None:
    rows = list(counted_rows(QUEUE, seen(arrived=1_000_000), since_s=AT_S - 1e6))
    assert len(rows) == SERVICE_WINDOW_S / BUCKET_S
    assert sum(row.arrived_jobs for row in rows) == SERVICE_WINDOW_S


@pytest.mark.parametrize("tick_s", [1.0, 5.0, 15.0, 60.0])
def test_a_steady_rate_is_seen_as_it_is_however_often_it_is_evaluated(tick_s: float) -> None:
    ticks = int(120 / tick_s)
    steady = [seen(at_s=AT_S + tick_s * n, arrived=int(tick_s * 12), started=int(tick_s * 12)) for n in range(ticks)]
    found = metrics(*steady, tick_s=tick_s)
    assert (found.arrival_rate_per_s, found.start_rate_per_s) == (12.0, 12.0)
    assert found.arrival_trend_per_s2 == pytest.approx(0.0, abs=1e-9)
    assert found.arrived_jobs == max(60, 12 * tick_s)  # since the last evaluation, in whole buckets


def test_arrivals_that_return_are_counted_apart() -> None:
    found = metrics(seen(arrived=9, retried=6), seen(at_s=AT_S + 5, arrived=3, retried=1))
    assert (found.arrived_jobs, found.retried_jobs, found.fresh_jobs) == (3, 1, 2)
    assert (found.arrival_rate_per_s, found.retry_rate_per_s) == (12 / 60, 7 / 60)


@pytest.mark.parametrize(
    ("pickup_max_s", "late"),
    [
        (None, 0),
        (10.0, 0),  # in time
        (12.0, 4),  # of ten that came evenly within 5 s, those of the first 2 s
        (15.0, 10),  # all of them
        (60.0, 10),
    ],
)
def test_late_jobs_are_estimated_from_the_longest_wait(pickup_max_s: float | None, late: int) -> None:
    (row,) = counted_rows(QUEUE, seen(started=10, pickup_max_s=pickup_max_s), since_s=AT_S - 5)
    assert late_jobs(row.pickup_sketch, 10.0) == late


@given(counts, st.floats(0, 1e4))
def test_a_longer_wait_never_makes_fewer_late(values: dict[str, Any], longer_s: float) -> None:
    def late_per_s(pickup_max_s: float | None) -> float:
        rows = list(counted_rows(QUEUE, seen(**{**values, "pickup_max_s": pickup_max_s}), since_s=AT_S - 30))
        return queue_metrics(rows, queue=QUEUE, now_s=AT_S, objective=Objective()).late_rate_per_s or 0.0

    assert late_per_s((values["pickup_max_s"] or 0.0) + longer_s) >= late_per_s(values["pickup_max_s"])


def test_an_empty_queue_of_which_nobody_gives_an_age_is_not_one_without_events() -> None:
    assert metrics(seen(), seen(at_s=AT_S + 5)).arrival_rate_per_s == 0.0
