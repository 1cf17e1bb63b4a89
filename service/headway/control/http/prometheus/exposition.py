"""The overview in the words of Prometheus. What is not known has no sample: it is not zero."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headway.control.http.connections import WHY
from headway.control.http.dependencies import WithContext
from headway.control.http.problems import declared
from headway.control.http.prometheus.behaviour_metrics import Measured, of_behaviours
from headway.control.http.prometheus.gauges import gauge
from headway.control.http.prometheus.series_limits import Left
from headway.control.http.schemas.host_demand_responses import HostsWantedOut
from headway.control.http.schemas.responses import HealthOut, HostOut, Overview, PoolOut, QueueOut
from headway.control.ingest.ingest import IngestCounts
from headway.scaling.model import HostState
from headway.store.engine import transaction
from headway.store.pools.behaviours import read_summaries, read_timings

QUEUE_SERIES = 8  # of each queue
SILENT = "silent"  # of hosts: no lease, so nobody knows what it runs

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    operation_id="get_prometheus_metrics",
    summary="Read the overview as Prometheus does",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **declared()},
)
async def get_prometheus_metrics(context: WithContext) -> Response:
    """Pools, queues, hosts, the host signal, the leader and the pipelines as gauges of this moment.

    Beside these, what this control plane's ingest has counted since it began.
    """
    overview = await context.overviews.overview()
    series_max, refused = context.bounds.metrics_series_max, dict(context.ingest.names.refused)
    async with transaction(context.engine) as conn:
        measured = Measured(pools=await read_summaries(conn), templates=await read_timings(conn))
    # Ten thousand queues are eighty thousand samples: ticks and polls must not wait for them.
    seen = _Seen(
        overview,
        replace(context.ingest.counts),
        measured,
        refused=refused,
        refusals=dict(context.callers.throttle.refusals),
        failed_sign_ins=context.callers.attempts.failed,
        ended_connections=dict(context.connections.ended),
        series_max=series_max,
    )
    exposed = await asyncio.to_thread(_exposed, seen)
    return Response(exposed, media_type=CONTENT_TYPE_LATEST)


def _exposed(seen: "_Seen") -> bytes:
    registry = CollectorRegistry()
    registry.register(seen)
    return generate_latest(registry)


class _Seen(Collector):
    """One overview, for one answer."""

    def __init__(
        self,
        overview: Overview,
        counts: IngestCounts,
        measured: Measured,
        *,
        refused: Mapping[str, int],
        refusals: Mapping[tuple[str, str], int],
        failed_sign_ins: int,
        ended_connections: Mapping[str, int],
        series_max: int,
    ) -> None:
        self._overview = overview
        self._counts = counts
        self._measured = measured
        self._refused = refused
        self._refusals = refusals
        self._failed_sign_ins = failed_sign_ins
        self._ended_connections = ended_connections
        self._series_max = series_max

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        """What must not be missing first: where there is no room for all, queues go, those of no pool before others."""
        seen = self._overview
        left = Left(self._series_max)
        yield from left.cut(_of_health(seen.health))
        yield from left.cut(_of_ingest(self._counts))
        yield _refused(self._refused)
        yield _refusals(self._refusals)
        yield CounterMetricFamily(
            "headway_failed_sign_ins", "Tokens and credentials shown that are not valid.", value=self._failed_sign_ins
        )
        yield _ended_connections(self._ended_connections)
        yield from left.cut(_of_hosts(seen.hosts))
        yield from left.cut(_of_hosts_wanted(seen.hosts_wanted, now_s=seen.at_s))
        yield from left.cut(_of_pools(seen.pools, now_s=seen.at_s))
        yield from left.cut([_forced(seen.hosts)])
        yield from left.cut(of_behaviours(self._measured))
        yield from left.shown(_of_queues(left.whole(seen.queues, series_each=QUEUE_SERIES)))
        yield gauge(
            "headway_metrics_omitted_series",
            f"Series left out of this answer: HEADWAY_METRICS_SERIES allows {self._series_max}.",
            (),
            [((), left.omitted)],
        )


def _of_pools(pools: Sequence[PoolOut], *, now_s: float) -> Iterator[GaugeMetricFamily]:
    yield gauge(
        "headway_pool_target_workers",
        "Target number of workers of the pool.",
        ("pool",),
        [((pool.pool,), pool.target_workers) for pool in pools],
    )
    yield gauge(
        "headway_pool_workers",
        "Workers of the pool by state; unknown ones are on unreachable hosts.",
        ("pool", "state"),
        [
            ((pool.pool, state), count)
            for pool in pools
            for state, count in (
                ("running", pool.running_workers),
                ("starting", pool.starting_workers),
                ("draining", pool.draining_workers),
                ("backing_off", pool.failing_workers),
                ("unknown", pool.unknown_workers),
            )
        ],
    )
    yield gauge(
        "headway_pool_objective_seconds",
        "Target pickup time of the pool's objective.",
        ("pool",),
        [((pool.pool,), pool.objective.target_s) for pool in pools],
    )
    yield gauge(
        "headway_pool_pickup_seconds",
        "Pickup time at the objective's percentile, over the objective's window.",
        ("pool",),
        [((pool.pool,), pool.metrics.pickup_objective_s) for pool in pools],
    )
    yield gauge(
        "headway_pool_decided_age_seconds",
        "Since a decision for the pool was stored; unchanged ones are every few minutes.",
        ("pool",),
        [((pool.pool,), None if pool.decided_at_s is None else max(0.0, now_s - pool.decided_at_s)) for pool in pools],
    )
    for name, help_text, values in (
        ("reported_age_seconds", "Since agents reported the pool's workers.", [pool.reported_age_s for pool in pools]),
        (
            "measured_age_seconds",
            "How old rates and pickup times are.",
            [pool.measured_age_s for pool in pools],
        ),
        (
            "failure_share",
            "Of the jobs that ended in the failure limit's window, those that failed.",
            [pool.failures.share if pool.failures else None for pool in pools],
        ),
        (
            "failed_jobs",
            "Jobs that failed in the failure limit's window.",
            [pool.failures.failed_jobs if pool.failures else None for pool in pools],
        ),
        ("lost_jobs", "Waiting jobs that left lately without having been started.", [p.lost_jobs for p in pools]),
    ):
        yield gauge(
            f"headway_pool_{name}", help_text, ("pool",), zip(((pool.pool,) for pool in pools), values, strict=True)
        )
    yield from _of_budgets(pools)
    yield gauge(
        "headway_pool_state",
        "1 for the state that the dashboard shows for the pool.",
        ("pool", "state"),
        [((pool.pool, pool.state), 1) for pool in pools],
    )


def _of_budgets(pools: Sequence[PoolOut]) -> Iterator[GaugeMetricFamily]:
    budgets = [((pool.pool,), pool.day_budget) for pool in pools]
    for name, help_text, figure in (
        ("budget", "What the day's budget pays for.", "budget_worker_s"),
        ("paid", "What of the day's budget is paid.", "paid_worker_s"),
        ("overrun", "What is paid beyond the day's budget, for jobs that ran when it was spent.", "overrun_worker_s"),
    ):
        values = [(pool, None if spent is None else getattr(spent, figure)) for pool, spent in budgets]
        yield gauge(f"headway_pool_day_{name}_worker_seconds", help_text, ("pool",), values)


def _of_queues(queues: Sequence[QueueOut]) -> Iterator[GaugeMetricFamily]:
    names = [(queue.queue, queue.pool or "") for queue in queues]
    for name, help_text, values in (
        ("waiting_jobs", "Jobs that could be taken now.", [queue.metrics.waiting_jobs for queue in queues]),
        ("in_flight_jobs", "Jobs taken and not finished.", [queue.metrics.in_flight_jobs for queue in queues]),
        ("oldest_age_seconds", "Age of the oldest waiting job.", [queue.metrics.oldest_age_s for queue in queues]),
        ("sample_age_seconds", "Since the broker was last read.", [queue.sample_age_s for queue in queues]),
        ("arrivals_per_second", "Jobs that arrive.", [queue.metrics.arrival_rate_per_s for queue in queues]),
        ("completions_per_second", "Jobs that end.", [queue.metrics.completion_rate_per_s for queue in queues]),
        ("failures_per_second", "Jobs that fail.", [queue.metrics.failure_rate_per_s for queue in queues]),
        ("service_seconds", "Mean time from start to end.", [queue.metrics.service_time_s for queue in queues]),
    ):
        yield gauge(f"headway_queue_{name}", help_text, ("queue", "pool"), zip(names, values, strict=True))


def _of_hosts(hosts: Iterable[HostOut]) -> Iterator[GaugeMetricFamily]:
    counts = dict.fromkeys((*(state.value for state in HostState), SILENT), 0)
    for host in hosts:
        counts[host.state.value if host.is_known else SILENT] += 1
    yield gauge(
        "headway_hosts",
        "Hosts by state; those that are silent have not reported within their lease.",
        ("state",),
        [((state,), count) for state, count in counts.items()],
    )


def _forced(hosts: Iterable[HostOut]) -> CounterMetricFamily:
    family = CounterMetricFamily(
        "headway_host_forced_workers",
        "Workers that had not finished by their drain deadline and were ended by force.",
        labels=("host", "pool"),
    )
    for host in hosts:
        for pool, workers in host.forced_workers.items():
            family.add_metric((host.name, pool), workers)
    return family


def _of_hosts_wanted(wanted: Sequence[HostsWantedOut], *, now_s: float) -> Iterator[GaugeMetricFamily]:
    names = [
        (
            each.sign.value,
            ",".join(each.templates),
            ",".join(f"{key}={each.labels[key]}" for key in sorted(each.labels)),
        )
        for each in wanted
    ]
    for name, help_text, values in (
        ("hosts_wanted", "Hosts that are missing or spare.", [each.hosts for each in wanted]),
        ("hosts_wanted_workers", "Workers without a place.", [each.workers for each in wanted]),
        ("hosts_wanted_seconds", "For how long that has been so.", [max(0.0, now_s - each.since_s) for each in wanted]),
    ):
        yield gauge(f"headway_{name}", help_text, ("sign", "templates", "labels"), zip(names, values, strict=True))


def _of_health(health: HealthOut) -> Iterator[GaugeMetricFamily]:
    yield gauge("headway_healthy", "1 where health is ok, 0 where degraded.", (), [((), health.status == "ok")])
    yield gauge(
        "headway_health_reason",
        "1 for each kind of reason for which health is degraded.",
        ("reason",),
        [((kind,), 1) for kind in dict.fromkeys(health.kinds)],
    )
    yield gauge("headway_leader_epoch", "The epoch of the leader.", (), [((), health.leader_epoch)])
    yield gauge("headway_leader_silent_seconds", "Since the leader's last heartbeat.", (), [((), health.leader_age_s)])
    yield gauge(
        "headway_pipeline_lag_seconds",
        "How long something newer has waited for the pipeline.",
        ("pipeline",),
        [((each.pipeline,), each.lag_s) for each in health.pipelines],
    )
    yield gauge(
        "headway_pipeline_beat_age_seconds",
        "Since the pipeline's last heartbeat; it sends one a second.",
        ("pipeline",),
        [((each.pipeline,), each.beat_age_s) for each in health.pipelines],
    )
    if health.telemetry is not None:
        yield gauge(
            "headway_telemetry_unread_files",
            "Files of events that wait for the pipeline.",
            (),
            [((), health.telemetry.unread_files)],
        )


def _refused(refused: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(
        "headway_refused_names",
        "Items of queues, batches of producers, and reports of workers, that were refused because there is no room.",
        labels=("kind",),
    )
    for kind in ("queues", "producers", "workers"):
        family.add_metric((kind,), refused.get(kind, 0))
    return family


def _refusals(refusals: Mapping[tuple[str, str], int]) -> CounterMetricFamily:
    family = CounterMetricFamily("headway_refusals", "Requests and calls that were refused.", labels=("port", "status"))
    for which, count in refusals.items():
        family.add_metric(which, count)
    return family


def _ended_connections(ended: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(
        "headway_http_ended_connections",
        "Connections of the HTTP port that were ended for want of room, of the rest of a request, or of a reader.",
        labels=("reason",),
    )
    for reason in WHY:
        family.add_metric((reason,), ended.get(reason, 0))
    return family


def _of_ingest(counts: IngestCounts) -> Iterator[CounterMetricFamily]:
    for name, help_text, count in (
        ("batches", "Batches of telemetry that came and were kept, sent again ones included.", counts.batches),
        ("duplicate_batches", "Batches that had been kept before.", counts.duplicates),
        ("failed_batches", "Batches that could not be kept; their producers send them again.", counts.failed_batches),
        ("events", "Job events that were kept.", counts.events),
        ("samples", "Readings of queues that were kept.", counts.samples),
        ("dropped_events", "Job events that their producers lost for want of room.", counts.dropped_events),
        ("corrected_times", "Times that could not be true and were corrected.", counts.corrected_times),
    ):
        yield CounterMetricFamily(f"headway_ingest_{name}", help_text, value=count)
