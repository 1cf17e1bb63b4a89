"""The policy of a pool, and how a mapping (YAML, JSON) becomes one. Every mistake is reported at once, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from headway.errors import Invalid
from headway.scaling.model import Mode, Objective

WORKERS_MAX = 10_000  # beyond this a typing error is likelier than a wish
NAME_LENGTH_MAX = 200
PRIORITY_MAX = 1_000_000
DAY_S = 86_400.0  # what takes longer than a day is no matter of workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What an operator wants of a pool: its queues in strict order, the objective, the bounds and the pace."""

    pool: str
    queues: tuple[str, ...]
    template: str
    mode: Mode = Mode.ACT
    objective: Objective = field(default_factory=Objective)
    workers_min: int = 0
    workers_max: int = 20
    priority: int = 100
    strategy: str = "hybrid"
    hold_down_s: float = 15.0
    """A lower count is taken only when it was enough for this long; the upward way never waits."""
    stale_after_s: float = 20.0
    """Metrics older than this are no ground for a lower count."""
    service_time_guess_s: float = 1.0
    """Used until a job of the pool has finished."""

    def __post_init__(self) -> None:
        breaches = [*self._names(), *self._numbers()]
        if breaches:
            raise Invalid(*(f"profile {self.pool!r}: {breach}" for breach in breaches))

    def _names(self) -> list[str]:
        breaches = []
        if not _is_name(self.pool) or "/" in self.pool:
            breaches.append(f"pool must be 1 to {NAME_LENGTH_MAX} printable characters without '/' or spaces around it")
        if not self.queues or not all(map(_is_name, self.queues)):
            breaches.append("queues must name at least one queue, as 'connection/queue'")
        if len(set(self.queues)) != len(self.queues):
            breaches.append("queues names a queue twice")
        if not _is_name(self.template):
            breaches.append("template must name a template of host.toml")
        if not _is_name(self.strategy):
            breaches.append("strategy must name a strategy")
        return breaches

    def _numbers(self) -> list[str]:
        breaches = []
        if not 0 <= self.workers_min <= WORKERS_MAX or not 0 <= self.workers_max <= WORKERS_MAX:
            breaches.append(
                f"workers_min={self.workers_min}, workers_max={self.workers_max}: both lie in 0..{WORKERS_MAX}"
            )
        if self.workers_min > self.workers_max:
            breaches.append(f"workers_min={self.workers_min} exceeds workers_max={self.workers_max}")
        if not 0 < self.objective.target_s <= DAY_S:
            breaches.append(f"objective.target_s={self.objective.target_s} must lie above 0, up to 86400 seconds")
        if not 0 < self.objective.percentile < 100:
            breaches.append(f"objective.percentile={self.objective.percentile} must lie between 0 and 100")
        if not 0 < self.objective.window_s <= 300:
            breaches.append(f"objective.window_s={self.objective.window_s} must lie in 0..300, exclusive of 0")
        breaches += [
            f"{name}={getattr(self, name)} must lie in 0..86400 seconds"
            for name in ("hold_down_s", "stale_after_s")
            if not 0 <= getattr(self, name) <= DAY_S
        ]
        if not 0 < self.service_time_guess_s <= DAY_S:
            breaches.append(f"service_time_guess_s={self.service_time_guess_s} must lie above 0, up to 86400 seconds")
        if not 0 <= self.priority <= PRIORITY_MAX:
            breaches.append(f"priority={self.priority} must lie in 0..{PRIORITY_MAX}")
        return breaches


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_LENGTH_MAX and text.isprintable() and text == text.strip()


def profile_from_mapping(pool: str, values: Mapping[str, Any]) -> Profile:
    """The profile of ``pool`` that ``values`` describe.

    Raises:
        Invalid: with every unknown key, wrong type and broken rule.
    """
    breaches: list[str] = []
    given = dict(values)
    objective = _checked(Objective, given.pop("objective", {}), where=f"profile {pool!r}: objective", breaches=breaches)
    body = _checked(Profile, given, where=f"profile {pool!r}", breaches=breaches, skip=("pool", "objective"))
    breaches += [f"profile {pool!r}: {key} is missing" for key in ("queues", "template") if key not in values]
    if breaches:
        raise Invalid(*breaches)
    return Profile(pool=pool, objective=Objective(**objective), **body)


def profile_to_mapping(profile: Profile) -> dict[str, Any]:
    """The mapping that ``profile_from_mapping`` turns back into ``profile``; the pool's name is not in it."""
    body: dict[str, Any] = {item.name: getattr(profile, item.name) for item in fields(Profile) if item.name != "pool"}
    body["objective"] = {item.name: getattr(profile.objective, item.name) for item in fields(Objective)}
    body["queues"] = list(profile.queues)
    body["mode"] = profile.mode.value
    return body


def _checked(
    kind: type[Profile] | type[Objective],
    values: Any,
    *,
    where: str,
    breaches: list[str],
    skip: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The values of known keys with their types checked; what is wrong is added to ``breaches``."""
    if not isinstance(values, Mapping):
        breaches.append(f"{where}: expected keys and values, got {type(values).__name__}")
        return {}
    known = {item.name: item.type for item in fields(kind) if item.name not in skip}
    names = {item.name for item in fields(kind)} - {"pool"}
    taken: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            breaches.append(f"{where}: unknown key {key!r}; known: {', '.join(sorted(names))}")
            continue
        try:
            taken[key] = _converted(value, known[key])
        except (TypeError, ValueError, OverflowError) as error:
            breaches.append(f"{where}: {key}={value!r}: {error}")
    return taken


def _converted(value: Any, kind: Any) -> Any:
    if kind is Mode:
        if value not in list(Mode):
            raise ValueError(f"expected one of {', '.join(Mode)}")
        return Mode(value)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError("expected a number")
        return float(value)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("expected a whole number")
        return value
    if kind is str:
        if not isinstance(value, str):
            raise TypeError("expected text")
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise TypeError("expected a list of text")
    return tuple(value)
