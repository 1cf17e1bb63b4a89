"""Caps over several pools: connections of a database, licences, processes that one service may have in all."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Annotated, Any

from headway.errors import Invalid
from headway.scaling.keys import Range
from headway.scaling.mapping import Reading, range_breaches, to_mapping
from headway.scaling.model import Host, WorkerState
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.rules import PATH_NAME, is_path_name
from headway.scaling.profile_keys.schedule import WORKERS_MAX

SLOTS_MAX = 1_000_000
POOLS_MAX = 1_000

CappedWorkers = Annotated[int, Range(1, WORKERS_MAX)]
CappedSlots = Annotated[int, Range(1, SLOTS_MAX)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Pools whose workers, all together, never exceed a cap, in workers or in slots."""

    name: str
    workers_max: CappedWorkers | None = None
    """The most workers of all its pools together; ``None``: the cap is in slots."""
    slots_max: CappedSlots | None = None
    """The most slots of all their workers: one connection per slot, for a library that opens one per thread."""
    pools: tuple[str, ...] = ()
    """Its pools, in the order of their names."""

    def __post_init__(self) -> None:
        if breaches := [*_breaches(self)]:
            raise Invalid(*(f"group {self.name!r}: {breach}" for breach in breaches))
        object.__setattr__(self, "pools", tuple(sorted(self.pools)))

    @property
    def cap(self) -> int:
        """The most units of all its pools together: workers, or slots."""
        return self.workers_max if self.workers_max is not None else self.slots_max or 0

    @property
    def is_in_slots(self) -> bool:
        """Whether a unit is a slot; else it is a worker."""
        return self.workers_max is None

    @property
    def key(self) -> str:
        """The key that sets the cap."""
        return "slots_max" if self.is_in_slots else "workers_max"

    def among(self, pools: Container[str]) -> "Group | None":
        """The group with those of its pools that are among ``pools``; ``None`` if none is left."""
        return self.without({pool for pool in self.pools if pool not in pools})

    def without(self, pools: Container[str]) -> "Group | None":
        """The group without ``pools``; ``None`` if none is left."""
        left = tuple(pool for pool in self.pools if pool not in pools)
        return replace(self, pools=left) if left else None

    def units(self, slots_per_worker: int) -> int:
        """The units that one worker of so many slots takes."""
        return slots_per_worker if self.is_in_slots else 1

    def ceiling_workers(self, slots_per_worker: int) -> int:
        """The most workers of one pool, if it were alone in the group."""
        return self.cap // max(1, self.units(slots_per_worker))


def group_from_mapping(name: str, values: Mapping[str, Any]) -> Group:
    """The group called ``name`` that ``values`` describe.

    Raises:
        Invalid: with every unknown key, wrong type and broken rule.
    """
    where = f"group {name!r}"
    reading = Reading()
    taken, wrong = reading.fields_of(Group, values, where=where, left_out=("name",))
    draft = SimpleNamespace(**{"workers_max": None, "slots_max": None, "pools": (), **taken, "name": name})
    reading.breaches += [f"{where}: {text}" for text in _breaches(draft, wrong)]
    if reading.breaches:
        raise Invalid(*reading.breaches)
    return Group(name=name, **taken)


def group_to_mapping(group: Group) -> dict[str, Any]:
    """The mapping that ``group_from_mapping`` turns back into ``group``: the cap that is set, and the pools."""
    body: dict[str, Any] = to_mapping(group)
    return {key: value for key, value in body.items() if key != "name" and value is not None}


def conflicts_of(group: Group, profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """A sentence for each way in which ``group`` contradicts ``profiles``, by pool; none if they agree.

    A cap in slots is compared as if each worker had one slot: only hosts know how many a worker has.
    """
    return tuple(_conflicts(group, profiles))


def used_units(group: Group, hosts: Iterable[Host]) -> int:
    """What the pools of ``group`` have of its cap, by the last reports of ``hosts``: every worker that is not gone."""
    pools, used = frozenset(group.pools), 0
    for host in hosts:
        slots = {template.name: template.slots for template in host.templates}
        used += sum(
            group.units(slots.get(worker.template, 1))
            for worker in host.workers
            if worker.pool in pools and worker.state is not WorkerState.GONE
        )
    return used


def memberships(groups: Iterable[Group]) -> dict[str, tuple[Group, ...]]:
    """Pool -> the groups that it is in, by their names."""
    found: dict[str, list[Group]] = {}
    for group in sorted(groups, key=lambda each: each.name):
        for pool in group.pools:
            found.setdefault(pool, []).append(group)
    return {pool: tuple(each) for pool, each in found.items()}


def smallest(groups: Sequence[Group], slots_per_worker: int) -> Group:
    """The group that leaves a pool the fewest workers, if the pool were alone in each of ``groups``."""
    return min(groups, key=lambda each: (each.ceiling_workers(slots_per_worker), each.name))


def _breaches(given: Any, wrong: Iterable[str] = ()) -> Iterable[str]:
    """What is wrong with a group, but for what is said of the keys that are ``wrong`` already."""
    known = frozenset(wrong)
    yield from (text for name, text in range_breaches(given, Group) if name not in known)
    if not is_path_name(given.name):
        yield f"its name must be {PATH_NAME}"
    if not known & {"workers_max", "slots_max"}:
        if given.workers_max is None and given.slots_max is None:
            yield "needs workers_max or slots_max: without a cap it would limit nothing"
        if given.workers_max is not None and given.slots_max is not None:
            yield "workers_max and slots_max are both given: a cap is in workers or in slots"
    if "pools" in known:
        return
    if not given.pools:
        yield "pools must name at least one pool"
    if len(given.pools) > POOLS_MAX:
        yield f"pools names {len(given.pools)} pools; at most {POOLS_MAX} are allowed"
    counts = Counter(given.pools)
    yield from (f"pools names pool {pool!r} twice" for pool in sorted(counts) if counts[pool] > 1)


def _conflicts(group: Group, profiles: Mapping[str, Profile]) -> Iterable[str]:
    where, cap = f"group {group.name!r}", f"{group.key}={group.cap}"
    guaranteed = {}
    for pool in group.pools:
        profile = profiles.get(pool)
        if profile is None:
            yield f"{where}: pool {pool!r} has no profile"
            continue
        floors = _floors(profile)
        yield from (
            f"{where}: pool {pool!r}: {name}={workers} exceeds {cap}" for name, workers in floors if workers > group.cap
        )
        guaranteed[pool] = max(profile.pinned or 0, profile.workers_min)
    together = sum(guaranteed.values())
    if together > group.cap and all(workers <= group.cap for workers in guaranteed.values()):
        each = ", ".join(f"{pool} {workers}" for pool, workers in guaranteed.items() if workers)
        yield f"{where}: its pools are guaranteed {together} workers together ({each}), which exceeds {cap}"


def _floors(profile: Profile) -> list[tuple[str, int]]:
    """What the profile sets that no cap may cut, by its key."""
    floors = [("workers_min", profile.workers_min)]
    if profile.pinned is not None:
        floors.append(("pinned", profile.pinned))
    if profile.override is not None:
        floors.append(("override", profile.override.workers))
    floors += [
        (f"schedules[{index}].workers_min", schedule.workers_min)
        for index, schedule in enumerate(profile.schedules)
        if schedule.workers_min is not None
    ]
    return floors
