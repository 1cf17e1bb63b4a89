"""Runs of a demo, written down by hand."""

from headway.cli.demo.demo_report import JobRecord, QueueGoal, Run, WorkerLife

MAIL = QueueGoal(queue="mail", objective_s=10, percentile=95, workers_max=8)
REPORTS = QueueGoal(queue="reports", objective_s=30, percentile=95, workers_max=8)


def job(
    enqueued: float,
    started: float | None = None,
    ended: float | None = None,
    status: str = "finished",
    *,
    queue: str = "mail",
    starts: int = 1,
) -> JobRecord:
    return JobRecord(
        job_id="j",
        queue=queue,
        status=status,
        enqueued_at_s=enqueued,
        started_at_s=started,
        ended_at_s=ended,
        starts=starts,
    )


def life(began: float, ended: float) -> WorkerLife:
    return WorkerLife(pid=1, began_at_s=began, ended_at_s=ended)


def run(jobs, lives=(), *, ended: float = 100, interrupted: bool = False, goals=(MAIL,)) -> Run:
    return Run(
        goals=goals,
        jobs=jobs,
        lives=lives,
        began_at_s=0,
        ended_at_s=ended,
        scale_actions=3,
        ready_s=7.04,
        is_interrupted=interrupted,
        settings={"speed": 2.0},
    )
