"""When the workers of this host received jobs, for the entries of jobs whose messages carry no time. Pure. Bounded.

A job is received, and begins later: a worker takes some in advance. See docs/decisions/0031.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from headway.agent.reporting.job_events import Queues
from headway.agent.reporting.report_lines import JobReport, ReportKind
from headway.scaling.model import QueueReceptions

RECEIVED_MAX = 50_000  # jobs of all workers that have not begun; of more, the oldest are forgotten
TIMES_MAX = 5_000  # of a queue from one message to the next
RECEPTIONS_EVERY_S = 5.0  # also while nothing is received, where workers report
SOLO = "solo"  # Celery's pool that reads no message while it runs a job


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A worker that reports, the queues that it consumes by their own names, and how its pool is called."""

    pool: str
    queues: Sequence[str]
    execution: str | None = None


@dataclass(slots=True)
class _Queue:
    since_s: float
    times: list[float] = field(default_factory=list)
    is_whole: bool = True
    workers: int = 0


class Receptions:
    """What this agent knows of receptions, since it began."""

    def __init__(self, *, since_s: float) -> None:
        """``since_s``: when this agent began, in Unix seconds. What came before, another agent may have reported."""
        self._since_s = since_s
        """Of a queue that is new here, all receptions are known from then on."""
        self._received: dict[tuple[str, str, int | None], JobReport] = {}
        """Queue, job and attempt -> its first reception by a worker of this host, until one begins it."""
        self._queues: dict[str, _Queue] = {}
        self._lost_lines = 0
        self._sent_at_s = since_s

    def joined(self, reports: Iterable[JobReport]) -> list[JobReport]:
        """``reports`` of a worker, with the time of the first reception at each job that begins.

        A worker that stops puts back what it has not begun. What another worker receives again then has waited since
        its first reception, too.
        """
        found = []
        for each in reports:
            key = (each.queue, each.job_id, each.attempt)
            first = None if each.kind is ReportKind.RECEIVED else self._received.pop(key, None)
            if each.kind is ReportKind.RECEIVED and not (each.is_redelivered and key in self._received):
                self._received[key] = each
                if len(self._received) > RECEIVED_MAX:
                    del self._received[next(iter(self._received))]
            found.append(
                replace(each, received_at_s=first.at_s, is_redelivered=first.is_redelivered)
                if first is not None and each.kind is ReportKind.BEGUN
                else each
            )
        return found

    def note(self, pool: str, reports: Iterable[JobReport], queues: Queues) -> None:
        """Count what a worker of ``pool`` received, in queues of its pool only."""
        for each in reports:
            if each.kind is not ReportKind.RECEIVED:
                continue
            name = queues.get(pool, {}).get(each.queue)
            if name is None:  # perhaps of a queue that becomes the pool's: of its receptions this one is not reported
                self._since_s = max(self._since_s, each.at_s)
                continue
            queue = self._queues.setdefault(name, _Queue(self._since_s))
            queue.times.append(each.at_s)
            queue.is_whole &= not each.is_redelivered

    def due(
        self, consumers: Iterable[Consumer], queues: Queues, *, until_s: float, lost_lines: int, has_news: bool
    ) -> tuple[QueueReceptions, ...]:
        """What to send now: with each news, and every ``RECEPTIONS_EVERY_S``.

        Args:
            consumers: the workers that report.
            queues: as of ``queues_of``.
            until_s: all that was received until then has been noted; Unix seconds.
            lost_lines: lines of workers that are known to be lost, by now.
            has_news: whether workers have reported something of jobs.
        """
        passed_s = until_s - self._sent_at_s
        if passed_s == 0 or not (has_news or passed_s >= RECEPTIONS_EVERY_S):
            return ()
        self._sent_at_s = until_s
        is_whole, self._lost_lines = lost_lines == self._lost_lines, lost_lines
        named: dict[str, list[Consumer]] = {}
        for consumer in consumers:
            for own_name in consumer.queues:
                if (name := queues.get(consumer.pool, {}).get(own_name)) is not None:
                    named.setdefault(name, []).append(consumer)
        for name in named:
            self._queues.setdefault(name, _Queue(self._since_s))
        return tuple(
            self._sent(name, queue, named.get(name, ()), until_s=until_s, is_whole=is_whole)
            for name, queue in self._queues.items()
            if name in named or queue.workers or queue.times
        )

    def _sent(
        self, name: str, queue: _Queue, consumers: Sequence[Consumer], *, until_s: float, is_whole: bool
    ) -> QueueReceptions:
        said = QueueReceptions(
            queue=name,
            since_s=min(queue.since_s, until_s),
            until_s=until_s,
            received_at_s=tuple(queue.times[-TIMES_MAX:]),
            workers=len(consumers),
            is_prompt=all(each.execution not in (None, SOLO) for each in consumers),
            is_whole=is_whole and queue.is_whole and len(queue.times) <= TIMES_MAX,
        )
        self._queues[name] = _Queue(until_s, workers=len(consumers))
        return said
