"""What people are shown, put together from what the store holds: the dashboard's one snapshot, queues, a history."""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from headway.control.filling import Filling
from headway.control.http.answers import (
    BucketPoint,
    DecisionOut,
    HealthOut,
    HostOut,
    Overview,
    PipelineOut,
    PoolOut,
    PoolState,
    QueueOut,
    ServiceTimePoint,
    TelemetryHealth,
)
from headway.control.http.host_signal_answers import HostsWantedOut
from headway.control.ingest import Ingest
from headway.control.recent import KEPT_S, RecentBuckets
from headway.scaling.hosts_wanted import HostsWanted
from headway.scaling.measure import BucketRow, merged, quantile_s, sketch_value_s
from headway.scaling.model import Objective, QueueMetrics, QueueSample, WorkerState
from headway.scaling.profile import Profile
from headway.scaling.view import aged, overlaid, pooled
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
AT_RISK_FRACTION = 0.7  # of the objective's seconds that the oldest job has waited
LEADER_SILENT_S = 10.0  # a standby ends a leader silent for 8 s
PIPELINE_BEHIND_S = 15.0  # three buckets
PIPELINE_SILENT_S = 180.0  # longer than a warm-up may take without a word
READ_LATE_S = 60.0  # collectors read every few seconds
UNREAD_LATE_S = 60.0  # a batch takes a second


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
        self._making = threading.Lock()  # who gives up leaves a thread behind that still works on what is remembered

    async def json(self) -> str:
        """The overview of this moment, as JSON."""
        return await self._shown(Overview.model_dump_json)

    async def overview(self) -> Overview:
        """The overview of this moment."""
        return await self._shown(lambda overview: overview)

    async def queues(self, *, pool: str | None) -> tuple[float, list[QueueOut]]:
        """Every queue, or those of ``pool``, and of when that is."""
        async with self._turn:
            now_s = self._clock()
            await self._filling.keep_up(self._engine, self._recent, now_s=now_s)
            async with snapshot(self._engine) as conn:
                buckets, revision = await read_buckets(
                    conn, from_s=now_s - KEPT_S, after_revision=self._recent.revision
                )
                queues, samples, profiles = await read_queues(conn), await read_samples(conn), await list_profiles(conn)
            asked = {queue: owner for queue, owner in queues.items() if pool is None or owner == pool}
            return now_s, await asyncio.to_thread(
                self._queues, asked, samples, profiles, buckets, revision=revision, now_s=now_s
            )

    async def _shown(self, show: Callable[[Overview], Shown]) -> Shown:
        async with self._turn:
            now_s = self._clock()
            await self._filling.keep_up(self._engine, self._recent, now_s=now_s)
            seen = await self._look(now_s)
            return await asyncio.to_thread(lambda: show(self._overview(seen, now_s=now_s)))

    async def _look(self, now_s: float) -> Seen:
        async with snapshot(self._engine) as conn:
            buckets, revision = await read_buckets(conn, from_s=now_s - KEPT_S, after_revision=self._recent.revision)
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
                health=health_of(
                    await read_health(conn), has_event_log=self._has_event_log(), telemetry=self._telemetry()
                ),
            )

    def _overview(self, seen: Seen, *, now_s: float) -> Overview:
        queues = self._queues(
            seen.queues, seen.samples, seen.profiles, seen.buckets, revision=seen.revision, now_s=now_s
        )
        metrics = {queue.queue: queue.metrics for queue in queues}
        return Overview(
            at_s=now_s,
            pools=[_pool(stored.in_force_at(now_s), metrics, seen, now_s=now_s) for stored in seen.profiles],
            queues=queues,
            hosts=[HostOut.of(row) for row in seen.hosts],
            decisions=[DecisionOut.of(stored) for stored in seen.decisions],
            health=seen.health,
            hosts_wanted=[HostsWantedOut.of(each) for each in seen.hosts_wanted],
        )

    def _queues(
        self,
        queues: Mapping[str, str | None],
        samples: Mapping[str, QueueSample],
        profiles: Iterable[StoredProfile],
        buckets: Iterable[BucketRow],
        *,
        revision: int,
        now_s: float,
    ) -> list[QueueOut]:
        with self._making:
            self._recent.forget(now_s=now_s)
            self._recent.take(buckets, revision=revision)
            return queues_of(queues, samples, [stored.profile for stored in profiles], self._recent, now_s=now_s)


def queues_of(
    queues: Mapping[str, str | None],
    samples: Mapping[str, QueueSample],
    profiles: Iterable[Profile],
    recent: RecentBuckets,
    *,
    now_s: float,
) -> list[QueueOut]:
    """Every queue with its newest depths, and rates and waits over the window of its pool's objective."""
    objectives = {queue: profile.objective_of(queue) for profile in profiles for queue in profile.queues}
    given = []
    for queue, pool in queues.items():
        objective = objectives.get(queue, Objective())
        metrics = overlaid(recent.metrics(queue, now_s=now_s, objective=objective), samples.get(queue))
        age_s = None if metrics.sampled_at_s is None else max(0.0, now_s - metrics.sampled_at_s)
        given.append(QueueOut(queue=queue, pool=pool, sample_age_s=age_s, metrics=metrics))
    return given


def _pool(profile: Profile, metrics: Mapping[str, QueueMetrics], seen: Seen, *, now_s: float) -> PoolOut:
    together = pooled([metrics.get(queue, QueueMetrics(queue=queue)) for queue in profile.queues])
    pool = profile.pool
    starting, running = (seen.workers[pool, state] for state in (WorkerState.STARTING, WorkerState.RUNNING))
    target_workers = seen.targets.get(pool)
    is_scaling = starting > 0 or target_workers not in {None, running}
    latest = seen.latest.get(pool)
    return PoolOut(
        pool=pool,
        mode=profile.mode_at(now_s),
        objective=profile.objective,
        queues=list(profile.queues),
        template=profile.template,
        workers_min=profile.workers_min,
        workers_max=profile.workers_max,
        state=state_of(profile, together, target_workers=target_workers, is_scaling=is_scaling, now_s=now_s),
        target_workers=target_workers,
        running_workers=running,
        starting_workers=starting,
        draining_workers=seen.workers[pool, WorkerState.DRAINING],
        failing_workers=seen.workers[pool, WorkerState.BACKING_OFF],
        unknown_workers=seen.workers[pool, None],
        metrics=together,
        decided_at_s=latest.decided_at.timestamp() if latest else None,
        predicted_pickup_s=latest.decision.predicted_pickup_s if latest else None,
        notes=list(latest.decision.notes) if latest else [],
    )


def state_of(
    profile: Profile, metrics: QueueMetrics, *, target_workers: int | None, is_scaling: bool, now_s: float
) -> PoolState:
    """The one word for a pool: the worst thing that is true of it."""
    if metrics.sampled_at_s is None:
        return "unseen"
    if now_s - metrics.sampled_at_s > profile.stale_after_s:
        return "stale"
    oldest_age_s = aged(metrics, now_s=now_s).oldest_age_s or 0.0
    if oldest_age_s > profile.objective.target_s:
        return "breaching"
    # The promise is about a window: it stays broken until the window has passed, although nobody waits too long now.
    if (metrics.pickup_objective_s or 0.0) > profile.objective.target_s:
        return "recovering"
    if oldest_age_s > AT_RISK_FRACTION * profile.objective.target_s:
        return "at_risk"
    if is_scaling:
        return "scaling"
    return "idle" if target_workers == 0 and not metrics.waiting_jobs else "on_time"


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


def _ailing(row: PipelineRow) -> str | None:
    """What is not well with a pipeline; None of one that is well."""
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


def bucket_points(rows: Iterable[BucketRow]) -> list[BucketPoint]:
    """One point for each 5 s in which any queue of a pool has a row, oldest first."""
    by_time: dict[float, list[BucketRow]] = defaultdict(list)
    for row in rows:
        by_time[row.bucket_s].append(row)
    return [_point(at_s, together) for at_s, together in sorted(by_time.items())]


def _point(at_s: float, rows: list[BucketRow]) -> BucketPoint:
    waiting_jobs = [row.waiting_jobs for row in rows if row.waiting_jobs is not None]
    ages_s = [row.oldest_age_s for row in rows if row.oldest_age_s is not None]
    return BucketPoint(
        at_s=at_s,
        waiting_jobs=sum(waiting_jobs) if waiting_jobs else None,
        oldest_age_s=max(ages_s, default=None),
        pickup_p95_s=quantile_s(merged(row.pickup_sketch for row in rows), 95),
        arrived_jobs=sum(row.arrived_jobs for row in rows),
        started_jobs=sum(row.started_jobs for row in rows),
    )


def service_times(rows: Iterable[BucketRow]) -> list[ServiceTimePoint]:
    """How long the jobs that ended took, shortest first."""
    sketch = merged(row.service_sketch for row in rows)
    return [ServiceTimePoint(service_s=sketch_value_s(index), jobs=sketch[index]) for index in sorted(sketch)]
