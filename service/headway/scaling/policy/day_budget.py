"""What a pool has paid of its budget of the day, and how many workers the rest still pays for.

The count of what was paid is remembered with the pool and goes on by itself: between two evaluations, the workers that
were there are paid. The live loop, rehearsals and the back-test share it. Docs: docs/why/demand.md, "The day's budget".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headway.scaling.arithmetic import COUNT_MAX, DAY_S, HOUR_S, whole
from headway.scaling.model import DayBudget, DayPaid, Note, NoteKind, QueueMetrics
from headway.scaling.profile_keys.schedule import Zone, day_of, span_s, zone_of
from headway.scaling.reading.pool_times import PoolTimes, times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.view import PoolView

BUDGET_AHEAD_S_MAX = DAY_S  # a clock that was further ahead was wrong: nothing that it counted is believed
LEFT_S_MIN = 1.0  # of a day: its very end divides nothing by zero
SERVICE_DIGITS = 2  # of the service time that is remembered: more would be written with every evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The budget of one day of one pool at a moment, in worker-seconds."""

    paid: DayPaid
    """Counted up to this moment, with the workers that are there now."""
    budget_worker_s: float
    """Of the whole day; where only its end is known, the even part of it."""
    even_workers: float
    """Workers that the whole budget pays for all day long."""
    left_of_day_s: float
    is_whole: bool
    """Whether all of the day is known."""

    @property
    def left_worker_s(self) -> float:
        """What may still be paid."""
        return max(0.0, self.budget_worker_s - self.paid.paid_worker_s)


def account_of(view: PoolView, queue: QueueMetrics, before: DayPaid | None, *, now_s: float) -> Account | None:
    """The account of the day at ``now_s``; ``None`` without a budget of the day.

    ``queue`` is all queues of ``view`` as one, ``before`` what is remembered. Without that,
    ``view.worker_hours_today`` is where counting begins; without both, the day is known from now on only.

    Raises:
        Invalid: the profile's ``budget_time_zone`` is not among the view's zones.
    """
    profile = view.profile
    if profile.budget_per_day is None or profile.cost_per_worker_hour is None:
        return None
    zone = zone_of(profile.budget_time_zone, view.zones, key="budget_time_zone")
    paid = _counted(
        before,
        workers=view.running_workers + view.starting_workers + view.unknown_workers + view.leaving_workers,
        hours_today=view.worker_hours_today,
        tick_s=view.tick_s,
        zone=zone,
        measured_s=queue.service_time_s,
        now_s=now_s,
    )
    began_s, ends_s = span_s(paid.day, zone)
    length_s = ends_s - began_s
    whole_worker_s = min(COUNT_MAX, profile.budget_per_day / profile.cost_per_worker_hour) * HOUR_S
    known_s = ends_s - max(began_s, min(paid.since_s, ends_s))
    return Account(
        paid=paid,
        budget_worker_s=whole_worker_s * known_s / length_s,
        even_workers=whole_worker_s / length_s,
        left_of_day_s=max(LEFT_S_MIN, ends_s - now_s),
        is_whole=paid.since_s <= began_s,
    )


def remembered(before: DayPaid | None, account: Account | None) -> DayPaid | None:
    """What to remember of ``account``: ``before`` itself, while time alone has changed what was paid."""
    if account is None or before is None:
        return None if account is None else account.paid
    now = account.paid
    # Of the same day and workers only the time and what it cost differ.
    is_same = replace(before, at_s=now.at_s, paid_worker_s=now.paid_worker_s) == now
    return before if is_same and before.at_s <= now.at_s else now


def payable_workers(account: Account, view: PoolView, *, floor_workers: int, busy_workers: int) -> int:
    """The most workers whose expected cost until the day ends is within what is left.

    A worker of the floor costs all the rest of the day. Any other costs the start-up and the service time of the job
    that it is started, or kept, for, and an hour at least; nothing is paid beyond the end of the day. What will be paid
    for anyhow comes first: workers that are asked to leave finish their jobs. Workers that may run unseen keep others
    from being started, but not busy ones at work.

    Args:
        account: The day.
        view: The pool.
        floor_workers: The floor of this moment.
        busy_workers: Assigned workers that have a job.
    """
    costs = _costs(account, view.queues, times_of(view))
    beside, alone = (
        _payable(
            account,
            costs,
            floor_workers=floor_workers,
            busy_workers=busy_workers,
            anyhow_worker_s=view.leaving_workers * costs.rest_s + unknown * costs.start_s,
        )
        for unknown in (view.unknown_workers, 0)
    )
    return max(beside, min(alone, busy_workers))


def spending(account: Account | None) -> DayBudget | None:
    """A decision's figures of the day's budget: what is paid, and what law 9 keeps running beyond it."""
    if account is None:
        return None
    paid_worker_s = account.paid.paid_worker_s
    return DayBudget(
        day=account.paid.day,
        budget_worker_s=account.budget_worker_s,
        paid_worker_s=paid_worker_s,
        overrun_worker_s=max(0.0, paid_worker_s - account.budget_worker_s),
        finishing_workers=0 if account.left_worker_s else account.paid.workers,
        is_whole=account.is_whole,
    )


def notes(spent: DayBudget | None) -> tuple[Note, ...]:
    """What a decision says of the day's budget where it is spent or is not known."""
    if spent is None:
        return ()
    found = []
    if not spent.is_whole:
        text = "what the pool has run today is not known: the day's budget is spread evenly"
        found.append(Note(kind=NoteKind.UNKNOWN_DAY, text=text))
    if spent.paid_worker_s >= spent.budget_worker_s:
        workers = f"{spent.finishing_workers} worker{'' if spent.finishing_workers == 1 else 's'}"
        finishing = f": {workers} may finish the jobs at hand" if spent.finishing_workers else ""
        overrun_h = spent.overrun_worker_s / HOUR_S
        text = f"the budget of {spent.day} is spent, overrun {overrun_h:.2f} worker-hours{finishing}"
        is_finishing = ("finishing",) if finishing else ()
        found.append(Note(kind=NoteKind.SPENT_DAY, text=text, about=(spent.day, *is_finishing)))
    return tuple(found)


def _counted(
    before: DayPaid | None,
    *,
    workers: int,
    hours_today: float | None,
    tick_s: float,
    zone: Zone,
    measured_s: float | None,
    now_s: float,
) -> DayPaid:
    """``before`` brought to ``now_s``, where there are ``workers``. A count holds until the next one, over restarts and
    pauses as well.

    A day never turns back: where the clock steps back over midnight, the later day goes on and nothing is paid twice.
    """
    today = day_of(now_s, zone)
    if before is None or before.at_s - now_s > BUDGET_AHEAD_S_MAX:
        hours = hours_today if before is None else None
        day, since_s = today, now_s if hours is None else span_s(today, zone)[0]
        paid_worker_s = (hours or 0.0) * HOUR_S
    else:
        day, from_s, paid_worker_s, since_s = before.day, before.at_s, before.paid_worker_s, before.since_s
        if day < today:
            day, paid_worker_s = today, 0.0
            since_s = span_s(today, zone)[0]
            from_s = max(from_s, since_s)
        passed_s = max(0.0, now_s - from_s)
        # Who is seen for the first time came after the last evaluation.
        came = max(0, workers - before.workers)
        paid_worker_s += before.workers * passed_s + came * min(passed_s, tick_s)
    return DayPaid(
        day=day,
        at_s=now_s,
        paid_worker_s=paid_worker_s,
        workers=workers,
        since_s=since_s,
        service_s=_measured_s(measured_s, before),
    )


def _measured_s(measured_s: float | None, before: DayPaid | None) -> float | None:
    if measured_s is None:
        return None if before is None else before.service_s
    return float(f"{measured_s:.{SERVICE_DIGITS}g}")


class _Costs(NamedTuple):
    """What one worker is expected to cost until midnight, in worker-seconds."""

    start_s: float
    """That is started, or kept, for one job."""
    rest_s: float
    """That has a job, seen at any moment of it: half of it on average."""
    is_service_known: bool


def _costs(account: Account, queues: Sequence[QueueMetrics], times: PoolTimes) -> _Costs:
    service_s = _service_s(account, queues, times)
    is_known, left_s = not math.isinf(service_s), account.left_of_day_s
    # A worker that is kept until the next evaluation takes its next job just before it at worst. It is paid for an hour
    # ahead at least: so the money never runs out between two evaluations.
    job_s = times.start_up_s + times.tick_s + service_s + times.exit_s
    return _Costs(
        start_s=min(left_s, max(HOUR_S, job_s)),
        rest_s=min(left_s, service_s if is_known else HOUR_S) / 2,
        is_service_known=is_known,
    )


def _payable(account: Account, costs: _Costs, *, floor_workers: int, busy_workers: int, anyhow_worker_s: float) -> int:
    left_s, each_s, rest_s = account.left_of_day_s, costs.start_s, costs.rest_s
    # Asking all who are busy to leave would cost the rest of their jobs: whoever is kept costs only what is more.
    free_worker_s = account.left_worker_s - anyhow_worker_s - busy_workers * rest_s
    workers = 0.0
    for upto in sorted({float(floor_workers), float(busy_workers), math.inf}):
        cost_s = (left_s if workers < floor_workers else each_s) - (rest_s if workers < busy_workers else 0.0)
        if (upto - workers) * cost_s > free_worker_s:
            workers += max(0.0, free_worker_s) / cost_s
            break
        free_worker_s -= (upto - workers) * cost_s
        workers = upto
    if not costs.is_service_known and workers < 1:
        # Somebody must run the first job, else nobody ever learns how long jobs take.
        workers = float(account.left_worker_s - anyhow_worker_s >= min(left_s, HOUR_S))
    return whole(workers)


def _service_s(account: Account, queues: Sequence[QueueMetrics], times: PoolTimes) -> float:
    """The mean service time of the queues in which jobs wait, else of all; what was measured last where none has ended.

    Infinite until it is known or guessed.
    """
    queue = pooled([queue for queue in queues if queue.waiting_least_jobs] or queues)
    if queue.service_time_s is None and account.paid.service_s is not None:
        return account.paid.service_s
    return times.known_service_s(queue)
