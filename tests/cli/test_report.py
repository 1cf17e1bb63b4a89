import io

import pytest
from rich.console import Console

from headway.cli.report import JobRecord, Run, WorkerLife, most_at_once, report_of, report_table


def job(enqueued: float, started: float | None = None, ended: float | None = None, status: str = "finished"):
    return JobRecord(job_id="j", status=status, enqueued_at_s=enqueued, started_at_s=started, ended_at_s=ended)


def life(began: float, ended: float) -> WorkerLife:
    return WorkerLife(pid=1, began_at_s=began, ended_at_s=ended)


def run(jobs, lives=(), *, ended: float = 100, interrupted: bool = False) -> Run:
    return Run(
        jobs=jobs,
        lives=lives,
        objective_s=10,
        objective_percentile=95,
        began_at_s=0,
        ended_at_s=ended,
        scale_actions=3,
        ready_s=7.04,
        is_interrupted=interrupted,
        settings={"speed": 2.0},
    )


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
    assert "4 sent, 1 done, 1 lost, 1 still in the queue, 1 cut off" in shown(report)


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


def test_the_fixed_pool_serves_the_same_jobs_as_well_and_is_paid_over_the_same_span():
    # Four jobs of 10 s at once; this run picked all up in time, so the fixed pool must, too: three would leave one
    # waiting 10 s, which is just in time; two leave two waiting 10 s as well; one has waits of 20 and 30 s.
    jobs = [job(0, 1, 11)] * 4
    fixed = report_of(run(jobs, [life(0, 12)] * 4, ended=30))["fixed_pool"]
    assert fixed == {"workers": 2, "worker_seconds": 60, "picked_up_in_time_fraction": 1.0}
    fixed = report_of(run(jobs, [life(0, 12), life(1, 45)], ended=30))["fixed_pool"]
    assert fixed["worker_seconds"] == 90, "while this run has a worker, the fixed pool has its two"


def test_the_fixed_pool_keeps_the_objective_where_this_run_did_not():
    jobs = [job(0, 50, 60)] * 4
    assert report_of(run(jobs))["fixed_pool"]["picked_up_in_time_fraction"] >= 0.95


def test_a_run_without_a_job_knows_nothing_and_says_so():
    report = report_of(run([]))
    assert report["picked_up_in_time_fraction"] is None
    assert report["pickup_p95_s"] is None
    assert report["fixed_pool"] is None
    assert report["worker_seconds"] == 0
    assert "unknown" in shown(report)


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


def test_people_see_what_a_fixed_pool_would_have_cost():
    text = shown(report_of(run([job(0, 1, 11)] * 4, [life(0, 5)] * 4, ended=30)))
    assert "2 workers, 60 worker-seconds (3.0 times this run's)" in text
    assert "picked up within 10 s" in text
    assert "100.0 %" in text


def shown(report) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(report_table(report))
    return console.file.getvalue()
