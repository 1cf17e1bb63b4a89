"""What a profile must keep to. Each rule names the keys it reads, so that one mistake is not reported twice."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headway.errors import Invalid
from headway.scaling.mapping import range_breaches
from headway.scaling.model import Mode
from headway.scaling.profile_keys.presets import PRESETS

NAME_LENGTH_MAX = 200
PATH_NAME = f"1 to {NAME_LENGTH_MAX} printable characters without '/' or spaces around it"
PATTERN_CHARS = frozenset("*?[")
TIME_MAX_S = 1e11


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that is broken, and the keys that break it."""

    keys: frozenset[str]
    text: str


def breaches_of(profile: Any, kind: type[Any]) -> Iterator[Breach]:
    """Every rule that ``profile``, or anything with the attributes of a ``kind``, breaks: its bounds come first."""
    for name, text in range_breaches(profile, kind):
        yield Breach(frozenset({name}), text)
    for rule in RULES:
        for keys, text in rule(profile):
            yield Breach(frozenset(keys.split()), text)


Breaches = Iterator[tuple[str, str]]


def _names(given: Any) -> Breaches:
    if not is_path_name(given.pool):
        yield "pool", f"pool must be {PATH_NAME}"
    queues = frozenset(given.queues)
    if not queues or not all(map(is_name, queues)):
        yield "queues", "queues must name at least one queue, as 'connection/queue'"
    if len(queues) != len(given.queues):
        yield "queues", "queues names a queue twice"
    if not is_name(given.template):
        yield "template", "template must name a template of host.toml"
    if not is_name(given.strategy):
        yield "strategy", "strategy must name a strategy"
    if given.preset is not None and given.preset not in PRESETS:
        yield "preset", f"preset {given.preset!r} is not known; known: {', '.join(PRESETS)}"
    for queue in given.member_objectives:
        if queue not in queues:
            yield "member_objectives queues", f"member_objectives: queue {queue!r} is not among queues"


def _helps(given: Any) -> Breaches:
    own = {queue.partition("/")[2]: queue for queue in given.queues}
    for queue in dict.fromkeys(given.helps):
        name = queue.partition("/")[2]
        if queue == given.pool:
            yield "helps", f"helps: {queue!r} is this pool itself; name queues of other pools, as 'connection/queue'"
        elif not is_name(queue) or not name:
            yield "helps", f"helps: {queue!r} is no queue; name queues of other pools, as 'connection/queue'"
        elif PATTERN_CHARS & set(queue):
            yield "helps", f"helps: {queue!r} is a pattern; name each queue, as the template's command line does"
        elif queue in given.queues:
            yield "helps queues", f"helps: queue {queue!r} is among queues: the pool owns it and serves it anyway"
        elif name in own:
            # A worker reports the own name of a job's queue, without the connection.
            text = f"helps: queue {queue!r} has the name of {own[name]!r}: whose job a worker runs is unknown"
            yield "helps queues", text
        if given.helps.count(queue) > 1:
            yield "helps", f"helps names queue {queue!r} twice"
    for name, count in Counter(queue.partition("/")[2] for queue in dict.fromkeys(given.helps)).items():
        if name and count > 1:
            yield "helps", f"helps names {count} queues called {name!r}: whose job a worker runs is unknown"


def _bounds(given: Any) -> Breaches:
    if given.workers_min > given.workers_max:
        yield "workers_min workers_max", f"workers_min={given.workers_min} exceeds workers_max={given.workers_max}"
    for index, schedule in enumerate(given.schedules):
        floor = given.workers_min if schedule.workers_min is None else schedule.workers_min
        ceiling = given.workers_max if schedule.workers_max is None else schedule.workers_max
        if floor > ceiling:
            is_own = schedule.workers_min is not None and schedule.workers_max is not None
            keys = "schedules" if is_own else "schedules workers_min workers_max"
            yield keys, f"schedules[{index}]: workers_min={floor} exceeds workers_max={ceiling} while it is active"


def _counts(given: Any) -> Breaches:
    if given.override is not None and not 0 <= given.override.until_s <= TIME_MAX_S:
        yield "override", f"override.until_s={given.override.until_s} is no time of this age"
    if given.pause is not None and given.pause.until_s is not None and not 0 <= given.pause.until_s <= TIME_MAX_S:
        yield "pause", f"pause.until_s={given.pause.until_s} is no time of this age"
    if given.pause is not None and given.mode is Mode.RECOMMEND:
        yield "pause mode", "pause: mode is recommend: nothing moves that could be paused"
    pinned = given.pinned
    if pinned is not None and not given.workers_min <= pinned <= given.workers_max:
        yield (
            "pinned workers_min workers_max",
            f"pinned={pinned} lies outside workers_min={given.workers_min}..workers_max={given.workers_max}",
        )
    if pinned is not None and given.schedules:
        yield "pinned schedules", f"pinned={pinned} and schedules contradict each other: a pinned count does not move"


def _activation(given: Any) -> Breaches:
    wait_s = given.activation_wait_s
    if wait_s is not None and not given.activation_jobs:
        yield (
            "activation_wait_s activation_jobs",
            f"activation_wait_s={wait_s:g} needs activation_jobs: without it a pool at zero wakes for the first job",
        )


def _fallback(given: Any) -> Breaches:
    workers, rule, most = given.fallback_workers, given.fallback, given.fallback_after_evaluations
    if rule == "current" and workers is not None:
        yield (
            "fallback fallback_workers",
            f"fallback=current keeps the present count, not fallback_workers={workers}: leave out one of them",
        )
    if rule in {"if_higher", "if_lower"} and workers is None:
        yield "fallback fallback_workers", f"fallback={rule} needs fallback_workers, to compare the present count with"
    has_fallback = rule == "current" or workers is not None
    if most is None and has_fallback and given.fallback_after_s < given.stale_after_s:
        yield (
            "fallback_after_s stale_after_s",
            f"fallback_after_s={given.fallback_after_s:g} is below stale_after_s={given.stale_after_s:g}",
        )
    if most is not None and not has_fallback:
        yield (
            "fallback_after_evaluations fallback fallback_workers",
            f"fallback_after_evaluations={most} needs fallback_workers, or fallback: current",
        )


def _places(given: Any) -> Breaches:
    for name, value in given.placement.labels.items():
        if not is_name(name) or not is_name(value):
            yield (
                "placement",
                f"placement.labels: {name!r}={value!r}: both are 1 to {NAME_LENGTH_MAX} printable characters",
            )
    if given.placement.spread is not None and not is_name(given.placement.spread):
        yield "placement", "placement.spread must be host, or name a label of hosts"


def _budgets(given: Any) -> Breaches:
    for name in ("budget_per_hour", "budget_per_day"):
        if getattr(given, name) is not None and given.cost_per_worker_hour is None:
            yield (
                f"{name} cost_per_worker_hour",
                f"{name} needs cost_per_worker_hour: without it no count of workers has a price",
            )
    if not is_name(given.budget_time_zone):
        yield "budget_time_zone", "budget_time_zone must name a time zone, as Europe/Berlin"


RULES = (_names, _helps, _bounds, _counts, _activation, _fallback, _places, _budgets)


def is_name(text: str) -> bool:
    """Whether ``text`` can name something."""
    return 0 < len(text) <= NAME_LENGTH_MAX and text.isprintable() and text == text.strip()


def is_path_name(text: str) -> bool:
    """Whether ``text`` can be asked for by a path of the HTTP API: what cannot be, nobody could end."""
    return is_name(text) and "/" not in text and text not in {".", ".."}


def refuse(profile: Any) -> None:
    """Raise ``Invalid`` with every rule that ``profile`` breaks."""
    breaches = [breach.text for breach in breaches_of(profile, type(profile))]
    if breaches:
        raise Invalid(*breaches, where=f"profile {profile.pool!r}")
