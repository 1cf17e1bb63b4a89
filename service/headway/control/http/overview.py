"""What people are shown, put together from what the store holds: the dashboard's one snapshot, queues, a history."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from headway.control.filling import Filling
from headway.control.http.answers import (
    DecisionOut,
    HealthOut,
    HostOut,
    Overview,
    PipelineOut,
    PoolOut,
    QueueOut,
    TelemetryHealth,
)
from headway.control.http.host_signal_answers import HostsWantedOut
from headway.control.http.pools import (
    Condition,
    Counts,
    Places,
    ailing_hosts,
    ailing_pools,
    causes_of,
    failures_out,
    is_crash_looping,
    no_host,
    state_of,
)
from headway.control.ingest import Ingest
from headway.control.recent import KEPT_S, RecentBuckets
from headway.scaling.failures import Failures, failures_of
from headway.scaling.hosts_wanted import HostsWanted
from headway.scaling.measure import BUCKET_S, BucketRow
from headway.scaling.model import FailureLimit, Objective, QueueMetrics, QueueSample, WorkerState
from headway.scaling.profile import Profile
from headway.scaling.view import overlaid, pooled
from headway.store.decisions import StoredDecision, latest_decisions, list_decisions
from headway.store.engine import Engine, snapshot
from headway.store.hosts_wanted import read_hosts_wanted
from headway.store.overview import (
    HealthRow,
    HostRow,
    PipelineRow,
    read_buckets,
    read_health,
    read_hosts,
    read_queues,
    read_samples,
    read_targets,
)
from headway.store.profiles import StoredProfile, list_profiles

Shown = TypeVar("Shown")

SHOWN_DECISIONS = 20
LEADER_SILENT_S = 10.0  # a standby ends a leader silent for 8 s
PIPELINE_BEHIND_S = 15.0  # three buckets
PIPELINE_SILENT_S = 180.0  # longer than a warm-up may take without a word
PIPELINE_UNHEARD_S = 5.0  # of one with a heartbeat, which has one every second
PARTITION_DAYS_MIN = 6  # upkeep makes seven ahead, every ten minutes
READ_LATE_S = 12.0  # collectors tell of every queue each 5 s
UNREAD_LATE_S = 60.0  # a batch takes a second
AILING_S = 5.0  # many balancers may ask, and a look at ten thousand queues takes a second


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one look at the store brought."""

    buckets: Sequence[BucketRow]
    """Those that were written since the last."""
    revision: int
    queues: Mapping[str, str | None]
    samples: Mapping[str, QueueSample]
    profiles: Sequence[StoredProfile]
    targets: Mapping[str, int]
    latest: Mapping[str, StoredDecision]
    decisions: Sequence[StoredDecision]
    hosts: Sequence[HostRow]
    health: HealthOut
    pipelines: Sequence[PipelineRow] = ()
    hosts_wanted: Sequence[HostsWanted] = ()

    @cached_property
    def workers(self) -> Counter[tuple[str, WorkerState | None]]:
        """How many workers each pool has in each state; without a state those of hosts that went silent.

        Counted once: ten thousand pools must not each look at every worker.
        """
        return Counter(
            (worker.pool, worker.state if row.host.is_known else None)
            for row in self.hosts
            for worker in row.host.workers
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesPage:
    """Some queues, by name, and of when that is."""

    at_s: float
    queues: list[QueueOut]
    next: str | None
    """The name after which the next page goes on; ``None``: there is none."""


class Overviews:
    """Makes the dashboard's snapshots. Remembers buckets, so that each reads only what was written since the last."""

    def __init__(
        self,
        *,
        engine: Engine,
        clock: Callable[[], float],
        has_event_log: Callable[[], bool],
        telemetry: Callable[[], TelemetryHealth],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._has_event_log = has_event_log
        self._telemetry = telemetry
        self._recent, self._filling = RecentBuckets(), Filling()
        # Of two looks at once the one that ends later may bring older rows than the other.
        self._turn = asyncio.Lock()
        self._ailing: tuple[str, ...] = ()
        self._looked_at_s: float | None = None
        self._making = threading.Lock()  # who gives up leaves a thread behind that still works on what is remembered

    async def json(self) -> str:
        """The overview of this moment, as JSON."""
        return await self._shown(Overview.model_dump_json)

    async def overview(self) -> Overview:
        """The overview of this moment."""
        return await self._shown(lambda overview: overview)

    async def ailing(self) -> tuple[str, ...]:
        """What is wrong with pools and hosts, a sentence each, as of the last seconds.

        Many ask for health, and often; they share one look.
        """
        elapsed_s = asyncio.get_running_loop().time
        if self._looked_at_s is None or elapsed_s() - self._looked_at_s > AILING_S:
            await self.overview()
            self._looked_at_s = elapsed_s()
        return self._ailing

    async def queues(
        self, *, pool: str | None = None, queue: str | None = None, limit: int, after: str | None = None
    ) -> QueuesPage:
        """The first ``limit`` queues after the name ``after``, or of those of ``pool``, or the one ``queue``."""
        async with self._turn:
            now_s = self._clock()
            await self._filling.keep_up(self._engine, self._recent, now_s=now_s)
            async with snapshot(self._engine) as conn:
                buckets, revision = await read_buckets(
                    conn, from_s=now_s - KEPT_S, after_revision=self._recent.revision
                )
                queues, samples, profiles = await read_queues(conn), await read_samples(conn), await list_profiles(conn)
                pipelines = (await read_health(conn)).pipelines
            asked = sorted(
                name
                for name, owner in queues.items()
                if pool in {None, owner} and queue in {None, name} and (after is None or name > after)
            )
            page = {name: queues[name] for name in asked[:limit]}
            shown, _ = await asyncio.to_thread(
                self._queues,
                page,
                samples,
                profiles,
                buckets,
                pipelines=pipelines,
                revision=revision,
                now_s=now_s,
            )
            return QueuesPage(at_s=now_s, queues=shown, next=asked[limit - 1] if len(asked) > limit else None)

    async def _shown(self, show: Callable[[Overview], Shown]) -> Shown:
        async with self._turn:
            now_s = self._clock()
            await self._filling.keep_up(self._engine, self._recent, now_s=now_s)
            seen = await self._look(now_s)
            return await asyncio.to_thread(lambda: show(self._overview(seen, now_s=now_s)))

    async def _look(self, now_s: float) -> Seen:
        async with snapshot(self._engine) as conn:
            buckets, revision = await read_buckets(conn, from_s=now_s - KEPT_S, after_revision=self._recent.revision)
            health = await read_health(conn)
            return Seen(
                buckets=buckets,
                revision=revision,
                queues=await read_queues(conn),
                samples=await read_samples(conn),
                profiles=await list_profiles(conn),
                targets=await read_targets(conn),
                latest=await latest_decisions(conn),
                decisions=await list_decisions(conn, limit=SHOWN_DECISIONS),
                hosts=await read_hosts(conn),
                hosts_wanted=await read_hosts_wanted(conn),
                health=health_of(health, has_event_log=self._has_event_log(), telemetry=self._telemetry()),
                pipelines=health.pipelines,
            )

    def _overview(self, seen: Seen, *, now_s: float) -> Overview:
        queues, failures = self._queues(
            seen.queues,
            seen.samples,
            seen.profiles,
            seen.buckets,
            pipelines=seen.pipelines,
            revision=seen.revision,
            now_s=now_s,
        )
        by_name = {queue.queue: queue for queue in queues}
        places = Places(seen.hosts, now_s=now_s)
        pools = [
            _pool(stored.in_force_at(now_s), by_name, failures, seen, places, now_s=now_s) for stored in seen.profiles
        ]
        self._ailing = (*ailing_pools(pool.state for pool in pools), *ailing_hosts(seen.hosts))
        return Overview(
            at_s=now_s,
            pools=pools,
            queues=queues,
            hosts=[HostOut.of(row) for row in seen.hosts],
            decisions=[DecisionOut.of(stored) for stored in seen.decisions],
            health=with_reasons(seen.health, self._ailing),
            hosts_wanted=[HostsWantedOut.of(each) for each in seen.hosts_wanted],
        )

    def _queues(
        self,
        queues: Mapping[str, str | None],
        samples: Mapping[str, QueueSample],
        profiles: Iterable[StoredProfile],
        buckets: Iterable[BucketRow],
        *,
        pipelines: Sequence[PipelineRow],
        revision: int,
        now_s: float,
    ) -> tuple[list[QueueOut], dict[str, Failures]]:
        with self._making:
            self._recent.take(buckets, revision=revision)
            age_s = measured_age_s(self._recent, pipelines, now_s=now_s)
            # What the pipeline has not come to is not known, and no zero: its figures stay those of where it is.
            self._recent.forget(now_s=now_s - (age_s or 0.0))
            in_force = [stored.profile for stored in profiles]
            return queues_of(queues, samples, in_force, self._recent, measured_age_s=age_s, now_s=now_s)


def queues_of(
    queues: Mapping[str, str | None],
    samples: Mapping[str, QueueSample],
    profiles: Iterable[Profile],
    recent: RecentBuckets,
    *,
    measured_age_s: float | None,
    now_s: float,
) -> tuple[list[QueueOut], dict[str, Failures]]:
    """Every queue with its newest depths, its failures, and rates and waits over the window of its pool's objective.

    Rates and waits are of ``measured_age_s`` ago, which is where the pipeline has come to.
    """
    found = list(profiles)
    objectives = {queue: profile.objective_of(queue) for profile in found for queue in profile.queues}
    limits = {queue: profile.failure_limit for profile in found for queue in profile.queues}
    until_s = now_s - (measured_age_s or 0.0)
    given, failures = [], {}
    for queue, pool in queues.items():
        objective, limit = objectives.get(queue, Objective()), limits.get(queue, FailureLimit())
        metrics = overlaid(recent.metrics(queue, now_s=until_s, objective=objective), samples.get(queue))
        failures[queue] = failures_of(recent.rows(queue), until_s=until_s, window_s=limit.window_s)
        given.append(
            QueueOut(
                queue=queue,
                pool=pool,
                objective=objectives.get(queue),
                sample_age_s=None if metrics.sampled_at_s is None else max(0.0, now_s - metrics.sampled_at_s),
                measured_age_s=measured_age_s,
                metrics=metrics,
                failures=failures_out([failures[queue]], limit, is_measured=measured_age_s is not None),
            )
        )
    return given, failures


def measured_age_s(recent: RecentBuckets, pipelines: Iterable[PipelineRow], *, now_s: float) -> float | None:
    """How old what the pipeline has measured is; ``None`` where it has measured nothing.

    A pipeline that keeps up is at the present also while nothing happens that it could measure.
    """
    if recent.measured_until_s is None:
        return None
    lags_s = [row.lag_s for row in pipelines if _ailing(row) is None]
    if lags_s:
        return min(max(0.0, now_s - recent.measured_until_s), *lags_s)
    # Of the bucket that it had come to, one that stands still may have seen no more than the beginning.
    return max(0.0, now_s - recent.measured_until_s + BUCKET_S)


def _pool(
    profile: Profile,
    queues: Mapping[str, QueueOut],
    failures: Mapping[str, Failures],
    seen: Seen,
    places: Places,
    *,
    now_s: float,
) -> PoolOut:
    nothing = [QueueMetrics(queue=queue) for queue in profile.queues]
    members = [queues[queue] for queue in profile.queues if queue in queues]
    together = pooled([member.metrics for member in members] or nothing)
    pool, latest = profile.pool, seen.latest.get(profile.pool)
    target_workers = seen.targets.get(pool)
    counts = Counts(
        running=seen.workers[pool, WorkerState.RUNNING],
        starting=seen.workers[pool, WorkerState.STARTING],
        draining=seen.workers[pool, WorkerState.DRAINING],
        backing_off=seen.workers[pool, WorkerState.BACKING_OFF],
        unknown=seen.workers[pool, None],
    )
    is_wanted = bool(together.waiting_jobs or target_workers or profile.workers_min or profile.pinned)
    condition = Condition(
        profile=profile,
        metrics=together,
        measured_age_s=max((m.measured_age_s for m in members if m.measured_age_s is not None), default=None),
        failures=[failures[queue] for queue in profile.queues if queue in failures],
        counts=counts,
        target_workers=target_workers,
        is_crash_looping=is_crash_looping(profile, counts, latest, places),
        no_host=no_host(profile, places) if is_wanted else None,
        now_s=now_s,
    )
    return PoolOut(
        pool=pool,
        mode=profile.mode_at(now_s),
        objective=profile.objective,
        queues=list(profile.queues),
        template=profile.template,
        workers_min=profile.workers_min,
        workers_max=profile.workers_max,
        state=state_of(condition),
        causes=causes_of(condition, decision=latest, places=places),
        target_workers=target_workers,
        running_workers=counts.running,
        starting_workers=counts.starting,
        draining_workers=counts.draining,
        failing_workers=counts.backing_off,
        unknown_workers=counts.unknown,
        reported_age_s=places.reported_age_s(profile),
        sample_age_s=condition.sample_age_s,
        measured_age_s=condition.measured_age_s,
        metrics=together,
        failures=failures_out(
            condition.failures, profile.failure_limit, is_measured=condition.measured_age_s is not None
        ),
        decided_at_s=latest.decided_at.timestamp() if latest else None,
        binding=latest.decision.binding if latest else None,
        predicted_pickup_s=latest.decision.predicted_pickup_s if latest else None,
        day_budget=latest.decision.day_budget if latest else None,
        notes=list(latest.decision.notes) if latest else [],
    )


def telemetry_of(ingest: Ingest, *, now_s: float) -> TelemetryHealth:
    """How telemetry comes in, and what waits for the pipeline."""
    waiting = ingest.unread.waiting
    return TelemetryHealth(
        refused=ingest.problem or ingest.unread.problem,
        flush_s=ingest.flush_s,
        unread_files=waiting.files,
        unread_bytes=waiting.size_bytes,
        oldest_unread_s=None if waiting.oldest_s is None else max(0.0, now_s - waiting.oldest_s),
    )


def health_of(row: HealthRow, *, has_event_log: bool, telemetry: TelemetryHealth | None = None) -> HealthOut:
    """The installation's condition, with a sentence for each thing that is not as it should be."""
    reasons = []
    if row.leader_age_s is None:
        reasons.append("no control plane has led yet: nothing is decided")
    elif row.leader_age_s > LEADER_SILENT_S:
        reasons.append(f"no control plane leads: the last one, {row.leader}, is silent for {row.leader_age_s:.0f} s")
    if not row.pipelines:
        reasons.append("no pipeline has written yet: nothing is measured; start `headway pipeline`")
    reasons += [reason for each in row.pipelines if (reason := _ailing(each)) is not None]
    if row.read_age_s is not None and row.read_age_s > READ_LATE_S:
        reasons.append(
            f"no queue that a profile names has been read for {row.read_age_s:.0f} s: "
            "see whether `headway collect` runs and reaches its broker"
        )
    if row.partition_days is not None and row.partition_days < PARTITION_DAYS_MIN:
        reasons.append(
            f"decisions can be stored for {max(0, row.partition_days)} days more: upkeep fails, most likely for want "
            "of a right in Postgres; see the control plane's log and docs/how-to/postgres-role.md"
        )
    if not has_event_log:
        reasons.append("the event log is not the one that this database knows: telemetry is refused")
    elif telemetry is not None and telemetry.refused is not None:
        reasons.append(f"telemetry is refused: {telemetry.refused}")
    elif telemetry is not None and (telemetry.oldest_unread_s or 0.0) > UNREAD_LATE_S:
        reasons.append(
            f"{telemetry.unread_files} files of events wait for the pipeline, the oldest for "
            f"{telemetry.oldest_unread_s:.0f} s"
        )
    return HealthOut(
        status="degraded" if reasons else "ok",
        reasons=reasons,
        event_log="ok" if has_event_log else "missing",
        leader=row.leader,
        leader_epoch=row.epoch,
        leader_age_s=row.leader_age_s,
        pipelines=[PipelineOut.model_validate(each, from_attributes=True) for each in row.pipelines],
        telemetry=telemetry,
    )


def with_reasons(health: HealthOut, reasons: Sequence[str]) -> HealthOut:
    """``health`` with more ``reasons`` why it is not as it should be."""
    if not reasons:
        return health
    return health.model_copy(update={"status": "degraded", "reasons": [*health.reasons, *reasons]})


def _ailing(row: PipelineRow) -> str | None:
    """What is not well with a pipeline; None of one that is well."""
    if row.stage == "stopped":
        return f"pipeline {row.pipeline} was stopped {row.written_age_s:.0f} s ago: start `headway pipeline`"
    if row.stage == "crashed":
        return (
            f"pipeline {row.pipeline} crashed {row.written_age_s:.0f} s ago: nothing is measured until it is restarted"
        )
    if row.beat_age_s is not None and row.beat_age_s > PIPELINE_UNHEARD_S:
        return (
            f"pipeline {row.pipeline} not responding: no heartbeat for {row.beat_age_s:.0f} s, so nothing is measured; "
            "it is stopped, hung or killed, and its log may say why"
        )
    if row.stage == "restarting":
        return f"pipeline {row.pipeline} crashed, restarting: nothing is measured until it is ready"
    if row.is_ready:
        if row.lag_s <= PIPELINE_BEHIND_S:
            return None
        return f"pipeline {row.pipeline} has not written for {row.lag_s:.0f} s while samples arrive"
    if row.written_age_s > PIPELINE_SILENT_S:
        return (
            f"pipeline {row.pipeline} has said nothing for {row.written_age_s:.0f} s since it was "
            f"{row.stage.replace('_', ' ')}: see its log"
        )
    return f"pipeline {row.pipeline} is {row.stage.replace('_', ' ')}: nothing is measured yet"
