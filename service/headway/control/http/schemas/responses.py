"""What the HTTP API gives, as Pydantic models around the core's values.

Field names are those of the core's values, the columns and the wire. ``None`` means "not known" and is never zero.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from headway.control.http.schemas.profile_bodies import OverrideBody, ProfileBody
from headway.control.http.schemas.schema_base import Given
from headway.control.http.schemas.worker_responses import PoisonJobOut
from headway.scaling.allocation.host_demand import HostsWanted
from headway.scaling.conditions.condition import Condition
from headway.scaling.conditions.condition_table import CAUSES, CONDITIONS, HEALTH_KINDS, STATES, URGENCIES
from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.host_table import HostStatusName, problems_of, status_of
from headway.scaling.conditions.member_waits import MemberWait
from headway.scaling.explain import explained
from headway.scaling.explanations.explanation import Explanation, explanation_of
from headway.scaling.mapping import to_mapping
from headway.scaling.metrics.job_failures import Failures, is_failing, together
from headway.scaling.model import (
    DayBudget,
    Decision,
    FailureLimit,
    HostCapacity,
    HostState,
    Mode,
    Objective,
    QueueMetrics,
    StartFailure,
    Suspension,
    Template,
    Worker,
)
from headway.scaling.profile import profile_to_mapping
from headway.scaling.strategy import Strategy
from headway.store.pools.decisions import StoredDecision
from headway.store.pools.profiles import StoredProfile


class ReceiptOut(Given):
    """The batch is durable."""

    is_duplicate: bool
    """It was received before, and counts once."""
    accepted_events: int
    accepted_samples: int
    corrected_times: int
    """Times outside the accepted span, moved by the source's estimated offset or to the span's end."""
    refused_items: int = 0
    """Events and samples that were left out, because there is no room for their queues."""
    refused: str = ""
    """Why they were, and what to do."""


class ProfileChangeOut(Given):
    """One key that a request gives another value."""

    key: str
    """With a dot for each level: ``objective.target_s``."""
    before: JsonValue
    """Null where the key was not set."""
    after: JsonValue


class ProfileOut(Given):
    """A profile as it is stored."""

    pool: str
    version: int
    """Grows by one with each change; also the ETag."""
    updated_at_s: float
    profile: ProfileBody
    override: OverrideBody | None
    """Set by hand, while it holds; it takes the place of the profile's own."""
    pause: Mode | None
    """Set by hand, while it holds; it takes the place of the profile's mode."""
    pause_reason: str | None
    """Why it was set by hand; null where nobody said."""
    pause_until_s: float | None
    """When it is over; null: when somebody ends it."""
    made_of: str | None = None
    """The pool whose profile this one is a copy of, for one queue that its patterns match; null: people wrote it."""
    notes: list[str]
    """What the profile cannot keep, as far as is known: one sentence each."""
    early_cuts: list[str] = Field(default_factory=list)
    """Of these, the bounds of its template that cut jobs which take no longer than many of its jobs do."""
    changes: list[ProfileChangeOut] = Field(default_factory=list)
    """What the request changed, or would change, of a profile that was there before."""

    @classmethod
    def of(
        cls, stored: StoredProfile, *, now_s: float, notes: Sequence[str], early_cuts: Sequence[str] = ()
    ) -> "ProfileOut":
        """The stored profile as it is given."""
        override, pause = stored.override_at(now_s), stored.pause_at(now_s)
        return cls.taken_from(
            stored,
            pool=stored.profile.pool,
            profile=ProfileBody.model_validate(profile_to_mapping(stored.written), strict=False),
            override=None if override is None else OverrideBody.model_validate(to_mapping(override)),
            pause=None if pause is None else pause.mode,
            pause_reason=None if pause is None else pause.reason,
            pause_until_s=None if pause is None else pause.until_s,
            notes=list(notes),
            early_cuts=list(early_cuts),
        )


class ProfilesOut(Given):
    """Every profile, by pool."""

    profiles: list[ProfileOut]


class FailuresOut(Given):
    """The jobs that ended in the last `window_s`, and how many of them failed.

    An attempt that another one of its job follows is neither: it counts in `retried_jobs` only.
    """

    window_s: float
    ended_jobs: int
    failed_jobs: int
    """Jobs whose last attempt failed."""
    retried_jobs: int
    """Attempts that failed and are followed by another one."""
    share: float | None
    """Of the jobs that ended, 0 to 1; null where none did."""
    is_failing: bool
    """More fail than the profile's `failure_limit` allows, of these queues together or of one."""

    @classmethod
    def of(cls, each: Sequence[Failures], limit: FailureLimit, metrics: QueueMetrics) -> "FailuresOut | None":
        """The failures of queues together as they are given.

        ``None``: by ``metrics`` of these queues, nothing was measured, or nobody reports how jobs of one of them end.
        """
        if metrics.failure_rate_per_s is None:
            return None
        total = together(each)
        is_too_many = is_failing(total, limit) or any(is_failing(one, limit) for one in each)
        return cls.taken_from(total, window_s=limit.window_s, is_failing=is_too_many)


class EventSourceOut(Given):
    """Who reports what happens to the jobs of a queue: `emitters`, `agents`, or a collector by its producer's name.

    Ages are since the last report; null where it reported none of them in the last day.
    """

    source: str
    arrivals_age_s: float | None
    starts_age_s: float | None
    ends_age_s: float | None


class QueueOut(Given):
    """A queue that was seen or that a profile names."""

    queue: str
    pool: str | None
    """The pool that serves it; null where no profile names it."""
    pattern: str | None
    """The pattern of the pool's profile that matched it; null where the profile names it, or no pool has it."""
    objective: Objective | None
    """Its own objective, else that of its pool; null where no profile names it."""
    sample_age_s: float | None
    """How old the depths are; null where the queue was never seen."""
    poll_interval_s: float | None
    """From one reading of the queue to the next, by now; null where its source does not say."""
    measured_age_s: float | None
    """How old rates, pickup and service times are; null where nothing was ever measured. They are of that moment."""
    metrics: QueueMetrics
    is_wait_known: bool
    """Whether all of its jobs that wait are known; else workers hold some of which it is unknown whether they have
    begun, and `waiting_jobs` and `oldest_age_s` are of the others."""
    suspension: Suspension | None
    """What keeps workers from taking its jobs, by the word of its broker; null: the broker cannot say."""
    useful_workers: int | None
    """At most so many workers get its jobs at a time, as of a single active consumer; null: no such bound is known."""
    failures: FailuresOut | None
    """Null where nothing was ever measured, or nobody reports how its jobs end."""
    event_sources: list[EventSourceOut]
    """Who has reported what happens to its jobs in the last day. What several report counts once."""
    collectors: list[str]
    """Who polls its connection now. The samples of the first count; the others stand by."""


class QueuesOut(Given):
    """Queues, by name."""

    at_s: float
    queues: list[QueueOut]
    next: str | None
    """The `after` of the following page; null on the last one."""


class HostStatusOut(Given):
    """The worst that is so with a host."""

    name: HostStatusName
    word: str
    """The name for people."""
    meaning: str
    """A sentence."""


class HostOut(Given):
    """A host and what it runs."""

    host_id: str
    name: str
    is_known: bool
    """False: its lease ended, so what it runs is not known; it may still run."""
    state: HostState
    """What people have said of it: cordoned and draining hosts get nothing new."""
    status: HostStatusOut
    """The worst of all that is so with it, its state included."""
    cordoned_at_s: float | None
    cordoned_by: str | None
    cordon_reason: str | None
    cordoned_until_s: float | None
    """When it serves again by itself; null: not before somebody says so."""
    labels: Mapping[str, str]
    refused: list[str]
    """A sentence for each label and template that it reports and that its join token does not allow."""
    problems: list[str]
    """A sentence for each thing that keeps its agent from its work, as a full disk."""
    can_write: bool
    """False: its agent cannot write to its state or log folder, and it gets nothing new."""
    failing_templates: list[str]
    """Those whose workers, in the last 10 minutes, have done nothing here but end too early."""
    forced_workers: Mapping[str, int]
    """Pool -> workers that were ended by force at their drain deadline, since the host enrolled."""
    epoch_ahead: int | None
    """The epoch it reports, if later than the leader's: it takes no assignment. After a restore that lasts seconds."""
    agent_version: str
    reported_at_s: float | None
    hung_up_s: float | None
    """Since its connection ended, where no report has come since; null: none has."""
    certificate_left_s: float | None
    """Until the certificate ends that it last showed, below 0 once it has; null: it was asked for none."""
    capacity: HostCapacity
    used: HostCapacity
    """What its workers take, by what their templates say."""
    templates: list[Template]
    workers: list[Worker]

    @classmethod
    def of(cls, row: HostRow) -> "HostOut":
        """The host as it is given."""
        cost = {template.name: template for template in row.host.templates}
        running = [cost[worker.template] for worker in row.host.workers if worker.template in cost]
        return cls.taken_from(
            row,
            row.host,
            status=HostStatusOut.taken_from(status_of(row)),
            problems=problems_of(row),
            failing_templates=sorted(row.host.failing),
            used=HostCapacity(
                cpu_cores=sum(template.cpu_cores for template in running),
                memory_bytes=sum(template.memory_bytes for template in running),
                gpus=sum(template.gpus for template in running),
            ),
        )


class HostsOut(Given):
    """Every host, by name."""

    hosts: list[HostOut]


class HostsWantedOut(Given):
    """Hosts of one sort that are missing."""

    hosts: int | None
    """So many of the typical size; null where no host that could run it was ever seen."""
    workers: int
    """Those that have no place."""
    labels: Mapping[str, str]
    """What the pools ask of a host."""
    templates: list[str]
    """What such a host must have in its `host.toml`."""
    pools: list[str]
    since_s: float
    """Since when hosts of this sort have been missing without a pause."""
    why: str

    @classmethod
    def of(cls, wanted: HostsWanted) -> "HostsWantedOut":
        """What is wanted, as it is given."""
        return cls.taken_from(wanted, why=why(wanted))


def why(wanted: HostsWanted) -> str:
    """The reason in one sentence."""
    where = "".join(f" with {name}={value}" for name, value in sorted(wanted.labels.items()))
    workers = "1 worker" if wanted.workers == 1 else f"{wanted.workers} workers"
    asked = f"no capacity for {workers} of {', '.join(wanted.pools)} on a host{where}"
    if wanted.hosts is None:
        return f"{asked}, and no known host with template {', '.join(wanted.templates)} is large enough"
    return asked


class DecisionOut(Given):
    """A decision as it is stored: the only story of why a pool has the workers it has."""

    decision_id: str
    decided_at_s: float
    epoch: int
    previous_workers: int | None
    decision: Decision
    explanation: Explanation
    """The decision in the words that every page and table shows."""

    @classmethod
    def of(cls, stored: StoredDecision, strategies: Mapping[str, Strategy]) -> "DecisionOut":
        """The stored decision as it is given, in the words of ``strategies`` where it is one of theirs."""
        return cls.taken_from(
            stored,
            decision_id=str(stored.decision_id),
            decided_at_s=stored.decided_at.timestamp(),
            explanation=explanation_of(
                stored.decision, previous_workers=stored.previous_workers, strategies=strategies
            ),
        )


class ExplanationOut(DecisionOut):
    """A decision, and what it says to a reader."""

    sentences: list[str]
    """The outcome first, then what led to it; read off the decision alone."""

    @classmethod
    def explained(cls, stored: StoredDecision, strategies: Mapping[str, Strategy]) -> "ExplanationOut":
        """The stored decision with its sentences."""
        said = explained(stored.decision, previous_workers=stored.previous_workers, strategies=strategies)
        return cls(**dict(DecisionOut.of(stored, strategies)), sentences=list(said))


class DecisionsOut(Given):
    """Decisions, newest first."""

    decisions: list[DecisionOut]
    next: str | None
    """Pass it as `before` for the decisions before these; null at the end."""


class LatestDecisionsOut(Given):
    """The newest decision of each pool, by pool."""

    decisions: list[DecisionOut]


class PipelineOut(Given):
    """How far one pipeline is."""

    pipeline: str
    is_ready: bool
    written_age_s: float
    batch_s: float
    lag_s: float
    """How long something newer has been waiting for it; 0 when nothing has."""
    stage: str
    """What it is doing: starting, restarting, rebuilding, warming_up, ready; or how it ended: stopped, crashed."""
    beat_age_s: float | None
    """Since it last answered, which it does every second; null of one that has no heartbeat."""
    lacks: str | None
    """What it leaves out for want of a right in Postgres; null: nothing."""
    rows_lag_s: float | None
    """From receiving the newest event to its row, in the last batch that brought any; null before the first."""


class TelemetryHealth(Given):
    """How telemetry comes in at this control plane, and what waits for the pipeline."""

    refused: str | None
    """Why it is refused at present; null while it is accepted."""
    flush_s: float | None
    """From receiving a batch to its being durable, in the last group; null before the first."""
    unread_files: int
    unread_bytes: int
    oldest_unread_s: float | None
    """How long the oldest of them has been waiting; null where none waits."""


ReasonKind = Annotated[str, Field(json_schema_extra={"enum": list(HEALTH_KINDS)})]


class HealthOut(Given):
    """How the installation itself is. `degraded` says why, one sentence a reason."""

    status: Literal["ok", "degraded"]
    reasons: list[str]
    kinds: list[ReasonKind]
    """What each of the reasons is about, in their order; `headway_health_reason` has it as a label."""
    database: Literal["ok"] = "ok"
    """Always ok here: without its database the answer is a 503."""
    event_log: Literal["ok", "missing"]
    leader: str
    leader_epoch: int
    leader_age_s: float | None
    """Since the leader last showed itself; null while nobody ever led."""
    pipelines: list[PipelineOut]
    telemetry: TelemetryHealth | None = None
    recommends_only: bool = False
    """Whether this control plane starts and stops no worker, whatever profiles say."""


class LiveOut(Given):
    """The process answers."""

    status: Literal["ok"] = "ok"


class BucketPoint(Given):
    """What the pipeline measured of a pool in a span of 5 s that begins at ``at_s``; null where it measured nothing."""

    at_s: float
    waiting_jobs: int | None
    oldest_age_s: float | None
    pickup_p95_s: float | None
    """Of the jobs that started in these 5 s."""
    pickup_p50_s: float | None
    """The median over the objective's window that ends with these 5 s, as a pool's `metrics` have it."""
    pickup_objective_s: float | None
    """The objective's percentile over the same window, as a pool's `metrics` have it."""
    oldest_wait_ratio: float | None
    """The age of the oldest job as a part of its queue's own objective, the greatest of the queues."""
    pickup_ratio: float | None
    """`pickup_objective_s` as a part of the queue's own objective, the greatest of the queues: above 1 is late."""
    arrived_jobs: int | None
    """Null, as what follows, where nobody reports such events of one of the queues."""
    retried_jobs: int | None
    """Of those that arrived, the ones that came back for another attempt."""
    started_jobs: int | None


class ServiceTimePoint(Given):
    """So many jobs that ended took about so long."""

    service_s: float
    jobs: int


class TargetPoint(Given):
    """What a decision set, and what ran when it did. It holds until the next; the last is what agents report now."""

    at_s: float
    target_workers: int
    running_workers: int
    starting_workers: int


class HistoryOut(Given):
    """The last minutes of a pool, for a chart."""

    pool: str
    from_s: float
    until_s: float
    bucket_s: float
    objective: Objective
    service_times: list[ServiceTimePoint]
    """Of the jobs that ended in that time, shortest first; within 1 %."""
    buckets: list[BucketPoint]
    targets: list[TargetPoint]


CauseKind = Annotated[str, Field(json_schema_extra={"enum": list(CAUSES)})]
PoolState = Annotated[str, Field(json_schema_extra={"enum": list(STATES)})]


class PoolGroupOut(Given):
    """A group that a pool is in, and what its pools have of its cap, in workers or in slots."""

    name: str
    cap: int
    is_in_slots: bool
    used: int
    """By the last reports of all hosts: what starts, drains, or may still run on unreachable hosts included."""
    is_binding: bool
    """Whether its cap lowered the newest decision."""


class PoolOut(Given):
    """A pool at this moment. What is measured is that of all its queues together."""

    pool: str
    mode: Mode
    mode_words: str
    """The mode for people; empty while Headway acts."""
    objective: Objective
    member_objectives: Mapping[str, Objective]
    """The objectives of those of its queues that have their own."""
    queues: list[str]
    template: str
    workers_min: int
    workers_max: int
    state: PoolState
    """The worst thing that is true of it; `on_time` only where pickup times were measured and within the objective."""
    causes: list[str]
    """What is wrong with it, worst first; empty where nothing is."""
    kinds: list[CauseKind]
    """What each of the causes is about, in their order: a condition."""
    has_fresh_depths: bool
    """Whether its queues have been read recently, whatever the pipeline has measured since."""
    bottlenecks: list[str]
    """Those of these causes that keep more workers from starting or from helping."""
    start_failure: StartFailure | None
    """Why its workers fail to start, by what they printed; null: not known, or none does."""
    target_workers: int | None
    running_workers: int | None
    """As agents report them; in mode `recommend` as the broker lists them, and null where it cannot."""
    starting_workers: int
    draining_workers: int
    failing_workers: int
    """Waiting before they are started again, because they ended too early."""
    unknown_workers: int
    """Of hosts that went silent: they may still run."""
    reported_age_s: float | None
    """How old these counts of workers are: of the oldest report of a reachable host; null where none can run any."""
    sample_age_s: float | None
    """How old the depths are; null where a queue was never seen."""
    measured_age_s: float | None
    """How old rates and pickup times are; null where nothing was ever measured."""
    metrics: QueueMetrics
    is_wait_known: bool
    """Whether all of its jobs that wait are known; else its workers hold some of which it is unknown whether they have
    begun, and `waiting_jobs` and `oldest_age_s` are of the others."""
    oldest_wait: MemberWait | None
    """The age of the oldest job when the queues were read, of the queue where it takes the greatest part of the
    queue's own objective; null where none is known."""
    pickup_wait: MemberWait | None
    """The pickup time at the percentile of a queue's own objective, of the queue where it takes the greatest part of
    that objective; null where none was measured."""
    failures: FailuresOut | None
    """Of the jobs of all its queues; null where nothing was ever measured, or nobody reports how those of one end."""
    suspension: Suspension | None
    """What keeps all its workers from taking jobs, beside Headway, and so who says it; null: not known."""
    unstarted_workers: int
    """Workers that were asked for a while ago, and that no host has got to start."""
    lost_jobs: int
    """Jobs that waited, and in the last two minutes left its queues without having been started."""
    perhaps_lost_jobs: int
    """Jobs that did so while workers ran, and that may have expired or been revoked: nobody reports which jobs do."""
    unheld_jobs: int | None
    """Jobs that are taken and that no worker has, as after the kill of a worker: they run when their broker gives them
    back. Null: not known, as for the first minute."""
    unable_workers: int
    """Workers that are there and take no jobs: stopped, or without consumers; none of a suspended pool."""
    unable: str | None
    """How many these are, and why the first takes none; null: there is none."""
    cut_jobs: int
    """Jobs that ends of workers have cut in the last 15 minutes; `GET /v1/cuts` lists them."""
    poison_jobs: list[PoisonJobOut]
    """Jobs whose workers died with them three times or more in the last day, until an hour after the last death."""
    perhaps_cut_jobs: int
    """Workers that may have lost a job meanwhile: nobody knew whether they had one."""
    awaited: str | None
    """Which draining worker, with its job, others of the pool may wait for; null: none drains."""
    overdue: str | None
    """Which worker has been draining for more than three times as long as 99 % of the jobs take; null: none."""
    overdue_workers: int
    """How many workers have."""
    day_late_jobs: int | None
    """Jobs that have started later than their objective allows since 00:00 UTC; null: none has started, as counted."""
    day_late_jobs_allowed: float | None
    """How many its objective allows on a day with as many jobs as there are yet, or as there were yesterday; null: the
    same, or an objective that allows none."""
    decided_at_s: float | None
    binding: str | None
    """The demand or limit that gave the target its last word."""
    binding_label: str | None
    """A few words for it."""
    predicted_pickup_s: float | None
    day_budget: DayBudget | None
    """Of the newest stored decision; null where the profile sets no budget of the day."""
    groups: list[PoolGroupOut]
    """The groups that it is in, by name."""
    notes: list[str]
    separate_pools: str | None
    """Which of its queues needs a pool of its own, and why; null: none does."""


class PoolsOut(Given):
    """Every pool, by name, and how the installation is that they depend on."""

    at_s: float
    pools: list[PoolOut]
    health: HealthOut


class StateOut(Given):
    """A state that pools can have."""

    state: PoolState
    word: str
    """A word or two for it."""
    meaning: str
    """What is true of a pool in it."""
    severity: Literal["page", "ticket", "note"] | None
    """How soon a person has to act; null: it is in order."""
    urgency: int
    """Greater for a more urgent state; 0 for one that is in order, or that pools are in for moments."""
    counted_as: str
    """The words after the number of pools in this and like states; empty: they are not counted."""

    @classmethod
    def of(cls, condition: Condition) -> "StateOut":
        """The state that a condition is."""
        return cls(
            state=condition.name,
            word=condition.word,
            meaning=f"The pool {condition.sentence}.",
            severity=None if condition.severity is None else condition.severity.value,
            urgency=URGENCIES[condition.name],
            counted_as=condition.counted_as,
        )


class Overview(Given):
    """Everything that the dashboard shows, at one moment."""

    at_s: float
    pools: list[PoolOut]
    queues: list[QueueOut]
    hosts: list[HostOut]
    decisions: list[DecisionOut]
    health: HealthOut
    hosts_wanted: list[HostsWantedOut]
    states: list[StateOut] = Field(default_factory=lambda: [StateOut.of(CONDITIONS[name]) for name in URGENCIES])
    """What pools can be, the most urgent first."""
