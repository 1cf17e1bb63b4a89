"""A profile as the HTTP API takes and gives it. The core's own rules check it; these models describe it."""

from collections.abc import Mapping, Sized
from typing import Any, Literal

from pydantic import Field

from headway.control.bounds import Bounds
from headway.control.http.schemas.requests import Held, HeldForAWhile, Taken, Text
from headway.control.http.schemas.schema_base import with_fields_of
from headway.errors import Invalid
from headway.scaling.model import FailureLimit, Mode, Objective
from headway.scaling.profile import Override, Pause, Placement, Profile
from headway.scaling.profile_keys.schedule import Schedule

SCHEDULES_MAX = 100
STRATEGY_OPTIONS_MAX = 100  # no strategy reads as many

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
    """The queues that the pool serves, each as `connection/queue`. One with `*` is a pattern, which stands for all
    queues that it matches. A queue belongs to one pool. In what order workers take from several is set by their library
    and its options."""
    preset: Literal["critical", "high_volume", "balanced", "bursty", "background", "exclusive"] | None = None
    """Where keys that are not given come from. A key that is given takes the preset's place."""
    schedules: list[ScheduleBody] = Field(default=[], max_length=SCHEDULES_MAX)
    """Bounds by the clock. Of several active ones the greatest floor and the greatest ceiling hold."""


class SetOverrideBody(HeldForAWhile):
    """A count of workers for a while. Bounds, budget and capacity still hold."""

    workers: int = Field(ge=0, le=10_000)
    reason: Text
    """Shown with every decision while it holds."""

    def value(self, *, now_s: float) -> Override:
        """The core's value. Raises ``Invalid`` where it would end before it begins, or too late."""
        return Override(workers=self.workers, until_s=self.end_s(now_s=now_s), reason=self.reason)


class PauseBody(Held):
    """A pause in both directions, of going up or of going down."""

    mode: Literal["pause", "pause_up", "pause_down"] = "pause"
    reason: Text | None = None
    """Shown with every decision while it holds."""

    def value(self, *, now_s: float) -> Pause:
        """The core's value. Raises ``Invalid`` where it would end before it begins, or too late."""
        return Pause(mode=Mode(self.mode), reason=self.reason, until_s=self.ends_s(now_s=now_s))


def refuse_larger(pool: str, values: Mapping[str, Any], bounds: Bounds) -> None:
    """Refuse a profile with longer lists than are taken, before any of it is read. Raises ``Invalid``.

    Each of its lists is gone through at every evaluation.
    """
    placement = values.get("placement")
    labels = placement.get("labels") if isinstance(placement, Mapping) else None
    of_queues, raised = bounds.queues_per_profile_max, "raise HEADWAY_QUEUES_PER_PROFILE of the control plane"
    breaches = [
        f"profile {pool!r}: {name} has {len(given)} entries, at most {most} are taken: {cure}"
        for name, given, most, cure in (
            ("queues", values.get("queues"), of_queues, f"make several pools, or {raised}"),
            ("helps", values.get("helps"), of_queues, raised),
            ("member_objectives", values.get("member_objectives"), of_queues, raised),
            ("schedules", values.get("schedules"), SCHEDULES_MAX, "have fewer"),
            ("strategy_options", values.get("strategy_options"), STRATEGY_OPTIONS_MAX, "have fewer"),
            ("placement.labels", labels, bounds.labels_max, "have fewer, as HEADWAY_LABELS allows hosts no more"),
        )
        if isinstance(given, Sized) and len(given) > most
    ]
    if breaches:
        raise Invalid(*breaches)
