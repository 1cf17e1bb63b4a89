"""What other ways to size a pool would have made of jobs that ran: arithmetic on the jobs' own times.

Every pool is paid over the same span, from its first moment to its last. Pools of constant size are flattered: their
workers are there at the first moment, without a start-up.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from headway.simulate.controller import Observation
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.replay import RecordedJob
from headway.simulate.studies.fixed_pool import FixedPool, fixed_pool, smallest_fixed_pool
from headway.simulate.studies.keda_rule import EVALUATION_S, KedaRule, KedaSettings
from headway.simulate.workloads.jobs import Jobs

PEAK_HEADROOM = 1.2  # what is usual above the peak that was seen
PHASES_S = (
    0.0,
    5.0,
    10.0,
)  # where in the rule's 15 s the first job comes: each gives another result, so the mean counts
TUNED_JOBS_PER_WORKER = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0)
TUNED_COOLDOWNS_S = (15.0, 30.0, 60.0, 120.0, 300.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when until when workers are paid, in the time of the jobs."""

    begins_at_s: float
    ends_at_s: float

    @property
    def length_s(self) -> float:
        """How long that is."""
        return self.ends_at_s - self.begins_at_s


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRun:
    """The jobs of one queue as they ran, one at least, and which part of them started within the objective."""

    jobs: tuple[RecordedJob, ...]
    """They arrive in the time of the span."""
    objective_s: float
    in_time_fraction: float
    workers_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one queue would have got, and for how much."""

    in_time_fraction: float
    worker_seconds: float
    starts: float
    workers: int | None = None
    """Of a pool of constant size."""


def best_fixed(run: QueueRun, span: Span) -> Outcome:
    """The smallest constant pool that starts as large a part of the jobs in time as the run did."""
    return _fixed(smallest_fixed_pool(run.jobs, objective_s=run.objective_s, fraction=run.in_time_fraction), span)


def sized_for_peak(run: QueueRun, span: Span, *, window_s: float) -> Outcome:
    """A constant pool for the most jobs that came within ``window_s``: rate × mean service time × 1.2, rounded up."""
    mean_s = sum(job.service_s for job in run.jobs) / len(run.jobs)
    rate_per_s = most_within([job.at_s for job in run.jobs], window_s) / window_s
    workers = max(math.ceil(rate_per_s * mean_s * PEAK_HEADROOM), 1)
    return _fixed(fixed_pool(run.jobs, workers=workers, objective_s=run.objective_s), span)


def by_keda_rule(run: QueueRun, span: Span, settings: KedaSettings, *, start_up_s: float) -> Outcome:
    """A worker for so many waiting jobs, simulated; the mean over where in its 15 s the rule meets the first job."""
    outcomes = [_simulated(run, span, settings, start_up_s=start_up_s, phase_s=phase_s) for phase_s in PHASES_S]
    count = len(outcomes)
    return Outcome(
        in_time_fraction=sum(each.in_time_fraction for each in outcomes) / count,
        worker_seconds=sum(each.worker_seconds for each in outcomes) / count,
        starts=sum(each.starts for each in outcomes) / count,
    )


def best_keda_rule(
    run: QueueRun, span: Span, *, start_up_s: float, fraction: float
) -> tuple[KedaSettings, Outcome] | None:
    """The cheapest settings of the rule that start ``fraction`` of the jobs in time; ``None``: none of those tried."""
    tried = [
        (settings, by_keda_rule(run, span, settings, start_up_s=start_up_s))
        for settings in (
            KedaSettings(jobs_per_worker=jobs, cooldown_s=cooldown_s)
            for jobs, cooldown_s in product(TUNED_JOBS_PER_WORKER, TUNED_COOLDOWNS_S)
        )
    ]
    as_good = [each for each in tried if each[1].in_time_fraction >= fraction]
    return min(as_good, key=lambda each: each[1].worker_seconds, default=None)


def most_within(at_s: Iterable[float], window_s: float) -> int:
    """The most of these moments that lie within one window of this length, wherever it begins."""
    ordered = sorted(at_s)
    # The fullest window can be moved until it begins with one of them. What is just its length away is outside.
    return max(
        (bisect_right(ordered, begins + window_s * (1 - 1e-9)) - i for i, begins in enumerate(ordered)), default=0
    )


def _fixed(pool: FixedPool, span: Span) -> Outcome:
    paid_s = max(span.ends_at_s, pool.ends_at_s) - span.begins_at_s
    return Outcome(
        in_time_fraction=pool.in_time_fraction,
        worker_seconds=pool.workers * paid_s,
        starts=pool.workers,
        workers=pool.workers,
    )


def _simulated(run: QueueRun, span: Span, settings: KedaSettings, *, start_up_s: float, phase_s: float) -> Outcome:
    rule = KedaRule(settings, workers_max=run.workers_max)
    ordered = sorted(run.jobs, key=lambda job: job.at_s)
    at_s = [max(job.at_s - span.begins_at_s, 0.0) + phase_s for job in ordered]
    jobs = Jobs(at_s=at_s, service_s=[job.service_s for job in ordered])
    (result,) = simulate(
        [PoolPlan(jobs=jobs, start_up_s=start_up_s, workers_max=run.workers_max)],
        [rule],
        rehearsal=Rehearsal(tick_s=EVALUATION_S, objective_s=run.objective_s),
    )
    idle_s = _paid_after(result, rule, until_s=span.length_s + phase_s)
    return Outcome(
        in_time_fraction=result.attainment_percent / 100,
        worker_seconds=result.worker_hours * 3600 + idle_s,
        starts=result.spawns,
    )


def _paid_after(result: Result, rule: KedaRule, *, until_s: float) -> float:
    """Worker-seconds from the end of the last job, where a simulation ends, until ``until_s``."""
    last = result.points[-1]
    paid_s = last.present_workers * max(min(last.at_s, until_s) - result.ended_s, 0.0)
    at_s, workers = last.at_s, last.target_workers
    while at_s < until_s:
        paid_s += workers * min(EVALUATION_S, until_s - at_s)
        at_s += EVALUATION_S
        workers = rule.step(Observation(at_s=at_s, waiting=0, workers=workers, idle=workers)).target_workers
    return paid_s
