"""The report on an objective: sums beside what is not known."""

import pytest

from headway.scaling.metrics.attainment import Attained
from headway.scaling.metrics.reports.slo_report import WorkerTime, slo_report

DAYS = (0.0, 86_400.0, 172_800.0)


def test_a_report_adds_its_periods_and_leaves_what_is_not_known_out() -> None:
    """200 jobs, 4 late: 2 % of the 5 % that may be. 2 workers all of one day, 6 for an hour of the next."""
    report = slo_report(
        DAYS,
        {0.0: Attained(jobs=100, late_jobs=4), 86_400.0: Attained(jobs=100, late_jobs=0)},
        {
            0.0: WorkerTime(worker_s=2 * 86_400.0, known_s=86_400.0, peak_workers=2),
            86_400.0: WorkerTime(worker_s=6 * 3600.0, known_s=3600.0, peak_workers=6),
        },
        percentile=95.0,
        cost_per_worker_hour=0.5,
    )
    assert (report.jobs, report.late_jobs, report.attainment) == (200, 4, 0.98)
    assert report.budget_left == pytest.approx(0.6)
    assert (report.worker_hours, report.cost) == (54.0, 27.0)
    assert (report.static_worker_hours, report.static_cost) == (150.0, 75.0)  # 6 workers × 25 h
    assert [period.burn_rate for period in report.periods] == [pytest.approx(0.8), 0.0, None]
    last = report.periods[2]
    assert (last.jobs, last.attainment, last.worker_hours, last.cost, last.workers_known_s) == (None,) * 4 + (0.0,)


def test_of_nothing_known_nothing_is_said() -> None:
    report = slo_report(DAYS, {}, {}, percentile=99.0, cost_per_worker_hour=None)
    assert (report.attainment, report.jobs, report.budget_left, report.worker_hours, report.cost) == (None,) * 5
    assert report.static_worker_hours is None


def test_an_objective_that_allows_no_late_job_has_no_burn_rate() -> None:
    report = slo_report(DAYS, {0.0: Attained(jobs=1, late_jobs=1)}, {}, percentile=100.0, cost_per_worker_hour=1.0)
    assert (report.periods[0].burn_rate, report.budget_left, report.attainment) == (None, None, 0.0)
