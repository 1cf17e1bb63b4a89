"""A profile as the HTTP API takes and gives it. The core's own rules check it; these models describe it."""

from typing import Literal

from pydantic import Field, model_validator

from headway.control.http.schemas.profile_sizes import SCHEDULES_MAX
from headway.control.http.schemas.requests import HELD_S_MAX, Seconds, Taken, Text, end_if_any_s, end_s, one_end
from headway.control.http.schemas.schema_base import with_fields_of
from headway.scaling.model import FailureLimit, Mode, Objective
from headway.scaling.profile import Override, Pause, Placement, Profile
from headway.scaling.profile_keys.schedule import Schedule

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: list[Day] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@with_fields_of(Objective)
class ObjectiveBody(Taken):
    """The objective: ``percentile`` % of the jobs of a window of ``window_s`` start within ``target_s``."""


@with_fields_of(FailureLimit)
class FailureLimitBody(Taken):
    """The pool is shown as failing where more than `share` of the jobs that ended in `window_s` failed."""


@with_fields_of(Override)
class OverrideBody(Taken):
    """A count that an operator has set for a while, and why."""


@with_fields_of(Pause)
class OwnPauseBody(Taken):
    """A pause that the profile itself brings. Until it is over, it takes the place of the profile's mode."""

    mode: Literal["pause", "pause_up", "pause_down"] = "pause"
    until_s: float | str | None = None
    """Unix seconds, or an ISO time with its zone; given as Unix seconds. Null: until the profile is changed."""


@with_fields_of(Schedule)
class ScheduleBody(Taken):
    """Bounds that hold while a clock on the wall of ``time_zone`` shows a time from ``starts`` up to ``ends``."""

    days: list[Day] = DAYS
    """Weekdays of a recurring one; one over midnight belongs to the day on which it starts."""


@with_fields_of(Placement)
class PlacementBody(Taken):
    """Which hosts a pool's workers may be on, and what they are spread across."""


@with_fields_of(Profile, left_out=("pool",))
class ProfileBody(Taken):
    """The policy of a pool. It is checked by the rules that `headway apply` knows, and every mistake is reported at
    once.

    The defaults are those without a preset: where `preset` names one, keys that are not given have its values.
    """

    queues: list[str] = Field(min_length=1)
    """The queues that the pool serves, each as `connection/queue`. A queue belongs to one pool. In what order workers
    take from several is set by their library and its options."""
    preset: Literal["critical", "high_volume", "balanced", "bursty", "background", "exclusive"] | None = None
    """Where keys that are not given come from. A key that is given takes the preset's place."""
    schedules: list[ScheduleBody] = Field(default=[], max_length=SCHEDULES_MAX)
    """Bounds by the clock. Of several active ones the greatest floor and the greatest ceiling hold."""


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
