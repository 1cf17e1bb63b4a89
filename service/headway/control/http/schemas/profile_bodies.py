"""A profile as the HTTP API takes and gives it. The core's own rules check it; these models describe it."""

from typing import Literal

from pydantic import Field, model_validator

from headway.control.http.schemas.profile_sizes import SCHEDULES_MAX
from headway.control.http.schemas.requests import HELD_S_MAX, Seconds, Taken, Text, end_if_any_s, end_s, one_end
from headway.scaling.model import Mode
from headway.scaling.profile import Fallback, Forecast, Override, Pause

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: list[Day] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class ObjectiveBody(Taken):
    """The objective: ``percentile`` % of the jobs of a window of ``window_s`` start within ``target_s``."""

    target_s: float = Field(default=10.0, gt=0)
    percentile: float = Field(default=99.0, gt=0, lt=100)
    window_s: float = Field(default=120.0, gt=0, le=900)


class FailureLimitBody(Taken):
    """The pool is shown as failing where more than `share` of the jobs that ended in `window_s` failed."""

    share: float = Field(default=0.2, ge=0, lt=1)
    window_s: float = Field(default=300.0, ge=30, le=300)
    jobs_min: int = Field(default=3, ge=1, le=1_000_000)
    """Fewer failed jobs than these are no incident."""


class OverrideBody(Taken):
    """A count that an operator has set for a while, and why."""

    workers: int = Field(ge=0, le=10_000)
    until_s: float | str
    """Unix seconds, or an ISO time with its zone; given as Unix seconds."""
    reason: str = Field(min_length=1)


class OwnPauseBody(Taken):
    """A pause that the profile itself brings. Until it is over, it takes the place of the profile's mode."""

    mode: Literal["pause", "pause_up", "pause_down"] = "pause"
    reason: str | None = Field(default=None, min_length=1)
    until_s: float | str | None = None
    """Unix seconds, or an ISO time with its zone; given as Unix seconds. Null: until the profile is changed."""


class ScheduleBody(Taken):
    """Bounds that hold while a clock on the wall of ``time_zone`` shows a time from ``starts`` up to ``ends``."""

    starts: str
    """`08:00`, which recurs, or a date and time as `2026-11-27T08:00`, which happens once."""
    ends: str
    """The same. A recurring one that ends before it starts runs over midnight."""
    days: list[Day] = DAYS
    """Weekdays of a recurring one; one over midnight belongs to the day on which it starts."""
    time_zone: str = "UTC"
    workers_min: int | None = Field(default=None, ge=0, le=10_000)
    workers_max: int | None = Field(default=None, ge=0, le=10_000)
    name: str = ""


class PlacementBody(Taken):
    """Which hosts a pool's workers may be on, and what they are spread across."""

    labels: dict[str, str] = Field(default={})
    """What the host must be labelled with, or the template there."""
    spread: str | None = Field(default=None, min_length=1)
    """`host`, or the name of a label of hosts, as `zone`: where there is a choice, workers go where the fewest are."""


class ProfileBody(Taken):
    """The policy of a pool. It is checked by the rules that `headway apply` knows, and every mistake is reported at
    once.

    The defaults are those without a preset: where `preset` names one, keys that are not given have its values.
    """

    queues: list[str] = Field(min_length=1)
    """The queues that the pool serves, each as `connection/queue`. A queue belongs to one pool. In what order workers
    take from several is set by their library and its options."""
    template: str = Field(min_length=1)
    """The template of the hosts' host.toml that starts one worker."""
    preset: Literal["critical", "high_volume", "balanced", "bursty", "background", "exclusive"] | None = None
    """Where keys that are not given come from. A key that is given takes the preset's place."""
    mode: Mode = Mode.ACT
    pause: OwnPauseBody | None = None
    override: OverrideBody | None = None
    objective: ObjectiveBody = ObjectiveBody()
    member_objectives: dict[str, ObjectiveBody] = Field(default={})
    """Queue -> its own objective, where that is not the pool's."""
    workers_min: int = Field(default=0, ge=0, le=10_000)
    workers_max: int = Field(default=20, ge=0, le=10_000)
    activation_jobs: int = Field(default=0, ge=0, le=1_000_000)
    """At zero, the pool wakes only for more jobs than this."""
    activation_wait_s: float | None = Field(default=None, ge=0, le=86_400)
    """Or for one that has waited so long; null: as long as its objective lets it and it still starts in time."""
    schedules: list[ScheduleBody] = Field(default=[], max_length=SCHEDULES_MAX)
    """Bounds by the clock. Of several active ones the greatest floor and the greatest ceiling hold."""
    pinned: int | None = None
    """Exactly so many workers, whatever waits."""
    rate_limit_per_s: float | None = Field(default=None, gt=0)
    """What the service that the jobs call allows: no more slots than this times the service time."""
    priority: int = 100
    """Greater is placed first when room is short."""
    weight: float = Field(default=1.0, gt=0, le=1_000)
    """Its share of scarce room among pools of the same priority."""
    placement: PlacementBody = PlacementBody()
    strategy: str = Field(default="hybrid", min_length=1)
    strategy_options: dict[str, float] = Field(default={})
    """The strategy's own numbers, by name."""
    risk: float = Field(default=1.0, gt=0, le=100)
    """Moves `hybrid` between attainment and cost; 1 is as measured."""
    forecast: Forecast = Forecast.AUTO
    hold_up_s: float = Field(default=0.0, ge=0, le=86_400)
    """A greater count is taken only when it was wanted for this long."""
    hold_down_s: float | None = Field(default=None, ge=0, le=86_400)
    """A lower count is taken only when it was enough for this long; without it, as long as was cheapest so far."""
    step_up_workers: int | None = Field(default=None, ge=1)
    step_up_fraction: float | None = Field(default=None, gt=0)
    """Of the last target; with `step_up_workers`, whichever allows more."""
    step_down_workers: int | None = Field(default=None, ge=1)
    step_down_fraction: float | None = Field(default=None, gt=0)
    tolerance_fraction: float = Field(default=0.0, ge=0, lt=1)
    """A change smaller than this part of the last target is not made."""
    stale_after_s: float = Field(default=20.0, ge=0, le=86_400)
    """Metrics older than this are no ground for a lower count."""
    fallback_workers: int | None = Field(default=None, ge=1)
    """The count once metrics have stayed away; null holds the last target."""
    fallback: Fallback = Fallback.FIXED
    """Whether that count holds as it is, only where it is higher or lower than the present one, or the present one."""
    fallback_after_s: float = Field(default=300.0, ge=0, le=86_400)
    """Metrics that are older have stayed away."""
    fallback_after_evaluations: int | None = Field(default=None, ge=1, le=17_280)
    """So many evaluations in a row without fresh metrics; where it is given, it counts, and not the age."""
    failure_limit: FailureLimitBody = FailureLimitBody()
    """From when on the pool is shown as failing. It moves no count."""
    cost_per_worker_hour: float | None = Field(default=None, gt=0)
    budget_per_hour: float | None = Field(default=None, gt=0)
    """Never exceeded, floors included; in the unit of `cost_per_worker_hour`."""
    budget_per_day: float | None = Field(default=None, gt=0)
    """Until the end of the day no more than is left is spent; jobs that run are finished, and shown as overrun."""
    budget_time_zone: str = Field(default="UTC", min_length=1)
    """By whose clock the day of the budget begins and ends."""
    service_time_guess_s: float | None = Field(default=None, gt=0, le=86_400)
    """Used until a job of the pool has finished; null: each job that would be late gets a slot of its own."""


class SetOverrideBody(Taken):
    """A count of workers for a while. Bounds, budget and capacity still hold."""

    workers: int = Field(ge=0, le=10_000)
    reason: Text
    """Shown with every decision while it holds."""
    for_s: float | None = Field(default=None, gt=0, le=HELD_S_MAX)
    """Seconds from now; or say `until_s`."""
    until_s: Seconds | None = None
    """Unix seconds, at most 31 days ahead."""

    _one_end = model_validator(mode="after")(one_end)

    def value(self, *, now_s: float) -> Override:
        """The core's value. Raises ``Invalid`` where it would end before it begins, or too late."""
        return Override(workers=self.workers, until_s=end_s(self.for_s, self.until_s, now_s=now_s), reason=self.reason)


class PauseBody(Taken):
    """A pause in both directions, of going up or of going down."""

    mode: Literal["pause", "pause_up", "pause_down"] = "pause"
    reason: Text | None = None
    """Shown with every decision while it holds."""
    for_s: float | None = Field(default=None, gt=0, le=HELD_S_MAX)
    """Seconds from now; or say `until_s`. Without either it holds until somebody ends it."""
    until_s: Seconds | None = None
    """Unix seconds, at most 31 days ahead."""

    def value(self, *, now_s: float) -> Pause:
        """The core's value. Raises ``Invalid`` where it would end before it begins, or too late."""
        until_s = end_if_any_s(self.for_s, self.until_s, now_s=now_s)
        return Pause(mode=Mode(self.mode), reason=self.reason, until_s=until_s)
