"""One pool at this moment, as the API gives it: what is measured, what runs, its one word, and what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headway.control.http.overview.pool_places import Places, able_hosts, why_no_host
from headway.control.http.overview.queue_summary import Trouble
from headway.control.http.overview.unheld_counter import Unheld
from headway.control.http.schemas.responses import FailuresOut, PoolGroupOut, PoolOut, QueueOut
from headway.control.http.schemas.worker_responses import PoisonJobOut
from headway.scaling.conditions.causes import causes_of, state_of
from headway.scaling.conditions.job_troubles import CutRow, PoisonRow
from headway.scaling.conditions.member_waits import oldest_wait, pickup_wait
from headway.scaling.conditions.noticed_workers import NoticedWorker, awaited_sentence, start_failure_of
from headway.scaling.conditions.pool_facts import PoolFacts, WorkerCounts
from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.explanations.explanation import binding_label
from headway.scaling.fields import taken_from
from headway.scaling.group import Group
from headway.scaling.metrics.attainment import DayAttained, error_budget
from headway.scaling.model import Decision, Mode, NoteKind, QueueMetrics, is_suspended
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.pauses import WORDS
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.strategy import Strategy
from headway.store.pools.decisions import StoredDecision

POOL_UNSTARTED_S = 6.0  # agents receive what they shall start within a second, and report at once that they do


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRows:
    """What one read of the store brought of a pool."""

    profile: Profile
    """The one in force now."""
    counts: WorkerCounts
    """Its workers as agents report them."""
    listed: int | None
    """Its workers as the broker lists them; ``None``: it cannot. They count where it is only recommended for."""
    target_workers: int | None
    """What was last decided; ``None``: nothing yet."""
    latest: StoredDecision | None
    """Its newest stored decision."""
    cuts: Sequence[CutRow]
    """Its jobs that ends of workers have cut of late, or may have."""
    poison: Sequence[PoisonRow]
    """Its jobs whose workers died with them again and again."""
    noticed: Sequence[NoticedWorker]
    """Its workers that drain, fail to start, take no jobs, or run in the background."""
    service_p99_s: float | None
    """What 99 % of its jobs take at most; ``None``: not known."""
    unheld: Unheld
    """Its jobs that no worker has."""
    day_attained: DayAttained | None
    """Its jobs of today and yesterday; ``None``: none has started today, as far as is counted."""
    groups: Sequence[tuple[Group, int]] = ()
    """The groups that it is in, each with what all its pools have of the cap."""
    has_queues: bool = True
    """Whether its patterns match any queue; one that names its queues has them."""
    have_workers_run: bool
    """Whether workers of it have run in the last minutes, or may have: they drop expired jobs."""

    @property
    def is_advised(self) -> bool:
        """Whether it is only recommended for: others start its workers."""
        return self.profile.mode is Mode.RECOMMEND

    @property
    def running_workers(self) -> int | None:
        """Its workers that run; ``None`` if nobody knows those of others."""
        if self.is_advised:
            return self.listed if self.listed is not None else (self.counts.running or None)
        return self.counts.running

    @property
    def decision(self) -> Decision | None:
        """Its newest decision, without when it was stored."""
        return None if self.latest is None else self.latest.decision


def pool_now(pool: PoolRows, facts: PoolFacts, strategies: Mapping[str, Strategy]) -> PoolOut:
    """The pool as it is shown at the moment of ``facts``, which are those of its rows, in words of ``strategies``."""
    profile, latest, decision, now_s = pool.profile, pool.latest, pool.decision, facts.now_s
    causes = causes_of(facts)
    texts = {each.kind: each.text for each in causes}
    return PoolOut.taken_from(
        facts,
        profile,
        mode=profile.mode_at(now_s),
        mode_words=WORDS.get(profile.mode_at(now_s), ""),
        state=state_of(facts),
        oldest_wait=oldest_wait(profile, facts.members),
        pickup_wait=pickup_wait(profile, facts.members),
        causes=[each.text for each in causes],
        kinds=[each.kind for each in causes],
        running_workers=pool.running_workers,
        starting_workers=pool.counts.starting,
        draining_workers=pool.counts.draining,
        failing_workers=pool.counts.backing_off,
        unknown_workers=pool.counts.unknown,
        unheld_jobs=pool.unheld.jobs,
        unable_workers=len(facts.unable),
        unable=texts.get("unable_workers"),
        failures=FailuresOut.of(facts.failures, profile.failure_limit, facts.metrics),
        day_late_jobs=None if pool.day_attained is None else pool.day_attained.today.late_jobs,
        day_late_jobs_allowed=None
        if pool.day_attained is None or not error_budget(profile.objective.percentile)
        else pool.day_attained.allowed_jobs(profile.objective.percentile),
        decided_at_s=latest.decided_at.timestamp() if latest else None,
        binding=decision.binding if decision else None,
        binding_label=binding_label(decision, strategies) if decision else None,
        predicted_pickup_s=decision.predicted_pickup_s if decision else None,
        cut_jobs=sum(each.is_certain for each in pool.cuts),
        poison_jobs=[PoisonJobOut.taken_from(each) for each in pool.poison],
        perhaps_cut_jobs=sum(not each.is_certain for each in pool.cuts),
        awaited=awaited_sentence(pool.noticed, now_s=now_s),
        overdue=texts.get("drain_overdue"),
        overdue_workers=len(facts.overdue),
        groups=_groups_of(pool),
        notes=list(decision.notes) if decision else [],
        separate_pools=decision.note_of(NoteKind.SEPARATE_POOLS) if decision else None,
    )


def _groups_of(pool: PoolRows) -> list[PoolGroupOut]:
    binding = {each.name for each in pool.decision.groups if each.is_binding} if pool.decision else set()
    return [
        PoolGroupOut(
            name=group.name,
            cap=group.cap,
            is_in_slots=group.is_in_slots,
            used=used,
            is_binding=group.name in binding,
        )
        for group, used in pool.groups
    ]


def facts_of(
    pool: PoolRows,
    queues: Mapping[str, QueueOut],
    troubles: Mapping[str, Trouble],
    places: Places,
    *,
    now_s: float,
) -> PoolFacts:
    """What is known of the pool; ``queues`` are all that are known, by name, as are their ``troubles``."""
    profile, decision, target_workers = pool.profile, pool.decision, pool.target_workers
    members = [queues[queue] for queue in profile.queues if queue in queues]
    befallen = [troubles[queue] for queue in profile.queues if queue in troubles]
    counts = replace(pool.counts, running=pool.running_workers or 0)
    known = [member.metrics for member in members]
    metrics = pooled(known or [QueueMetrics(queue=queue) for queue in profile.queues])
    is_wanted = not pool.is_advised and bool(
        metrics.waiting_jobs or target_workers or profile.workers_min or profile.pinned
    )
    able = able_hosts(profile, places)
    has_start_failure = start_failure_of(pool.noticed) is not None
    suspension = None if decision is None else decision.suspension
    is_kept_from_jobs = is_suspended(suspension)
    is_failing = decision is not None and decision.is_failing
    return taken_from(
        PoolFacts,
        pool,
        metrics=metrics,
        members=known,
        # What a pattern may match has no reading, and that is no failure of a collector.
        is_broker_polled=not pool.has_queues or (bool(members) and all(member.collectors for member in members)),
        measured_age_s=max((m.measured_age_s for m in members if m.measured_age_s is not None), default=None),
        failures=[each.failures for each in befallen],
        lost_jobs=sum(each.lost_jobs for each in befallen if not (pool.have_workers_run and each.may_be_revoked)),
        perhaps_lost_jobs=sum(each.lost_jobs for each in befallen if pool.have_workers_run and each.may_be_revoked),
        counts=counts,
        unheld=None if is_kept_from_jobs else pool.unheld.known,
        suspension=suspension,
        useless=() if decision is None else bottlenecks_of(decision),
        stoppage=None if decision is None else decision.stoppage,
        # Workers of a suspended library may end as soon as they are started, and none is to be started. Where others
        # run and the cause is known, the pool works, short of workers. Where they fail on every host, the one that runs
        # is only tried.
        is_crash_looping=not (is_kept_from_jobs or (has_start_failure and counts.running and not is_failing))
        and _is_crash_looping(profile, counts, pool.latest, places),
        is_short_of_room=not pool.is_advised and decision is not None and decision.binding == "capacity",
        capped_by=() if decision is None else [each for each in decision.groups if each.is_binding],
        unstarted_workers=0
        if is_kept_from_jobs or has_start_failure
        else _unstarted_workers(
            counts, pool.latest, target_workers=target_workers, mode=profile.mode_at(now_s), now_s=now_s
        ),
        hosts=places.of_pool(profile.pool),
        able_hosts=able,
        no_host=why_no_host(profile, places, able) if is_wanted and not is_kept_from_jobs else None,
        crashing_on=[
            row.host.name for row in places.of_template(profile.template) if profile.template in row.host.failing
        ],
        reported_age_s=places.reported_age_s(profile),
        day_budget=None if decision is None else decision.day_budget,
        now_s=now_s,
    )


def _unstarted_workers(
    counts: WorkerCounts, decision: StoredDecision | None, *, target_workers: int | None, mode: Mode, now_s: float
) -> int:
    """The workers that were asked for a while ago, and that no host has got to start; those that end too early are.

    0 while any start, for starts take turns on a host; while any leave or are unknown, whose places may be needed; and
    where targets are not acted on, or hosts have no room.
    """
    missing = (target_workers or 0) - counts.running
    are_moving = counts.starting or counts.draining or counts.unknown
    if (
        decision is None
        or missing <= 0
        or are_moving
        or mode is Mode.RECOMMEND
        or decision.decision.binding == "capacity"
    ):
        return 0
    # One that is stored again says the same as before: it was asked for earlier still.
    is_old = decision.previous_workers == decision.decision.target_workers
    return missing if is_old or now_s - decision.decided_at.timestamp() > POOL_UNSTARTED_S else 0


def _is_crash_looping(profile: Profile, counts: WorkerCounts, decision: StoredDecision | None, places: Places) -> bool:
    """Whether the pool's workers crash: on every host, on one that should run some, or all of them."""
    if decision is not None and decision.decision.is_failing:
        return True
    if counts.backing_off and not counts.running:
        return True
    return any(row.host.is_known and profile.template in row.host.failing for row in places.of_pool(profile.pool))
