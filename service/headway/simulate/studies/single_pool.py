"""One pool's jobs under one profile: the rehearsal that `simulate`, `backtest` and `tune` have in common."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.errors import Invalid
from headway.scaling.fields import taken_from
from headway.scaling.group import Group
from headway.scaling.metrics.behaviour import Behaviour, alone
from headway.scaling.model import Host, HostCapacity, Template
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.simulate.controller import Controller, ceiling_workers
from headway.simulate.engine.faults import Faults, HostOutage, Stretch
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.workloads.jobs import Jobs

STARTING_PER_CORE = 4  # as an agent's defaults are
STARTING_LEAST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every rehearsal of one call shares; a broken rule is reported with the flag that sets it."""

    tick_s: float = 5.0
    start_up_s: float = 2.0
    start_up_spread: float = 0.0
    slots: int = 1
    recalls_weeks: bool = True
    """Whether hours of the week are learned on the way and recalled, as in the live loop, or earlier days only."""
    seed: int = 0
    hosts: int = 0
    """Without any there is room for all."""
    workers_per_host: int = 0
    faults: Faults = field(default_factory=Faults)
    host_outages: tuple[HostOutage, ...] = ()
    control_outages: tuple[Stretch, ...] = ()
    behaviour: Behaviour | None = None
    """How workers and the control plane behave live; ``None``: the plain model, in which what is decided on is exact,
    nothing takes time but start-ups, and all of them take ``start_up_s``."""
    is_new_pool: bool = False
    """The control plane has yet to learn what it learns of a pool itself: what dispatch takes."""
    tick_phase_s: float = 0.0
    """When the first tick is, in seconds from the beginning of the workload."""
    host_cores: float | None = None
    """Of each host, shared by workers that start and end; ``None``: no start and no end delays another."""
    busy_cores: float = 0.0
    """Cores of each host that other programs want, in even parts with these workers."""
    starting_max: int | None = None
    """So many workers start on a host at once; ``None``: as many as an agent lets start on ``host_cores``, else any."""
    job_cores: float = 0.0
    """Cores that a job at work takes from workers that start."""
    is_depth_only: bool = False
    """Whether the queue is seen by samples that say how many jobs wait, and nothing else."""
    goes_on_s: float = 0.0
    """How long workers are paid after the last job, until they have left."""

    def __post_init__(self) -> None:
        breaches = []
        if self.host_cores is not None and not 0 < self.host_cores < math.inf:
            breaches.append(f"--host-cores={self.host_cores:g} must be above 0")
        if self.starting_max is not None and self.starting_max < 1:
            breaches.append(f"--starting-max={self.starting_max} must be 1 or more")
        if not 0 <= self.busy_cores < math.inf:
            breaches.append(f"busy_cores={self.busy_cores:g} must not be negative")
        if not 0 <= self.job_cores < math.inf:
            breaches.append(f"--job-cores={self.job_cores:g} must not be negative")
        if not 0 < self.tick_s <= 3600:
            breaches.append(f"--tick: {self.tick_s:g} s must lie above 0, up to an hour")
        if not 0 <= self.start_up_spread <= 3:
            breaches.append(f"--jitter={self.start_up_spread:g} must lie in 0..3")
        if self.slots < 1:
            breaches.append(f"--slots={self.slots} must be 1 or more")
        if breaches:
            raise Invalid(*breaches)


def rehearse(
    jobs: Jobs,
    profile: Profile,
    setting: Setting,
    *,
    begins_at_s: float = 0.0,
    strategies: Mapping[str, Strategy] = BUILT_IN,
    zones: Zones | None = None,
    on_tick: Callable[[float], None] | None = None,
    on_waits: Callable[[Sequence[float]], None] | None = None,
) -> Result:
    """What came of ``jobs`` under ``profile``.

    ``on_tick`` receives the time that has passed, ``on_waits`` at the end how long each job waited. Wherever it
    runs, the same arguments give the same result.
    """
    controller = controller_of(profile, setting, strategies=strategies, zones=zones)
    plan = plan_of(jobs, profile, setting)
    hosts = tuple(_host(number, setting, profile.template) for number in range(1, setting.hosts + 1))
    (result,) = simulate(
        [plan],
        [controller],
        rehearsal=rehearsal_of(setting, hosts=hosts, begins_at_s=begins_at_s),
        on_tick=on_tick,
        on_waits=None if on_waits is None else lambda waits: on_waits(waits[0]),
    )
    return result


def rehearsal_of(setting: Setting, *, hosts: tuple[Host, ...], begins_at_s: float) -> Rehearsal:
    """What the pools of a rehearsal share: ``setting`` on ``hosts``, of which there may be none."""
    return taken_from(
        Rehearsal,
        setting,
        begins_at_s=begins_at_s,
        hosts=hosts,
        behaviour=setting.behaviour or Behaviour(),
        cores=setting.host_cores,
        starting_max=_starting_max(setting),
    )


def controller_of(
    profile: Profile,
    setting: Setting,
    *,
    strategies: Mapping[str, Strategy] = BUILT_IN,
    zones: Zones | None = None,
    groups: tuple[Group, ...] = (),
) -> Controller:
    """Who decides for the pool of ``profile``, with what the live loop would know from the beginning."""
    known = setting.behaviour
    if known is not None and setting.is_new_pool:
        known = replace(known, dispatch_overhead_s=None)
    return Controller(
        profile=profile,
        start_up_s=setting.start_up_s,
        tick_s=setting.tick_s,
        strategies=strategies,
        zones=zones,
        slots_per_worker=setting.slots,
        recalls_weeks=setting.recalls_weeks,
        behaviour=known,
        host_cores=None if setting.host_cores is None else setting.host_cores * max(1, setting.hosts),
        groups=groups,
    )


def plan_of(jobs: Jobs, profile: Profile, setting: Setting) -> PoolPlan:
    """The jobs and the workers of the pool of ``profile``."""
    behaviour = setting.behaviour or Behaviour()
    known_start_up = behaviour.start_up
    if setting.host_cores is not None:
        behaviour = alone(behaviour)  # the rehearsal makes them wait for cores
    return taken_from(
        PoolPlan,
        setting,
        profile,
        jobs=jobs,
        name=profile.pool,
        workers_max=ceiling_workers(profile),
        behaviour=behaviour,
        known_start_up=known_start_up,
        is_live=setting.behaviour is not None,
        objective_s=profile.objective.target_s,
    )


def _starting_max(setting: Setting) -> int | None:
    """How many workers start at once: as is said, else as many as an agent lets start on so many cores."""
    if setting.starting_max is not None or setting.host_cores is None:
        return setting.starting_max
    return max(STARTING_LEAST, int(STARTING_PER_CORE * setting.host_cores))


def _host(number: int, setting: Setting, template: str) -> Host:
    """A host with room for so many workers of ``template``: each takes one core and one byte."""
    room = setting.workers_per_host
    cost = Template(name=template, content_hash="rehearsed", slots=setting.slots, cpu_cores=1.0, memory_bytes=1)
    return Host(
        host_id=f"host-{number}",
        name=f"host-{number}",
        capacity=HostCapacity(cpu_cores=float(room), memory_bytes=room),
        templates=(cost,),
    )
