"""The rehearsal itself: queues, workers, hosts and controllers on a virtual clock.

Between two ticks every pool goes its own way; at a tick each controller sees its pool and its target is applied.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headway.errors import Invalid
from headway.scaling.group import Group
from headway.scaling.metrics.behaviour import Behaviour
from headway.scaling.model import Host
from headway.scaling.view import TICK_S
from headway.simulate.engine.cores import Machines
from headway.simulate.engine.draws import Draw
from headway.simulate.engine.evaluation_times import Evaluations
from headway.simulate.engine.faults import HostOutage, Stretch, is_covered
from headway.simulate.engine.pool_lane import Lane
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_hosts import Hosts
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.observation import Stepping, Target

__all__ = ["Rehearsal", "Stepping", "Target", "simulate"]

APPLY_MAX_SHARE = 0.25  # of a tick: what is decided is done well before the next one
OVERTIME_S = 86400.0  # a strategy that leaves jobs waiting for a day after the last one came will not serve them


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
    groups: tuple[Group, ...] = ()
    """Caps over several pools, where there are hosts."""
    control_outages: tuple[Stretch, ...] = ()
    """When nobody decides: workers go on with what they have."""
    tick_phase_s: float = 0.0
    """When the first tick is: what a workload comes to depends on where its bursts fall between two."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    """Of the control plane: how late its evaluations are, and what they order."""
    cores: float | None = None
    """Of each host, shared by the workers that start and end there; ``None``: none delays another."""
    busy_cores: float = 0.0
    """Cores of each host that other programs want, in even parts with the workers that start and end there."""
    starting_max: int | None = None
    """So many workers start on a host at once and the others wait; ``None``: any number."""
    goes_on_s: float = 0.0
    """How long it goes on after every job is done, while workers are paid."""
    is_paid_to_end: bool = False
    """Whether the workers of every pool are paid until all pools are done, and not until the pool's own last job."""
    stalled_s: float = OVERTIME_S
    """It ends when no job has come or ended for so long: those that are left have no place and never will."""

    def __post_init__(self) -> None:
        breaches = []
        if not self.tick_s > 0:
            breaches.append(f"tick_s={self.tick_s} must be above 0")
        if not 0 <= self.tick_phase_s < max(self.tick_s, 0.0):
            breaches.append(f"tick_phase_s={self.tick_phase_s} must lie in 0..{self.tick_s}, its end excluded")
        if self.cores is not None and not self.cores > 0:
            breaches.append(f"cores={self.cores} must be above 0")
        if breaches:
            raise Invalid(*breaches)


class _Run:
    """One rehearsal under way."""

    def __init__(self, plans: Sequence[PoolPlan], controllers: Sequence[Stepping], rehearsal: Rehearsal) -> None:
        self.lanes = [
            Lane(plan, controller, begins_at_s=rehearsal.begins_at_s, seed=rehearsal.seed)
            for plan, controller in zip(plans, controllers, strict=True)
        ]
        self.pools = [lane.pool for lane in self.lanes]
        self.now_s = 0.0
        """Everything has happened up to then."""
        self._rehearsal = rehearsal
        self._outages = rehearsal.control_outages
        self._hosts = Hosts(rehearsal.hosts, rehearsal.host_outages, rehearsal.groups) if rehearsal.hosts else None
        self._times = Evaluations.of(
            rehearsal.behaviour, tick_s=rehearsal.tick_s, phase_s=rehearsal.tick_phase_s, seed=rehearsal.seed
        )
        self._last_arrival_s = max((pool.jobs.at_s[-1] for pool in self.pools if len(pool.jobs)), default=0.0)
        self._last_s = self._last_arrival_s + OVERTIME_S
        self._machines = self._machines_of(rehearsal)
        self._is_simple = self._hosts is None and self._machines is None and self._times.apply_s is None
        """Whether what is decided is done at once, and touches nothing but its pool."""

    def _machines_of(self, rehearsal: Rehearsal) -> Machines | None:
        if rehearsal.cores is None and rehearsal.starting_max is None:
            return None

        def busy_cores(host_id: str) -> float:
            wanted = (pool.plan.job_cores * pool.crew.jobs_on(host_id) for pool in self.pools if pool.plan.job_cores)
            return rehearsal.busy_cores + sum(wanted)

        cores = math.inf if rehearsal.cores is None else rehearsal.cores
        machines = Machines(cores, starting_max=rehearsal.starting_max, busy_cores=busy_cores)
        for pool in self.pools:
            pool.crew.machines = machines
        return machines

    def run(self, on_tick: Callable[[float], None] | None) -> None:
        """Let everything happen, until all jobs are done."""
        rehearsal = self._rehearsal
        is_plain = self._hosts is None and not self._outages
        tick = 0
        self._wake_before(tick)
        while (at_s := self._times.at_s(tick)) <= self._last_s:
            self._tick(at_s)
            if on_tick is not None:
                on_tick(at_s)
            if all(pool.is_over for pool in self.pools) and at_s >= self._ends_s:
                break
            if at_s > self._last_arrival_s + rehearsal.stalled_s and self._is_stalled(at_s):
                break
            tick += 1
            if is_plain:
                tick = self._passed_over(tick, on_tick)
            self._wake_before(tick)

    def _is_stalled(self, at_s: float) -> bool:
        """Whether no job ended of late and none is at work."""
        ended_s = max(pool.ended_s for pool in self.pools)
        return at_s > ended_s + self._rehearsal.stalled_s and not any(pool.crew.jobs_in_flight for pool in self.pools)

    @property
    def _ends_s(self) -> float:
        """When the rehearsal of pools whose jobs are done ends."""
        return max((pool.ended_s for pool in self.pools), default=0.0) + self._rehearsal.goes_on_s

    def _tick(self, at_s: float) -> None:
        for lane in self.lanes:
            lane.advance(at_s, from_s=self.now_s)
        self.now_s = at_s
        if self._hosts is not None:
            self._hosts.fail(self.pools, at_s)
        if not self._outages or self._is_decided(at_s):
            self._decide(self.lanes, at_s)

    def _is_decided(self, at_s: float) -> bool:
        return not is_covered(self._outages, at_s)

    def _decide(self, lanes: Sequence[Lane], at_s: float, *, before_s: float = math.inf) -> None:
        """Let ``lanes`` decide, and do what comes of it: at once, or as long after as it takes, by ``before_s``."""
        if self._is_simple:
            for lane in lanes:
                lane.refresh(at_s)
                lane.record(at_s)
                lane.apply(at_s)
            return
        for lane in lanes:
            lane.refresh(at_s, capacity_workers=None if self._hosts is None else self._hosts.capacity_workers(lane))
        if self._times.apply_s is not None:
            self.now_s = min(before_s, at_s + min(self._times.apply_s(), self._times.tick_s * APPLY_MAX_SHARE))
            for pool in self.pools:
                pool.advance(self.now_s)
        if self._hosts is not None:
            self._hosts.apply(self.lanes, self.now_s)
        for lane in lanes:
            lane.record(at_s)
            if self._hosts is None:
                lane.apply(self.now_s)
        if self._machines is not None:
            self._machines.plan(self.now_s)

    def _wake_before(self, tick: int) -> None:
        """Evaluate those pools that wake from zero before that tick."""
        if self._times.wake_s is not None:
            self._wake(self._times.wake_s, before_s=self._times.at_s(tick))

    def _wake(self, wake_s: Draw, *, before_s: float) -> None:
        while True:
            due = [lane.wakes_at_s(wake_s, before_s=before_s) for lane in self.lanes]
            due_s = min(due, default=math.inf)
            at_s = max(due_s, self.now_s)
            if at_s >= before_s or not self._is_decided(at_s):
                return
            lane = self.lanes[due.index(due_s)]
            # It wakes because that job is seen.
            lane.advance(at_s, from_s=max(self.now_s, lane.pool.oldest_s))
            for pool in self.pools:
                pool.advance(at_s)
            self.now_s = at_s
            self._decide([lane], at_s, before_s=before_s)

    def _passed_over(self, tick: int, on_tick: Callable[[float], None] | None) -> int:
        """The next tick that must be evaluated; those before it, at which nothing is new, are kept as such.

        The last quiet one is evaluated: a controller counts time by what it saw last.
        """
        is_over = all(pool.is_over for pool in self.pools)
        last_s = self._ends_s if is_over else self._last_s
        until_s = min([last_s, *(lane.quiet_until_s for lane in self.lanes)])
        first = tick
        while self._times.at_s(tick + 1) < until_s:
            tick += 1
        if tick > first:
            at_s = [self._times.at_s(number) for number in range(first, tick)]
            for lane in self.lanes:
                lane.pass_over(at_s)
            if on_tick is not None:
                for each_s in at_s:
                    on_tick(each_s)
        return tick

    def results(self) -> tuple[Result, ...]:
        """What came of every pool."""
        rehearsal = self._rehearsal
        until_s = self.now_s if rehearsal.goes_on_s or rehearsal.is_paid_to_end else None
        for lane in self.lanes:
            lane.unplaced.close(self.now_s)
        return tuple(
            lane.result(
                objective_s=rehearsal.objective_s if lane.pool.plan.objective_s is None else lane.pool.plan.objective_s,
                until_s=until_s,
            )
            for lane in self.lanes
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

    The same plans, controllers and seed give the same results. ``on_tick`` receives the time of each tick, and
    ``on_waits`` at the end each plan's waits, job by job until its first start; not a number, where it never started.
    """
    run = _Run(plans, controllers, rehearsal or Rehearsal())
    run.run(on_tick)
    if on_waits is not None:
        on_waits([pool.pickup_s for pool in run.pools])
    return run.results()
