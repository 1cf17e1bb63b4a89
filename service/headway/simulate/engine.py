"""The rehearsal itself: queues, workers and controllers on a virtual clock.

Between two ticks every pool goes its own way; at a tick each controller sees its pool and its target is applied.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from headway.simulate.controller import Observation
from headway.simulate.pool import PoolPlan, RunningPool
from headway.simulate.results import Recorder, Result, percentile, punctuality

TICK_S = 5.0
OVERTIME_S = 86400.0  # a strategy that leaves jobs waiting for a day after the last one came will not serve them


class Target(Protocol):
    """What a controller answers: a ``Decision`` is one."""

    @property
    def target_workers(self) -> int: ...
    @property
    def burst_workers(self) -> int: ...


class Stepping(Protocol):
    """Anything that decides from one look to the next: a ``Controller`` is one."""

    def step(self, observation: Observation, /) -> Target: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What all pools of a rehearsal share."""

    tick_s: float = TICK_S
    begins_at_s: float = 0.0
    """Unix time of the start, for controllers that go by the clock."""
    objective_s: float = 10.0
    seed: int = 0


def simulate(
    plans: Sequence[PoolPlan],
    controllers: Sequence[Stepping],
    *,
    rehearsal: Rehearsal | None = None,
    on_tick: Callable[[float], None] | None = None,
) -> tuple[Result, ...]:
    """Serve the jobs of every plan under its controller and say what came of it.

    The same plans, controllers and seed give the same results. ``on_tick`` is told the time of each tick.
    """
    rehearsal = rehearsal or Rehearsal()
    pools = [
        RunningPool(plan, start_up_s=start_ups(plan, chance(rehearsal.seed, f"{plan.name}/start-up"))) for plan in plans
    ]
    recorders = [Recorder() for _ in plans]
    last_s = max((plan.jobs.at_s[-1] for plan in plans if len(plan.jobs)), default=0.0) + OVERTIME_S
    tick_s, begins_at_s = rehearsal.tick_s, rehearsal.begins_at_s
    lanes = list(zip(pools, recorders, controllers, strict=True))
    ticks, now_s = 0, 0.0
    while now_s <= last_s:
        for pool, recorder, controller in lanes:
            pool.advance(now_s)
            seen = pool.observe(now_s, at_s=begins_at_s + now_s)
            decision = controller.step(seen)
            target = min(decision.target_workers, pool.plan.workers_max)
            if target != seen.workers:
                pool.crew.retarget(now_s, workers=target, burst_workers=decision.burst_workers)
            recorder.take(
                now_s,
                target=target,
                present=seen.workers,
                busy=seen.busy,
                waiting=seen.waiting,
                pickup_max_s=seen.pickup_max_s,
            )
        if on_tick is not None:
            on_tick(now_s)
        if all(pool.is_over for pool in pools):
            break
        ticks += 1
        now_s = ticks * tick_s
    return tuple(_result(pool, recorder, rehearsal) for pool, recorder, _ in lanes)


def chance(seed: int, stream: str) -> Random:
    """Its own stream of chance for each use, so that one more draw here moves nothing there."""
    return Random(f"{seed}/{stream}")  # noqa: S311 - no secret


def start_ups(plan: PoolPlan, draws: Random) -> Callable[[], float]:
    """Draws the start-up time of one worker after the other."""
    if not plan.start_up_spread or not plan.start_up_s:
        return lambda: plan.start_up_s
    sigma = plan.start_up_spread
    mu = math.log(plan.start_up_s) - sigma * sigma / 2  # so that the mean stays start_up_s
    return lambda: draws.lognormvariate(mu, sigma)


def _result(pool: RunningPool, recorder: Recorder, rehearsal: Rehearsal) -> Result:
    jobs = pool.plan.jobs
    pickup_s = pool.pickup_s[: len(jobs)]
    served = sorted(wait_s for wait_s in pickup_s if not math.isnan(wait_s))
    ended_s = max(pool.ended_s, jobs.at_s[-1] if len(jobs) else 0.0) if pool.is_over else recorder.at_s[-1]
    in_time = punctuality(jobs.at_s, pickup_s, objective_s=rehearsal.objective_s)
    return Result(
        pool=pool.plan.name,
        jobs=len(jobs),
        unserved_jobs=len(jobs) - len(served),
        objective_s=rehearsal.objective_s,
        attainment_percent=in_time.percent,
        attainment_by_day_percent=in_time.by_day_percent,
        pickup_p50_s=percentile(served, 0.50),
        pickup_p95_s=percentile(served, 0.95),
        pickup_p99_s=percentile(served, 0.99),
        pickup_max_s=served[-1] if served else None,
        worker_hours=pool.crew.paid_s(ended_s) / 3600.0,
        work_hours=sum(jobs.service_s) / 3600.0,
        spawns=pool.crew.spawns,
        kills=pool.crew.kills,
        flips=recorder.flips,
        bad_windows=in_time.bad_windows,
        windows=in_time.windows,
        ticks=len(recorder.at_s),
        ended_s=ended_s,
        points=recorder.points(),
    )
