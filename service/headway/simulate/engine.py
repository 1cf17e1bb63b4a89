"""The rehearsal itself: queues, workers, hosts and controllers on a virtual clock.

Between two ticks every pool goes its own way; at a tick each controller sees its pool and its target is applied.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

from headway.errors import Invalid
from headway.scaling.model import Host
from headway.simulate.controller import Controller, Observation
from headway.simulate.faults import HostOutage, Stretch, is_covered
from headway.simulate.hosts import Hosts
from headway.simulate.plan import PoolPlan
from headway.simulate.pool import RunningPool
from headway.simulate.results import Recorder, Result, by_queue_percent, percentile, punctuality

TICK_S = 5.0
OVERTIME_S = 86400.0  # a strategy that leaves jobs waiting for a day after the last one came will not serve them


class Target(Protocol):
    """What a controller answers: a ``Decision`` is one."""

    @property
    def target_workers(self) -> int: ...
    @property
    def burst_workers(self) -> int: ...


class Stepping(Protocol):
    """Anything that decides from one look to the next: a ``Controller`` is one.

    ``now_s`` is given only where metrics are late: it is then later than ``observation.at_s``.
    """

    def step(self, observation: Observation, /, *, now_s: float | None = None) -> Target: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What all pools of a rehearsal share."""

    tick_s: float = TICK_S
    begins_at_s: float = 0.0
    """Unix time of the start, for controllers that go by the clock."""
    objective_s: float = 10.0
    seed: int = 0
    hosts: tuple[Host, ...] = ()
    """Where workers are placed; without any there is room for all."""
    host_outages: tuple[HostOutage, ...] = ()
    control_outages: tuple[Stretch, ...] = ()
    """When nobody decides: workers go on with what they have."""

    def __post_init__(self) -> None:
        if not self.tick_s > 0:
            raise Invalid(f"tick_s={self.tick_s} must be above 0")


class _Lane:
    """A pool, its controller and what is recorded of them."""

    def __init__(self, plan: PoolPlan, controller: Stepping, rehearsal: Rehearsal) -> None:
        self.pool = RunningPool(plan, seed=rehearsal.seed)
        self.recorder = Recorder()
        self._step = controller.step
        self._controller = controller if isinstance(controller, Controller) and not plan.faults.are_late else None
        self._seen: Observation | None = None
        self._ceiling = plan.workers_max
        self._begins_at_s = rehearsal.begins_at_s
        self._are_late = plan.faults.are_late
        self._on_the_way: deque[Observation] = deque()
        self._unsent: Observation | None = None
        self._last: Observation | None = None
        self._last_target = plan.warm_workers

    def look(self, now_s: float) -> tuple[int, int]:
        """How many workers the controller wants now, and how many of them burst."""
        self._seen = seen = self.pool.observe(now_s, at_s=self._begins_at_s + now_s)
        if self._are_late:
            workers, burst_workers = self._step_late(seen, now_s)
        else:
            decision = self._step(seen)
            workers, burst_workers = decision.target_workers, decision.burst_workers
        if workers > self._ceiling:
            workers = self._ceiling
        self._last_target = workers
        self.recorder.take(
            now_s,
            target=workers,
            present=seen.workers,
            busy=seen.busy,
            waiting=seen.waiting,
            pickup_max_s=seen.pickup_max_s,
        )
        return workers, burst_workers

    @property
    def quiet_until_s(self) -> float:
        """Until when every look is like the last one and gets the same answer; in the past where that is not known."""
        seen = self._seen
        if self._controller is None or seen is None or seen.workers != self._last_target:
            return -math.inf
        if not self._controller.stands(seen):
            return -math.inf
        return self.pool.next_event_s

    def pass_over(self, at_s: Sequence[float]) -> None:
        """Keep looks like the last one at these times."""
        self.recorder.repeat(at_s)

    def _step_late(self, seen: Observation, now_s: float) -> tuple[int, int]:
        """The same with metrics as they have arrived: old ones, or the last ones once more. Workers are seen as now."""
        faults = self.pool.plan.faults
        self._unsent = seen if self._unsent is None else together(self._unsent, seen)
        if not is_covered(faults.metric_losses, now_s):
            self._on_the_way.append(self._unsent)
            self._unsent = None
        arrived = []
        while self._on_the_way and self._on_the_way[0].at_s <= seen.at_s - faults.metric_lag_s:
            arrived.append(self._on_the_way.popleft())
        if arrived:
            self._last = reduce(together, arrived)
        if self._last is None:
            return self._last_target, 0
        known = replace(self._last, workers=seen.workers, busy=seen.busy, idle=seen.idle, starting=seen.starting)
        decision = self._step(known, now_s=seen.at_s)
        return decision.target_workers, decision.burst_workers

    def apply(self, workers: int, burst_workers: int, now_s: float) -> None:
        """Let workers start and leave until there are so many."""
        crew = self.pool.crew
        if workers != len(crew.starting) + len(crew.running):
            crew.retarget(now_s, workers=workers, burst_workers=burst_workers)

    def result(self, rehearsal: Rehearsal) -> Result:
        """What it came to."""
        pool, recorder, jobs = self.pool, self.recorder, self.pool.jobs
        served = sorted(wait_s for wait_s in pool.pickup_s if not math.isnan(wait_s))
        last_s = jobs.at_s[-1] if len(jobs) else 0.0
        ended_s = max(pool.ended_s, last_s, 0.0 if pool.is_over else recorder.at_s[-1])
        in_time = punctuality(jobs.at_s, pool.pickup_s, objective_s=rehearsal.objective_s)
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
            deaths=pool.crew.deaths,
            crashes=pool.crew.crashes,
            given_up_jobs=pool.given_up_jobs,
            attainment_by_queue_percent=by_queue_percent(
                pool.queue_of, pool.pickup_s, objective_s=rehearsal.objective_s
            ),
            points=recorder.points(),
        )


def simulate(
    plans: Sequence[PoolPlan],
    controllers: Sequence[Stepping],
    *,
    rehearsal: Rehearsal | None = None,
    on_tick: Callable[[float], None] | None = None,
    on_waits: Callable[[Sequence[Sequence[float]]], None] | None = None,
) -> tuple[Result, ...]:
    """Serve the jobs of every plan under its controller and say what came of it.

    The same plans, controllers and seed give the same results. ``on_tick`` is told the time of each tick, and
    ``on_waits`` at the end each plan's waits, job by job until its first start; not a number, where it never started.
    """
    rehearsal = rehearsal or Rehearsal()
    lanes = [_Lane(plan, controller, rehearsal) for plan, controller in zip(plans, controllers, strict=True)]
    pools = [lane.pool for lane in lanes]
    hosts = Hosts(rehearsal.hosts, rehearsal.host_outages) if rehearsal.hosts else None
    last_s = max((pool.jobs.at_s[-1] for pool in pools if len(pool.jobs)), default=0.0) + OVERTIME_S
    is_plain = hosts is None and not rehearsal.control_outages
    ticks, now_s = 0, 0.0
    while now_s <= last_s:
        for pool in pools:
            pool.advance(now_s)
        if hosts is not None:
            hosts.fail(pools, now_s)
        if not (rehearsal.control_outages and is_covered(rehearsal.control_outages, now_s)):
            _decide(lanes, hosts, now_s)
        if on_tick is not None:
            on_tick(now_s)
        if all(pool.is_over for pool in pools):
            break
        ticks += 1
        now_s = ticks * rehearsal.tick_s
        if is_plain:
            ticks, now_s = _passed_over(lanes, ticks, rehearsal.tick_s, last_s, on_tick)
    if on_waits is not None:
        on_waits([pool.pickup_s for pool in pools])
    return tuple(lane.result(rehearsal) for lane in lanes)


def _passed_over(
    lanes: Sequence[_Lane], ticks: int, tick_s: float, last_s: float, on_tick: Callable[[float], None] | None
) -> tuple[int, float]:
    """The next tick that must be looked at, and its time; those before it, at which nothing is new, are kept as such.

    The last quiet one is looked at: a controller counts time by what it saw last.
    """
    until_s = min([last_s, *(lane.quiet_until_s for lane in lanes)])
    first = ticks
    while (ticks + 1) * tick_s < until_s:
        ticks += 1
    if ticks > first:
        at_s = [tick * tick_s for tick in range(first, ticks)]
        for lane in lanes:
            lane.pass_over(at_s)
        if on_tick is not None:
            for each_s in at_s:
                on_tick(each_s)
    return ticks, ticks * tick_s


def _decide(lanes: Sequence[_Lane], hosts: Hosts | None, now_s: float) -> None:
    if hosts is not None:
        hosts.apply([lane.pool for lane in lanes], [lane.look(now_s) for lane in lanes], now_s)
        return
    for lane in lanes:
        workers, burst_workers = lane.look(now_s)
        lane.apply(workers, burst_workers, now_s)


def together(earlier: Observation, later: Observation) -> Observation:
    """Two looks as if there had been only the later one."""
    waits = [wait_s for wait_s in (earlier.pickup_max_s, later.pickup_max_s) if wait_s is not None]
    return replace(
        later,
        arrived=earlier.arrived + later.arrived,
        started=earlier.started + later.started,
        finished=earlier.finished + later.finished,
        service_sum_s=earlier.service_sum_s + later.service_sum_s,
        pickup_max_s=max(waits, default=None),
    )
