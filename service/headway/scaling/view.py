"""What deciding reads: one pool, its queues, its workers and the room there is for more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headway.scaling.model import QueueMetrics, QueueOrder, QueueSample, StartFailure, Suspension
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones

SERVICE_TIME_GUESS_S = 1.0  # where a number has to be shown and nothing is known
START_UP_GUESS_S = 3.0  # until one worker of the template has been seen to start
LAG_S = 1.0  # from a job in the broker to a row that deciding reads, at the 95th percentile (benchmarks/wake.py)
TICK_S = 5.0  # two evaluations of a pool inside the tightest sensible objective, 10 s
UNREAD_S = 6.0
"""A queue that is read is sampled at least this often: every 4 s by its collector, or with the poll and the stream that
follow.
"""


Number = TypeVar("Number", int, float)
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
    zones: Zones = field(default_factory=dict)
    """The time zones that the profile's schedules and its budget name."""
    tick_s: float = TICK_S


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


def aged(queue: QueueMetrics, *, now_s: float) -> QueueMetrics:
    """``queue`` with its oldest job's age, and when delayed jobs are due, brought from the sample's time to ``now_s``.

    Waiting goes on between samples.
    """
    if queue.delayed and queue.sampled_at_s is not None and queue.sampled_at_s < now_s:
        passed_s = now_s - queue.sampled_at_s
        queue = copied(queue, delayed=tuple(copied(each, due_in_s=each.due_in_s - passed_s) for each in queue.delayed))
    if (
        not (queue.waiting_least_jobs or queue.reserved_jobs)
        or queue.oldest_age_s is None
        or queue.sampled_at_s is None
        or queue.sampled_at_s >= now_s
    ):
        return queue
    passed_s = max(0.0, now_s - queue.sampled_at_s)
    if queue.oldest_age_max_s is None:
        return copied(queue, oldest_age_s=queue.oldest_age_s + passed_s)
    most_s = queue.oldest_age_max_s + passed_s
    return copied(queue, oldest_age_s=queue.oldest_age_s + passed_s, oldest_age_max_s=most_s)


def takeable(view: PoolView) -> PoolView:
    """``view`` without the waiting jobs that no worker of the pool can take: those that none of them moves when due."""
    if not view.leaves_due_jobs or not any(queue.overdue_jobs for queue in view.queues):
        return view
    return copied(view, queues=tuple(map(_without_overdue, view.queues)))


def _without_overdue(queue: QueueMetrics) -> QueueMetrics:
    if not queue.overdue_jobs or queue.waiting_jobs is None:
        return queue
    return copied(queue, waiting_jobs=queue.waiting_jobs - queue.overdue_jobs, overdue_jobs=0)


def is_seen(queue: QueueMetrics) -> bool:
    """Whether its broker has ever reported this queue. A queue that was never seen has no jobs with an objective."""
    return queue.sampled_at_s is not None


def metrics_age_s(view: PoolView, *, now_s: float) -> float | None:
    """How long ago the members that were ever seen were sampled, the oldest of them; ``None`` where none ever was."""
    sampled = [queue.sampled_at_s for queue in view.queues if queue.sampled_at_s is not None]
    return now_s - min(sampled) if sampled else None


def is_fresh(view: PoolView, *, now_s: float) -> bool:
    """Whether the members that were ever seen, at least one, were sampled within the profile's ``stale_after_s``."""
    age_s = metrics_age_s(view, now_s=now_s)
    return age_s is not None and age_s <= view.profile.stale_after_s


def pooled(queues: Sequence[QueueMetrics]) -> QueueMetrics:
    """The members seen as one queue: counts and rates add, ages and waits are the greatest.

    The service time is the members' mean weighted by their completions. What no member knows stays ``None``. So do the
    jobs that wait, are in flight or are delayed where one member does not know them: the others' sum is then a lower
    bound.
    """
    seen = [queue for queue in queues if is_seen(queue)]
    if len(seen) == 1:
        return seen[0]
    return QueueMetrics(
        queue="+".join(queue.queue for queue in queues),
        sampled_at_s=min((queue.sampled_at_s for queue in seen if queue.sampled_at_s is not None), default=None),
        window_s=max((queue.window_s for queue in seen), default=60.0),
        waiting_jobs=_exact(seen, "waiting_jobs"),
        waiting_min_jobs=_least(seen, "waiting_jobs", "waiting_least_jobs"),
        overdue_jobs=sum([queue.overdue_jobs for queue in seen]),
        in_flight_jobs=_exact(seen, "in_flight_jobs"),
        in_flight_min_jobs=_least(seen, "in_flight_jobs", "in_flight_least_jobs"),
        delayed_jobs=_exact(seen, "delayed_jobs"),
        delayed=tuple(sorted((each for queue in seen for each in queue.delayed), key=lambda each: each.due_in_s)),
        reserved_jobs=_total(queue.reserved_jobs for queue in seen),
        oldest_age_s=_oldest_age_s(seen),
        oldest_age_max_s=_greatest_bound_s(seen),
        has_unknown_rates=any(queue.has_unknown_rates for queue in seen),
        in_flight_mean_jobs=_exact(seen, "in_flight_mean_jobs"),
        arrived_jobs=_total(queue.arrived_jobs for queue in seen),
        retried_jobs=_total(queue.retried_jobs for queue in seen),
        arrived_until_s=_greatest(queue.arrived_until_s for queue in seen),
        start_rate_per_s=_total_rate(seen, "start_rate_per_s"),
        late_rate_per_s=_total_rate(seen, "late_rate_per_s"),
        arrival_rate_per_s=_total_rate(seen, "arrival_rate_per_s"),
        retry_rate_per_s=_total_rate(seen, "retry_rate_per_s"),
        completion_rate_per_s=_total_rate(seen, "completion_rate_per_s"),
        failure_rate_per_s=_total_rate(seen, "failure_rate_per_s"),
        arrival_trend_per_s2=_total_rate(seen, "arrival_trend_per_s2"),
        service_time_s=_mean_service_time_s(seen),
        service_batch_s=_greatest(queue.service_batch_s for queue in seen),
        service_p95_s=_greatest(queue.service_p95_s for queue in seen),
        pickup_p50_s=_greatest(queue.pickup_p50_s for queue in seen),
        pickup_p95_s=_greatest(queue.pickup_p95_s for queue in seen),
        pickup_p99_s=_greatest(queue.pickup_p99_s for queue in seen),
        pickup_objective_s=_greatest(queue.pickup_objective_s for queue in seen),
        arrivals=tuple(
            sorted((each for queue in seen for each in queue.arrivals), key=lambda arrivals: arrivals.ended_ago_s)
        ),
    )


def _total(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None


def _exact(queues: Sequence[QueueMetrics], name: str) -> Any:
    """The sum of a figure; ``None`` where that of a member is not known."""
    values = [getattr(queue, name) for queue in queues]
    return None if None in values or not values else sum(values)


def _least(queues: Sequence[QueueMetrics], exact: str, least: str) -> int | None:
    """The sum of what the members have at least; ``None`` where each of them knows its figure."""
    if all(getattr(queue, exact) is not None for queue in queues):
        return None
    return sum([int(getattr(queue, least)) for queue in queues])


def _total_rate(queues: Sequence[QueueMetrics], name: str) -> float | None:
    """The sum of a rate; ``None`` where that of a member is not known: without it the sum is too small."""
    if any(queue.has_unknown_rates and getattr(queue, name) is None for queue in queues):
        return None
    return _total(getattr(queue, name) for queue in queues)


def _oldest_age_s(queues: Sequence[QueueMetrics]) -> float | None:
    """The greatest age; ``None`` rather than 0 where jobs of a member may wait, for how long is unknown."""
    oldest_s = _greatest(queue.oldest_age_s for queue in queues)
    return (
        oldest_s if oldest_s or all(queue.oldest_age_s is not None or queue.is_wait_known for queue in queues) else None
    )


def _greatest_bound_s(queues: Sequence[QueueMetrics]) -> float | None:
    """The most that the oldest age may be; ``None`` where no member's age is less than exact."""
    if all(queue.oldest_age_max_s is None for queue in queues):
        return None
    return _greatest(
        queue.oldest_age_s if queue.oldest_age_max_s is None else queue.oldest_age_max_s for queue in queues
    )


def _greatest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _mean_service_time_s(queues: Sequence[QueueMetrics]) -> float | None:
    timed = [(queue.service_time_s, queue.completion_rate_per_s or 0.0) for queue in queues if queue.service_time_s]
    if not timed:
        return None
    weight = sum(rate for _, rate in timed)
    if weight <= 0:
        return max(service_s for service_s, _ in timed)
    return sum(service_s * rate for service_s, rate in timed) / weight
