"""Pools in which jobs wait beside idle slots: what one more step of workers brings is measured before the next.

A rate limit of a library, a lock and a queue that gives its jobs to few workers show alike: jobs wait while slots are
idle. A pool whose slots are busy, or idle for the moment between two jobs only, is never bounded here, however late it
is. Nothing here lowers a target.

    (nothing)  -> watched    jobs wait beside idle slots
    watched    -> measured   for long enough: the pool rises by one step, and what starts before and after is compared
    measured   -> measured   more workers started more jobs: the next step
    measured   -> held       they started no more: no further rise
    held       -> measured   a while later: one more step is tried, each time after a longer pause
    watched    -> (nothing)  one evaluation finds no job that waits beside idle slots
    any        -> (nothing)  for more than two ticks they find none, or for a minute nothing is known

While no job waits, or slots are busy, nothing is bounded in any of these states. So each burst begins with a watch, and
what its workers start is never compared with what an earlier one's did: between bursts, arrivals bound that.

Source: docs/decisions/0023-no-rise-without-throughput.md.
"""

import math
from dataclasses import replace

from headway.scaling.arithmetic import HOUR_S, MINUTE_S
from headway.scaling.model import Plateau, QueueMetrics, is_suspended
from headway.scaling.reading.busy_slots import WorkerSlots
from headway.scaling.view import PoolView

IDLE_SHARE = 0.5  # of the running slots, at a sample and on average over the window of rates
WATCHED_S = 5.0  # two evaluations: a burst that has just come is with the workers by then, and their reports are newer
DISPATCH_S = 0.5  # from one job to the next: what is measured as longer is that of what holds jobs back
STEP_WORKERS, STEP_FRACTION = 2, 0.5
GAIN_FRACTION = 0.5  # of the starts that as many more workers should have brought
AGAIN_LEAST_S, AGAIN_MOST_S = 300.0, HOUR_S
TRIES_MAX = 10  # by then the pause is the longest
BREAK_TICKS = 2.0  # an evaluation between two that agree may have met more slots busy than there usually are
SILENT_S = MINUTE_S  # without fresh metrics, or an evaluation: nothing has said that it is over


def plateau_of(
    queue: QueueMetrics, view: PoolView, slots: WorkerSlots, before: Plateau | None, *, is_fresh: bool, now_s: float
) -> Plateau | None:
    """What is known of jobs that wait beside idle slots after this evaluation; ``None``: none have, or no more.

    Args:
        queue: All queues of the pool as one, with no rate that is only estimated.
        view: The pool.
        slots: Those of its workers.
        before: What the evaluation before knew.
        is_fresh: Whether its metrics are.
        now_s: Unix seconds.
    """
    is_seen = is_fresh and do_jobs_wait_beside_idle_slots(queue, view, slots)
    if before is not None and _is_over(before, is_refuted=is_fresh and not is_seen, tick_s=view.tick_s, now_s=now_s):
        before = None
    if not is_seen:
        return before
    if before is None:
        return Plateau(since_s=now_s, seen_at_s=now_s)
    return replace(_measured(queue, view.running_workers, before, now_s=now_s), seen_at_s=now_s)


def _is_over(before: Plateau, *, is_refuted: bool, tick_s: float, now_s: float) -> bool:
    """Whether what was known holds no longer; metrics that are late refute nothing."""
    unseen_s = now_s - before.seen_at_s
    if not before.workers:
        return is_refuted or unseen_s > BREAK_TICKS * tick_s
    return unseen_s > (BREAK_TICKS * tick_s if is_refuted else SILENT_S)


def _measured(queue: QueueMetrics, running_workers: int, before: Plateau, *, now_s: float) -> Plateau:
    starts_per_s = queue.start_rate_per_s or 0.0
    now_there = replace(before, workers=running_workers, starts_per_s=starts_per_s, risen_at_s=None, again_s=None)
    if now_s - before.since_s < WATCHED_S:
        return before
    if not before.workers:
        return now_there
    if before.again_s is not None:
        return before if now_s < before.again_s else now_there
    if running_workers < before.workers + STEP_WORKERS:
        return replace(before, risen_at_s=None)
    if before.risen_at_s is None:
        return replace(before, risen_at_s=now_s)
    if now_s - before.risen_at_s < queue.window_s:  # what started before the rise is still in the rate
        return before
    if _has_gained(before, running_workers, starts_per_s, window_s=queue.window_s):
        return replace(now_there, tries=0)
    pause_s = min(AGAIN_MOST_S, AGAIN_LEAST_S * 2.0**before.tries)
    return replace(now_there, again_s=now_s + pause_s, tries=min(TRIES_MAX, before.tries + 1))


def bound_workers(plateau: Plateau | None, *, now_s: float) -> int | None:
    """The count above which the target does not rise now; ``None``: nothing bounds it."""
    if plateau is None or plateau.seen_at_s < now_s or not plateau.workers:
        return None
    if plateau.again_s is not None:
        return plateau.workers
    return plateau.workers + max(STEP_WORKERS, math.floor(STEP_FRACTION * plateau.workers))


def do_jobs_wait_beside_idle_slots(queue: QueueMetrics, view: PoolView, of_workers: WorkerSlots) -> bool:
    """Whether more jobs wait than slots are idle, and at least half of the running slots are, certainly.

    They are idle by the word of the broker or of the workers, at the time of the sample, and on average over the window
    of rates: slots of short jobs, which are idle between two, start too many for that.
    """
    if is_suspended(view.suspension) or not view.is_teaching or view.is_failing or queue.start_rate_per_s is None:
        return False
    slots, idle_slots = of_workers.running_slots, _idle_slots(queue, of_workers)
    takeable_jobs = queue.waiting_least_jobs - (queue.overdue_jobs if view.leaves_due_jobs else 0)
    if not slots or idle_slots is None or idle_slots < IDLE_SHARE * slots or takeable_jobs <= idle_slots:
        return False
    if not queue.start_rate_per_s:
        return True
    if queue.service_time_s is None:
        return False
    return queue.start_rate_per_s * (queue.service_time_s + DISPATCH_S) <= (1 - IDLE_SHARE) * slots


def _idle_slots(queue: QueueMetrics, slots: WorkerSlots) -> int | None:
    """Running slots that certainly have no job; ``None``: nobody knows of any."""
    if queue.running_jobs is not None:
        return max(0, slots.running_slots - slots.busy(queue) - slots.taken_jobs - slots.helping_slots)
    return None if slots.idle_slots is None else max(0, slots.idle_slots - slots.taken_jobs)


def _has_gained(before: Plateau, running_workers: int, starts_per_s: float, *, window_s: float) -> bool:
    """Whether more workers have started more jobs, or may have: counts of starts scatter like a Poisson count."""
    added_fraction = running_workers / before.workers - 1
    most_jobs = before.starts_per_s * window_s * (1 + GAIN_FRACTION * added_fraction)
    started_jobs = starts_per_s * window_s
    return started_jobs + math.sqrt(started_jobs) > most_jobs
