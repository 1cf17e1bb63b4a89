"""What a demo achieved: from the broker's own record of each job and from the worker processes that were seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any

from rich.table import Table

from headway.simulate.fixed_pool import ServedJob, smallest_fixed_pool

Report = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job that was sent, as its broker tells it. Times are Unix seconds, None where it has not come to that."""

    job_id: str
    status: str
    enqueued_at_s: float
    started_at_s: float | None
    ended_at_s: float | None

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
class Run:
    """Everything that a report is made of."""

    jobs: Sequence[JobRecord]
    lives: Sequence[WorkerLife]
    objective_s: float
    objective_percentile: float
    began_at_s: float
    ended_at_s: float
    scale_actions: int | None
    ready_s: float | None
    is_interrupted: bool
    settings: Report


def report_of(run: Run) -> Report:
    """The figures of ``run``. A figure that nothing was measured for is None."""
    pickups = sorted(job.pickup_s(until_s=run.ended_at_s) for job in run.jobs)
    done = sum(job.is_done for job in run.jobs)
    # Whoever ends a run early leaves jobs in their queue and cuts others off; in a whole run every job had its time.
    waiting = sum(job.status == "queued" for job in run.jobs) if run.is_interrupted else 0
    cut = sum(job.status == "started" for job in run.jobs) if run.is_interrupted else 0
    in_time = _in_time_fraction(run)
    return {
        "jobs": len(run.jobs),
        "picked_up_in_time_fraction": in_time,
        "pickup_p50_s": _percentile(pickups, 50),
        "pickup_p95_s": _percentile(pickups, 95),
        "pickup_p99_s": _percentile(pickups, 99),
        "objective_s": run.objective_s,
        "objective_percentile": run.objective_percentile,
        "worker_seconds": round(sum(life.ended_at_s - life.began_at_s for life in run.lives), 1),
        "workers_max_seen": most_at_once(run.lives),
        "workers_started": len(run.lives),
        "scale_actions": run.scale_actions,
        "lost_jobs": len(run.jobs) - done - waiting - cut,
        "done_jobs": done,
        "failed_jobs": sum(job.status == "failed" for job in run.jobs),
        "waiting_jobs": waiting,
        "cut_jobs": cut,
        "ready_s": None if run.ready_s is None else round(run.ready_s, 1),
        "jobs_span_s": round(run.ended_at_s - run.began_at_s, 1),
        "fixed_pool": _fixed_pool(run, in_time),
        "is_interrupted": run.is_interrupted,
        **run.settings,
    }


def most_at_once(lives: Sequence[WorkerLife]) -> int:
    """The greatest number of workers that were there at one moment."""
    moves = sorted([(life.began_at_s, 1) for life in lives] + [(life.ended_at_s, -1) for life in lives])
    return max(accumulate(move for _, move in moves), default=0)


def report_table(report: Report) -> Table:
    """``report`` for people."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    objective = f"{report['objective_s']:g} s"
    rows = [
        ("jobs", _jobs_told(report)),
        (f"picked up within {objective}", _percent(report["picked_up_in_time_fraction"])),
        ("pickup time", " · ".join(f"p{each} {_seconds(report[f'pickup_p{each}_s'])}" for each in (50, 95, 99))),
        ("workers", f"at most {report['workers_max_seen']} at once, {report['worker_seconds']:.0f} worker-seconds"),
        ("changes of the target", "unknown" if report["scale_actions"] is None else str(report["scale_actions"])),
        ("best fixed pool", _fixed_told(report)),
        ("ready after", _seconds(report["ready_s"])),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _jobs_told(report: Report) -> str:
    told = [f"{report['jobs']} sent", f"{report['done_jobs']} done", f"{report['lost_jobs']} lost"]
    if report["is_interrupted"]:
        told += [f"{report['waiting_jobs']} still in the queue", f"{report['cut_jobs']} cut off"]
    return ", ".join(told)


def _in_time_fraction(run: Run) -> float | None:
    if not run.jobs:
        return None
    in_time = [
        job.started_at_s is not None and job.started_at_s - job.enqueued_at_s <= run.objective_s for job in run.jobs
    ]
    return round(sum(in_time) / len(in_time), 4)


def _percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The smallest value that at least ``percent`` % do not exceed."""
    if not ordered:
        return None
    return round(ordered[max(ceil(len(ordered) * percent / 100), 1) - 1], 3)


def _fixed_pool(run: Run, in_time: float | None) -> Report | None:
    """The smallest constant pool that does as well with the jobs that ran, and keeps the objective as well."""
    ran = [
        ServedJob(arrived_at_s=job.enqueued_at_s, service_s=max(job.ended_at_s - job.started_at_s, 0.0))
        for job in run.jobs
        if job.started_at_s is not None and job.ended_at_s is not None
    ]
    if not ran or in_time is None:
        return None
    fraction = max(in_time, run.objective_percentile / 100)
    best = smallest_fixed_pool(ran, objective_s=run.objective_s, fraction=fraction)
    # Both are paid over the same span: from the first job until the last worker has left.
    span_s = max(run.ended_at_s, best.ends_at_s, *(life.ended_at_s for life in run.lives)) - run.began_at_s
    return {
        "workers": best.workers,
        "worker_seconds": round(best.workers * span_s, 1),
        "picked_up_in_time_fraction": round(best.in_time_fraction, 4),
    }


def _fixed_told(report: Report) -> str:
    fixed = report["fixed_pool"]
    if fixed is None:
        return "unknown"
    told = f"{fixed['workers']} workers, {fixed['worker_seconds']:.0f} worker-seconds"
    if not report["worker_seconds"]:
        return told
    return f"{told} ({fixed['worker_seconds'] / report['worker_seconds']:.1f} times this run's)"


def _percent(fraction: float | None) -> str:
    return "unknown" if fraction is None else f"{100 * fraction:.1f} %"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} s"
