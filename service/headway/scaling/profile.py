"""The policy of a pool, and how a mapping (YAML, JSON) becomes one. Every mistake is reported at once, by name."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache
from types import SimpleNamespace
from typing import Annotated, Any

from headway.errors import Invalid
from headway.scaling.arithmetic import COUNT_MAX, DAY_S
from headway.scaling.keys import Range, Text
from headway.scaling.mapping import Reading, is_number, to_mapping
from headway.scaling.model import FailureLimit, Mode, Objective
from headway.scaling.profile_keys.pauses import Pause
from headway.scaling.profile_keys.presets import with_preset
from headway.scaling.profile_keys.rules import NAME_LENGTH_MAX, breaches_of, refuse
from headway.scaling.profile_keys.schedule import (
    UTC_NAME,
    WORKERS_MAX,
    Bounds,
    Moment,
    Schedule,
    Workers,
    Zones,
    bounds_at,
)

ACTIVATION_JOBS_MAX = 1_000_000
COST_MAX = COUNT_MAX
EVALUATIONS_MAX = 17_280  # a day of them, 5 s apart
POOLS_MADE_MAX = 1_000  # of one profile
PRIORITY_MAX = 1_000_000
RATE_MAX = COUNT_MAX
RISK_MAX = 100.0
WEIGHT_MAX = 1_000.0

__all__ = [
    "DAY_S",
    "NAME_LENGTH_MAX",
    "PRIORITY_MAX",
    "WORKERS_MAX",
    "Fallback",
    "Forecast",
    "Override",
    "Pause",
    "Placement",
    "Profile",
    "profile_from_mapping",
    "profile_to_mapping",
]


Cost = Annotated[float, Range(0, COST_MAX, "low")]
UpToADay = Annotated[float, Range(0, DAY_S, unit="seconds")]
Step = Annotated[int, Range(1, WORKERS_MAX)]
StepFraction = Annotated[float, Range(0, WORKERS_MAX, "low", why="0.5 is half of the last target")]


class Forecast(StrEnum):
    """Whether a forecast may raise a count. The last three are policies of ``hybrid_v3``; to others they mean auto."""

    AUTO = "auto"
    OFF = "off"
    HINT = "hint"
    MODERATE = "moderate"
    AGGRESSIVE = "aggressive"


class Fallback(StrEnum):
    """Which count holds once metrics have stayed away: the profile's, the present one, or one of them."""

    FIXED = "fixed"
    CURRENT = "current"
    IF_HIGHER = "if_higher"
    IF_LOWER = "if_lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A count that an operator has set for a while, and why."""

    workers: Workers
    until_s: Moment
    """Unix seconds, or an ISO time with its zone; given as Unix seconds."""
    reason: Text

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise Invalid("reason is empty: whoever reads the decision wants to know")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which hosts a pool's workers may be on, and what they are spread across."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """What the host must be labelled with, or the template there; empty: nothing."""
    spread: Text | None = None
    """``host``, or a label's name, as ``zone``: where there is a choice, workers go where the fewest are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What an operator wants of a pool: its queues, the objective, the bounds and the pace."""

    pool: str
    queues: tuple[str, ...]
    template: Text
    """The template of the hosts' host.toml that starts one worker."""
    helps: tuple[str, ...] = ()
    """Queues of other pools that the workers take from as well, as ``connection/queue``; no demand of this pool."""
    preset: str | None = None
    """Where the keys that were not given come from; ``None``: the defaults here."""
    mode: Mode = Mode.ACT
    pause: Pause | None = None
    """Takes the place of ``mode`` until it is over."""
    override: Override | None = None
    objective: Objective = field(default_factory=Objective)
    member_objectives: Mapping[str, Objective] = field(default_factory=dict)
    """Queue -> its own objective, where that is not the pool's."""
    workers_min: Workers = 0
    workers_max: Workers = 20
    activation_jobs: Annotated[int, Range(0, ACTIVATION_JOBS_MAX)] = 0
    """At zero, the pool wakes only for more jobs than this."""
    activation_wait_s: Annotated[float, Range(0, DAY_S, unit="seconds", why="no job waits for ever")] | None = None
    """Or for one that has waited so long; ``None``: as long as its objective lets it and it still starts in time."""
    schedules: tuple[Schedule, ...] = ()
    pinned: int | None = None
    """Exactly so many workers, whatever waits."""
    rate_limit_per_s: Cost | None = None
    """What the service that the jobs call allows: no more slots than this times the service time."""
    priority: Annotated[int, Range(0, PRIORITY_MAX)] = 100
    """Greater is placed first when room is short."""
    weight: Annotated[float, Range(0, WEIGHT_MAX, "low")] = 1.0
    """Its share of scarce room among pools of the same priority."""
    placement: Placement = field(default_factory=Placement)
    strategy: Text = "hybrid"
    strategy_options: Mapping[str, Annotated[float, Range(-RATE_MAX, RATE_MAX)]] = field(default_factory=dict)
    """The strategy's own numbers, by name."""
    risk: Annotated[float, Range(0, RISK_MAX, "low")] = 1.0
    """Moves ``hybrid`` between attainment and cost; 1 is as measured."""
    forecast: Forecast = Forecast.AUTO
    hold_up_s: UpToADay = 0.0
    """A greater count is taken only when it was wanted for this long."""
    hold_down_s: UpToADay | None = None
    """A lower count is taken only when it was enough for this long; ``None``: as long as was cheapest for the pool."""
    step_up_workers: Step | None = None
    step_up_fraction: StepFraction | None = None
    """Of the last target; with ``step_up_workers``, whichever allows more."""
    step_down_workers: Step | None = None
    step_down_fraction: StepFraction | None = None
    tolerance_fraction: Annotated[float, Range(0, 1, "high")] = 0.0
    """A change smaller than this part of the last target is not made."""
    stale_after_s: UpToADay = 20.0
    """Metrics older than this are no ground for a lower count."""
    fallback_workers: Annotated[int, Range(1, WORKERS_MAX, why="no failed source empties a pool")] | None = None
    """The count without metrics, once they have stayed away; ``None`` holds the last target."""
    fallback: Fallback = Fallback.FIXED
    """Whether that count holds as it is, only where it is higher or lower than the present one, or the present one."""
    fallback_after_s: UpToADay = 300.0
    """Metrics that are older have stayed away."""
    fallback_after_evaluations: Annotated[int, Range(1, EVALUATIONS_MAX)] | None = None
    """So many evaluations in a row without fresh metrics; where it is given, it counts, and not the age."""
    failure_limit: FailureLimit = field(default_factory=FailureLimit)
    """From when on the pool is shown as failing; it moves no count."""
    cost_per_worker_hour: Cost | None = None
    budget_per_hour: Cost | None = None
    """Never exceeded, floors included; in the unit of ``cost_per_worker_hour``."""
    budget_per_day: Cost | None = None
    """Until the end of the day no more than is left is spent; jobs that run are finished, and shown as overrun."""
    budget_time_zone: Text = UTC_NAME
    """By whose clock a day of the budget begins and ends."""
    pools_max: Annotated[int, Range(1, POOLS_MADE_MAX)] | None = None
    """Each queue that its patterns match becomes a pool of its own with this profile, at most so many; ``None``: all
    are this pool's."""
    service_time_guess_s: Annotated[float, Range(0, DAY_S, "low", unit="seconds")] | None = None
    """Used until a job of the pool has finished; ``None``: each job that would be late gets a slot of its own."""

    def __post_init__(self) -> None:
        refuse(self)

    @property
    def has_fallback(self) -> bool:
        """Whether anything but holding the last target is to follow when metrics stay away."""
        return self.fallback is Fallback.CURRENT or self.fallback_workers is not None

    def recommended(self) -> "Profile":
        """The same policy in mode ``recommend``, without a pause: what is only recommended has nothing to pause."""
        return replace(self, mode=Mode.RECOMMEND, pause=None)

    def override_at(self, now_s: float) -> Override | None:
        """The override that holds at ``now_s``."""
        return self.override if self.override is not None and now_s < self.override.until_s else None

    def pause_at(self, now_s: float) -> Pause | None:
        """The pause that holds at ``now_s``. What is only recommended has no target that could be kept."""
        if self.pause is None or self.mode is Mode.RECOMMEND or self.pause.is_over(now_s):
            return None
        return self.pause

    def mode_at(self, now_s: float) -> Mode:
        """The mode that holds at ``now_s``."""
        pause = self.pause_at(now_s)
        return self.mode if pause is None else pause.mode

    def bounds_at(self, now_s: float, zones: Zones) -> Bounds:
        """The floor and the ceiling that hold at ``now_s``. Raises ``Invalid`` where a schedule's zone is not known."""
        if not self.schedules:
            return _own_bounds(self.workers_min, self.workers_max)
        return bounds_at(
            self.schedules, workers_min=self.workers_min, workers_max=self.workers_max, at_s=now_s, zones=zones
        )

    def objective_of(self, queue: str) -> Objective:
        """The objective of the jobs of ``queue``."""
        return self.member_objectives.get(queue, self.objective)

    @property
    def shortest_target_s(self) -> float:
        """The shortest ``target_s`` of any of its queues."""
        if not self.member_objectives:
            return self.objective.target_s
        return min([self.objective_of(queue).target_s for queue in self.queues])


@lru_cache(maxsize=1024)  # asked for several times in a decision, and many pools have the same
def _own_bounds(workers_min: int, workers_max: int) -> Bounds:
    return Bounds(workers_min=workers_min, workers_max=workers_max)


def profile_from_mapping(pool: str, values: Mapping[str, Any]) -> Profile:
    """The profile of ``pool`` that ``values`` describe.

    Keys that are missing have the value of the preset that ``values`` name, else the default. A member's objective
    takes what it does not say from the pool's.

    Raises:
        Invalid: with every unknown key, wrong type and broken rule.
    """
    where = f"profile {pool!r}"
    reading = Reading()
    taken, wrong = reading.fields_of(Profile, _whole(values), where=where, left_out=("pool",))
    draft = SimpleNamespace(**{**_defaults(), **taken, "pool": pool})
    # A rule about a key that cannot be read would report a value that nobody wrote.
    broken = [breach.text for breach in breaches_of(draft, Profile) if not breach.keys & wrong]
    breaches = [*reading.breaches, *(f"{where}: {text}" for text in broken)]
    if breaches:
        raise Invalid(*breaches)
    return Profile(pool=pool, **taken)


def profile_to_mapping(profile: Profile) -> dict[str, Any]:
    """The mapping that ``profile_from_mapping`` turns back into ``profile``; the pool's name is not in it."""
    body: dict[str, Any] = to_mapping(profile)
    del body["pool"]
    return body


def _whole(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` with what they take from their preset, and members' objectives with what they take from the pool's."""
    whole = with_preset(values)
    members, objective = whole.get("member_objectives"), whole.get("objective", {})
    if isinstance(members, Mapping) and isinstance(objective, Mapping):
        # What is wrong with the pool's objective is reported there, and not again for each member.
        sound = {item.name: objective[item.name] for item in fields(Objective) if is_number(objective.get(item.name))}
        whole["member_objectives"] = {
            queue: {**sound, **given} if isinstance(given, Mapping) else given for queue, given in members.items()
        }
    return whole


def _defaults() -> dict[str, Any]:
    """The value of every key that is not given; for those that must be, one that breaks no rule."""
    defaults: dict[str, Any] = {"queues": ("?",), "template": "?"}
    for item in fields(Profile):
        if item.default is not MISSING:
            defaults[item.name] = item.default
        elif item.default_factory is not MISSING:
            defaults[item.name] = item.default_factory()
    return defaults
