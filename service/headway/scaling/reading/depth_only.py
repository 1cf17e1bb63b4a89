"""What depths alone show of a queue: since when its jobs wait, and about how many come and start.

A source that reports no events shows how many jobs wait at a moment. Unknown is not zero: what waits is at least as old
as its first sighting. Jobs start in the order in which they came, so starts say which sightings are gone. What a pool
loses while its slots work bounds how long a job keeps a slot, and that gives the starts while nothing falls.

Source: docs/why/demand.md, "Depth without events".
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.scaling.arithmetic import DAY_S, HOUR_S, MINUTE_S, SHORTEST_S
from headway.scaling.model import Arrivals, PoolDepths, QueueDepths, QueueMetrics, QueueOrder, SharedJobs, Sighting
from headway.scaling.model.queue_order import OrderedQueues, is_earlier
from headway.scaling.profile import Profile
from headway.scaling.view import copied

RATE_MEMORY_S = MINUTE_S  # as long as the window of rates that are counted
LEAST_RATE_PER_S = 0.5 / RATE_MEMORY_S  # less than one job in that time is none
DRAIN_MEMORY_S = MINUTE_S  # what a drain shows is of the jobs of the last minute
CYCLE_MEMORY_S = MINUTE_S  # a cycle that no drain confirms while jobs wait counts as e times as long after this
CYCLE_MAX_S = 30 * DAY_S  # longer makes no difference: no objective lets a job wait for more than a day
SIGHTINGS_MAX = 32  # an objective of a minute has twelve; of more, neighbours count as old as the older

Queues = tuple[QueueMetrics, ...]


def learned(
    before: PoolDepths | None,
    among: OrderedQueues,
    *,
    profile: Profile,
    busy_by_workers: int,
    helped: Sequence[SharedJobs] = (),
    tick_s: float,
) -> PoolDepths | None:
    """``before`` and what the newest samples of the pool show; ``None`` where every source reports all events.

    The very ``before`` where no sample is newer.

    Args:
        before: What was known of the pool.
        among: Its queues.
        profile: Its profile, with the objectives of the queues.
        busy_by_workers: Slots that have a job by what is known of the workers.
        helped: Jobs of its queues that slots of other pools run: what the queues lose, these lose as well.
        tick_s: From one evaluation to the next.
    """
    # Whether a lower bound rose or fell says nothing of the depth.
    members = [
        queue
        for queue in among.queues
        if queue.has_unknown_rates and queue.sampled_at_s is not None and queue.waiting_jobs is not None
    ]
    if not members:
        return None
    # Where the sources of all queues count the jobs in flight, these say which slots have one; others may have one.
    is_counted = all(queue.in_flight_jobs is not None for queue in among.queues)
    busy_slots = sum(queue.running_jobs or 0 for queue in among.queues) if is_counted else busy_by_workers
    busy_slots += sum([each.jobs if is_counted else each.most_jobs for each in helped])
    if before is not None and _are_known(members, before, busy_slots=busy_slots):
        return before
    pool = before or PoolDepths(busy_slots=busy_slots)
    steps = tuple(_steps(members, before, tick_s=tick_s))
    pool = _with_drain(pool, steps, busy_slots=busy_slots, is_exact=is_counted)
    starts = _starts(pool, steps, among, busy_slots=busy_slots)
    queues = tuple(
        _with_step(step, started, target_s=profile.objective_of(step.queue.queue).target_s, tick_s=tick_s)
        for step, started in zip(steps, starts, strict=True)
    )
    is_at_rest = not busy_slots and not any(map(_is_alive, queues))
    return copied(pool, queues=() if is_at_rest else queues, busy_slots=busy_slots)


def with_ages(queues: Queues, depths: PoolDepths | None, *, now_s: float) -> Queues:
    """``queues`` with how long jobs wait, by their first sighting, where their source does not report it.

    The age is at least what it says, and at most ``oldest_age_max_s``.
    """
    if depths is None:
        return queues
    known = {each.queue: each for each in depths.queues}
    return tuple(
        _with_age(queue, known.get(queue.queue), now_s=now_s)
        if queue.has_unknown_rates and queue.oldest_age_s is None
        else queue
        for queue in queues
    )


def can_show_service(queues: Queues) -> bool:
    """Whether depths may show how long jobs take: not where another member's ends are reported, which say it.

    What the pool loses is that member's work as well.
    """
    return all(queue.has_unknown_rates for queue in queues)


def with_rates(queues: Queues, depths: PoolDepths | None, *, dispatch_s: float, now_s: float) -> Queues:
    """``queues`` with estimates in place of the rates and the service time that are not known: what is calculated with.

    Ages become the most that they may be, so that no job is late for what is not known of it.
    """
    if depths is None:
        return queues
    known = {each.queue: each for each in depths.queues}
    service_s = None
    if depths.cycle_s is not None and can_show_service(queues):
        service_s = max(SHORTEST_S, depths.cycle_s - dispatch_s)
    return tuple(
        _with_estimates(queue, known.get(queue.queue), service_s=service_s, now_s=now_s)
        if queue.has_unknown_rates
        else queue
        for queue in queues
    )


# --- from one sample to the next -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A queue from one sample to the next."""

    queue: QueueMetrics
    before: QueueDepths
    at_s: float
    since_s: float | None
    """Of the sample before; ``None``: there was none, and this is where everything begins."""

    @property
    def passed_s(self) -> float:
        return 0.0 if self.since_s is None else max(0.0, self.at_s - self.since_s)

    @property
    def waiting_jobs(self) -> int:
        return self.queue.waiting_jobs or 0

    @property
    def fallen_jobs(self) -> int:
        """By how many fewer wait; below 0 where more do."""
        return 0 if self.since_s is None else self.before.waiting_jobs - self.waiting_jobs

    @property
    def is_saturated(self) -> bool:
        """Whether jobs wait at both ends, so that no slot has reason to rest."""
        return self.before.waiting_jobs > 0 and self.waiting_jobs > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """About how many jobs of a queue have started in a step."""

    jobs: float
    sure_jobs: float
    """So many of the first sightings are gone: fewer where it is not known of which queue workers start jobs first."""


def _are_known(members: Sequence[QueueMetrics], before: PoolDepths, *, busy_slots: int) -> bool:
    if not before.queues:  # at rest
        return not busy_slots and not any(queue.waiting_jobs or queue.in_flight_jobs for queue in members)
    known = {each.queue: each.sampled_at_s for each in before.queues}
    return all(queue.sampled_at_s == known.get(queue.queue) for queue in members)


def _steps(members: Sequence[QueueMetrics], before: PoolDepths | None, *, tick_s: float) -> Iterator[_Step]:
    known = {each.queue: each for each in before.queues} if before else {}
    is_at_rest = before is not None and not before.queues
    for queue in members:
        at_s = queue.sampled_at_s or 0.0
        was = known.get(queue.queue)
        # At rest nothing is remembered of samples: the one before was that of the last evaluation.
        since_s = was.sampled_at_s if was else at_s - tick_s if is_at_rest else None
        yield _Step(
            queue=queue, before=was or QueueDepths(queue=queue.queue, sampled_at_s=at_s), at_s=at_s, since_s=since_s
        )


def _with_drain(pool: PoolDepths, steps: Sequence[_Step], *, busy_slots: int, is_exact: bool) -> PoolDepths:
    """``pool`` with what the last step says of the cycle.

    Of the jobs that a pool has, those that wait and those in flight, at least as many end as it loses. Arrivals hide
    the others, so that a drain bounds the cycle from above. A drain goes on while more is lost than comes: then its
    whole length counts, and not the luckiest part of it.
    """
    passed_s = max(step.passed_s for step in steps)
    if passed_s <= 0:
        return pool
    lost_jobs = sum(step.fallen_jobs for step in steps) + _lost_in_flight(pool, busy_slots, is_exact=is_exact)
    kept = math.exp(-passed_s / DRAIN_MEMORY_S)
    ended_jobs = pool.ended_jobs * kept + lost_jobs
    busy_slot_s = pool.busy_slot_s * kept + max(pool.busy_slots, busy_slots) * passed_s
    cycle_s = pool.cycle_s
    if cycle_s is not None and any(step.is_saturated for step in steps):
        # Without an upper bound, the factor is more than a float holds after half a day without an evaluation.
        cycle_s = min(CYCLE_MAX_S, cycle_s * math.exp(min(passed_s, HOUR_S) / CYCLE_MEMORY_S))
    if ended_jobs <= 0:
        return copied(pool, ended_jobs=0.0, busy_slot_s=0.0, cycle_s=cycle_s)
    sure_jobs = ended_jobs - math.sqrt(ended_jobs)  # ends scatter like a Poisson count, whose variance is its mean
    if sure_jobs > 0 and busy_slot_s > 0:
        bound_s = busy_slot_s / sure_jobs
        cycle_s = bound_s if cycle_s is None else min(cycle_s, bound_s)
    return copied(pool, ended_jobs=ended_jobs, busy_slot_s=busy_slot_s, cycle_s=cycle_s)


def _lost_in_flight(pool: PoolDepths, busy_slots: int, *, is_exact: bool) -> int:
    """By how many fewer are in flight. Where that is not counted, only more: workers that go are no ends of jobs."""
    fewer = pool.busy_slots - busy_slots
    return fewer if is_exact else min(0, fewer)


def _starts(pool: PoolDepths, steps: Sequence[_Step], among: OrderedQueues, *, busy_slots: int) -> Iterator[_Started]:
    """About how many jobs of each queue have started: what it lost, and its share of what slots gave beyond.

    The share is that of the order in which workers take from the queues. Where that is not known, it is an equal one
    for what comes and starts, and none for ages: jobs then count as older than they are.
    """
    fallen_jobs = [float(max(0, step.fallen_jobs)) for step in steps]
    shares = _shares(steps, among)
    for step, fallen, share in zip(steps, fallen_jobs, shares, strict=True):
        if step.queue.start_rate_per_s is not None:
            jobs = max(fallen, step.queue.start_rate_per_s * step.passed_s)
            yield _Started(jobs=jobs, sure_jobs=jobs)
        elif step.since_s is not None and share:
            beyond_jobs = _slots_gave(pool, busy_slots, passed_s=step.passed_s) - sum(fallen_jobs)
            jobs = fallen + share * max(0.0, beyond_jobs)
            is_sure = share == 1.0 or among.order is not None
            yield _Started(jobs=jobs, sure_jobs=jobs if is_sure else fallen)
        else:
            yield _Started(jobs=fallen, sure_jobs=fallen)


def _shares(steps: Sequence[_Step], among: OrderedQueues) -> list[float]:
    """The part of the starts that do not show in the depths, of each queue."""
    waiting = [step for step in steps if step.before.waiting_jobs]
    if len(waiting) < 2:
        serving = (*waiting, steps[0])[0]
        return [float(step is serving) for step in steps]
    queues = [step.queue for step in waiting]

    def share(step: _Step) -> float:
        if not step.before.waiting_jobs:
            return 0.0
        match among.order:
            case QueueOrder.STRICT:
                others = (queue for queue in queues if queue is not step.queue)
                return float(not any(is_earlier(other, step.queue, among.strict_queues) for other in others))
            case QueueOrder.IN_TURN | QueueOrder.RANDOM | None:  # unknown: they start all the same, and so arrived
                return 1.0 / len(waiting)
            case QueueOrder.BY_ARRIVAL:
                return step.before.waiting_jobs / sum(each.before.waiting_jobs for each in waiting)

    return [share(step) for step in steps]


def _slots_gave(pool: PoolDepths, busy_slots: int, *, passed_s: float) -> float:
    """Starts of all slots: each end of a job lets one start, and so does each slot that is busy now and was not."""
    ended_jobs = 0.0 if pool.cycle_s is None else (pool.busy_slots + busy_slots) / 2 * passed_s / pool.cycle_s
    return max(0.0, ended_jobs + busy_slots - pool.busy_slots)


def _with_step(step: _Step, started: _Started, *, target_s: float, tick_s: float) -> QueueDepths:
    """What is remembered of a queue after ``step``, in which ``started`` of its jobs started."""
    arrived_jobs = max(0.0, started.jobs - step.fallen_jobs) if step.passed_s else 0.0
    kept = math.exp(-step.passed_s / RATE_MEMORY_S)
    gone_jobs = min(started.sure_jobs + step.before.part_jobs, float(step.before.waiting_jobs))
    return QueueDepths(
        queue=step.queue.queue,
        sampled_at_s=step.at_s,
        sightings=_seen(step, started_jobs=int(gone_jobs)),
        part_jobs=gone_jobs - int(gone_jobs),
        # Forecasts count by evaluation intervals. A shorter span is not one: no job of it counts several times.
        arrived_jobs=round(arrived_jobs * min(1.0, tick_s / step.passed_s)) if step.passed_s else 0,
        arrival_rate_per_s=_rate_per_s(step.before.arrival_rate_per_s, arrived_jobs, step.passed_s, kept),
        start_rate_per_s=_rate_per_s(step.before.start_rate_per_s, started.jobs, step.passed_s, kept),
        oldest_age_s=_known_age_s(step.queue),
        late_rate_per_s=_rate_per_s(
            step.before.late_rate_per_s,
            _late_jobs(step, started.jobs, target_s=target_s),
            step.passed_s,
            kept,
        ),
    )


def _late_jobs(step: _Step, started_jobs: float, *, target_s: float) -> float:
    """How many of the ``started_jobs`` had waited for longer than ``target_s``.

    Where the source knows that the oldest was late at either end of the step, they were. Where it knows none, each came
    between two samples and started between two, and counts as if it had done so half way.
    """
    ages_s = [age_s for age_s in (step.before.oldest_age_s, _known_age_s(step.queue)) if age_s is not None]
    if ages_s:
        return started_jobs if max(ages_s) > target_s else 0.0
    half_way_s = step.at_s - step.passed_s / 2
    late_jobs = 0
    for each in step.before.sightings:
        came_s = each.at_s if each.since_s is None else (each.since_s + each.at_s) / 2
        late_jobs += each.jobs if half_way_s - came_s > target_s else 0
    return min(started_jobs, late_jobs)


def _known_age_s(queue: QueueMetrics) -> float | None:
    """How long the oldest has waited by its source, in the middle of its bounds; ``None``: not known, or none waits."""
    if queue.oldest_age_s is None or not queue.waiting_jobs:
        return None
    most_s = queue.oldest_age_s if queue.oldest_age_max_s is None else queue.oldest_age_max_s
    return (queue.oldest_age_s + most_s) / 2


def _rate_per_s(before_per_s: float, jobs: float, passed_s: float, kept: float) -> float:
    rate_per_s = before_per_s * kept + (jobs / passed_s * (1 - kept) if passed_s else 0.0)
    return rate_per_s if rate_per_s >= LEAST_RATE_PER_S else 0.0


def _seen(step: _Step, *, started_jobs: int) -> tuple[Sighting, ...]:
    """The sightings of the jobs that wait, the oldest first: less those that started, and with those that are new."""
    left_jobs, kept = step.waiting_jobs, []
    gone_jobs = max(started_jobs, step.fallen_jobs)
    for each in step.before.sightings:
        gone = min(each.jobs, gone_jobs)
        gone_jobs -= gone
        if each.jobs > gone:
            kept.append(each if not gone else copied(each, jobs=each.jobs - gone))
            left_jobs -= each.jobs - gone
    if left_jobs > 0:
        kept.append(Sighting(at_s=step.at_s, since_s=step.since_s, jobs=left_jobs))
    return _thinned(kept)


def _thinned(sightings: Sequence[Sighting]) -> tuple[Sighting, ...]:
    """``sightings``, of too many the older half in pairs: the younger of a pair counts as old as the older."""
    if len(sightings) <= SIGHTINGS_MAX:
        return tuple(sightings)
    old, new = sightings[: SIGHTINGS_MAX // 2], sightings[SIGHTINGS_MAX // 2 :]
    pairs = [copied(one, jobs=one.jobs + other.jobs) for one, other in zip(old[::2], old[1::2], strict=True)]
    return (*pairs, *new)


def _is_alive(queue: QueueDepths) -> bool:
    return bool(queue.sightings or queue.arrival_rate_per_s or queue.start_rate_per_s)


# --- what is made of it ----------------------------------------------------------------------------------------------


def _with_age(queue: QueueMetrics, known: QueueDepths | None, *, now_s: float) -> QueueMetrics:
    if not queue.waiting_jobs or known is None or not known.sightings:
        does_any_wait = queue.waiting_jobs != 0 or queue.reserved_jobs or not queue.is_wait_known
        return copied(queue, oldest_age_s=None if does_any_wait else 0.0)
    oldest = known.sightings[0]
    return copied(
        queue,
        oldest_age_s=max(0.0, now_s - oldest.at_s),
        oldest_age_max_s=None if oldest.since_s is None else max(0.0, now_s - oldest.since_s),
    )


def _with_estimates(
    queue: QueueMetrics, known: QueueDepths | None, *, service_s: float | None, now_s: float
) -> QueueMetrics:
    depths = known or QueueDepths(queue=queue.queue, sampled_at_s=queue.sampled_at_s or now_s)
    estimates = {
        "arrived_jobs": depths.arrived_jobs,
        "retried_jobs": 0,
        # Also while jobs only start: those that came too fast may be late when nothing comes any more.
        "arrived_until_s": depths.sampled_at_s if depths.arrived_jobs or depths.start_rate_per_s else None,
        "arrival_rate_per_s": depths.arrival_rate_per_s,
        "retry_rate_per_s": 0.0,
        "start_rate_per_s": depths.start_rate_per_s,
        "late_rate_per_s": depths.late_rate_per_s,
        "completion_rate_per_s": depths.start_rate_per_s,
        "failure_rate_per_s": 0.0,
        "arrival_trend_per_s2": 0.0,
        "service_time_s": service_s,
    }
    return copied(
        queue,
        oldest_age_s=queue.oldest_age_s if queue.oldest_age_max_s is None else queue.oldest_age_max_s,
        arrivals=_cohorts(depths, now_s=now_s) if queue.arrival_rate_per_s is None else queue.arrivals,
        **{name: value for name, value in estimates.items() if getattr(queue, name) is None},
    )


def _cohorts(depths: QueueDepths, *, now_s: float) -> tuple[Arrivals, ...]:
    """The jobs that wait by how long ago they were first seen, the newest first."""
    return tuple(
        Arrivals(jobs=each.jobs, ended_ago_s=max(0.0, now_s - each.at_s)) for each in reversed(depths.sightings)
    )
