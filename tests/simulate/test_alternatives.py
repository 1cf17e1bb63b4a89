import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.simulate.replay import RecordedJob
from headway.simulate.studies.alternatives import (
    QueueRun,
    Span,
    best_fixed,
    best_keda_rule,
    by_keda_rule,
    most_within,
    sized_for_peak,
)
from headway.simulate.studies.keda_rule import KedaSettings

DAY = Span(begins_at_s=1000, ends_at_s=1100)


def job(arrived_at_s: float, service_s: float) -> RecordedJob:
    return RecordedJob(at_s=arrived_at_s, service_s=service_s)


def run(jobs, *, objective_s: float = 5, fraction: float = 1.0, workers_max: int = 8) -> QueueRun:
    return QueueRun(jobs=tuple(jobs), objective_s=objective_s, in_time_fraction=fraction, workers_max=workers_max)


FOUR_AT_ONCE = [job(1000, 10)] * 4


@pytest.mark.parametrize(
    ("fraction", "workers"),
    [
        (1.0, 4),  # nobody may wait 10 s
        (0.75, 3),  # as one in four did in the run
        (0.5, 2),
        (0.2, 1),  # one worker starts a quarter of them in time
    ],
)
def test_the_best_fixed_pool_reaches_what_the_run_reached_and_is_paid_for_all_of_the_span(fraction, workers):
    best = best_fixed(run(FOUR_AT_ONCE, fraction=fraction), DAY)
    assert (best.workers, best.starts) == (workers, workers)
    assert best.in_time_fraction >= fraction
    assert best.worker_seconds == workers * 100


def test_a_fixed_pool_that_ends_later_than_the_run_is_paid_until_its_last_job_is_done():
    # one worker has 40 s of work from 1090 s on: until 1130 s
    late = [job(1090, 10)] * 4
    assert best_fixed(run(late, fraction=0.25), DAY).worker_seconds == 130


@pytest.mark.parametrize(
    ("at_s", "window_s", "most"),
    [
        ([], 10, 0),
        ([0], 10, 1),
        ([0, 4, 9, 11, 12, 13], 10, 5),  # 4, 9, 11, 12, 13
        ([0, 10, 20], 10, 1),  # an hour later is another hour
        ([3, 3, 3], 1, 3),
    ],
)
def test_the_busiest_window_may_begin_anywhere(at_s, window_s, most):
    assert most_within(at_s, window_s) == most


def test_the_pool_for_the_peak_has_the_busiest_windows_load_and_a_fifth_more():
    # 18 jobs of 2 s within 10 s are 3.6 workers; × 1.2 = 4.32, so 5
    rush = [job(1050 + i / 2, 2) for i in range(18)]
    peak = sized_for_peak(run(rush), DAY, window_s=10)
    assert (peak.workers, peak.worker_seconds, peak.in_time_fraction) == (5, 500, 1.0)


def test_the_pool_for_the_peak_has_a_worker_at_least():
    assert sized_for_peak(run([job(1000, 0.0)]), DAY, window_s=10).workers == 1


def test_the_keda_rule_pays_start_up_work_and_its_cooldown_until_the_end_of_the_span():
    """One job of 4 s at the first moment, a start-up of 2 s, evaluations each 15 s, and a cooldown beyond the end.

    The rule meets the job at 0, 10 and 5 s after it came, as the job comes 0, 5 and 10 s after an evaluation.
    """
    rule = KedaSettings(jobs_per_worker=1, cooldown_s=300)
    got = by_keda_rule(run([job(1000, 4)], objective_s=8), DAY, rule, start_up_s=2)
    # waits of 2, 12 and 7 s; the worker is there from 0, 10 and 5 s on until 100 s
    assert got.in_time_fraction == pytest.approx(2 / 3)
    assert got.worker_seconds == pytest.approx((100 + 90 + 95) / 3)
    assert got.starts == 1


def test_the_keda_rule_lets_workers_go_after_a_short_cooldown():
    rule = KedaSettings(jobs_per_worker=1, cooldown_s=30)
    got = by_keda_rule(run([job(1000, 4)]), DAY, rule, start_up_s=2)
    assert got.worker_seconds == pytest.approx(30)


def test_the_keda_rule_never_has_more_workers_than_the_pool_may():
    got = by_keda_rule(run([job(1000, 4)] * 50, workers_max=3), DAY, KedaSettings(), start_up_s=2)
    assert got.starts == 3


STEADY = [job(1000 + 2 * i, 3) for i in range(40)]


@pytest.mark.parametrize("fraction", [0.5, 0.9, 1.0])
def test_the_best_keda_rule_reaches_the_fraction_and_no_setting_that_does_is_cheaper(fraction):
    load = run(STEADY, objective_s=30)
    settings, best = best_keda_rule(load, DAY, start_up_s=2, fraction=fraction)
    assert best.in_time_fraction >= fraction
    for jobs_per_worker in (1, 2, 3, 5, 10, 20):
        for cooldown_s in (15, 30, 60, 120, 300):
            other = KedaSettings(jobs_per_worker=jobs_per_worker, cooldown_s=cooldown_s)
            got = by_keda_rule(load, DAY, other, start_up_s=2)
            assert got.worker_seconds >= best.worker_seconds or got.in_time_fraction < fraction
            assert got == best or other != settings


def test_where_no_setting_of_the_rule_reaches_the_fraction_there_is_no_best():
    """Nobody who evaluates each 15 s starts every job within a second."""
    two = run([job(1000, 4), job(1050, 4)], objective_s=1)
    assert best_keda_rule(two, DAY, start_up_s=2, fraction=1.0) is None


loads = st.lists(st.builds(job, st.floats(1000, 1099, width=32), st.floats(0, 20, width=32)), min_size=1, max_size=25)


@given(jobs=loads, objective_s=st.floats(0, 30))
def test_no_pool_costs_less_than_the_work_that_it_does(jobs, objective_s):
    work_s = sum(each.service_s for each in jobs)
    load = run(jobs, objective_s=objective_s)
    ways = [
        best_fixed(load, DAY),
        sized_for_peak(load, DAY, window_s=10),
        by_keda_rule(load, DAY, KedaSettings(cooldown_s=15), start_up_s=1),
    ]
    for way in ways:
        assert way.worker_seconds >= work_s - 1e-6
        assert 0 <= way.in_time_fraction <= 1
        assert way.starts >= 1
