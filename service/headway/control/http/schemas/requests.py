"""What the HTTP API takes, as Pydantic models. Each turns into the core's value at once."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, model_validator

from headway.control.bounds import BIGINT_MAX
from headway.control.http.schemas.schema_base import Described
from headway.control.ingest.batch_validation import BATCH_ITEMS_MAX
from headway.errors import Invalid
from headway.scaling.fields import taken_from
from headway.scaling.model import (
    DueJobs,
    EventKind,
    JobEvent,
    QueueCounts,
    QueueSample,
    Redelivery,
    Suspension,
    TelemetryBatch,
    WorkerActivity,
)
from headway.scaling.model.due_jobs import DUE_STEPS_MAX

TEXT_LENGTH_MAX = 1000
HELD_S_MAX = 31 * 86_400.0  # what is set by hand for a while: what shall hold for longer belongs in the profile
REQUEST_ATTEMPT_MAX = 2**32 - 1  # as the wire holds it

Maybe = TypeVar("Maybe", str, str | None)
Item = TypeVar("Item")


def storable(value: Any, *, at: str = "body") -> list[str]:
    """What of a JSON value Postgres cannot keep: numbers without end, and characters that are none."""
    if isinstance(value, Mapping):
        return [
            breach
            for key, inner in value.items()
            for breach in [*storable(key, at=f"{at}: a key"), *storable(inner, at=f"{at}.{key}")]
        ]
    if isinstance(value, list):
        return [breach for index, inner in enumerate(value) for breach in storable(inner, at=f"{at}.{index}")]
    if isinstance(value, float) and not math.isfinite(value):
        return [f"{at}: a finite number is expected"]
    if isinstance(value, int) and abs(value) > BIGINT_MAX:
        return [f"{at}: the number is too large"]
    if isinstance(value, str) and not _is_storable(value):
        return [f"{at}: the text holds a character that cannot be stored"]
    return []


def _is_storable(value: str) -> bool:
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def storable_text(value: Maybe) -> Maybe:
    """``value``, if Postgres can keep it. Raises ``ValueError`` if not."""
    if value is not None and not _is_storable(value):
        raise ValueError("the text holds a character that cannot be stored")
    return value


Text = Annotated[str, Field(min_length=1, max_length=TEXT_LENGTH_MAX), AfterValidator(storable_text)]
Count = Annotated[int, Field(ge=0, le=BIGINT_MAX)]
Attempt = Annotated[int, Field(ge=1, le=REQUEST_ATTEMPT_MAX)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]
Duration = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Where one item is wrong, the others mostly are, too: 10,000 of them would be 40,000 errors.
Items = Annotated[list[Item], Field(max_length=BATCH_ITEMS_MAX), FailFast()]


class Taken(Described, BaseModel):
    """What a client sends. An unknown key is a typing error, and is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Held(Taken):
    """What people set until a time, or until somebody ends it."""

    for_s: float | None = Field(default=None, gt=0, le=HELD_S_MAX)
    """Seconds from now; or say `until_s`. Without either it holds until somebody ends it."""
    until_s: Seconds | None = None
    """Unix seconds, at most 31 days ahead."""

    def ends_s(self, *, now_s: float) -> float | None:
        """When it ends by itself, if it does. Raises ``Invalid`` where that has passed, or is too far ahead."""
        if self.for_s is not None and self.until_s is not None:
            raise Invalid("give at most one of for_s and until_s")
        return None if self.for_s is None and self.until_s is None else self.end_s(now_s=now_s)

    def end_s(self, *, now_s: float) -> float:
        """When it ends, of one that has an end. Raises ``Invalid`` where that has passed, or is too far ahead."""
        ends_s = now_s + (self.for_s or 0.0) if self.until_s is None else self.until_s
        if not now_s < ends_s <= now_s + HELD_S_MAX:
            raise Invalid(f"until_s={ends_s:.0f} must lie ahead of now, {now_s:.0f}, by at most 31 days")
        return ends_s


class HeldForAWhile(Held):
    """What people set for a while: it ends by itself."""

    for_s: float | None = Field(default=None, gt=0, le=HELD_S_MAX)
    """Seconds from now; or say `until_s`."""

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if (self.for_s is None) == (self.until_s is None):
            raise ValueError("give one of for_s and until_s: it ends by itself")
        return self


class EventBody(Taken):
    """One thing that happened to one job. Starts carry when it was enqueued, ends when it started."""

    queue: Text
    job_id: Text
    kind: Literal["enqueued", "started", "finished", "failed", "retried", "revoked"]
    """`revoked`: it left its queue without a start, as one that has expired."""
    at_s: Seconds
    enqueued_at_s: Seconds | None = None
    started_at_s: Seconds | None = None
    job_class: Text | None = None
    attempt: Attempt | None = None
    """Which attempt of the job it is about, 1 the first; absent: not known, and taken for the first."""

    def value(self) -> JobEvent:
        """The core's value."""
        return JobEvent(**{**vars(self), "kind": EventKind(self.kind)})


class DueJobsBody(Taken):
    """So many of the delayed jobs are due within so many seconds; those due sooner are among them."""

    within_s: Duration
    jobs: Count


class SampleBody(Taken):
    """One reading of a queue. ``oldest_age_s`` is 0 when nothing waits, and absent when it cannot be known.

    Reserved jobs wait as well.
    """

    queue: Text
    at_s: Seconds
    waiting_jobs: Count | None = None
    """Absent only where `waiting_min_jobs` is given."""
    in_flight_jobs: Count | None = None
    """Jobs that workers have; absent: the source cannot know the number."""
    delayed_jobs: Count | None = None
    oldest_age_s: Duration | None = None
    reserved_jobs: Count | None = None
    """Of those in flight, the ones that a worker has taken and not begun: no other worker can have them."""
    oldest_age_max_s: Duration | None = None
    """Where the age is not exact, the most that it may be; absent: it is exact."""
    reports_arrivals: bool | None = None
    """Whether each arrival is reported as an event; absent: the source does not say."""
    reports_starts: bool | None = None
    reports_ends: bool | None = None
    poll_interval_s: Duration | None = None
    """From one reading of the queue to the next, by now; absent: the source does not say."""
    listed_workers: Count | None = None
    """Workers that serve the queue, whoever started them; absent: the source cannot say."""
    suspension: Suspension | None = None
    """What keeps workers from taking its jobs; absent: the source cannot say."""
    useful_workers: Count | None = None
    """At most so many workers get its jobs at a time, however many serve it; absent: no such bound is known."""
    message_ttl_s: Duration | None = None
    """The broker itself drops a job that has waited so long, as its queue is configured; absent: it does not, or the
    source does not say."""
    redelivery: Redelivery | None = None
    """What becomes of a job whose worker died; absent: the broker gives it back at once, or the source does not say."""
    waiting_min_jobs: Count | None = None
    """At least so many jobs wait, where the number is not known. Where it is, the others are due and not in the queue
    yet."""
    in_flight_min_jobs: Count | None = None
    """Workers have at least so many jobs, where the number is not known."""
    due: Annotated[list[DueJobsBody], Field(max_length=DUE_STEPS_MAX), FailFast()] = []
    """When those of `delayed_jobs` are due, by ascending times; empty: that is not known."""

    def value(self) -> QueueSample:
        """The core's value."""
        return QueueSample(**{**vars(self), "due": tuple(DueJobs(**vars(each)) for each in self.due)})


class CountsBody(Taken):
    """How many jobs of a queue there were since the counters of the producer began; absent: not counted.

    What a counter grows by from one batch of the producer to the next counts like so many events; the first batch
    counts nothing.
    """

    queue: Text
    at_s: Seconds
    epoch: Text
    """Names one life of the counters: they begin at 0 with a new one, and never fall within one."""
    arrived_jobs: Count | None = None
    started_jobs: Count | None = None
    finished_jobs: Count | None = None
    """Ends without a failure."""
    failed_jobs: Count | None = None


class ActivityBody(Taken):
    """What a broker knows of one worker process."""

    host: Text
    pid: Count
    is_busy: bool
    busy_since_s: Seconds | None = None
    ended_jobs: Count | None = None
    """Jobs that it has ended since it began."""
    running_jobs: Count | None = None
    """Jobs that it has begun and not ended: what it has reserved is not among them."""
    busy_queue: Text | None = None
    """The queue of its running jobs, as `connection/queue`, where all of them are of one."""


class TelemetryBody(Taken):
    """What one producer sends at once. The same producer and sequence sent again count once."""

    producer: Text
    """Names the sender through its whole life, across restarts that go on with the same sequence."""
    sequence: Count
    """Grows with each new batch; a repeated batch keeps its number."""
    sent_at_s: Seconds
    """The sender's clock when it sent, Unix seconds: what its offset is estimated from."""
    events: Items[EventBody] = []
    samples: Items[SampleBody] = []
    activities: Items[ActivityBody] = []
    counts: Items[CountsBody] = []
    dropped_events: Count = 0
    """Events that the sender lost since its last batch, because it had no room for them."""

    def value(self) -> TelemetryBatch:
        """The core's value."""
        return taken_from(
            TelemetryBatch,
            self,
            events=tuple(event.value() for event in self.events),
            samples=tuple(sample.value() for sample in self.samples),
            activities=tuple(WorkerActivity(**vars(activity)) for activity in self.activities),
            counts=tuple(QueueCounts(**vars(counts)) for counts in self.counts),
        )
