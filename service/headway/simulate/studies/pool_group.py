"""Pools beside each other on hosts with names: room is shared and workers are placed as the live loop does it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.errors import Invalid
from headway.scaling.group import Group, memberships
from headway.scaling.model import Host
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import simulate
from headway.simulate.studies.single_pool import Setting, controller_of, plan_of, rehearsal_of
from headway.simulate.workloads.jobs import Jobs

GROUP_STALLED_S = 3600.0  # pools whose workers have no place on any host keep their jobs for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLoad:
    """One pool of several: its policy, its jobs from the start of the rehearsal on, and how its workers start."""

    profile: Profile
    jobs: Jobs
    slots: int = 1
    start_up_s: float | None = None
    """``None``: as the setting says."""
    zones: Zones = field(default_factory=dict)


def rehearse_beside(
    loads: Sequence[PoolLoad],
    hosts: Sequence[Host],
    setting: Setting,
    *,
    groups: Sequence[Group] = (),
    begins_at_s: float = 0.0,
    strategies: Mapping[str, Strategy] = BUILT_IN,
    on_tick: Callable[[float], None] | None = None,
) -> tuple[Result, ...]:
    """What came of each of ``loads``, each judged by its own objective; what had no place is in ``Result.unplaced``.

    ``groups`` cap pools of ``loads`` together. Wherever it runs, the same arguments give the same results.

    Raises:
        Invalid: two of the pools have the same name: their workers could not be distinguished.
    """
    names = [load.profile.pool for load in loads]
    if twice := {name for name in names if names.count(name) > 1}:
        raise Invalid(f"pool {min(twice)!r} is rehearsed twice: give each pool of a rehearsal a name of its own")
    settings = [_of(load, setting) for load in loads]
    pairs = tuple(zip(loads, settings, strict=True))
    of_pool = memberships(groups)
    return simulate(
        [plan_of(load.jobs, load.profile, own) for load, own in pairs],
        [
            controller_of(
                load.profile,
                own,
                strategies=strategies,
                zones=load.zones,
                groups=of_pool.get(load.profile.pool, ()),
            )
            for load, own in pairs
        ],
        rehearsal=replace(
            rehearsal_of(setting, hosts=tuple(hosts), begins_at_s=begins_at_s),
            groups=tuple(groups),
            is_paid_to_end=True,
            stalled_s=GROUP_STALLED_S,
        ),
        on_tick=on_tick,
    )


def _of(load: PoolLoad, setting: Setting) -> Setting:
    start_up_s = setting.start_up_s if load.start_up_s is None else load.start_up_s
    return replace(setting, slots=load.slots, start_up_s=start_up_s)
