"""A run of the demo beside other ways to size its pools: arithmetic on the jobs that the run itself had.

A row a way, all queues together; each is named for what it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.cli.demo.demo_report import QueueGoal, Run, in_time_fraction, rounded, worker_seconds
from headway.simulate.replay import RecordedJob
from headway.simulate.studies.alternatives import (
    Outcome,
    QueueRun,
    Span,
    best_fixed,
    best_keda_rule,
    by_keda_rule,
    sized_for_peak,
)
from headway.simulate.studies.keda_rule import KedaSettings

Row = dict[str, Any]

START_UP_GUESS_S = 2.0  # where no agent has reported one


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the other ways are made with."""

    peak_window_s: float
    """The peak is the most jobs that came within so long."""
    start_up_s: float = START_UP_GUESS_S
    """Of this run's workers, as their agent measured it; else a guess."""


def comparison(run: Run, terms: Terms) -> list[Row]:
    """The run, then the other ways, over the queues of which a job ran; the run alone where none did.

    The last row, ``keda_tuned``, is the cheapest rule of KEDA's kind that would have met the objectives: ``None``
    figures where none would.
    """
    runs = {goal: ran for goal in run.goals if (ran := _ran(run, goal)).jobs}
    if not runs:
        return [_headway(run)]
    # Until all jobs were done: only the run pays for workers that stay longer.
    span = Span(begins_at_s=run.began_at_s, ends_at_s=run.ended_at_s)
    ways: dict[str, Callable[[QueueRun], Outcome]] = {
        "peak": lambda each: sized_for_peak(each, span, window_s=terms.peak_window_s),
        "keda": lambda each: by_keda_rule(each, span, KedaSettings(), start_up_s=terms.start_up_s),
        "best_fixed": lambda each: best_fixed(each, span),
    }
    rows = [
        _headway(run),
        *(_row(way, runs, {goal: outcome_of(each) for goal, each in runs.items()}) for way, outcome_of in ways.items()),
        _tuned(runs, span, start_up_s=terms.start_up_s),
    ]
    base = rows[0]["worker_seconds"]
    for row in rows:
        spent = row["worker_seconds"]
        row["times_headway"] = None if spent is None or not base else round(spent / base, 3)
    return rows


def fixed_pool(rows: Sequence[Row]) -> Row | None:
    """The best fixed pool of ``rows`` as one figure for all queues together."""
    row = next((row for row in rows if row["way"] == "best_fixed"), None)
    if row is None:
        return None
    return {
        "workers": sum(row["workers"].values()),
        "worker_seconds": row["worker_seconds"],
        "picked_up_in_time_fraction": row["picked_up_in_time_fraction"],
    }


def _headway(run: Run) -> Row:
    return {
        "way": "headway",
        "in_time": {goal.queue: rounded(in_time_fraction(run, goal)) for goal in run.goals},
        "picked_up_in_time_fraction": rounded(in_time_fraction(run)),
        "worker_seconds": round(worker_seconds(run.lives), 1),
        "times_headway": 1.0,
        "starts": len(run.lives),
        "workers": None,
    }


def _row(way: str, runs: Mapping[QueueGoal, QueueRun], outcomes: Mapping[QueueGoal, Outcome]) -> Row:
    jobs = {goal: len(run.jobs) for goal, run in runs.items()}
    in_time = sum(outcomes[goal].in_time_fraction * jobs[goal] for goal in runs) / sum(jobs.values())
    sizes = {goal.queue: outcome.workers for goal, outcome in outcomes.items()}
    return {
        "way": way,
        "in_time": {goal.queue: rounded(outcome.in_time_fraction) for goal, outcome in outcomes.items()},
        "picked_up_in_time_fraction": rounded(in_time),
        "worker_seconds": round(sum(each.worker_seconds for each in outcomes.values()), 1),
        "starts": round(sum(each.starts for each in outcomes.values()), 1),
        "workers": None if None in sizes.values() else sizes,
    }


def _tuned(runs: Mapping[QueueGoal, QueueRun], span: Span, *, start_up_s: float) -> Row:
    best = {
        goal: best_keda_rule(run, span, start_up_s=start_up_s, fraction=goal.percentile / 100)
        for goal, run in runs.items()
    }
    found = {goal: each for goal, each in best.items() if each is not None}
    if len(found) < len(best):
        return {"way": "keda_tuned", "in_time": None, "worker_seconds": None, "starts": None, "settings": None}
    row = _row("keda_tuned", runs, {goal: outcome for goal, (_, outcome) in found.items()})
    settings = {
        goal.queue: {"jobs_per_worker": each.jobs_per_worker, "cooldown_s": each.cooldown_s}
        for goal, (each, _) in found.items()
    }
    return {**row, "settings": settings}


def _ran(run: Run, goal: QueueGoal) -> QueueRun:
    """The jobs of a queue that ran to their end, as they ran."""
    jobs = tuple(
        RecordedJob(at_s=job.enqueued_at_s, service_s=max(job.ended_at_s - job.started_at_s, 0.0))
        for job in run.of(goal)
        if job.started_at_s is not None and job.ended_at_s is not None
    )
    return QueueRun(
        jobs=jobs,
        objective_s=goal.objective_s,
        in_time_fraction=in_time_fraction(run, goal) or 0.0,
        workers_max=goal.workers_max,
    )
