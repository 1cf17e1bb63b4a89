"""A run beside other ways to size its pools; the ways themselves are in tests/simulate/test_alternatives.py."""

import pytest

from headway.cli.demo.comparison import Terms, comparison, fixed_pool
from headway.cli.demo.demo_report import JobRecord
from support.demo_runs import MAIL, REPORTS, job, life, run

TERMS = Terms(peak_window_s=10, start_up_s=2)

# Four jobs of 10 s at once in `mail`, all started within its 10 s; two of 20 s in `reports`, the second after 20 s.
MAIL_JOBS = [job(0, 1, 11)] * 4
REPORTS_JOBS = [job(0, 0, 20, queue="reports"), job(0, 20, 40, queue="reports")]
LIVES = [life(0, 12)] * 4 + [life(0, 42)]


def rows(jobs=(*MAIL_JOBS, *REPORTS_JOBS), lives=LIVES, **more):
    found = comparison(run(jobs, lives, goals=(MAIL, REPORTS), **more), TERMS)
    return {row["way"]: row for row in found}


def test_the_rows_are_the_run_the_peak_the_rule_and_the_best_fixed_pool():
    assert list(rows()) == ["headway", "peak", "keda", "best_fixed", "keda_tuned"]


def test_the_run_itself_is_paid_for_every_life_and_counts_its_starts():
    headway = rows()["headway"]
    assert headway["worker_seconds"] == 90  # 4 × 12 + 42
    assert headway["starts"] == 5
    assert headway["in_time"] == {"mail": 1.0, "reports": 1.0}
    assert headway["times_headway"] == 1.0


def test_the_best_fixed_pool_is_the_smallest_of_each_queue_that_does_as_well():
    """Two workers start all of `mail` within 10 s: two at once, two when those end. One is enough for `reports`."""
    best = rows()["best_fixed"]
    assert best["workers"] == {"mail": 2, "reports": 1}
    assert best["worker_seconds"] == 300  # 3 for 100 s
    assert best["times_headway"] == pytest.approx(300 / 90, abs=0.001)
    assert best["starts"] == 3


def test_the_best_fixed_pool_need_not_do_better_than_the_run():
    late = [job(0, 1, 11), *[job(0, 30, 40)] * 3]
    assert rows(jobs=(*late, *REPORTS_JOBS))["best_fixed"]["workers"]["mail"] == 1, "a quarter in time is one worker's"


def test_the_peak_is_sized_for_the_work_of_the_busiest_window():
    peak = rows()["peak"]
    # mail: 4 jobs of 10 s within 10 s are 4 workers, × 1.2 = 4.8; reports: 2 of 20 s are 4, too
    assert peak["workers"] == {"mail": 5, "reports": 5}
    assert peak["worker_seconds"] == 1000


def test_the_part_in_time_of_all_queues_weighs_each_by_its_jobs():
    """One worker starts two of three jobs of `mail` in time, and one of `reports` its only one: 3 of 4."""
    jobs = [job(0, 1, 11), job(0, 1, 11), job(0, 40, 50), job(0, 0, 5, queue="reports")]
    best = rows(jobs=jobs)["best_fixed"]
    assert best["in_time"] == {"mail": 0.6667, "reports": 1.0}
    assert best["picked_up_in_time_fraction"] == 0.75


def test_constant_pools_are_paid_until_the_last_job_is_done_not_until_the_runs_last_worker_leaves():
    lingering = [*LIVES, life(0, 150)]
    assert rows(lives=lingering)["best_fixed"]["worker_seconds"] == 300
    assert rows(lives=lingering)["headway"]["worker_seconds"] == 240


def test_jobs_that_did_not_end_are_no_part_of_what_others_would_have_served():
    cut = job(0, 5, status="started")
    assert rows(jobs=(*MAIL_JOBS, cut, *REPORTS_JOBS))["best_fixed"]["workers"] == {"mail": 2, "reports": 1}


def test_a_queue_without_a_job_is_left_out():
    best = rows(jobs=MAIL_JOBS)["best_fixed"]
    assert best["workers"] == {"mail": 2}


@pytest.mark.parametrize("jobs", [[], [job(0, status="queued")]])
def test_a_run_of_which_no_job_ended_is_compared_with_nothing(jobs: list[JobRecord]):
    assert list(rows(jobs=jobs)) == ["headway"]
    assert fixed_pool(comparison(run(jobs), TERMS)) is None


def test_a_run_without_workers_has_no_ratio():
    assert rows(lives=())["best_fixed"]["times_headway"] is None


def tuned(jobs, goal, *, start_up_s: float):
    found = comparison(run(jobs, LIVES, goals=(goal,)), Terms(peak_window_s=10, start_up_s=start_up_s))
    return next(row for row in found if row["way"] == "keda_tuned")


def test_the_tuned_rule_is_the_cheapest_that_meets_the_objective():
    """With 30 s to start a job, a rule that evaluates each 15 s is soon enough."""
    row = tuned([job(20.0 * i, 20.0 * i, 20.0 * i + 2, queue="reports") for i in range(4)], REPORTS, start_up_s=2)
    assert row["in_time"]["reports"] >= 0.95
    assert row["settings"]["reports"]["cooldown_s"] == 15
    assert row["worker_seconds"] < 100


def test_where_no_rule_meets_the_objective_it_says_so():
    """A start-up of 12 s is more than the 10 s in which a job of `mail` is to start."""
    row = tuned([job(0, 1, 11), job(50, 50, 51)], MAIL, start_up_s=12)
    assert (row["settings"], row["worker_seconds"], row["times_headway"]) == (None, None, None)


def test_the_fixed_pool_of_programs_adds_the_queues_up():
    found = fixed_pool(comparison(run([*MAIL_JOBS, *REPORTS_JOBS], LIVES, goals=(MAIL, REPORTS)), TERMS))
    assert found == {"workers": 3, "worker_seconds": 300, "picked_up_in_time_fraction": 1.0}
