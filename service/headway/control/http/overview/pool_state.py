"""A pool at this moment: what is known of it, how old that is, its one word, and what is wrong with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headway.control.http.overview.agent_problems import named_problems
from headway.control.http.overview.pool_places import Places, ago, away, has_hung_up, is_overdue, listed, reporters
from headway.control.http.schemas.incidents.cut_sentences import cut_sentence
from headway.control.http.schemas.incidents.noticed_workers import (
    NoticedWorker,
    overdue,
    overdue_sentence,
    start_failure_of,
    start_failure_sentence,
    unable_sentences,
)
from headway.control.http.schemas.incidents.poison_responses import poison_sentence
from headway.control.http.schemas.responses import FailuresOut
from headway.scaling.conditions.member_waits import MemberWait, oldest_wait, pickup_wait
from headway.scaling.explain import counted, duration
from headway.scaling.metrics.job_failures import Failures, failures_text, is_failing, together
from headway.scaling.model import FailureLimit, Mode, QueueMetrics, Stoppage, Suspension, is_suspended
from headway.scaling.profile import Profile
from headway.scaling.view import aged
from headway.store.hosts.job_cuts import CutRow
from headway.store.hosts.poison_jobs import DEATHS, PoisonRow
from headway.store.pools.decisions import StoredDecision

POOL_AT_RISK_FRACTION = 0.7  # of the objective's seconds that the oldest job has waited
POOL_STALE_FRACTION = 0.6  # of `stale_after_s`, 12 s: two readings have not come. Deciding waits longer before it holds
POOL_UNSTARTED_S = 6.0  # agents receive what they shall start within a second, and report at once that they do


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCounts:
    """A pool's workers, as agents last reported them."""

    running: int = 0
    starting: int = 0
    draining: int = 0
    backing_off: int = 0
    unknown: int = 0
    """Of hosts that went silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What the one word for a pool and its reasons are read off."""

    profile: Profile
    metrics: QueueMetrics
    """Of its queues together."""
    members: Sequence[QueueMetrics]
    """Of each of its queues that is known."""
    measured_age_s: float | None
    """How old rates and pickup times are; ``None``: nothing was ever measured."""
    failures: Sequence[Failures]
    """Of each of its queues."""
    counts: WorkerCounts
    target_workers: int | None
    is_crash_looping: bool
    is_short_of_room: bool = False
    """Whether hosts have no room for all the workers that are wanted."""
    unstarted_workers: int = 0
    """That were asked for a while ago, and that no host has got to start."""
    noticed: Sequence[NoticedWorker] = ()
    """Workers of it that drain, fail to start, take no jobs, or run in the background."""
    service_p99_s: float | None = None
    """What 99 % of its jobs take at most; ``None``: not known, or no worker of it has been draining for long."""
    cuts: Sequence[CutRow] = ()
    """Jobs of it that ends of workers have cut of late, or may have."""
    poison: Sequence[PoisonRow] = ()
    """Jobs of it whose workers died with them again and again."""
    lost_jobs: int = 0
    """That waited, and left its queues of late without having been started."""
    perhaps_lost_jobs: int = 0
    """That did so while workers ran, and that may have expired or been revoked: nobody reports which jobs do."""
    suspension: Suspension | None = None
    """What keeps its workers from taking jobs, by its newest decision; ``None``: not known."""
    stoppage: Stoppage | None = None
    """The last time in which something did, while it goes on or shows in the jobs that are there."""
    useless: Sequence[str] = ()
    """Why more workers would not help, by its newest decision."""
    no_host: str | None
    """Why no host can run a worker of it, where one is wanted; ``None``: one can, or none is wanted."""
    now_s: float

    @property
    def sample_age_s(self) -> float | None:
        """How old the oldest of its depths is; ``None``: one of them was never read."""
        sampled_s = self.metrics.sampled_at_s
        return None if sampled_s is None else max(0.0, self.now_s - sampled_s)

    @property
    def stale_after_s(self) -> float:
        """From which age on what is known is shown as out of date, so that nothing is green on it for 15 s."""
        return POOL_STALE_FRACTION * self.profile.stale_after_s

    @property
    def has_fresh_depths(self) -> bool:
        """Whether its queues have been read of late."""
        return self.sample_age_s is not None and self.sample_age_s <= self.stale_after_s

    @property
    def has_fresh_measures(self) -> bool:
        """Whether the pipeline has come to the present."""
        return self.measured_age_s is not None and self.measured_age_s <= self.stale_after_s

    @property
    def is_wait_known(self) -> bool:
        """Whether it is known of each job of its queues that workers have whether it waits."""
        return all(queue.is_wait_known for queue in self.members)

    @property
    def oldest_wait(self) -> MemberWait | None:
        """How long the oldest job of the worst queue has waited: by now if the depths are fresh, else when read.

        Without the time in which something kept its workers from taking it: nobody can start a job then.
        """
        members = self.members
        if self.has_fresh_depths:
            members = [aged(queue, now_s=self.now_s) for queue in members]
        return oldest_wait(self.profile, [self._counted(queue) for queue in members])

    def _counted(self, queue: QueueMetrics) -> QueueMetrics:
        if self.stoppage is None or queue.oldest_age_s is None:
            return queue
        return replace(queue, oldest_age_s=self.stoppage.counted_s(queue.oldest_age_s, now_s=self.now_s))

    @property
    def is_suspended(self) -> bool:
        """Whether something beside Headway is known to keep its workers from taking jobs."""
        return is_suspended(self.suspension)

    @property
    def bottlenecks(self) -> list[str]:
        """What keeps more workers from starting or from helping, a sentence each without its full stop. None names a
        pool, a queue or a host.
        """
        failure = start_failure_of(self.noticed)
        return [*([] if failure is None else [failure.text]), *self.useless]

    @property
    def is_late(self) -> bool:
        """Whether a job is known to have waited longer than its queue's objective, however old that knowledge is."""
        oldest = self.oldest_wait
        return oldest is not None and oldest.is_late

    @property
    def is_lately_late(self) -> bool:
        """Whether the pickup times of a queue were beyond its objective, over the objective's window."""
        pickup = pickup_wait(self.profile, self.members)
        return pickup is not None and pickup.is_late

    @property
    def is_at_risk(self) -> bool:
        """Whether the next moments may make it late: a job has waited most of its time, or workers do not come."""
        oldest = self.oldest_wait
        return (
            self.is_short_of_room
            or self.unstarted_workers > 0
            or (oldest is not None and oldest.used > POOL_AT_RISK_FRACTION)
        )

    @property
    def is_failing(self) -> bool:
        """Whether too many jobs fail, of all its queues or of one."""
        limit = self.profile.failure_limit
        return is_failing(together(self.failures), limit) or any(is_failing(each, limit) for each in self.failures)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits and nothing has started, so that there is nothing to measure."""
        known = self.metrics
        return (
            known.waiting_jobs == 0
            and self.is_wait_known
            and not known.start_rate_per_s
            and known.pickup_objective_s is None
            and not (known.has_unknown_rates and self.may_be_at_work)
        )

    @property
    def may_be_at_work(self) -> bool:
        """Whether jobs run, or may: workers run, and whether they have jobs is unknown."""
        known = self.metrics
        return known.in_flight_jobs > 0 if known.in_flight_jobs is not None else self.counts.running > 0

    @property
    def is_scaling(self) -> bool:
        """Whether workers are on their way, or should be."""
        if self.profile.mode is Mode.RECOMMEND:
            return False
        return self.counts.starting > 0 or self.target_workers not in {None, self.counts.running}


STATES: Sequence[tuple[str, Callable[[Condition], bool]]] = (
    ("suspended", lambda seen: seen.is_suspended),
    ("breaching", lambda seen: seen.is_late),
    ("crash_loop", lambda seen: seen.is_crash_looping),
    ("failing", lambda seen: seen.is_failing),
    ("no_host", lambda seen: seen.no_host is not None),
    ("unseen", lambda seen: seen.metrics.sampled_at_s is None),
    ("stale", lambda seen: not seen.has_fresh_depths or not seen.has_fresh_measures),
    # The objective is about a window: it stays breached until the window has passed, although nobody waits so long now.
    ("recovering", lambda seen: seen.is_lately_late),
    ("bottleneck", lambda seen: bool(seen.bottlenecks)),
    ("at_risk", lambda seen: seen.is_at_risk),
    ("scaling", lambda seen: seen.is_scaling),
    # Long jobs go on for many windows: nobody waits for them, and a pool at work is not idle.
    ("on_time", lambda seen: seen.is_quiet and seen.may_be_at_work),
    ("idle", lambda seen: seen.is_quiet),
    ("unmeasured", lambda seen: seen.metrics.pickup_objective_s is None),
)
"""The words for a pool, the worst first, and what makes each true. Without any of them the pool is on time."""


def state_of(seen: Condition) -> str:
    """The one word for a pool: the worst thing that is true of it. What is not known is never a good word."""
    return next((state for state, holds in STATES if holds(seen)), "on_time")


def causes_of(seen: Condition, places: Places) -> list[str]:
    """What is wrong with a pool, worst first, a sentence each without its full stop; empty where nothing is."""
    causes = [seen.suspension.text] if seen.suspension is not None and seen.is_suspended else []
    causes.extend(_of_jobs(seen))
    causes.extend([*_failed_starts(seen, places), *seen.useless])
    if seen.is_failing:
        causes.append(_failing(seen))
    if seen.no_host is not None:
        causes.append(seen.no_host)
    causes.extend(_ailing_hosts(seen, places))
    if late := overdue(seen.noticed, service_p99_s=seen.service_p99_s, now_s=seen.now_s):
        causes.append(overdue_sentence(late, service_p99_s=seen.service_p99_s, now_s=seen.now_s))
    causes.extend(unable_sentences(seen.noticed))
    if seen.unstarted_workers and seen.no_host is None and not seen.is_crash_looping:
        causes.append(_unstarted(seen))
    if seen.is_short_of_room and seen.no_host is None:
        causes.append(f"the hosts have capacity for only {seen.target_workers or 'none'} of its workers")
    oldest = seen.oldest_wait
    if oldest is not None and oldest.is_late:
        causes.append(_late(seen, oldest))
    return [*causes, *_out_of_date(seen)]


def _of_jobs(seen: Condition) -> list[str]:
    """What has become of single jobs: cut, poisonous, gone."""
    causes = []
    if seen.cuts:
        causes.append(cut_sentence(seen.cuts))
    if seen.poison:
        causes.append(poison_sentence(seen.poison))
    if seen.lost_jobs:
        causes.append(
            f"{counted(seen.lost_jobs, 'waiting job')} left its queues without having been started: the broker was "
            "flushed or lost its data, or the jobs were deleted"
        )
    if seen.perhaps_lost_jobs:
        causes.append(
            f"{counted(seen.perhaps_lost_jobs, 'waiting job')} left its queues without a start that was reported: they "
            "expired or were revoked, or somebody deleted them, or the broker was flushed or lost its data"
        )
    return causes


def _failed_starts(seen: Condition, places: Places) -> list[str]:
    crashes = [_crash_loop(seen, places)] if seen.is_crash_looping else []
    why = start_failure_sentence(seen.noticed)
    return crashes if why is None else [*crashes, why]


def _ailing_hosts(seen: Condition, places: Places) -> list[str]:
    """Which of its hosts do not report, or cannot do their work."""
    causes = []
    rows = places.of_pool(seen.profile.pool)
    if seen.counts.unknown:
        causes.append(f"{counted(seen.counts.unknown, 'worker')} may still run on unreachable hosts: {away(rows)}")
    cut = [row for row in rows if has_hung_up(row)]
    if cut:
        causes.append(f"hosts of its workers have lost the connection: {reporters(cut)}")
    causes += named_problems(rows)
    overdue = [row for row in rows if is_overdue(row)]
    if overdue:
        causes.append(f"its workers have not been reported in time by {reporters(overdue)}")
    return causes


def _out_of_date(seen: Condition) -> list[str]:
    """What of a pool is not known, or not of late."""
    causes = []
    if seen.metrics.sampled_at_s is None:
        causes.append(f"no collector or producer has reported all its queues: {listed(seen.profile.queues)}")
    elif not seen.has_fresh_depths:
        causes.append(f"its queues were last read {ago(seen.sample_age_s)}: see whether {_readers(seen.profile)}")
    if seen.metrics.sampled_at_s is not None and not seen.has_fresh_measures:
        since = "yet" if seen.measured_age_s is None else f"since {ago(seen.measured_age_s)}"
        causes.append(f"pickup times and rates have not been measured {since}")
    return causes


def unstarted_workers(
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


def is_crash_looping(profile: Profile, counts: WorkerCounts, decision: StoredDecision | None, places: Places) -> bool:
    """Whether the pool's workers crash: on every host, on one that should run some, or all of them."""
    if decision is not None and decision.decision.is_failing:
        return True
    if counts.backing_off and not counts.running:
        return True
    return any(row.host.is_known and profile.template in row.host.failing for row in places.of_pool(profile.pool))


def failures_out(each: Sequence[Failures], limit: FailureLimit, metrics: QueueMetrics) -> FailuresOut | None:
    """The failures of queues together as they are given.

    ``None``: by ``metrics`` of these queues, nothing was measured, or nobody reports how jobs of one of them end.
    """
    if metrics.failure_rate_per_s is None:
        return None
    total = together(each)
    return FailuresOut(
        window_s=limit.window_s,
        ended_jobs=total.ended_jobs,
        failed_jobs=total.failed_jobs,
        retried_jobs=total.retried_jobs,
        share=total.share,
        is_failing=is_failing(total, limit) or any(is_failing(one, limit) for one in each),
    )


def _late(seen: Condition, oldest: MemberWait) -> str:
    is_only = len(seen.profile.queues) == 1
    job = "the oldest job" if is_only else f"the oldest job of {oldest.queue}"
    waited, target = duration(round(oldest.wait_s, 1)), duration(oldest.objective.target_s)
    when = "" if seen.has_fresh_depths else f" {ago(seen.sample_age_s)}"
    return f"{job} had waited {waited}{when}, longer than {'the' if is_only else 'its'} objective's {target}"


def _unstarted(seen: Condition) -> str:
    number, ended = seen.unstarted_workers, min(seen.counts.backing_off, seen.unstarted_workers)
    why = f"{ended} ended too early" if ended else "no host has started them yet"
    asked = f"{number} {'worker that was' if number == 1 else 'workers that were'} asked for a while ago"
    return f"{asked} {'does' if number == 1 else 'do'} not run, and {why}: see the agent's log"


def _failing(seen: Condition) -> str:
    limit = seen.profile.failure_limit
    total = together(seen.failures)
    worst = max(seen.failures, key=lambda each: (is_failing(each, limit), each.failed_jobs), default=total)
    shown = total if is_failing(total, limit) else worst
    return failures_text(shown, limit)


def _crash_loop(seen: Condition, places: Places) -> str:
    """Which workers crash and where, and which job the last one had begun, where it reported that."""
    profile = seen.profile
    last = next((each for each in seen.cuts if each.job_id is not None and each.cause in DEATHS), None)
    job = "" if last is None else f"; the last one had begun job {last.job_id} of {last.job_class or 'unknown class'}"
    where = [row.host.name for row in places.of_template(profile.template) if profile.template in row.host.failing]
    on = f" on {listed(where)}" if where else ""
    return f"workers of template {profile.template!r} crash{on}: see the agent's log{job}"


def _readers(profile: Profile) -> str:
    """Who brings what is known of its queues."""
    connections = sorted({queue.partition("/")[0] for queue in profile.queues})
    return f"`headway collect` runs and reaches broker {listed([repr(each) for each in connections])}"
