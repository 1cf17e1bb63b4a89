"""What the newest sample of a queue says beside depths: what is reserved, what bounds depths and the age have, when
delayed jobs are due, and which events are reported.

It also says how many workers the broker lists.

Rows come by way of the pipeline, which keeps depths of a sample and no more. The newest sample comes straight from
ingest: it is newer by what the pipeline takes, a second or so.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from headway.scaling.model import QueueMetrics, QueueSample
from headway.scaling.model.due_jobs import delayed_from
from headway.scaling.view import copied

LISTED_GAP_S = 30.0
"""Without a reading for longer than this, nobody knows how many workers the broker lists, or gives jobs to."""
LISTED_WITHIN_S = 10.0  # from a ready worker to the broker's list of it: some heartbeats, and a reading
TOGETHER_S = 15.0  # of one queue, a sample so much newer than its rows says nothing of the depths in them
RATES = MappingProxyType(
    {
        "reports_arrivals": (
            "arrived_jobs",
            "retried_jobs",
            "arrival_rate_per_s",
            "retry_rate_per_s",
            "arrival_trend_per_s2",
        ),
        "reports_starts": ("start_rate_per_s", "late_rate_per_s"),
        "reports_ends": ("completion_rate_per_s", "failure_rate_per_s"),
    }
)
"""What the events that a source reports, or does not, are counted for."""
WHOLE = frozenset({"arrived_jobs", "retried_jobs"})


def with_newest(queue: QueueMetrics, sample: QueueSample | None) -> QueueMetrics:
    """``queue`` with what its newest ``sample`` says beside depths; the very ``queue`` where that is nothing."""
    if sample is None or queue.sampled_at_s is None:
        return queue
    changes = {
        **_reserved(queue, sample),
        **_bound(queue, sample),
        **_least(queue, sample),
        **_overdue(queue, sample),
        **_delayed(queue, sample),
        **_rates(queue, sample),
    }
    return copied(queue, **changes) if changes else queue


def _is_together(queue: QueueMetrics, sample: QueueSample) -> bool:
    return queue.sampled_at_s is not None and abs(sample.at_s - queue.sampled_at_s) <= TOGETHER_S


def _reserved(queue: QueueMetrics, sample: QueueSample) -> dict[str, object]:
    """The jobs that are reserved, among those in flight: never so many that fewer run than at the time of the sample.

    Rows are older than the sample by what the pipeline takes. What was reserved meanwhile is not among their jobs.
    """
    if not sample.reserved_jobs or queue.in_flight_jobs == 0 or not _is_together(queue, sample):
        return {}
    if queue.in_flight_jobs is None:
        return {"reserved_jobs": sample.reserved_jobs}
    if sample.in_flight_jobs is None:
        return {}  # nobody knows how many ran at the sample: it may be all that the rows have
    running_jobs = max(0, sample.in_flight_jobs - sample.reserved_jobs)
    reserved_jobs = min(sample.reserved_jobs, queue.in_flight_jobs - running_jobs)
    if reserved_jobs <= 0:
        return {}
    mean_jobs = queue.in_flight_mean_jobs
    return {
        "reserved_jobs": reserved_jobs,
        # Of those in flight, on average, the ones that had begun: they are what ends are measured by.
        "in_flight_mean_jobs": None if mean_jobs is None else max(0.0, mean_jobs - reserved_jobs),
    }


def _bound(queue: QueueMetrics, sample: QueueSample) -> dict[str, object]:
    if sample.oldest_age_max_s is None or queue.oldest_age_s is None or not _is_together(queue, sample):
        return {}
    width_s = max(0.0, sample.oldest_age_max_s - (sample.oldest_age_s or 0.0))
    return {"oldest_age_max_s": queue.oldest_age_s + width_s}


def _least(queue: QueueMetrics, sample: QueueSample) -> dict[str, object]:
    """The lower bounds of depths that neither the rows nor the sample know exactly."""
    if not _is_together(queue, sample):
        return {}
    return {
        bound: getattr(sample, bound)
        for exact, bound in (("waiting_jobs", "waiting_min_jobs"), ("in_flight_jobs", "in_flight_min_jobs"))
        if getattr(queue, exact) is None and getattr(sample, exact) is None and getattr(sample, bound) is not None
    }


def _overdue(queue: QueueMetrics, sample: QueueSample) -> dict[str, object]:
    """The jobs that are due and not in the queue yet, among those that wait by the rows."""
    if not sample.overdue_jobs or not queue.waiting_jobs or not _is_together(queue, sample):
        return {}
    return {"overdue_jobs": min(sample.overdue_jobs, queue.waiting_jobs)}


def _delayed(queue: QueueMetrics, sample: QueueSample) -> dict[str, object]:
    """When delayed jobs are due, from the rows' time on: rows do not say it."""
    if not sample.due or queue.sampled_at_s is None or not _is_together(queue, sample):
        return {}
    return {
        "delayed_jobs": sample.delayed_jobs,
        "delayed": tuple(delayed_from(sample.due, ago_s=queue.sampled_at_s - sample.at_s)),
    }


def _rates(queue: QueueMetrics, sample: QueueSample) -> dict[str, object]:
    """Rates that the source does not report as not known, and those that it does as nothing where nothing came."""
    said = {name: getattr(sample, name) for name in RATES if getattr(sample, name) is not None}
    if not said:
        return {}
    unknown = [rate for name, is_reported in said.items() if not is_reported for rate in RATES[name]]
    nothing = [
        rate
        for name, is_reported in said.items()
        if is_reported and queue.has_unknown_rates
        for rate in RATES[name]
        if getattr(queue, rate) is None
    ]
    still_unknown = queue.has_unknown_rates and len(said) < len(RATES)
    has_unknown_rates = bool(unknown) or still_unknown
    if not unknown and not nothing and has_unknown_rates == queue.has_unknown_rates:
        return {}
    changes: dict[str, object] = dict.fromkeys(unknown)
    changes.update({rate: 0 if rate in WHOLE else 0.0 for rate in nothing})
    if said.get("reports_arrivals") is False:
        changes.update(arrivals=(), arrived_until_s=None)
    return {**changes, "has_unknown_rates": has_unknown_rates}


def listed_workers(
    queues: Iterable[str], samples: Mapping[str, QueueSample], *, now_s: float, of_others: int = 0
) -> int | None:
    """How many workers serve ``queues``; ``None`` where that is not known of one of them, which is not zero.

    A pool's workers serve all of its queues, so the greatest of their counts is the pool's: the sum would count a
    worker once a queue.

    Args:
        queues: Of one pool.
        samples: The newest reading of each queue, by name.
        now_s: Unix seconds; a reading older than ``LISTED_GAP_S`` says nothing of now.
        of_others: Workers of other pools that help with these queues, and are not counted.
    """
    counts = [_listed(samples.get(queue), now_s) for queue in queues]
    known = [count for count in counts if count is not None]
    return max(0, max(known) - of_others) if known and len(known) == len(counts) else None


def useful_workers(queues: Sequence[str], samples: Mapping[str, QueueSample], *, now_s: float) -> int | None:
    """How many workers get jobs of ``queues`` at a time, at most; ``None`` where one of them sets no such bound.

    One worker may be the active consumer of several queues. Nobody knows which, so each queue counts. A reading older
    than ``LISTED_GAP_S`` sets no bound.
    """
    newest = (samples.get(queue) for queue in queues)
    known = [sample.useful_workers for sample in newest if sample is not None and _is_recent(sample, now_s)]
    bounds = [workers for workers in known if workers is not None]
    return sum(bounds) if bounds and len(bounds) == len(queues) else None


def with_unlisted_workers(
    queues: Sequence[QueueMetrics],
    samples: Mapping[str, QueueSample],
    *,
    running_workers: int,
    now_s: float,
    of_others: int = 0,
) -> tuple[QueueMetrics, ...]:
    """``queues`` with the jobs in flight as a lower bound where the broker lists fewer workers than run.

    What the others have, such a broker does not see: a Celery worker without heartbeats, for example.

    Args:
        queues: Of one pool.
        samples: The newest reading of each queue, by name.
        running_workers: Workers of the pool that have run for long enough to be listed.
        now_s: Unix seconds.
        of_others: Workers of other pools that help with these queues, and have run for long enough to be listed.
    """
    listed = listed_workers((queue.queue for queue in queues), samples, now_s=now_s, of_others=of_others)
    if listed is None or listed >= running_workers:
        return tuple(queues)
    return tuple(
        copied(
            queue,
            in_flight_jobs=None,
            in_flight_min_jobs=queue.in_flight_least_jobs,
            in_flight_mean_jobs=None,
        )
        if queue.in_flight_jobs is not None
        else queue
        for queue in queues
    )


def _listed(sample: QueueSample | None, now_s: float) -> int | None:
    return sample.listed_workers if sample is not None and _is_recent(sample, now_s) else None


def _is_recent(sample: QueueSample, now_s: float) -> bool:
    return now_s - sample.at_s <= LISTED_GAP_S
