"""The view of a pool from what is gathered of it: the live loop and the simulator gather, and this derives the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headway.scaling.history.daily import DAILY_DAYS, DAY_MINUTES, minute_of, minutes_ahead, recalled_jobs
from headway.scaling.history.weekly import Member, Season, recalled
from headway.scaling.metrics.newest_sample import listed_workers, useful_workers
from headway.scaling.metrics.sampling_instant import WorkersAtInstant
from headway.scaling.metrics.worker_evidence import WorkerEvidence
from headway.scaling.model import Mode, QueueMetrics, QueueSample, SharedJobs, Template
from headway.scaling.profile import Profile
from headway.scaling.reading.jobs_beyond_slots import with_reserved_beyond_slots
from headway.scaling.reading.pool_times import exposed_members, exposed_s, times_of
from headway.scaling.reading.sample_age import is_seen
from headway.scaling.view import PoolView, copied

NO_SAMPLES: Mapping[str, QueueSample] = MappingProxyType({})


def view_of(
    profile: Profile,
    queues: Sequence[QueueMetrics],
    *,
    template: Template,
    present: WorkersAtInstant,
    activity: WorkerEvidence,
    samples: Mapping[str, QueueSample] = NO_SAMPLES,
    unknown_workers: int = 0,
    leaving_workers: int = 0,
    listed_others: int = 0,
    helped: tuple[SharedJobs, ...] = (),
    now_s: float,
    **known: Any,
) -> PoolView:
    """The pool of ``profile`` at ``now_s``, in Unix seconds.

    Args:
        profile: Of the pool.
        queues: Its queues, in the profile's order.
        template: What its workers are started from.
        present: Its workers at the instant of the samples of ``queues``.
        activity: What those of them that run do.
        samples: The newest readings that came directly from the collectors, by queue.
        unknown_workers: On hosts that went silent.
        leaving_workers: On known hosts.
        listed_others: Workers of pools that help with its queues: the broker lists them as well.
        helped: The jobs of its queues that these run; those that are reported are not in ``queues`` and ``samples``.
        now_s: A reading that is too old by then says nothing of workers.
        known: The other values of a ``PoolView``, which are copied.
    """
    slots, running_workers = template.slots, present.running_workers
    listed = listed_workers(profile.queues, samples, now_s=now_s, of_others=listed_others)
    there = running_workers + unknown_workers + leaving_workers
    # Workers that are known to be idle have no job, where others have more than slots, nor have those that start.
    at_work = max(1, max(there, listed or 0) - activity.idle_workers) if there or listed else 0
    # What workers of other pools may have is no more than slots of this one have.
    slots_at_work = slots * at_work + sum([each.most_jobs - each.jobs for each in helped]) if at_work else 0
    # Where the source of a queue does not count the jobs in flight, what is known of workers stands in for it.
    is_uncounted = any(is_seen(queue) and queue.in_flight_jobs is None for queue in queues)
    return PoolView(
        profile=profile,
        queues=with_reserved_beyond_slots(queues, samples, slots=slots_at_work),
        direct=tuple([samples[queue] for queue in profile.queues if queue in samples]),
        slots_per_worker=slots,
        queue_order=template.queue_order,
        strict_queues=template.strict_queues,
        start_up_s=template.start_up_s,
        start_up_p95_s=template.start_up_p95_s,
        start_up_cpu_s=template.start_up_cpu_s,
        exit_s=template.exit_s,
        leaves_due_jobs=template.leaves_due_jobs,
        running_workers=running_workers,
        starting_workers=present.starting_workers,
        taken_jobs=present.taken_jobs,
        busy_workers=activity.may_be_busy_workers if is_uncounted else None,
        busy_slots=min(activity.most_slots(slots), running_workers * slots) if is_uncounted else None,
        certain_jobs=activity.certain_jobs,
        idle_workers=activity.idle_workers,
        # A recommendation asks nobody to leave.
        unknown_activity_workers=0 if profile.mode is Mode.RECOMMEND else activity.unknown_workers,
        unknown_workers=unknown_workers,
        leaving_workers=leaving_workers,
        slots_at_work=slots_at_work,
        helped=helped,
        useful_workers=useful_workers(profile.queues, samples, now_s=now_s),
        **known,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastArrivals:
    """What is remembered of the arrivals of one queue, and what this minute has brought it so far."""

    arrived_jobs: int
    season: Season | None = None
    """``None`` if none is believed: then earlier days predict."""
    jobs: Mapping[int, int] = field(default_factory=dict)
    """Minute -> arrivals, of earlier days. A minute that is not among them had none."""
    since: int | None = None
    """The first minute that is known."""


def with_past(view: PoolView, past: Mapping[str, PastArrivals], *, now_s: float) -> PoolView:
    """``view`` with what the past predicts for its exposed queues, given by name; the very ``view`` where that is
    nothing.
    """
    times = times_of(view)
    queues, ahead_s = exposed_members(view.profile, view.queues, times), exposed_s(view.profile, times)
    members = [
        Member(season=season, arrived_jobs=past[queue.queue].arrived_jobs, rate_per_s=queue.fresh_rate_per_s or 0.0)
        for queue in queues
        if (season := past[queue.queue].season) is not None
    ]
    others = [past[queue.queue] for queue in queues if past[queue.queue].season is None]
    by_days = _by_days(others, now_s=now_s, ahead_s=ahead_s)
    found = recalled(members, by_days=by_days, now_s=now_s, ahead_s=ahead_s, tick_s=view.tick_s)
    return view if found.jobs is None else copied(view, recalled_jobs=found.jobs, recalled_weeks=found.weeks)


def _by_days(past: Sequence[PastArrivals], *, now_s: float, ahead_s: float) -> int | None:
    """``recalled_jobs`` of these queues together."""
    minutes = [
        minute - day * DAY_MINUTES
        for minute in minutes_ahead(now_s=now_s, ahead_s=ahead_s)
        for day in range(1, DAILY_DAYS + 1)
    ]
    jobs = {minute: sum([each.jobs.get(minute, 0) for each in past]) for minute in minutes}
    jobs[minute_of(now_s)] = sum([each.arrived_jobs for each in past])
    since = min((each.since for each in past if each.since is not None), default=None)
    return recalled_jobs(jobs, since=since, now_s=now_s, ahead_s=ahead_s)
