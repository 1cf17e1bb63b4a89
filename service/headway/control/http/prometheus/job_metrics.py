"""What jobs did since they were first counted, and whether objectives were met, in the words of Prometheus."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from headway.control.http.overview.totals_cache import ATTAINED_WINDOWS
from headway.control.http.prometheus.gauges import counter, gauge
from headway.control.http.schemas.responses import PoolOut, QueueOut
from headway.scaling.metrics.attainment import Attained, error_budget
from headway.scaling.metrics.job_totals import SERVICE_BOUNDS_S, WAIT_BOUNDS_S, JobTotals, within
from headway.scaling.model import QueueSample

COUNTER_SERIES = 7
HISTOGRAM_SERIES = len(WAIT_BOUNDS_S) + len(SERVICE_BOUNDS_S) + 1 + 2 * 3
"""Of a queue: its buckets, the objective's among them, the one without a bound, the sum and the count of both."""

Row = tuple[tuple[str, str], QueueOut, JobTotals]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """What was counted of all queues and pools."""

    totals: Mapping[str, JobTotals] = field(default_factory=dict)
    """By queue."""
    samples: Mapping[str, QueueSample] = field(default_factory=dict)
    attained: Mapping[str, tuple[Attained, ...]] = field(default_factory=dict)
    """By pool, of each of ``ATTAINED_WINDOWS``."""

    def of(self, queues: Sequence[QueueOut]) -> list[Row]:
        """The queues of which anything is counted, with their labels."""
        return [
            ((queue.queue, queue.pool or ""), queue, self.totals[queue.queue])
            for queue in queues
            if queue.queue in self.totals
        ]

    def is_reported(self, row: Row, kind: str) -> bool:
        """Whether events of ``kind`` are reported of a queue: where its source says nothing, where there were any."""
        _, queue, jobs = row
        said = getattr(self.samples.get(queue.queue), f"reports_{kind}", None)
        if said is not None:
            return bool(said)
        ended = jobs.finished + jobs.failed + jobs.retried
        return {"arrivals": jobs.enqueued, "starts": jobs.started, "ends": ended}[kind] > 0


COUNTED = (
    ("enqueued", "arrivals", "Jobs that were enqueued."),
    ("started", "starts", "Jobs that were started."),
    ("finished", "ends", "Jobs that ended without a failure."),
    ("failed", "ends", "Jobs whose last attempt failed."),
    ("retried", "ends", "Attempts that failed and are followed by another one of the same job."),
)


def of_jobs(jobs: Jobs, queues: Sequence[QueueOut]) -> Iterator[CounterMetricFamily]:
    """Counters of each queue. Of events that nobody reports there are none."""
    rows = jobs.of(queues)
    for name, kind, help_text in COUNTED:
        yield counter(
            f"headway_queue_{name}_jobs",
            help_text,
            ("queue", "pool"),
            [(row[0], getattr(row[2], name)) for row in rows if jobs.is_reported(row, kind)],
        )
    measured = [
        ((*labels, _bound(queue.objective.target_s)), queue.objective, total)
        for labels, queue, total in rows
        if queue.objective is not None and total.pickup_sketch
    ]
    labels = ("queue", "pool", "objective_seconds")
    yield counter(
        "headway_queue_measured_jobs",
        "Jobs that were started and of which it is known how long they had waited.",
        labels,
        [(which, total.waited) for which, _, total in measured],
    )
    yield counter(
        "headway_queue_late_jobs",
        "Of the measured jobs, those that had waited longer than the objective allows.",
        labels,
        [(which, total.late(objective.target_s)) for which, objective, total in measured],
    )


def of_durations(jobs: Jobs, queues: Sequence[QueueOut]) -> Iterator[HistogramMetricFamily]:
    """Histograms of each queue's waits, the objective among their bounds, and of its service times."""
    rows = jobs.of(queues)
    waits = HistogramMetricFamily(
        "headway_queue_pickup_time_seconds", "From enqueue to start.", labels=("queue", "pool")
    )
    service = HistogramMetricFamily(
        "headway_queue_service_time_seconds", "From start to end.", labels=("queue", "pool")
    )
    for which, queue, total in rows:
        if total.pickup_sketch:
            promised = () if queue.objective is None else (queue.objective.target_s,)
            buckets = within(total.pickup_sketch, (*WAIT_BOUNDS_S, *promised))
            waits.add_metric(which, _shown(buckets, total.waited), total.pickup_sum_s)
        if total.service_sketch:
            buckets = within(total.service_sketch, SERVICE_BOUNDS_S)
            service.add_metric(which, _shown(buckets, total.served), total.service_sum_s)
    yield from (waits, service)


def of_objectives(jobs: Jobs, pools: Sequence[PoolOut]) -> Iterator[GaugeMetricFamily]:
    """Which share of each pool's jobs may be late, which was in time, and what is left of the difference."""
    yield gauge(
        "headway_pool_error_budget_ratio",
        "The share of jobs that the pool's objective allows to be late.",
        ("pool",),
        [((pool.pool,), error_budget(pool.objective.percentile)) for pool in pools],
    )
    windows = [
        ((pool.pool, window), pool, attained)
        for pool in pools
        for (window, _), attained in zip(ATTAINED_WINDOWS, jobs.attained.get(pool.pool, ()), strict=False)
    ]
    yield gauge(
        "headway_pool_attainment_ratio",
        "The share of jobs that started within the objective of their time.",
        ("pool", "window"),
        [(which, attained.attainment) for which, _, attained in windows],
    )
    yield gauge(
        "headway_pool_error_budget_left_ratio",
        "What is left of the error budget of the window: 1 all of it, below 0 where more is spent.",
        ("pool", "window"),
        [(which, attained.budget_left(pool.objective.percentile)) for which, pool, attained in windows],
    )


def _shown(buckets: Sequence[tuple[float, int]], count: int) -> list[tuple[str, float]]:
    return [*((_bound(bound_s), jobs) for bound_s, jobs in buckets), ("+Inf", count)]


def _bound(value_s: float) -> str:
    """A number of seconds as Prometheus's client writes the bound of a bucket."""
    return repr(float(value_s))
