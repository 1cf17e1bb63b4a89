"""What a demo achieved: from the broker's own record of each job and from the worker processes that were seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from headway.simulate.engine.results import percentile

Report = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job that was sent, as its broker records it. Times are Unix seconds, None where it has not come to that."""

    job_id: str
    queue: str
    status: str
    enqueued_at_s: float
    started_at_s: float | None
    ended_at_s: float | None
    starts: int
    """How often a worker began it."""

    @property
    def is_done(self) -> bool:
        """Whether its work was done."""
        return self.status == "finished"

    def pickup_s(self, *, until_s: float) -> float:
        """How long it waited; one that still waits has waited until ``until_s``."""
        return max((self.started_at_s or until_s) - self.enqueued_at_s, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLife:
    """From when until when a worker process was there."""

    pid: int
    began_at_s: float
    ended_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGoal:
    """What was wanted of a queue."""

    queue: str
    objective_s: float
    percentile: float
    workers_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that a report is made of."""

    goals: tuple[QueueGoal, ...]
    jobs: Sequence[JobRecord]
    lives: Sequence[WorkerLife]
    began_at_s: float
    ended_at_s: float
    scale_actions: int | None
    ready_s: float | None
    is_interrupted: bool
    settings: Report

    def of(self, goal: QueueGoal) -> list[JobRecord]:
        """The jobs of one queue."""
        return [job for job in self.jobs if job.queue == goal.queue]


def report_of(run: Run) -> Report:
    """The figures of ``run``. A figure that nothing was measured for is None."""
    done = sum(job.is_done for job in run.jobs)
    # Whoever ends a run early leaves jobs in their queue and cuts others off; in a whole run every job had its time.
    waiting = sum(job.status == "queued" for job in run.jobs) if run.is_interrupted else 0
    cut = sum(job.status == "started" for job in run.jobs) if run.is_interrupted else 0
    tightest = min(run.goals, key=lambda goal: goal.objective_s)
    return {
        "jobs": len(run.jobs),
        "picked_up_in_time_fraction": rounded(in_time_fraction(run)),
        **_pickups(run.jobs, until_s=run.ended_at_s),
        "objective_s": tightest.objective_s,
        "objective_percentile": tightest.percentile,
        "queues": [_queue(run, goal) for goal in run.goals],
        "worker_seconds": round(worker_seconds(run.lives), 1),
        "workers_max_seen": most_at_once(run.lives),
        "workers_started": len(run.lives),
        "scale_actions": run.scale_actions,
        "lost_jobs": len(run.jobs) - done - waiting - cut,
        "done_jobs": done,
        "failed_jobs": sum(job.status == "failed" for job in run.jobs),
        "jobs_started_again": sum(job.starts > 1 for job in run.jobs),
        "waiting_jobs": waiting,
        "cut_jobs": cut,
        "ready_s": None if run.ready_s is None else round(run.ready_s, 1),
        "jobs_span_s": round(run.ended_at_s - run.began_at_s, 1),
        "is_interrupted": run.is_interrupted,
        **run.settings,
    }


def most_at_once(lives: Sequence[WorkerLife]) -> int:
    """The greatest number of workers that were there at one moment."""
    return max((workers for _, workers in present_workers(lives)), default=0)


def present_workers(lives: Sequence[WorkerLife]) -> list[tuple[float, int]]:
    """How many workers there were from each moment on at which one came or went."""
    moves = sorted([(life.began_at_s, 1) for life in lives] + [(life.ended_at_s, -1) for life in lives])
    return list(zip((at_s for at_s, _ in moves), accumulate(move for _, move in moves), strict=True))


def worker_seconds(lives: Sequence[WorkerLife]) -> float:
    """The sum of all lives."""
    return sum(life.ended_at_s - life.began_at_s for life in lives)


def in_time_fraction(run: Run, *goals: QueueGoal) -> float | None:
    """Which part of the jobs, of all queues or of these, was picked up within their queue's objective."""
    in_time = [_is_in_time(job, goal) for goal in goals or run.goals for job in run.of(goal)]
    return sum(in_time) / len(in_time) if in_time else None


def _is_in_time(job: JobRecord, goal: QueueGoal) -> bool:
    return job.started_at_s is not None and job.started_at_s - job.enqueued_at_s <= goal.objective_s


def _queue(run: Run, goal: QueueGoal) -> Report:
    jobs, in_time = run.of(goal), in_time_fraction(run, goal)
    return {
        "queue": goal.queue,
        "jobs": len(jobs),
        "objective_s": goal.objective_s,
        "objective_percentile": goal.percentile,
        "picked_up_in_time_fraction": rounded(in_time),
        "objective_met": None if in_time is None else in_time >= goal.percentile / 100,
        **_pickups(jobs, until_s=run.ended_at_s),
    }


def _pickups(jobs: Sequence[JobRecord], *, until_s: float) -> Report:
    pickups = sorted(job.pickup_s(until_s=until_s) for job in jobs)
    found = {percent: percentile(pickups, percent / 100) for percent in (50, 95, 99)}
    return {f"pickup_p{percent}_s": None if wait_s is None else round(wait_s, 3) for percent, wait_s in found.items()}


def rounded(fraction: float | None) -> float | None:
    """As it is reported."""
    return None if fraction is None else round(fraction, 4)
