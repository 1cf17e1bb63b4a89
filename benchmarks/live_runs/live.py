"""One live run of a workload, and what it came to."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean
from typing import Any

from headway.simulate.replay import RecordedJob
from live_runs.jobs import JobRun, LiveJobs
from live_runs.system import System
from live_runs.watch import Life, WorkerWatch
from live_runs.workloads import Workload

TICK_S = 5.0
ASK_S = 0.25
FIRST_DECISION_WITHIN_S = 30.0
DONE_WITHIN_S = 180.0
LEFT_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """What one run left."""

    began_at_s: float
    """When the first moment of the workload was."""
    phase_s: float
    """From there to the first tick."""
    jobs: Sequence[JobRun]
    lives: Sequence[Life]
    decisions: Sequence[dict[str, Any]]

    def figures(self, *, objective_s: float) -> dict[str, float]:
        """What is compared."""
        waits = [
            float("inf") if job.started_at_s is None else job.started_at_s - job.enqueued_at_s for job in self.jobs
        ]
        return {
            "attainment_percent": 100.0 * sum(wait_s <= objective_s for wait_s in waits) / len(waits),
            "worker_s": self._worker_s(float("inf")),
            "starts": float(len(self.lives)),
            "worker_s_until_done": self._worker_s(max(job.ended_at_s or 0.0 for job in self.jobs)),
            "service_s": mean(
                job.ended_at_s - job.started_at_s
                for job in self.jobs
                if job.started_at_s is not None and job.ended_at_s is not None
            ),
        }

    def _worker_s(self, until_s: float) -> float:
        return sum(max(0.0, min(life.ended_at_s, until_s) - life.began_at_s) for life in self.lives)

    def details(self) -> dict[str, Any]:
        """All of it, for whoever searches a cause."""
        return {
            "began_at_s": self.began_at_s,
            "phase_s": self.phase_s,
            "jobs": [asdict(job) for job in self.jobs],
            "lives": [asdict(life) for life in self.lives],
            "decisions": list(self.decisions),
        }


def live_run(
    system: System, workload: Workload, jobs: Sequence[RecordedJob], *, name: str, queue: str, phase_s: float
) -> LiveRun:
    """Run ``jobs`` as a pool of its own, so that the first tick is ``phase_s`` after the workload begins."""
    profile = workload.profile(name, f"live/{queue}")
    system.apply(profile)
    tick_at_s = _first_decision_at_s(system, name)
    # The first decision of a new pool is a tick's. The workload begins some ticks later, that much before one.
    began_at_s = tick_at_s + 3 * TICK_S - phase_s
    sent = LiveJobs(system.broker_url, queue)
    watch = WorkerWatch(system.agent_pid)
    watch.start()
    try:
        sent.send(jobs, at_s=began_at_s)
        _wait(lambda: sent.are_sent, within_s=jobs[-1].at_s + 60.0, what="all jobs to be sent")
        _wait(lambda: sent.are_done, within_s=DONE_WITHIN_S, what="all jobs to be done")
        ended_at_s = max(job.ended_at_s or 0.0 for job in sent.records()) + workload.goes_on_s
        _wait(lambda: time.time() > ended_at_s, within_s=workload.goes_on_s + ASK_S, what="the end")
        decisions = system.decisions(name)
        system.apply(replace(profile, workers_max=0))
        _wait(lambda: not watch.present, within_s=LEFT_WITHIN_S, what="all workers to leave")
    finally:
        lives = watch.close()
    run = LiveRun(
        began_at_s=began_at_s,
        phase_s=phase_s,
        jobs=sent.records(),
        lives=[replace(life, ended_at_s=min(life.ended_at_s, ended_at_s)) for life in lives],
        decisions=decisions,
    )
    sent.close()
    return run


def _first_decision_at_s(system: System, pool: str) -> float:
    until_s = time.monotonic() + FIRST_DECISION_WITHIN_S
    while time.monotonic() < until_s:
        if found := system.decisions(pool):
            return float(found[0]["decision"]["at_s"])
        time.sleep(ASK_S)
    raise SystemExit(f"pool {pool!r} was not decided within {FIRST_DECISION_WITHIN_S:g} s")


def _wait(holds: Any, *, within_s: float, what: str) -> None:
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            raise SystemExit(f"waited {within_s:g} s for {what}")
        time.sleep(ASK_S)
