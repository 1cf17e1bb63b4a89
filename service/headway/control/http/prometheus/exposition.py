"""The overview in the words of Prometheus. What is not known has no sample: it is not zero."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastapi import Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headway.control.http.dependencies import WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.prometheus.behaviour_metrics import of_behaviours
from headway.control.http.prometheus.gauges import Figures, counter, gauge, gauges
from headway.control.http.prometheus.job_metrics import (
    COUNTER_SERIES,
    HISTOGRAM_SERIES,
    Jobs,
    of_durations,
    of_jobs,
    of_objectives,
)
from headway.control.http.prometheus.refusal_metrics import of_refusals
from headway.control.http.prometheus.series_limits import Left
from headway.control.http.schemas.responses import (
    HealthOut,
    HostOut,
    HostsWantedOut,
    Overview,
    PipelineOut,
    PoolGroupOut,
    PoolOut,
    QueueOut,
)
from headway.control.ingest.ingest import IngestCounts
from headway.scaling.model import DayBudget, HostState
from headway.store.engine import transaction
from headway.store.overview import read_samples
from headway.store.pools.behaviours import read_summaries, read_timings

SILENT = "silent"  # of hosts: no lease, so nobody knows what it runs

router = operations(tags=["health"])


@router.get(
    "/metrics",
    summary="Read the overview as Prometheus does",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **declared()},
)
async def get_prometheus_metrics(context: WithContext) -> Response:
    """Pools, queues, hosts, the host signal, the leader and the pipelines as gauges of this moment.

    Beside these, what jobs of each queue did since they were first counted, which no restart sets back, and what this
    control plane's ingest has counted since it began.
    """
    overview = await context.overviews.overview()
    async with transaction(context.engine) as conn:
        summaries, timings = await read_summaries(conn), await read_timings(conn)
        samples = await read_samples(conn)
    totals, attained = await context.totals.totals(), await context.totals.attained()
    seen = _Seen(
        overview=overview,
        ingested=list(_of_ingest(context.ingest.counts)),  # read here: they grow on this thread
        refusals=list(of_refusals(context)),
        behaviours=of_behaviours(summaries, timings),
        jobs=Jobs(totals=totals, samples=samples, attained=attained),
        series_max=context.bounds.metrics_series_max,
    )
    # Ten thousand queues are eighty thousand samples: ticks and polls must not wait for them.
    registry = CollectorRegistry()
    registry.register(seen)
    return Response(await asyncio.to_thread(generate_latest, registry), media_type=CONTENT_TYPE_LATEST)


@dataclass(kw_only=True, eq=False)
class _Seen(Collector):
    """One overview, for one answer."""

    overview: Overview
    ingested: Iterable[Metric]
    refusals: Iterable[Metric]
    behaviours: Iterable[Metric]
    jobs: Jobs
    series_max: int

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        """What must not be missing first: where there is no room for all, queues go, those of no pool before others."""
        seen = self.overview
        left = Left(self.series_max)
        yield from left.cut(_of_health(seen.health))
        yield from left.cut(self.ingested)
        yield from self.refusals
        yield from left.cut(_of_hosts(seen.hosts))
        yield from left.cut(_of_hosts_wanted(seen.hosts_wanted, now_s=seen.at_s))
        yield from left.cut(_of_pools(seen.pools, now_s=seen.at_s))
        yield from left.cut(_of_groups(seen.pools))
        yield from left.cut([_forced(seen.hosts), _certificates(seen.hosts)])
        yield from left.cut(of_objectives(self.jobs, seen.pools))
        yield from left.cut(self.behaviours)
        queues = [
            ((queue.queue, queue.pool or ""), queue) for queue in left.whole(seen.queues, series_each=len(OF_QUEUES))
        ]
        yield from left.shown(gauges("headway_queue", ("queue", "pool"), queues, OF_QUEUES))
        counted_queues = [queue for queue in seen.queues if queue.queue in self.jobs.totals]
        yield from left.shown(of_jobs(self.jobs, left.whole(counted_queues, series_each=COUNTER_SERIES)))
        yield from left.shown(of_durations(self.jobs, left.whole(counted_queues, series_each=HISTOGRAM_SERIES)))
        yield gauge(
            "headway_metrics_omitted_series",
            f"Series left out of this answer: HEADWAY_METRICS_SERIES allows {self.series_max}.",
            (),
            [((), left.omitted)],
        )


def _of_pools(pools: Sequence[PoolOut], *, now_s: float) -> Iterator[GaugeMetricFamily]:
    rows = [((pool.pool,), pool) for pool in pools]
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
            if count is not None
        ],
    )
    yield from gauges("headway_pool", ("pool",), rows, OF_POOLS)
    yield gauge(
        "headway_pool_decided_age_seconds",
        "Since a decision for the pool was stored; unchanged ones are every few minutes.",
        ("pool",),
        [(which, None if pool.decided_at_s is None else max(0.0, now_s - pool.decided_at_s)) for which, pool in rows],
    )
    spent = [((pool.pool,), pool.day_budget) for pool in pools if pool.day_budget is not None]
    yield from gauges("headway_pool_day", ("pool",), spent, OF_BUDGETS)
    yield gauge(
        "headway_pool_state",
        "1 for the state that the dashboard shows for the pool.",
        ("pool", "state"),
        [((pool.pool, pool.state), 1) for pool in pools],
    )


OF_POOLS: Figures[PoolOut] = (
    ("target_workers", "Target number of workers of the pool.", lambda pool: pool.target_workers),
    ("ceiling_workers", "The most workers that the pool's profile allows.", lambda pool: pool.workers_max),
    ("objective_seconds", "Target pickup time of the pool's objective.", lambda pool: pool.objective.target_s),
    (
        "pickup_seconds",
        "Pickup time at the objective's percentile, over the objective's window.",
        lambda pool: pool.metrics.pickup_objective_s,
    ),
    (
        "oldest_wait_ratio",
        "Age of a queue's oldest job as a part of that queue's own objective; the greatest of the pool's queues.",
        lambda pool: None if pool.oldest_wait is None else pool.oldest_wait.used,
    ),
    (
        "pickup_ratio",
        "Pickup time of a queue as a part of that queue's own objective; the greatest of the pool's queues.",
        lambda pool: None if pool.pickup_wait is None else pool.pickup_wait.used,
    ),
    ("reported_age_seconds", "Since agents reported the pool's workers.", lambda pool: pool.reported_age_s),
    ("measured_age_seconds", "How old rates and pickup times are.", lambda pool: pool.measured_age_s),
    (
        "failure_share",
        "Of the jobs that ended in the failure limit's window, those that failed.",
        lambda pool: None if pool.failures is None else pool.failures.share,
    ),
    (
        "failed_jobs",
        "Jobs that failed in the failure limit's window.",
        lambda pool: None if pool.failures is None else pool.failures.failed_jobs,
    ),
    (
        "retried_jobs",
        "Attempts in the failure limit's window that failed and are followed by another one.",
        lambda pool: None if pool.failures is None else pool.failures.retried_jobs,
    ),
    ("lost_jobs", "Waiting jobs that left lately without having been started.", lambda pool: pool.lost_jobs),
    (
        "perhaps_lost_jobs",
        "Waiting jobs that left lately while workers ran, expired or lost.",
        lambda pool: pool.perhaps_lost_jobs,
    ),
    (
        "overdue_workers",
        "Workers that drain for more than three times as long as 99 % of the jobs take.",
        lambda pool: pool.overdue_workers,
    ),
    ("day_late_jobs", "Jobs that have started late since 00:00 UTC.", lambda pool: pool.day_late_jobs),
    (
        "day_late_jobs_allowed",
        "How many may, on a day with as many jobs as there are yet or were yesterday.",
        lambda pool: pool.day_late_jobs_allowed,
    ),
    ("unheld_jobs", "Jobs that are taken and that no worker has.", lambda pool: pool.unheld_jobs),
    ("unable_workers", "Workers that are there and take no jobs.", lambda pool: pool.unable_workers),
    ("cut_jobs", "Jobs that ends of workers have cut in the last 15 minutes.", lambda pool: pool.cut_jobs),
    ("poison_jobs", "Jobs whose workers died with them three times or more.", lambda pool: len(pool.poison_jobs)),
    (
        "perhaps_cut_jobs",
        "Workers that may have lost a job in the last 15 minutes.",
        lambda pool: pool.perhaps_cut_jobs,
    ),
)
OF_BUDGETS: Figures[DayBudget] = (
    ("budget_worker_seconds", "What the day's budget pays for.", lambda spent: spent.budget_worker_s),
    ("paid_worker_seconds", "What of the day's budget is paid.", lambda spent: spent.paid_worker_s),
    (
        "overrun_worker_seconds",
        "What is paid beyond the day's budget, for jobs that ran when it was spent.",
        lambda spent: spent.overrun_worker_s,
    ),
)
OF_QUEUES: Figures[QueueOut] = (
    ("waiting_jobs", "Jobs that could be taken now.", lambda queue: queue.metrics.waiting_jobs),
    ("in_flight_jobs", "Jobs taken and not finished.", lambda queue: queue.metrics.in_flight_jobs),
    (
        "in_flight_min_jobs",
        "Jobs taken and not finished at least, where the number is not known.",
        lambda queue: queue.metrics.in_flight_min_jobs,
    ),
    ("oldest_age_seconds", "Age of the oldest waiting job.", lambda queue: queue.metrics.oldest_age_s),
    (
        "objective_seconds",
        "Target pickup time of the queue's own objective, else of its pool's.",
        lambda queue: None if queue.objective is None else queue.objective.target_s,
    ),
    (
        "pickup_seconds",
        "Pickup time at the percentile of the queue's objective, over the objective's window.",
        lambda queue: queue.metrics.pickup_objective_s,
    ),
    ("sample_age_seconds", "Since the broker was last read.", lambda queue: queue.sample_age_s),
    ("arrivals_per_second", "Jobs that arrive.", lambda queue: queue.metrics.arrival_rate_per_s),
    ("completions_per_second", "Jobs that end.", lambda queue: queue.metrics.completion_rate_per_s),
    ("failures_per_second", "Jobs whose last attempt fails.", lambda queue: queue.metrics.failure_rate_per_s),
    ("service_seconds", "Mean time from start to end.", lambda queue: queue.metrics.service_time_s),
)


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
    return counter(
        "headway_host_forced_workers",
        "Workers that had not finished by their drain deadline and were ended by force.",
        ("host", "pool"),
        [((host.name, pool), workers) for host in hosts for pool, workers in host.forced_workers.items()],
    )


def _certificates(hosts: Iterable[HostOut]) -> GaugeMetricFamily:
    return gauge(
        "headway_host_certificate_left_seconds",
        "Until the certificate ends that the host's agent last showed; below 0 once it has.",
        ("host",),
        [((host.name,), host.certificate_left_s) for host in hosts],
    )


def _of_groups(pools: Sequence[PoolOut]) -> Iterator[GaugeMetricFamily]:
    groups = {group.name: group for pool in pools for group in pool.groups}
    rows = [((each.name, "slots" if each.is_in_slots else "workers"), each) for _, each in sorted(groups.items())]
    figures: Figures[PoolGroupOut] = (
        ("cap", "The most workers or slots of all pools of the group together.", lambda each: each.cap),
        (
            "used",
            "Workers or slots of its pools, those that start, drain or are unknown included.",
            lambda each: each.used,
        ),
    )
    yield from gauges("headway_group", ("group", "unit"), rows, figures)


def _of_hosts_wanted(wanted: Sequence[HostsWantedOut], *, now_s: float) -> Iterator[GaugeMetricFamily]:
    rows = [
        (
            (
                ",".join(each.templates),
                ",".join(f"{key}={each.labels[key]}" for key in sorted(each.labels)),
            ),
            each,
        )
        for each in wanted
    ]
    figures: Figures[HostsWantedOut] = (
        ("wanted", "Hosts that are missing.", lambda each: each.hosts),
        ("wanted_workers", "Workers without a place.", lambda each: each.workers),
        ("wanted_seconds", "For how long that has been so.", lambda each: max(0.0, now_s - each.since_s)),
    )
    yield from gauges("headway_hosts", ("templates", "labels"), rows, figures)


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
    figures: Figures[PipelineOut] = (
        ("lag_seconds", "How long something newer has waited for the pipeline.", lambda each: each.lag_s),
        (
            "beat_age_seconds",
            "Since the pipeline's last heartbeat; it sends one a second.",
            lambda each: each.beat_age_s,
        ),
    )
    pipelines = [((each.pipeline,), each) for each in health.pipelines]
    yield from gauges("headway_pipeline", ("pipeline",), pipelines, figures)
    if health.telemetry is not None:
        yield gauge(
            "headway_telemetry_unread_files",
            "Files of events that wait for the pipeline.",
            (),
            [((), health.telemetry.unread_files)],
        )


def _of_ingest(counts: IngestCounts) -> Iterator[CounterMetricFamily]:
    for name, help_text, count in (
        ("batches", "Batches of telemetry that came and were kept, sent again ones included.", counts.batches),
        ("duplicate_batches", "Batches that had been kept before.", counts.duplicates),
        ("failed_batches", "Batches that could not be kept; their producers send them again.", counts.failed_batches),
        ("events", "Job events that were kept.", counts.events),
        ("samples", "Readings of queues that were kept.", counts.samples),
        ("dropped_events", "Job events that their producers lost for want of room.", counts.dropped_events),
        ("repeated_events", "Job events that another source had reported.", counts.repeated_events),
        ("standby_samples", "Readings of collectors that stand by beside another one.", counts.standby_samples),
        ("corrected_times", "Times that could not be true and were corrected.", counts.corrected_times),
    ):
        yield CounterMetricFamily(f"headway_ingest_{name}", help_text, value=count)
