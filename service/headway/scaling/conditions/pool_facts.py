"""What is known of a pool at one moment, from which its conditions follow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.job_troubles import CutRow, PoisonRow
from headway.scaling.conditions.member_waits import MemberWait, oldest_wait, pickup_wait
from headway.scaling.conditions.noticed_workers import NoticedWorker, overdue, start_failure_of, unable_of
from headway.scaling.metrics.attainment import DayAttained
from headway.scaling.metrics.job_failures import Failures, is_failing, together
from headway.scaling.metrics.unheld_jobs import UnheldJobs
from headway.scaling.model import (
    DayBudget,
    GroupUse,
    Mode,
    QueueMetrics,
    StartFailure,
    Stoppage,
    Suspension,
    is_suspended,
)
from headway.scaling.profile import Profile
from headway.scaling.reading.sample_age import aged

POOL_AT_RISK_FRACTION = 0.7  # of the objective's seconds that the oldest job has waited
POOL_STALE_FRACTION = 0.6  # of `stale_after_s`, 12 s: two readings have not come. Deciding waits longer before it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCounts:
    """A pool's workers, as agents last reported them."""

    running: int = 0
    starting: int = 0
    draining: int = 0
    backing_off: int = 0
    unknown: int = 0
    """Of hosts that went silent."""


class NoHost(StrEnum):
    """Why no host can run a worker of a pool, as a sentence; in braces what the pool names."""

    UNWRITABLE = "no host with template {template!r} can write to its state or log folder"
    SHUT = "every host with template {template!r} is cordoned or draining"
    AWAY = "no reachable host has template {template!r}; unreachable: {away}"
    NONE_REACHABLE = "no host is reachable"
    NONE_ENROLLED = "no host has enrolled"
    UNLABELLED = "no host with template {template!r} has the labels that the profile asks for"
    UNNAMED = "no reachable host has template {template!r}: no host.toml names it"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """What the conditions of a pool are read off."""

    profile: Profile
    metrics: QueueMetrics
    """Of its queues together."""
    members: Sequence[QueueMetrics]
    """Of each of its queues that is known."""
    has_queues: bool = True
    """Whether it owns a queue: one whose patterns match none yet owns none."""
    is_broker_polled: bool = False
    """Whether collectors poll the brokers of all its queues at this moment, whatever queues they find there."""
    measured_age_s: float | None
    """How old rates and pickup times are; ``None``: nothing was ever measured."""
    failures: Sequence[Failures]
    """Of each of its queues."""
    counts: WorkerCounts
    target_workers: int | None
    is_crash_looping: bool
    is_short_of_room: bool = False
    """Whether hosts have no room for all the workers that are wanted."""
    capped_by: Sequence[GroupUse] = ()
    """Groups whose caps lowered its newest decision."""
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
    unheld: UnheldJobs | None = None
    """Jobs of it that are taken and that no worker has; ``None``: there is none, or that is not known."""
    suspension: Suspension | None = None
    """What keeps its workers from taking jobs, by its newest decision; ``None``: not known."""
    stoppage: Stoppage | None = None
    """The last time in which something did, while it goes on or shows in the jobs that are there."""
    useless: Sequence[str] = ()
    """Why more workers would not help, by its newest decision."""
    day_budget: DayBudget | None = None
    day_attained: DayAttained | None = None
    """Its jobs of today and yesterday; ``None``: none has started today, as far as is counted."""
    reported_age_s: float | None = None
    """How old the counts of its workers are; ``None``: no reachable host runs or could run one."""
    crashing_on: Sequence[str] = ()
    """The hosts on which workers of its template crash."""
    hosts: Sequence[HostRow] = ()
    """Those that run workers of it, or may."""
    able_hosts: Sequence[HostRow] = ()
    """Those that have its template, with the labels that its profile asks for."""
    no_host: NoHost | None
    """Why no host can run a worker of it, where one is wanted; ``None``: one can, or none is wanted."""
    now_s: float

    @property
    def sample_age_s(self) -> float | None:
        """How old the oldest of its depths is; ``None``: one of them was never read."""
        sampled_s = self.metrics.sampled_at_s
        return None if sampled_s is None else max(0.0, self.now_s - sampled_s)

    @property
    def is_unseen(self) -> bool:
        """Whether none of its queues was ever reported, and nobody polls one of their brokers."""
        return self.sample_age_s is None and not self.is_broker_polled

    @property
    def is_unlisted(self) -> bool:
        """Whether none of its queues was ever found in their brokers, which are polled.

        Some brokers list a queue from its first job on: a new application looks like a wrong name.
        """
        return self.sample_age_s is None and self.is_broker_polled

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
    def start_failure(self) -> StartFailure | None:
        """Why its workers fail to start; ``None``: not known, or none does."""
        return start_failure_of(self.noticed)

    @property
    def unable(self) -> Sequence[NoticedWorker]:
        """Its workers that are there and take no jobs, where that is not what suspends it."""
        return () if self.is_suspended else unable_of(self.noticed)

    @property
    def has_certain_cuts(self) -> bool:
        """Whether a worker that ended is known to have had a job."""
        return any(each.is_certain for each in self.cuts)

    @property
    def overdue(self) -> Sequence[NoticedWorker]:
        """Its workers that drain for longer than any job of it should take."""
        return overdue(self.noticed, service_p99_s=self.service_p99_s, now_s=self.now_s)

    @property
    def is_suspended(self) -> bool:
        """Whether something beside Headway is known to keep its workers from taking jobs."""
        return is_suspended(self.suspension)

    @property
    def bottlenecks(self) -> list[str]:
        """What keeps more workers from starting or from helping, a sentence each without its full stop. None names a
        pool, a queue or a host.
        """
        failure = self.start_failure
        return [*([] if failure is None else [failure.text]), *self.useless]

    @property
    def is_late(self) -> bool:
        """Whether a job is known to have waited longer than its queue's objective, however old that knowledge is."""
        oldest = self.oldest_wait
        return oldest is not None and oldest.is_late

    @property
    def is_at_ceiling(self) -> bool:
        """Whether a job of it is late and its profile, or a group that it is in, allows no more workers."""
        if not self.is_late or self.target_workers is None:
            return False
        return bool(self.capped_by) or self.target_workers >= self.profile.workers_max

    @property
    def has_spent_budget(self) -> bool:
        """Whether nothing is left of the budget of its day."""
        spent = self.day_budget
        return spent is not None and spent.paid_worker_s >= spent.budget_worker_s

    @property
    def has_spent_error_budget(self) -> bool:
        """Whether more of today's jobs were late than its objective allows."""
        return self.day_attained is not None and self.day_attained.is_spent(self.profile.objective.percentile)

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
