"""What workers report of jobs, as the events that the control plane counts. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.agent.reporting.report_lines import JobReport, Outcome, ReportKind
from headway.scaling.model import EventKind, JobEvent, PoolQueues

Queues = Mapping[str, Mapping[str, str]]
"""Pool -> a queue's own name -> the name that Headway has for it."""

UNSENT_REPORTS_MAX = 20_000  # as many events as the agent keeps for a control plane that is away; the newest stay


def queues_of(pools: Iterable[PoolQueues]) -> Queues:
    """The queues of each pool by their own names: what follows the connection.

    A pool with queues of one name in two connections has no such queue: nobody knows which is meant.
    """
    return {each.pool: _by_own_name(each.queues) for each in pools}


def _by_own_name(queues: Sequence[str]) -> dict[str, str]:
    named: dict[str, set[str]] = {}
    for queue in queues:
        named.setdefault(queue.partition("/")[2], set()).add(queue)
    return {own: next(iter(found)) for own, found in named.items() if len(found) == 1}


def events_of(pool: str, reports: Iterable[JobReport], queues: Queues) -> tuple[JobEvent, ...]:
    """The events in what a worker of ``pool`` reported. Jobs of queues that are not the pool's are left out."""
    of_pool = queues.get(pool, {})
    return tuple(
        event for each in reports if (queue := of_pool.get(each.queue)) is not None for event in _events(each, queue)
    )


class UnsentReports:
    """What workers have reported of jobs, until an agent that has just begun knows the queues of the pools.

    Workers go on while no agent runs, and while the control plane is away; what they report meanwhile counts, too.
    """

    def __init__(self) -> None:
        self._held: deque[tuple[str, JobReport]] = deque(maxlen=UNSENT_REPORTS_MAX)

    def add(self, pool: str, reports: Iterable[JobReport]) -> None:
        """Take what a worker of the pool has reported."""
        self._held.extend((pool, each) for each in reports if each.kind is not ReportKind.RECEIVED)

    def take_events(self, queues: Queues) -> list[JobEvent]:
        """The events in what was added since the last call."""
        taken, self._held = self._held, deque(maxlen=UNSENT_REPORTS_MAX)
        return [event for pool, each in taken for event in events_of(pool, [each], queues)]


def _events(report: JobReport, queue: str) -> Iterator[JobEvent]:
    about: dict[str, Any] = {
        "queue": queue,
        "job_id": report.job_id,
        "job_class": report.job_class,
        "attempt": report.attempt,
        "at_s": report.at_s,
    }
    if report.kind is ReportKind.BEGUN:
        # A delayed job waits from when it is due. Where the message does not say since when a job waited, it arrives as
        # it begins, until the control plane knows better.
        waits_from_s = report.entered_at_s if report.eta_s is None else max(report.entered_at_s or 0.0, report.eta_s)
        arrived_at_s = report.at_s if waits_from_s is None else min(report.at_s, waits_from_s)
        yield JobEvent(kind=EventKind.ENQUEUED, **{**about, "at_s": arrived_at_s})
        yield JobEvent(
            kind=EventKind.STARTED,
            **about,
            enqueued_at_s=None if waits_from_s is None else arrived_at_s,
            received_at_s=report.received_at_s,
            is_redelivered=True if report.received_at_s is not None and report.is_redelivered else None,
        )
    elif report.kind is ReportKind.ENDED and report.started_at_s is None and report.outcome is Outcome.REVOKED:
        # It has left its queue, and was never work.
        yield JobEvent(kind=EventKind.REVOKED, **about)
    elif report.kind is ReportKind.ENDED and (report.started_at_s is not None or report.outcome is Outcome.FAILED):
        kind = EventKind.FINISHED if report.outcome is Outcome.FINISHED else EventKind.FAILED
        yield JobEvent(kind=kind, **about, started_at_s=report.started_at_s)
        if report.outcome is Outcome.RETRIED or report.is_requeued:
            yield JobEvent(kind=EventKind.RETRIED, **about)
