"""What a profile must keep to. Each rule names the keys it reads, so that one mistake is not reported twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headway.errors import Invalid
from headway.scaling.arithmetic import DAY_S
from headway.scaling.model import Mode, Objective
from headway.scaling.profile_keys.presets import PRESETS

WORKERS_MAX = 10_000  # beyond this a typing error is likelier than a wish
NAME_LENGTH_MAX = 200
PATH_NAME = f"1 to {NAME_LENGTH_MAX} printable characters without '/' or spaces around it"
PRIORITY_MAX = 1_000_000
ACTIVATION_JOBS_MAX = 1_000_000
EVALUATIONS_MAX = 17_280  # a day of them, 5 s apart
WINDOW_MAX_S = 900.0  # finished waits are kept at hand for this long
FAILURE_WINDOW_MIN_S, FAILURE_WINDOW_MAX_S = 30.0, 300.0  # what ended is kept at hand for as long as the latter
FAILED_JOBS_MAX = 1_000_000
RISK_MAX = 100.0
WEIGHT_MAX = 1_000.0
RATE_MAX = 1e9
COST_MAX = 1e9
TIME_MAX_S = 1e11


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that is broken, and the keys that break it."""

    keys: frozenset[str]
    text: str


def breaches_of(profile: Any) -> Iterator[Breach]:
    """Every rule that ``profile``, or anything with its attributes, breaks."""
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


def _objectives(given: Any) -> Breaches:
    yield from objective_breaches(given.objective, "objective")
    for queue, objective in given.member_objectives.items():
        for _, text in objective_breaches(objective, f"member_objectives.{queue}"):
            yield "member_objectives", text


def objective_breaches(objective: Objective, key: str) -> Breaches:
    """What is wrong with one objective."""
    if not 0 < objective.target_s <= DAY_S:
        yield key, f"{key}.target_s={objective.target_s} must lie above 0, up to 86400 seconds"
    if not 0 < objective.percentile < 100:
        yield key, f"{key}.percentile={objective.percentile} must lie between 0 and 100"
    if not 0 < objective.window_s <= WINDOW_MAX_S:
        yield key, f"{key}.window_s={objective.window_s} must lie in 0..{WINDOW_MAX_S:g}, exclusive of 0"


def _bounds(given: Any) -> Breaches:
    if not 0 <= given.workers_min <= WORKERS_MAX or not 0 <= given.workers_max <= WORKERS_MAX:
        yield (
            "workers_min workers_max",
            f"workers_min={given.workers_min}, workers_max={given.workers_max}: both lie in 0..{WORKERS_MAX}",
        )
    if given.workers_min > given.workers_max:
        yield "workers_min workers_max", f"workers_min={given.workers_min} exceeds workers_max={given.workers_max}"
    for index, schedule in enumerate(given.schedules):
        where = f"schedules[{index}]"
        own = [bound for bound in (schedule.workers_min, schedule.workers_max) if bound is not None]
        if not all(0 <= bound <= WORKERS_MAX for bound in own):
            yield "schedules", f"{where}: its bounds must lie in 0..{WORKERS_MAX}"
        floor = given.workers_min if schedule.workers_min is None else schedule.workers_min
        ceiling = given.workers_max if schedule.workers_max is None else schedule.workers_max
        if floor > ceiling:
            keys = "schedules" if len(own) == 2 else "schedules workers_min workers_max"
            yield keys, f"{where}: workers_min={floor} exceeds workers_max={ceiling} while it is active"


def _counts(given: Any) -> Breaches:
    if given.override is not None and not 0 <= given.override.workers <= WORKERS_MAX:
        yield "override", f"override.workers={given.override.workers} must lie in 0..{WORKERS_MAX}"
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
    for name in ("step_up_workers", "step_down_workers"):
        value = getattr(given, name)
        if value is not None and not 1 <= value <= WORKERS_MAX:
            yield name, f"{name}={value} must lie in 1..{WORKERS_MAX}"


def _activation(given: Any) -> Breaches:
    if not 0 <= given.activation_jobs <= ACTIVATION_JOBS_MAX:
        yield "activation_jobs", f"activation_jobs={given.activation_jobs} must lie in 0..{ACTIVATION_JOBS_MAX}"
    wait_s = given.activation_wait_s
    if wait_s is not None and not 0 <= wait_s <= DAY_S:
        yield "activation_wait_s", f"activation_wait_s={wait_s} must lie in 0..86400 seconds: no job waits for ever"
    if wait_s is not None and not given.activation_jobs:
        yield (
            "activation_wait_s activation_jobs",
            f"activation_wait_s={wait_s:g} needs activation_jobs: without it a pool at zero wakes for the first job",
        )


def _fallback(given: Any) -> Breaches:
    workers, rule, most = given.fallback_workers, given.fallback, given.fallback_after_evaluations
    if workers is not None and not 1 <= workers <= WORKERS_MAX:
        yield (
            "fallback_workers",
            f"fallback_workers={workers} must lie in 1..{WORKERS_MAX}: no failed source empties a pool",
        )
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
    if most is not None and not 1 <= most <= EVALUATIONS_MAX:
        yield "fallback_after_evaluations", f"fallback_after_evaluations={most} must lie in 1..{EVALUATIONS_MAX}"
    if most is not None and not has_fallback:
        yield (
            "fallback_after_evaluations fallback fallback_workers",
            f"fallback_after_evaluations={most} needs fallback_workers, or fallback: current",
        )


def _pace(given: Any) -> Breaches:
    for name in ("hold_up_s", "hold_down_s", "stale_after_s", "fallback_after_s"):
        value = getattr(given, name)
        if value is not None and not 0 <= value <= DAY_S:
            yield name, f"{name}={value} must lie in 0..86400 seconds"
    if given.service_time_guess_s is not None and not 0 < given.service_time_guess_s <= DAY_S:
        yield (
            "service_time_guess_s",
            f"service_time_guess_s={given.service_time_guess_s} must lie above 0, up to 86400 seconds",
        )
    for name in ("step_up_fraction", "step_down_fraction"):
        value = getattr(given, name)
        if value is not None and not 0 < value <= WORKERS_MAX:
            yield name, f"{name}={value} must lie above 0: 0.5 is half of the last target"
    if not 0 <= given.tolerance_fraction < 1:
        yield "tolerance_fraction", f"tolerance_fraction={given.tolerance_fraction} must lie in 0..1, exclusive of 1"


def _shares(given: Any) -> Breaches:
    if not 0 <= given.priority <= PRIORITY_MAX:
        yield "priority", f"priority={given.priority} must lie in 0..{PRIORITY_MAX}"
    for name, most in (("weight", WEIGHT_MAX), ("risk", RISK_MAX)):
        if not 0 < getattr(given, name) <= most:
            yield name, f"{name}={getattr(given, name)} must lie above 0, up to {most:g}"
    for name, value in given.strategy_options.items():
        if not abs(value) <= RATE_MAX:
            yield "strategy_options", f"strategy_options.{name}={value} must be a number up to {RATE_MAX:g}"


def _places(given: Any) -> Breaches:
    for name, value in given.placement.labels.items():
        if not is_name(name) or not is_name(value):
            yield (
                "placement",
                f"placement.labels: {name!r}={value!r}: both are 1 to {NAME_LENGTH_MAX} printable characters",
            )
    if given.placement.spread is not None and not is_name(given.placement.spread):
        yield "placement", "placement.spread must be host, or name a label of hosts"


def _failures(given: Any) -> Breaches:
    limit = given.failure_limit
    if not 0 <= limit.share < 1:
        yield "failure_limit", f"failure_limit.share={limit.share} must lie in 0..1, exclusive of 1: 0.2 is 20 %"
    if not FAILURE_WINDOW_MIN_S <= limit.window_s <= FAILURE_WINDOW_MAX_S:
        yield (
            "failure_limit",
            f"failure_limit.window_s={limit.window_s:g} must lie in {FAILURE_WINDOW_MIN_S:g}..{FAILURE_WINDOW_MAX_S:g}",
        )
    if not 1 <= limit.jobs_min <= FAILED_JOBS_MAX:
        yield "failure_limit", f"failure_limit.jobs_min={limit.jobs_min} must lie in 1..{FAILED_JOBS_MAX}"


def _costs(given: Any) -> Breaches:
    for name in ("rate_limit_per_s", "cost_per_worker_hour", "budget_per_hour", "budget_per_day"):
        value = getattr(given, name)
        if value is not None and not 0 < value <= COST_MAX:
            yield name, f"{name}={value} must lie above 0, up to {COST_MAX:g}"
    for name in ("budget_per_hour", "budget_per_day"):
        if getattr(given, name) is not None and given.cost_per_worker_hour is None:
            yield (
                f"{name} cost_per_worker_hour",
                f"{name} needs cost_per_worker_hour: without it no count of workers has a price",
            )


def _budget_days(given: Any) -> Breaches:
    if not is_name(given.budget_time_zone):
        yield "budget_time_zone", "budget_time_zone must name a time zone, as Europe/Berlin"


RULES = (
    _names,
    _objectives,
    _bounds,
    _counts,
    _activation,
    _fallback,
    _pace,
    _shares,
    _places,
    _failures,
    _costs,
    _budget_days,
)


def is_name(text: str) -> bool:
    """Whether ``text`` can name something."""
    return 0 < len(text) <= NAME_LENGTH_MAX and text.isprintable() and text == text.strip()


def is_path_name(text: str) -> bool:
    """Whether ``text`` can be asked for by a path of the HTTP API: what cannot be, nobody could end."""
    return is_name(text) and "/" not in text and text not in {".", ".."}


def refuse(profile: Any) -> None:
    """Raise ``Invalid`` with every rule that ``profile`` breaks."""
    breaches = [f"profile {profile.pool!r}: {breach.text}" for breach in breaches_of(profile)]
    if breaches:
        raise Invalid(*breaches)
