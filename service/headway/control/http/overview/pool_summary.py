"""One pool at this moment, as the API gives it: what is measured, what runs, its one word, and what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headway.control.http.overview.pool_places import Places, no_host
from headway.control.http.overview.pool_state import (
    Condition,
    WorkerCounts,
    causes_of,
    failures_out,
    is_crash_looping,
    state_of,
    unstarted_workers,
)
from headway.control.http.overview.queue_summary import Trouble
from headway.control.http.schemas.incidents.noticed_workers import (
    NoticedWorker,
    awaited_sentence,
    overdue,
    overdue_sentence,
    start_failure_of,
)
from headway.control.http.schemas.incidents.poison_responses import PoisonJobOut
from headway.control.http.schemas.responses import PoolOut, QueueOut
from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.incidents.member_waits import oldest_wait, pickup_wait
from headway.scaling.model import Mode, QueueMetrics, is_suspended
from headway.scaling.profile import Profile
from headway.scaling.view import pooled
from headway.store.hosts.job_cuts import CutRow
from headway.store.hosts.poison_jobs import PoisonRow
from headway.store.pools.decisions import StoredDecision


def pool_now(
    profile: Profile,
    queues: Mapping[str, QueueOut],
    troubles: Mapping[str, Trouble],
    places: Places,
    *,
    counts: WorkerCounts,
    listed: int | None,
    target_workers: int | None,
    latest: StoredDecision | None,
    cuts: Sequence[CutRow] = (),
    poison: Sequence[PoisonRow] = (),
    noticed: Sequence[NoticedWorker] = (),
    service_p99_s: float | None = None,
    now_s: float,
) -> PoolOut:
    """The pool of ``profile``, which is the one in force at ``now_s``.

    Args:
        profile: Of the pool.
        queues: Every queue that is known, by name.
        troubles: The same queues.
        places: The hosts.
        counts: Its workers as agents report them.
        listed: Its workers as the broker lists them; ``None``: it cannot. They count where it is only recommended for.
        target_workers: What was last decided; ``None``: nothing yet.
        latest: Its newest stored decision.
        cuts: Its jobs that ends of workers have cut of late, or may have.
        poison: Its jobs whose workers died with them again and again.
        noticed: Its workers that drain, fail to start, take no jobs, or run in the background.
        service_p99_s: What 99 % of its jobs take at most; ``None``: not known.
        now_s: Unix seconds.
    """
    members = [queues[queue] for queue in profile.queues if queue in queues]
    nothing = [QueueMetrics(queue=queue) for queue in profile.queues]
    known = [member.metrics for member in members]
    together = pooled(known or nothing)
    befallen = [troubles[queue] for queue in profile.queues if queue in troubles]
    is_advised = profile.mode is Mode.RECOMMEND
    running: int | None = counts.running
    if is_advised:
        running = listed if listed is not None else counts.running or None
        counts = replace(counts, running=running or 0)
    is_wanted = not is_advised and bool(
        together.waiting_jobs or target_workers or profile.workers_min or profile.pinned
    )
    start_failure = start_failure_of(noticed)
    suspension = None if latest is None else latest.decision.suspension
    is_kept_from_jobs = is_suspended(suspension)
    is_failing = latest is not None and latest.decision.is_failing
    condition = Condition(
        profile=profile,
        metrics=together,
        members=known,
        measured_age_s=max((m.measured_age_s for m in members if m.measured_age_s is not None), default=None),
        failures=[each.failures for each in befallen],
        cuts=cuts,
        poison=poison,
        noticed=noticed,
        service_p99_s=service_p99_s,
        lost_jobs=sum(each.lost_jobs for each in befallen),
        counts=counts,
        target_workers=target_workers,
        suspension=suspension,
        useless=() if latest is None else bottlenecks_of(latest.decision),
        stoppage=None if latest is None else latest.decision.stoppage,
        # Workers of a suspended library may end as soon as they are started, and none is to be started. Where others
        # run and the cause is known, the pool works, short of workers. Where they fail on every host, the one that runs
        # is only tried.
        is_crash_looping=not (is_kept_from_jobs or (start_failure is not None and counts.running and not is_failing))
        and is_crash_looping(profile, counts, latest, places),
        is_short_of_room=not is_advised and latest is not None and latest.decision.binding == "capacity",
        unstarted_workers=0
        if is_kept_from_jobs or start_failure is not None
        else unstarted_workers(counts, latest, target_workers=target_workers, mode=profile.mode_at(now_s), now_s=now_s),
        no_host=no_host(profile, places) if is_wanted else None,
        now_s=now_s,
    )
    return PoolOut.taken_from(
        condition,
        profile,
        mode=profile.mode_at(now_s),
        state=state_of(condition),
        oldest_wait=oldest_wait(profile, known),
        pickup_wait=pickup_wait(profile, known),
        causes=causes_of(condition, places),
        bottlenecks=condition.bottlenecks,
        start_failure=start_failure,
        running_workers=running,
        starting_workers=counts.starting,
        draining_workers=counts.draining,
        failing_workers=counts.backing_off,
        unknown_workers=counts.unknown,
        reported_age_s=places.reported_age_s(profile),
        failures=failures_out(condition.failures, profile.failure_limit, together),
        decided_at_s=latest.decided_at.timestamp() if latest else None,
        binding=latest.decision.binding if latest else None,
        predicted_pickup_s=latest.decision.predicted_pickup_s if latest else None,
        day_budget=latest.decision.day_budget if latest else None,
        cut_jobs=sum(each.is_certain for each in cuts),
        poison_jobs=[PoisonJobOut.taken_from(each) for each in poison],
        perhaps_cut_jobs=sum(not each.is_certain for each in cuts),
        awaited=awaited_sentence(noticed, now_s=now_s),
        overdue=_overdue(condition),
        notes=list(latest.decision.notes) if latest else [],
    )


def _overdue(condition: Condition) -> str | None:
    late = overdue(condition.noticed, service_p99_s=condition.service_p99_s, now_s=condition.now_s)
    return overdue_sentence(late, service_p99_s=condition.service_p99_s, now_s=condition.now_s) if late else None
