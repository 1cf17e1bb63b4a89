"""The behaviour of workers and control plane, out of what one live run left: its jobs, its workers, its decisions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from headway.scaling.behaviour import Behaviour, spread_of
from live_runs.jobs import JobRun
from live_runs.watch import Life

TICK_S = 5.0
MATCHED_WITHIN_S = 4.0  # a worker that is spawned later than this after a decision has another reason


def behaviour_of(
    jobs: Sequence[JobRun],
    lives: Sequence[Life],
    decisions: Sequence[Mapping[str, Any]],
    *,
    start_ups_s: Sequence[float],
    start_up_cpu_s: float | None,
    exits_s: Sequence[float],
) -> Behaviour:
    """What was measured."""
    return Behaviour(
        start_up=spread_of(start_ups_s),
        start_up_cpu_s=start_up_cpu_s,
        exit=spread_of(exits_s),
        dispatch_overhead_s=dispatch_overhead_s(jobs),
        sample_lag=spread_of(sample_lags_s(decisions)),
        evaluation_delay=spread_of(evaluation_delays_s(decisions)),
        apply_delay=spread_of(apply_delays_s(lives, decisions)),
        wake_delay=spread_of(wake_delays_s(jobs, decisions)),
    )


def dispatch_overhead_s(jobs: Sequence[JobRun]) -> float | None:
    """From the end of a job to the start of the next of the same worker, where that one waited already: the median."""
    by_worker: dict[str, list[JobRun]] = defaultdict(list)
    for job in jobs:
        if job.started_at_s is not None and job.ended_at_s is not None:
            by_worker[job.worker].append(job)
    gaps_s = []
    for done in by_worker.values():
        done.sort(key=lambda job: job.started_at_s or 0.0)
        for before, after in pairwise(done):
            assert before.ended_at_s is not None
            assert after.started_at_s is not None
            if after.enqueued_at_s < before.ended_at_s:
                gaps_s.append(max(0.0, after.started_at_s - before.ended_at_s))
    return median(gaps_s) if gaps_s else None


def sample_lags_s(decisions: Sequence[Mapping[str, Any]]) -> list[float]:
    """How old the newest sample was at each decision."""
    found = []
    for each in decisions:
        sampled = [queue["sampled_at_s"] for queue in each["decision"]["metrics"] if queue["sampled_at_s"] is not None]
        if sampled:
            found.append(max(0.0, each["decision"]["at_s"] - min(sampled)))
    return found


def tick_phase_s(decisions: Sequence[Mapping[str, Any]]) -> float:
    """When ticks are, in seconds after whole multiples of a tick: the moment before which fewest decisions were made.

    A decision is never early, and one that wakes a pool may be at any time.
    """
    offsets = sorted(each["decision"]["at_s"] % TICK_S for each in decisions)
    assert offsets
    within = [sum((other - offset) % TICK_S < 0.5 for other in offsets) for offset in offsets]
    return offsets[within.index(max(within))]


def evaluation_delays_s(decisions: Sequence[Mapping[str, Any]]) -> list[float]:
    """How late ticks were; decisions further from one woke a pool."""
    phase_s = tick_phase_s(decisions)
    late = ((each["decision"]["at_s"] - phase_s) % TICK_S for each in decisions)
    return [each_s for each_s in late if each_s < 0.5]


def moves(decisions: Sequence[Mapping[str, Any]]) -> list[tuple[float, int, int]]:
    """When the target moved, from where and to where."""
    found, last = [], 0
    for each in decisions:
        target = each["decision"]["target_workers"]
        if target != last:
            found.append((each["decision"]["at_s"], last, target))
            last = target
    return found


def apply_delays_s(lives: Sequence[Life], decisions: Sequence[Mapping[str, Any]]) -> list[float]:
    """From each decision that asked for workers to their spawns."""
    found = []
    for at_s, before, after in moves(decisions):
        if after > before:
            spawned = [life.began_at_s - at_s for life in lives if 0 <= life.began_at_s - at_s < MATCHED_WITHIN_S]
            found += sorted(spawned)[: after - before]
    return found


def wake_delays_s(jobs: Sequence[JobRun], decisions: Sequence[Mapping[str, Any]]) -> list[float]:
    """From the first job that came to a pool at zero to the decision that woke it."""
    found, slept_s = [], 0.0
    for at_s, before, after in moves(decisions):
        if before == 0:
            came = [job.enqueued_at_s for job in jobs if slept_s <= job.enqueued_at_s <= at_s]
            if came:
                found.append(at_s - min(came))
        if after == 0:
            slept_s = at_s
    return found
