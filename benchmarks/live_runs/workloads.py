"""The workloads that are run live and rehearsed: some minutes each, made of a seed or cut from a recording."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import median

from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.replay import RecordedJob, scheduled
from headway.simulate.traces import BURSTY_LLM_CODE, load

CALIBRATION = -1
"""The number of the run that behaviour is learned on: its jobs are others than those that are compared."""
GOES_ON_S = 60.0
"""How long after the last job workers are still counted; what is held longer costs every run the same."""
SHORT_GOES_ON_S = 5.0
WAKES, WAKE_EACH_S = 4, 41.3  # a pool is at zero again well before, and no two of them come at the same time of a tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs, the policy they are run under, and the worker that does them."""

    name: str
    what: str
    jobs: Callable[[], Sequence[RecordedJob]]
    """Those that are compared."""
    other_jobs: Callable[[], Sequence[RecordedJob]]
    """Those that behaviour is learned on."""
    objective: Objective
    workers_max: int
    worker_class: str
    service_time_guess_s: float | None = None
    goes_on_s: float = GOES_ON_S

    def profile(self, pool: str, queue: str) -> Profile:
        """The policy of one run's pool."""
        return Profile(
            pool=pool,
            queues=(queue,),
            template=self.name,
            objective=self.objective,
            workers_max=self.workers_max,
            service_time_guess_s=self.service_time_guess_s,
        )

    def beginning(self, jobs: int) -> "Workload":
        """Its first ``jobs`` under a name of their own, with a short time after them: they are other figures."""
        return replace(
            self,
            name=f"{self.name}-{jobs}",
            what=f"the first {jobs} jobs of {self.what}",
            jobs=lambda: self.jobs()[:jobs],
            other_jobs=lambda: self.other_jobs()[:jobs],
            goes_on_s=SHORT_GOES_ON_S,
        )


def _recording(*, from_s: float, for_s: float) -> Sequence[RecordedJob]:
    return scheduled([job for job in load(BURSTY_LLM_CODE) if job.at_s >= from_s], speed=1.0, for_s=for_s)


def _and_wakes(jobs: Sequence[RecordedJob]) -> Sequence[RecordedJob]:
    """``jobs`` and then a few, each of which wakes the pool: how long that takes is not known from one wake."""
    last_s, service_s = jobs[-1].at_s, median(job.service_s for job in jobs)
    wakes = (RecordedJob(at_s=last_s + turn * WAKE_EACH_S, service_s=service_s) for turn in range(1, WAKES + 1))
    return (*jobs, *wakes)


def _short_jobs(*, seed: int) -> Sequence[RecordedJob]:
    """Five jobs of 0.15 s a second at random, and twelve a second for 40 s in the middle."""
    chance, at_s, found = Random(seed), 0.0, []
    while at_s < 120.0:
        at_s += chance.expovariate(12.0 if 40.0 <= at_s < 80.0 else 5.0)
        found.append(RecordedJob(at_s=at_s, service_s=chance.expovariate(1 / 0.15)))
    return tuple(found)


def _batches(*, jobs: int, every_s: float, seed: int) -> Sequence[RecordedJob]:
    """So many jobs of 2 s at once, four times, and nothing between: every batch wakes the pool from zero."""
    chance = Random(seed)
    return tuple(
        RecordedJob(at_s=turn * every_s + offset_s, service_s=2.0)
        for turn in range(4)
        for offset_s in sorted(chance.uniform(0.0, 1.0) for _ in range(jobs))
    )


SIMPLE = "live_runs.worker.DrainingSimpleWorker"
FORKING = "live_runs.worker.DrainingForkingWorker"

WORKLOADS = {
    each.name: each
    for each in (
        Workload(
            name="bursts",
            what="three minutes of a recording of requests to a language model: two large bursts, a pause, a small one",
            jobs=partial(_recording, from_s=0.0, for_s=180.0),
            other_jobs=lambda: _and_wakes(_recording(from_s=800.0, for_s=180.0)),
            objective=Objective(target_s=10.0, percentile=95.0, window_s=120.0),
            workers_max=24,
            worker_class=SIMPLE,
            service_time_guess_s=2.0,
        ),
        Workload(
            name="short",
            what="5 jobs of 0.15 s a second, 12 a second for 40 s in the middle, a process for each job",
            jobs=partial(_short_jobs, seed=1),
            other_jobs=lambda: _and_wakes(_short_jobs(seed=2)),
            objective=Objective(target_s=10.0, percentile=99.0, window_s=120.0),
            workers_max=16,
            worker_class=FORKING,
        ),
        Workload(
            name="batches",
            what="14 jobs of 2 s within a second, each 30 s, from zero",
            jobs=partial(_batches, jobs=14, every_s=30.0, seed=3),
            other_jobs=partial(_batches, jobs=10, every_s=25.0, seed=4),
            objective=Objective(target_s=10.0, percentile=95.0, window_s=120.0),
            workers_max=24,
            worker_class=SIMPLE,
        ),
    )
}
