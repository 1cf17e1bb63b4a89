"""Reasons to want workers, in slots, by deadlines: every job must start within the objective.

Each is monotone: more waiting, longer waiting, slower jobs or more arrivals never lower it. What a slot will start is
calculated from what is surely done by then, and only the jobs that cannot wait for the next evaluation ask for new
workers now.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.demands.busy_slots import occupied
from headway.scaling.demands.needs import NO_NEED, Coming, Need, Supply, greatest, need
from headway.scaling.model import QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.view import SERVICE_TIME_GUESS_S, START_UP_GUESS_S, PoolView

MARGIN_S = 0.5  # from a ready worker to its first job
START_UP_SPREAD = 0.5  # of the start-up: at p99, a start that takes half as long again is still in time
SLOW_START_TRUST = 1.5  # times the confidence, at most 1: from p95 on the slow starts that were measured count whole
PLAIN_LATE_PERCENT = 1.0  # what p99 lets be late: every figure here was measured with it
DISPATCH_GUESS_S = 0.05  # between two jobs of a slot, until it is measured: a client that forks takes 30 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """So many jobs that must start within so many seconds from now."""

    jobs: float
    within_s: float


def supply(queue: QueueMetrics, view: PoolView, *, coming: Sequence[Coming], caution: float) -> Supply:
    """What will start jobs of ``queue`` without one more worker."""
    busy_slots = occupied(queue, view)
    return Supply(
        busy_slots=busy_slots,
        idle_slots=max(0, view.running_workers * view.slots_per_worker - busy_slots),
        coming=tuple(coming),
        completions_per_s=completions_per_s(queue, view, busy_slots),
        cycle_s=cycle_s(queue, view),
        caution=caution,
        reserved_jobs=queue.reserved_jobs or 0,
    )


def completions_per_s(queue: QueueMetrics, view: PoolView, busy_slots: int) -> float:
    """How fast ``busy_slots`` get done: as they did of late, or by the mean service time, whichever is less.

    Where a few long jobs make the mean, most of the busy slots are busy for longer than it says.
    """
    per_slot_s = 1.0 / cycle_s(queue, view)
    if queue.in_flight_mean_jobs is not None and queue.completion_rate_per_s is not None:
        mean_slots = queue.in_flight_mean_jobs + (view.dispatch_overhead_s or 0.0) * queue.completion_rate_per_s
        of_late = queue.completion_rate_per_s / mean_slots if mean_slots > 0 else 0.0
        per_slot_s = min(per_slot_s, of_late)
    return busy_slots * per_slot_s


def leeway(profile: Profile) -> float:
    """How many times as many jobs may be late as p99 lets, times ``risk``: p90 has 10, p99.9 a tenth."""
    return profile.risk * late_percent(profile) / PLAIN_LATE_PERCENT


def confidence(profile: Profile) -> float:
    """How far to trust what is likely: 1 at p99, a half more for each further nine, never below 0.

    It multiplies the standard deviations of completions and the start-up spread that are counted on. Tails thin out
    about as fast as a normal one's: 1.3 standard deviations hold 90 %, 2.3 hold 99 %, 3.1 hold 99.9 %.
    """
    return max(0.0, 1.0 - math.log10(late_percent(profile) / PLAIN_LATE_PERCENT) / 2)


def late_percent(profile: Profile) -> float:
    """The part of the jobs that may be late, in %, by the strictest objective: members share their workers."""
    if not profile.member_objectives:
        return 100.0 - profile.objective.percentile
    return 100.0 - max(each.percentile for each in (profile.objective, *profile.member_objectives.values()))


def known_service_s(queue: QueueMetrics, view: PoolView) -> float:
    """The mean service time; until a job has finished what the profile says, else infinite: unknown is not short."""
    known_s = view.profile.service_time_guess_s if queue.service_time_s is None else queue.service_time_s
    return math.inf if known_s is None else max(known_s, SHORTEST_S)


def cycle_s(queue: QueueMetrics, view: PoolView) -> float:
    """From one start to the next of a slot while jobs wait: a job's service time and the dispatch of the next."""
    return known_service_s(queue, view) + dispatch_s(view)


def batch_cycle_s(queue: QueueMetrics, view: PoolView) -> float:
    """The same of jobs that wait together: long ones may have come in one batch among short ones."""
    return max(known_service_s(queue, view), queue.service_batch_s or 0.0) + dispatch_s(view)


def dispatch_s(view: PoolView) -> float:
    """From the end of a job to the next start in the same slot while jobs wait, as measured, else a guess."""
    return DISPATCH_GUESS_S if view.dispatch_overhead_s is None else view.dispatch_overhead_s


def waiting(queue: QueueMetrics, view: PoolView, *, target_s: float) -> tuple[Due, ...]:
    """The jobs that wait, by how long they may still, the most urgent first.

    Jobs start in the order in which they came, so those that wait are the newest arrivals. What the counts of arrivals
    do not explain has waited as long as the oldest.
    """
    margin_s = MARGIN_S + slow_start_s(view.profile, start_up_s=start_up_s(view), start_up_p95_s=view.start_up_p95_s)
    waiting_jobs = queue.waiting_least_jobs
    oldest_s = queue.oldest_age_s if queue.oldest_age_max_s is None else queue.oldest_age_max_s
    found: list[Due] = []
    left_jobs = waiting_jobs
    for arrivals in queue.arrivals:
        if left_jobs <= 0:
            break
        jobs = min(left_jobs, arrivals.jobs)
        age_s = arrivals.ended_ago_s + view.tick_s  # that of the first: jobs of a span are not distinguished
        waited_s = age_s if oldest_s is None else min(age_s, oldest_s)
        found.append(Due(jobs=jobs, within_s=target_s - waited_s - margin_s))
        left_jobs -= jobs
    if left_jobs > 0:
        found.append(Due(jobs=left_jobs, within_s=target_s - (oldest_s or 0.0) - margin_s))
    found.reverse()
    return tuple(found)


def taking(queue: QueueMetrics, given: Supply) -> Need:
    """The idle slots that are about to take a waiting job: a sample shows both, and neither is at rest."""
    return Need(kept_slots=min(given.idle_slots, queue.waiting_least_jobs))


def backlog_drain(due: Iterable[Due], given: Supply, view: PoolView, *, slots_max: int) -> Need:
    """The slots that start every waiting job in time.

    A job that a worker asked for at the next evaluation would still start in time asks for nothing now: until then, the
    slots there are may have taken it. But where ``slots_max``, the most that the pool may have, would not be enough by
    then, the time that is left is used from now on.

    Source: docs/why/demand.md, "Draining a backlog".
    """
    ready_in_s = start_up_s(view)
    can_wait_s = view.tick_s + ready_in_s
    needs, ahead_jobs = [], 0.0
    for each in due:
        ahead_jobs += each.jobs
        if each.within_s < can_wait_s or _is_too_late_next(ahead_jobs, each.within_s, given, view, slots_max=slots_max):
            needs.append(need(ahead_jobs, each.within_s, given, start_up_s=ready_in_s))
    return greatest(needs)


def _is_too_late_next(jobs: float, within_s: float, given: Supply, view: PoolView, *, slots_max: int) -> bool:
    """Whether ``slots_max`` could not start ``jobs`` in time if nobody were asked for before the next evaluation."""
    if jobs <= slots_max:  # a slot each is always enough
        return False
    later = need(jobs, within_s - view.tick_s, given, start_up_s=start_up_s(view))
    return given.busy_slots + later.slots > slots_max


def exposed_s(view: PoolView) -> float:
    """For how long from now arriving jobs are late for any worker asked for at the next evaluation. Often 0.

    By the shortest objective of the members.
    """
    return max(0.0, _reaction_s(view) - view.profile.shortest_target_s)


def exposed_members(view: PoolView) -> tuple[QueueMetrics, ...]:
    """The queues whose arriving jobs are late, by their own objective, for any worker asked for at the next evaluation.

    All of them in an exposed pool without objectives of members.
    """
    reaction_s = _reaction_s(view)
    return tuple([queue for queue in view.queues if view.profile.objective_of(queue.queue).target_s < reaction_s])


def _reaction_s(view: PoolView) -> float:
    """From an arrival to its start by a worker that is asked for at the next evaluation."""
    return view.tick_s + start_up_s(view) + view.lag_s + MARGIN_S


def standing(
    queue: QueueMetrics, view: PoolView, given: Supply, *, arrivals_per_tick: float, spare_jobs: float
) -> Need:
    """The slots that start in time even the jobs that a worker asked for at the next evaluation would come too late
    for.

    They have not arrived yet: ``arrivals_per_tick`` are expected, and ``spare_jobs`` more are guarded against. Where
    tick and start-up fit into the objective there are no such jobs, and nothing stands.

    Source: docs/why/demand.md, "Pre-warmed workers".
    """
    found, ahead_jobs, from_s, until_s = NO_NEED, float(queue.waiting_least_jobs), 0.0, exposed_s(view)
    while from_s < until_s:
        ahead_jobs += arrivals_per_tick * min(view.tick_s, until_s - from_s) / view.tick_s
        within_s = from_s + view.profile.shortest_target_s - MARGIN_S
        # What has not come need not be late: with a floor here, standing workers come and go.
        more = need(ahead_jobs + spare_jobs, within_s, given, start_up_s=start_up_s(view), late_s=0.0)
        found = greatest((found, more))
        from_s += view.tick_s
    return found


def ceiling_slots(view: PoolView, now_s: float) -> int:
    """The most slots that the pool may have now."""
    workers = view.profile.bounds_at(now_s, view.zones).workers_max
    if view.capacity_workers is not None:
        workers = min(workers, view.capacity_workers)
    return workers * view.slots_per_worker


def slow_start_s(profile: Profile, *, start_up_s: float, start_up_p95_s: float | None) -> float:
    """How much longer than ``start_up_s`` a start may take for its job to be in time all the same.

    Starts beside each other share cores. The mean follows the newest, so a lone quick start lowers it just before many
    start at once: 95 % of those measured must be in time as well. Those that take more than twice the mean are no rule:
    one cold start says nothing of the next ones.
    """
    trust = confidence(profile)
    measured_s = 0.0 if start_up_p95_s is None else min(start_up_p95_s, 2 * start_up_s) - start_up_s
    return max(START_UP_SPREAD * trust * start_up_s, min(1.0, SLOW_START_TRUST * trust) * measured_s)


def service_time_s(queue: QueueMetrics, view: PoolView) -> float:
    """The same where a figure must be shown whatever is known: a second where nothing is, and never nothing."""
    return max(SHORTEST_S, queue.service_time_s or view.profile.service_time_guess_s or SERVICE_TIME_GUESS_S)


def start_up_s(view: PoolView) -> float:
    """How long a worker of this pool takes from spawn to ready, as measured, else a guess."""
    return START_UP_GUESS_S if view.start_up_s is None else view.start_up_s
