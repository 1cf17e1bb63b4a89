"""A scenario: pools with their workloads beside each other on hosts with names, as a YAML file.

docs/how-to/rehearse.md has an example. Templates and hosts take the words of host.toml; policies are those of a
profiles.yaml.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headway.cli.profiles_file import load_profiles_file, mapping_of, parsed, unknown_keys
from headway.cli.rehearse.rehearsal import HOSTS_MAX, base_profile
from headway.cli.rehearse.trace_files import Columns, Workload, read_trace
from headway.cli.rehearse.workload_options import drawn
from headway.cli.terminal.units import bytes_, count, seconds
from headway.errors import Invalid
from headway.scaling.group import Group
from headway.scaling.model import Host, HostCapacity, Template
from headway.scaling.profile import Profile
from headway.simulate.studies.pool_group import PoolLoad
from headway.simulate.workloads.jobs import Jobs
from headway.zones import refuse_unknown_zones, zones_of

HINT = "docs/how-to/rehearse.md has an example of a scenario"
KEYS = ("profiles", "hosts", "templates", "workloads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What one file says."""

    hosts: tuple[Host, ...]
    loads: tuple[PoolLoad, ...]
    """In the file's order."""
    begins_at_s: float
    groups: tuple[Group, ...] = ()
    """Caps over its pools."""


def load_scenario(path: Path, columns: Columns) -> Scenario:
    """The scenario in the file at ``path``; the files that it names are searched beside it.

    Raises:
        Misconfigured: a file cannot be read.
        Invalid: with every mistake in it, each beginning with the file's name.
    """
    breaches: list[str] = []
    top = mapping_of(parsed(path, hint=HINT), "the file", breaches)
    breaches += unknown_keys(top, KEYS)
    given = {
        key: {str(name): values for name, values in mapping_of(top.get(key), key, breaches).items()} for key in KEYS[1:]
    }
    kinds = {name: _template(name, values, breaches) for name, values in given["templates"].items()}
    hosts = tuple(_hosts(given["hosts"], kinds, breaches))
    names = Counter(host.name for host in hosts)
    breaches += [f"hosts: {times} are called {name!r}" for name, times in names.items() if times > 1]
    workloads = {pool: _workload(pool, text, path, columns, breaches) for pool, text in given["workloads"].items()}
    policies = _policies(path, top.get("profiles"), breaches)
    profiles = None if policies is None else policies[0]
    missing = {"hosts": not given["hosts"], "templates": not kinds, "workloads": not workloads}
    breaches += [f"{key}: name at least one" for key, is_missing in missing.items() if is_missing]
    breaches += _unknown(workloads, profiles, kinds) if profiles is not None else ()
    if breaches or policies is None or profiles is None:
        raise Invalid(*(f"{path}: {breach}" for breach in breaches))
    found = {pool: workload for pool, workload in workloads.items() if workload is not None}
    begins_at_s = min((each.begins_at_s for each in found.values() if each.begins_at_s), default=0.0)
    return Scenario(
        hosts=hosts,
        loads=tuple(
            _load(profiles[pool], workload, kinds, begins_at_s=begins_at_s) for pool, workload in found.items()
        ),
        begins_at_s=begins_at_s,
        groups=tuple(each for group in policies[1] if (each := group.among(found)) is not None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TemplateKind:
    """A template and how its workers start."""

    template: Template
    start_up_s: float | None = None


Read = Callable[[Any, str], Any]
"""The value of a key; ``Invalid`` says what is wrong with it, beginning with the key."""


def _amount(value: Any, key: str) -> float:
    return float(value) if _is_number(value) else count(str(value), option=key)


def _whole(value: Any, key: str) -> int:
    amount = _amount(value, key)
    if amount != int(amount):
        raise Invalid(f"{key}={value!r} is no whole number")
    return int(amount)


def _bytes(value: Any, key: str) -> int:
    return int(value) if _is_number(value) else bytes_(str(value), option=key)


def _labels(value: Any, key: str) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise Invalid(f"{key}={value!r} must be names and values, as in {{zone: a}}")
    return {str(name): str(text) for name, text in value.items()}


def _names(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid(f"{key}={value!r} must be a list of names, as in [rq, ffmpeg]")
    return tuple(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


OF_TEMPLATE: Mapping[str, Read] = MappingProxyType(
    {
        "cpu_cores": _amount,
        "memory_bytes": _bytes,
        "gpus": _whole,
        "slots": _whole,
        "labels": _labels,
        "start_up": lambda value, key: seconds(str(value), option=key),
    }
)
OF_HOST: Mapping[str, Read] = MappingProxyType(
    {
        "cpu_cores": _amount,
        "memory_bytes": _bytes,
        "gpus": _whole,
        "labels": _labels,
        "templates": _names,
        "count": _whole,
    }
)


def _read(what: str, given: Any, keys: Mapping[str, Read], breaches: list[str]) -> dict[str, Any]:
    """The values of the known keys of ``given`` that can be read."""
    found: dict[str, Any] = {}
    values = mapping_of(given, what, breaches)
    breaches += [f"{what}: {sentence}" for sentence in unknown_keys(values, keys)]
    for key, value in values.items():
        if key not in keys:
            continue
        try:
            found[key] = keys[key](value, key)
        except Invalid as error:
            breaches += [f"{what}: {breach}" for breach in error.breaches]
            continue
        if _is_number(found[key]) and found[key] < 0:
            breaches.append(f"{what}: {key}={value!r} must not be negative")
            found[key] = 0
    return found


def _template(name: str, given: Any, breaches: list[str]) -> _TemplateKind:
    values = _read(f"templates: {name}", given, OF_TEMPLATE, breaches)
    start_up_s = values.pop("start_up", None)
    if values.get("slots") == 0:
        breaches.append(f"templates: {name}: slots=0 must be 1 or more")
    return _TemplateKind(template=Template(name=name, content_hash="rehearsed", **values), start_up_s=start_up_s)


def _hosts(given: Mapping[str, Any], kinds: Mapping[str, _TemplateKind], breaches: list[str]) -> Iterator[Host]:
    made = 0
    for name, values in given.items():
        found = _read(f"hosts: {name}", values, OF_HOST, breaches)
        if not {"cpu_cores", "memory_bytes"} <= found.keys():
            breaches.append(f"hosts: {name}: say cpu_cores and memory_bytes, as in {{cpu_cores: 8, memory_bytes: 16G}}")
            continue
        there = found.get("templates", tuple(kinds))
        breaches += [f"hosts: {name}: no template {each!r} under templates" for each in there if each not in kinds]
        copies = found.get("count", 1)
        made += copies
        if not copies >= 1 or made > HOSTS_MAX:
            breaches.append(f"hosts: {name}: count={copies} must be 1 or more, and {HOSTS_MAX} of all hosts at most")
            return
        for number in range(1, copies + 1):
            host_name = f"{name}-{number}" if "count" in found else name
            yield Host(
                host_id=host_name,
                name=host_name,
                capacity=HostCapacity(
                    cpu_cores=found["cpu_cores"], memory_bytes=found["memory_bytes"], gpus=found.get("gpus", 0)
                ),
                templates=tuple(kinds[each].template for each in there if each in kinds),
                labels=found.get("labels", {}),
            )


def _workload(pool: str, text: Any, path: Path, columns: Columns, breaches: list[str]) -> Workload | None:
    """A trace where there is such a file, else what is drawn."""
    if not isinstance(text, str) or not text:
        breaches.append(f"workloads: {pool}: expected a trace's file or a drawn workload, as poisson:rate=2,for=1h")
        return None
    file = path.parent / text
    try:
        return read_trace(file, columns) if file.is_file() else drawn(text)
    except Invalid as error:
        breaches += [f"workloads: {pool}: {breach}" for breach in error.breaches]
        return None


def _policies(path: Path, name: Any, breaches: list[str]) -> tuple[dict[str, Profile], tuple[Group, ...]] | None:
    if not isinstance(name, str):
        breaches.append("profiles: expected the file of the policies, as profiles.yaml")
        return None
    try:
        file = load_profiles_file(path.parent / name)
        for profile in file.profiles:
            refuse_unknown_zones(profile)
    except Invalid as error:
        breaches += error.breaches
        return None
    # As anywhere in rehearsals: what is paused, advised or overridden is rehearsed as if it were let act.
    return {profile.pool: base_profile(profile) for profile in file.profiles}, file.groups


def _unknown(
    pools: Iterable[str], profiles: Mapping[str, Profile], kinds: Mapping[str, _TemplateKind]
) -> Iterator[str]:
    for pool in pools:
        if pool not in profiles:
            yield f"workloads: no pool {pool!r} in profiles; it has {', '.join(profiles) or 'none'}"
        elif profiles[pool].template not in kinds:
            yield f"pool {pool!r}: its template {profiles[pool].template!r} is not under templates"


def _load(profile: Profile, workload: Workload, kinds: Mapping[str, _TemplateKind], *, begins_at_s: float) -> PoolLoad:
    kind = kinds[profile.template]
    # Recorded jobs keep their place on the clock, drawn ones begin with the scenario.
    later_s = workload.begins_at_s - begins_at_s if workload.begins_at_s else 0.0
    jobs = workload.jobs
    if later_s:
        jobs = Jobs(at_s=[at_s + later_s for at_s in jobs.at_s], service_s=jobs.service_s, dispatch_s=jobs.dispatch_s)
    return PoolLoad(
        profile=profile,
        jobs=jobs,
        slots=kind.template.slots,
        start_up_s=kind.start_up_s,
        zones=zones_of(profile),
    )
