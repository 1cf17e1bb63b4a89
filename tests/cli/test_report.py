import pytest

from headway.cli.demo.demo_report import most_at_once, report_of
from support.demo_runs import MAIL, REPORTS, job, life, run


def test_a_job_is_picked_up_in_time_when_it_starts_within_the_objective():
    # waits of 10, 10.5, 0 and one that never started
    jobs = [job(0, 10, 11), job(0, 10.5, 11), job(5, 5, 6), job(7, status="queued")]
    assert report_of(run(jobs))["picked_up_in_time_fraction"] == 0.5


def test_percentiles_count_a_job_that_never_started_as_waiting_until_the_end():
    report = report_of(run([job(0, 1, 2), job(0, 2, 3), job(40, status="queued")]))
    assert (report["pickup_p50_s"], report["pickup_p95_s"], report["pickup_p99_s"]) == (2, 60, 60)


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed():
    report = report_of(run([job(0, wait, wait + 1) for wait in range(1, 101)]))
    assert (report["pickup_p50_s"], report["pickup_p95_s"], report["pickup_p99_s"]) == (50, 95, 99)


def test_in_a_whole_run_every_job_that_is_not_done_is_lost():
    jobs = [job(0, 1, 2), job(0, 1, 2, "failed"), job(0, 1, status="started"), job(0, status="queued")]
    report = report_of(run(jobs))
    assert (report["jobs"], report["done_jobs"], report["failed_jobs"], report["lost_jobs"]) == (4, 1, 1, 3)


def test_after_an_interruption_only_what_neither_waits_nor_was_cut_off_is_lost():
    jobs = [job(0, 1, 2), job(0, 1, status="started"), job(0, status="queued"), job(0, status="gone")]
    report = report_of(run(jobs, interrupted=True))
    assert (report["lost_jobs"], report["waiting_jobs"], report["cut_jobs"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("lives", "most"),
    [
        ([], 0),
        ([life(0, 5)], 1),
        ([life(0, 5), life(5, 9)], 1),  # one ends as the other begins
        ([life(0, 5), life(1, 4), life(4.5, 6)], 2),
        ([life(0, 5), life(1, 4), life(3, 6)], 3),
    ],
)
def test_the_most_workers_at_once_are_counted_over_their_lives(lives, most):
    assert most_at_once(lives) == most


def test_worker_seconds_are_the_sum_of_the_lives():
    assert report_of(run([job(0, 1, 2)], [life(1, 3.25), life(2, 10)]))["worker_seconds"] == 10.2  # 2.25 + 8, rounded


def test_each_queue_is_measured_by_its_own_objective():
    jobs = [job(0, 20, 21), job(0, 5, 6), job(0, 20, 21, queue="reports")]
    report = report_of(run(jobs, goals=(MAIL, REPORTS)))
    mail, reports = report["queues"]
    assert (mail["picked_up_in_time_fraction"], mail["objective_met"]) == (0.5, False)
    assert (reports["picked_up_in_time_fraction"], reports["objective_met"]) == (1.0, True)
    assert report["picked_up_in_time_fraction"] == 0.6667  # 2 of 3
    assert (report["objective_s"], report["objective_percentile"]) == (10, 95), "the tightest of them"


@pytest.mark.parametrize(("late", "is_met"), [(1, True), (2, False)])
def test_an_objective_is_met_by_just_its_percentile(late, is_met):
    # 19 of 20 are 95 %
    jobs = [job(0, 1, 2)] * (20 - late) + [job(0, 11, 12)] * late
    assert report_of(run(jobs))["queues"][0]["objective_met"] is is_met


def test_a_job_that_two_workers_began_is_counted():
    report = report_of(run([job(0, 1, 2), job(0, 1, 2, starts=2), job(0, status="queued", starts=0)]))
    assert report["jobs_started_again"] == 1


def test_a_run_without_a_job_knows_nothing_and_says_so():
    report = report_of(run([]))
    assert report["picked_up_in_time_fraction"] is None
    assert report["pickup_p95_s"] is None
    assert report["queues"][0]["objective_met"] is None
    assert report["worker_seconds"] == 0


def test_the_report_has_the_keys_that_programs_read():
    report = report_of(run([job(0, 1, 2)]))
    assert set(report) >= {
        "jobs",
        "picked_up_in_time_fraction",
        "pickup_p95_s",
        "worker_seconds",
        "workers_max_seen",
        "scale_actions",
        "lost_jobs",
        "ready_s",
    }
    assert (report["scale_actions"], report["ready_s"], report["speed"]) == (3, 7.0, 2.0)
