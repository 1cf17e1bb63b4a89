"""What deciding reads: one pool, its queues, its workers and the room there is for more."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headway.scaling.group import Group
from headway.scaling.model import QueueMetrics, QueueOrder, QueueSample, SharedJobs, StartFailure, Suspension
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones

TICK_S = 5.0  # two evaluations of a pool inside the tightest sensible objective, 10 s


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """One pool at one moment. Worker counts are workers; an unknown worker is one of a host that went silent."""

    profile: Profile
    queues: tuple[QueueMetrics, ...]
    """One a member queue, in the profile's order."""
    direct: tuple[QueueSample, ...] = ()
    """The newest readings of the members that came round the pipeline; may raise a stale target, never lower it."""
    slots_per_worker: int = 1
    queue_order: QueueOrder | None = None
    """In what order a worker takes from the queues; ``None``: not known, and a job may start behind all others."""
    strict_queues: tuple[str, ...] = ()
    """Of ``STRICT``: the queues from the first to the last, by the library's own names."""
    start_up_s: float | None = None
    start_up_p95_s: float | None = None
    """What 95 % of the measured start-ups take at most; ``None`` until some were measured."""
    start_up_cpu_s: float | None = None
    """CPU seconds that one start takes; ``None`` where it is not measured."""
    host_cores: float | None = None
    """Cores of the hosts that may start its workers, which share them while they start; ``None``: not known."""
    exit_s: float | None = None
    """From the request to stop to the end of the process, of a worker without a job; ``None``: not measured."""
    dispatch_overhead_s: float | None = None
    """From the end of a job to the next start in the same slot while jobs wait; ``None``: not measured.

    A slot starts ``1 / (service time + overhead)`` jobs a second.
    """
    leaves_due_jobs: bool = False
    """Whether no worker of its template moves jobs that are due later into their queue."""
    capacity_workers: int | None = None
    """Workers of this pool that known hosts can hold, present ones included.

    ``None`` while no known host reports its template.
    """
    assigned_workers: int = 0
    """On known hosts that do not drain."""
    is_running_known: bool = True
    """``False`` of a pool that is only recommended for, where the broker does not list its workers; what runs is then
    taken for the last target."""
    running_workers: int = 0
    """Ready before the newest sample of the queues was taken: what they did by then, the sample shows."""
    starting_workers: int = 0
    """Not ready, or ready only since that sample, which cannot show what they took: they had no chance yet."""
    unknown_workers: int = 0
    leaving_workers: int = 0
    """On known hosts, those that were asked to stop and still run, or may run unseen.

    Those that drain are in no other count; those whose host has yet to stop them still count as running.
    """
    is_failing: bool = False
    """Wherever a worker of the pool could be, its template's workers have, of late, only ended too early."""
    start_failure: StartFailure | None = None
    """Why workers of it fail to start; ``None``: not known, or none does."""
    suspension: Suspension | None = None
    """What keeps all its workers from taking jobs, beside Headway; ``None``: not known."""
    useful_workers: int | None = None
    """At most so many of its workers get jobs at a time, by the brokers' word of all its queues; ``None``: no such
    bound is known."""
    is_teaching: bool = True
    """``False``: its workers are, or were until a while ago, kept from taking jobs. What piled up teaches nothing."""
    busy_workers: int | None = None
    """Running workers that have a job, at most; ``None`` where it is not known."""
    busy_slots: int | None = None
    """Jobs that running workers run, at most: by the workers' or the broker's word of each, else all of its slots where
    it is not known to be idle. ``None`` where it is not known.
    """
    certain_jobs: int = 0
    """Jobs that running workers certainly ran at the instant of the samples, which may have missed them: by the word of
    who does not say since when, or by the workers' own. One that began later is in ``taken_jobs``.
    """
    idle_workers: int | None = None
    """Running workers that are known to be idle; ``None``: nobody reports what workers do."""
    unknown_activity_workers: int = 0
    """Running workers of which nobody knows whether they have a job. They are treated as busy."""
    slots_at_work: int = 0
    """Slots that may have a job, those of workers that leave or may run unseen included; 0: not known."""
    taken_jobs: int = 0
    """Jobs that running workers have begun since the newest sample: there they still wait, or are not yet to be seen.

    A floor under the target like ``in_flight_jobs``: whoever has one of them is not dismissed.
    """
    do_workers_report: bool = False
    """Whether each running worker reports the jobs that it begins: where nobody reports a start, there was none."""
    helped: tuple[SharedJobs, ...] = ()
    """Jobs of its queues that workers of other pools run, per queue and pool that may help with it. Those that are
    reported are not in ``in_flight_jobs``."""
    helping: tuple[SharedJobs, ...] = ()
    """Jobs of queues of other pools that its running workers report to run, by queue."""
    helping_workers: int = 0
    """Running workers that have one of these."""
    helped_queues: tuple[QueueMetrics, ...] = ()
    """The queues of other pools that its workers take from, in the profile's order."""
    recalled_jobs: float | None = None
    """Jobs that earlier days had at this time and today has not had yet; ``None`` without such days."""
    recalled_weeks: int | None = None
    """How many weeks predict them by the hour of the week; ``None`` where it is earlier days that do."""
    lag_s: float = 0.0
    """How old what is seen may be: the way from the broker to the decision."""
    options: Mapping[str, float] = field(default_factory=dict)
    """The strategy's numbers for this pool."""
    worker_hours_today: float | None = None
    """What the pool's workers have run since the budget's day began, where the memory has no count of its own;
    ``None`` where it is not known.
    """
    groups: tuple[Group, ...] = ()
    """The groups that the pool is in, by their names: their caps hold for all their pools together."""
    zones: Zones = field(default_factory=dict)
    """The time zones that the profile's schedules and its budget name."""
    tick_s: float = TICK_S

    @property
    def helping_slots(self) -> int:
        """Slots of running workers that have jobs of queues of other pools: not free, and no demand of this pool."""
        return sum([each.jobs for each in self.helping])

    @property
    def is_shared(self) -> bool:
        """Whether workers of other pools may run jobs of its queues, or its own those of others."""
        return bool(self.helped or self.helped_queues)


def copied(value: Value, **changes: Any) -> Value:
    """What ``dataclasses.replace`` makes of a value with slots and without checks, at half the price.

    For what every decision on a pool with jobs copies: its view and its queues, which have many fields, and what it
    reckons with and learns.
    """
    twin, put = object.__new__(type(value)), object.__setattr__
    for name in value.__slots__:  # type: ignore[attr-defined]
        put(twin, name, getattr(value, name))
    for name, changed in changes.items():
        put(twin, name, changed)
    return twin
