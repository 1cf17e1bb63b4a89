"""What of a batch counts where others report the same: job events that are new, and samples of one collector.

All of it is in Postgres, so that a restart and several control planes change nothing; what is kept here spares reading
it. A group that fails forgets it. See docs/decisions/0026.
"""

import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from headway.connections import COLLECTOR
from headway.control.ingest.reported_jobs import ReportedJobs, connection_of, key_of, source_of, split
from headway.local.throttle import Throttle
from headway.scaling.model import EventKind, JobEvent, QueueSample, TelemetryBatch
from headway.store.engine import Connection, Engine, transaction
from headway.store.events.batches import BatchKey
from headway.store.events.event_sources import (
    KINDS,
    REPORTS_KEPT_S,
    JobReport,
    SeenCollector,
    lock_connections,
    read_collectors,
    read_reported,
    read_reports,
    save_reports,
    shared_connections,
    touch_collectors,
    touch_polled,
    touch_sources,
)

REPORTERS_READ_S = 30.0  # how often it is read which queues' events programs report: an hour's silence ends none
REPORTS_MAX = 200_000  # 25 MB; of more, the oldest are forgotten, and what comes so much later may count twice
SOURCE_TOUCHED_S = 30.0  # how often it is written down that a source reports a queue
COLLECTOR_TOUCHED_S = 2.0  # and that a collector polls: a quarter of what counts as silent
EMPTY_POLL_TOUCHED_S = 4.0  # and that it finds no jobs: where it finds queues, their samples say so as often
TOUCHES_MAX = 100_000
CONNECTIONS_MAX = 1_000
LOCKS = 64

_SHOWN_AS: Mapping[EventKind, str] = {
    EventKind.ENQUEUED: "arrivals",
    EventKind.STARTED: "starts",
    EventKind.FINISHED: "ends",
    EventKind.FAILED: "ends",
}

Touch = TypeVar("Touch", bound=tuple[str, ...])

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What of a batch counts."""

    batch: TelemetryBatch
    repeated_events: int = 0
    """That another source had reported."""
    standby_samples: int = 0
    """Of a collector that stands by, because another one polls the connection."""
    why: str = ""
    """Which one that is."""


@dataclass(slots=True)
class _KnownConnection:
    """What is known here of one connection."""

    newest: int = 0
    """The report up to which others' are known."""
    sources: dict[str, float] = field(default_factory=dict)
    """When each has reported last."""
    jobs: ReportedJobs | None = None
    """While there are several sources."""


class EventSources:
    """Decides what of each batch counts. One group of batches at a time."""

    def __init__(self, *, clock: Callable[[], float], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._known: dict[str, _KnownConnection] = {}
        self._touched_s: dict[tuple[str, ...], float] = {}
        self._polling: dict[str, list[SeenCollector]] = {}
        self._reported: set[tuple[str, str]] = set()
        """Queue and what of it, ``arrivals``, ``starts`` or ``ends``, is reported as events."""
        self._reported_read_s = float("-inf")
        self._throttle = Throttle()

    def forget(self) -> None:
        """What was last decided may not have been recorded: read it again."""
        self._known.clear()
        self._touched_s.clear()
        self._reported_read_s = float("-inf")

    async def note_empty_polls(self, engine: Engine, batch: TelemetryBatch) -> None:
        """Note which connections a collector polls in which it found no jobs: nothing that is stored may show that."""
        if not batch.producer.startswith(COLLECTOR):
            return
        seen = {(poll.connection, batch.producer) for poll in batch.polls if not poll.queues}
        if due := self._due(seen, EMPTY_POLL_TOUCHED_S):
            async with transaction(engine) as conn:
                await touch_polled(conn, [connection for connection, _ in due], producer=batch.producer)

    async def counted(
        self, conn: Connection, batches: Mapping[BatchKey, TelemetryBatch], *, ingest: str
    ) -> dict[BatchKey, Counted]:
        """What of ``batches``, none of which was recorded before, counts. Recorded with the transaction of ``conn``."""
        found = {key: Counted(batch=batch) for key, batch in batches.items()}
        await self._note_collectors(conn, batches.values())
        for key, each in found.items():
            found[key] = self._without_standby(each)
        with_events = {key: batch.events for key, batch in batches.items() if batch.events}
        await self._note_sources(conn, batches)
        for key, each in found.items():
            if key.producer.startswith(COLLECTOR) and any(map(_leaves_events_out, each.batch.samples)):
                await self._read_reported(conn)
                samples = tuple(map(self._without_contradiction, each.batch.samples))
                found[key] = replace(each, batch=replace(each.batch, samples=samples))
        if not with_events:
            return found
        news = await self._news(conn, with_events, ingest=ingest)
        for key, events in with_events.items():
            kept = tuple(event for event, is_news in zip(events, news[key], strict=True) if is_news)
            found[key] = replace(
                found[key], batch=replace(found[key].batch, events=kept), repeated_events=len(events) - len(kept)
            )
        return found

    # --- events: of each, the report that comes first -----------------------------------------------------------------

    async def _news(
        self, conn: Connection, batches: Mapping[BatchKey, tuple[JobEvent, ...]], *, ingest: str
    ) -> dict[BatchKey, list[bool]]:
        reported: dict[tuple[str, str], list[tuple[BatchKey, int, bytes]]] = {}
        for key, events in batches.items():
            source = source_of(key.producer)
            for index, event in enumerate(events):
                report = (key, index, key_of(event))
                reported.setdefault((connection_of(event.queue), source), []).append(report)
        connections = {connection for connection, _ in reported}
        await lock_connections(conn, (zlib.crc32(each.encode()) % LOCKS for each in connections))
        await self._catch_up(conn, connections, ingest=ingest)
        await self._remember_several(conn, reported, ingest=ingest)
        pages = {each: b"".join(key for *_, key in reports) for each, reports in reported.items()}
        newest = await save_reports(conn, pages, ingest=ingest)
        at_s = self._clock()
        news = {key: [True] * len(events) for key, events in batches.items()}
        for (connection, source), reports in reported.items():
            known = self._known[connection]
            known.sources[source] = at_s
            known.newest = max(known.newest, newest[connection])
            if known.jobs is not None:
                flags = known.jobs.take(source, (key for *_, key in reports), at_s=at_s)
                for (batch, index, _), is_news in zip(reports, flags, strict=True):
                    news[batch][index] = is_news
        self._trim(at_s)
        return news

    async def _catch_up(self, conn: Connection, connections: Iterable[str], *, ingest: str) -> None:
        """Learn what other control planes have recorded, and of a connection that is new here, everything."""
        after = {each: self._known[each].newest if each in self._known else None for each in connections}
        for connection in connections:
            self._known.setdefault(connection, _KnownConnection())
        for report in await read_reports(conn, after, ingest=ingest):
            self._learn(report)

    async def _remember_several(self, conn: Connection, reported: Iterable[tuple[str, str]], *, ingest: str) -> None:
        """Remember job by job what is reported of connections that have several sources from now on."""
        begun: dict[str, int | None] = {}
        for connection, source in reported:
            known = self._known[connection]
            if known.jobs is None and known.sources.keys() | {source} != {source}:
                known.jobs = ReportedJobs()
                begun[connection] = None
            known.sources.setdefault(source, self._clock())
        for report in await read_reports(conn, begun, ingest=ingest) if begun else ():
            self._learn(report)

    def _learn(self, report: JobReport) -> None:
        known, at_s = self._known[report.connection], self._clock() - report.age_s
        known.sources[report.source] = max(at_s, known.sources.get(report.source, at_s))
        known.newest = max(known.newest, report.number)
        if known.jobs is not None:
            known.jobs.take(report.source, split(report.keys), at_s=at_s)

    def _trim(self, at_s: float) -> None:
        """Forget what is too old to be reported again, and what is too much."""
        since_s = at_s - REPORTS_KEPT_S
        for connection, known in list(self._known.items()):
            known.sources = {source: last_s for source, last_s in known.sources.items() if last_s >= since_s}
            if not known.sources:
                del self._known[connection]
            elif len(known.sources) == 1:
                known.jobs = None
            elif known.jobs is not None:
                known.jobs.forget_before(since_s)
        remembered = [known.jobs for known in self._known.values() if known.jobs is not None]
        while sum(each.reports for each in remembered) > REPORTS_MAX:
            min(remembered, key=lambda each: each.oldest_at_s or at_s).forget_oldest()

    async def _note_sources(self, conn: Connection, batches: Mapping[BatchKey, TelemetryBatch]) -> None:
        seen = {
            (queue, source_of(key.producer), what)
            for key, batch in batches.items()
            for queue, what in chain(_events_of(batch), _counts_of(batch))
        }
        if not seen:
            return
        if len(self._reported) > TOUCHES_MAX:
            self._reported.clear()
            self._reported_read_s = float("-inf")
        self._reported.update((queue, what) for queue, _, what in seen)
        await touch_sources(conn, self._due(seen, SOURCE_TOUCHED_S))

    async def _read_reported(self, conn: Connection) -> None:
        """Learn which queues have a source of events: one that was silent for ``REPORTED_FOR_S`` is none."""
        if self._monotonic() - self._reported_read_s < REPORTERS_READ_S:
            return
        self._reported_read_s = self._monotonic()
        self._reported = await read_reported(conn)

    def _without_contradiction(self, sample: QueueSample) -> QueueSample:
        arrivals, starts, ends = ((sample.queue, what) in self._reported for what in KINDS)
        if not (arrivals or starts or ends) or not _leaves_events_out(sample):
            return sample
        return replace(
            sample,
            reports_arrivals=None if arrivals else sample.reports_arrivals,
            reports_starts=None if starts else sample.reports_starts,
            reports_ends=None if ends else sample.reports_ends,
        )

    def _due(self, seen: Iterable[Touch], after_s: float) -> list[Touch]:
        now_s = self._monotonic()
        due = [each for each in seen if now_s - self._touched_s.get(each, float("-inf")) >= after_s]
        if len(self._touched_s) + len(due) > TOUCHES_MAX:
            self._touched_s.clear()
        self._touched_s.update(dict.fromkeys(due, now_s))
        return due

    # --- samples: of the collector that has polled for the longest time -----------------------------------------------

    async def _note_collectors(self, conn: Connection, batches: Iterable[TelemetryBatch]) -> None:
        seen = {
            (connection_of(queue), batch.producer)
            for batch in batches
            if batch.producer.startswith(COLLECTOR)
            for queue in {each.queue for each in batch.samples} | {each.queue for each in batch.events}
        }
        due = self._due(seen, COLLECTOR_TOUCHED_S)
        if not due:
            return
        await touch_collectors(conn, [(connection, producer) for connection, producer in due])
        connections = {connection for connection, _ in due}
        if len(self._polling) > CONNECTIONS_MAX:
            self._polling.clear()
        for connection in connections:
            self._polling.pop(connection, None)
        for each in await read_collectors(conn, connections):
            self._polling.setdefault(each.connection, []).append(each)
        self._log_several(connections)

    def _without_standby(self, counted: Counted) -> Counted:
        batch = counted.batch
        if not batch.producer.startswith(COLLECTOR):
            return counted
        standing_by = {
            connection
            for connection in {connection_of(each.queue) for each in batch.samples}
            if self._counts(connection) not in {None, batch.producer}
        }
        if not standing_by:
            return counted
        kept = tuple(each for each in batch.samples if connection_of(each.queue) not in standing_by)
        connection = min(standing_by)
        return replace(
            counted,
            batch=replace(batch, samples=kept),
            standby_samples=len(batch.samples) - len(kept),
            why=f"connection {connection!r} is polled by another collector, {self._counts(connection)}: "
            "this one stands by until that one stops; end one of them",
        )

    def _counts(self, connection: str) -> str | None:
        """The collector of ``connection`` whose samples count."""
        polling = self._polling.get(connection)
        return polling[0].producer if polling else None

    def _log_several(self, connections: Iterable[str]) -> None:
        for connection in connections:
            polling = self._polling.get(connection, [])
            if connection in shared_connections(polling) and self._throttle.due(connection) is not None:
                log.warning(
                    "several collectors connection=%s counts=%s stand_by=%s: end all but one",
                    connection,
                    polling[0].producer,
                    ",".join(each.producer for each in polling[1:]),
                )


def _leaves_events_out(sample: QueueSample) -> bool:
    return False in (sample.reports_arrivals, sample.reports_starts, sample.reports_ends)


def _events_of(batch: TelemetryBatch) -> Iterator[tuple[str, str]]:
    """Queue and kind of what ``batch`` reports as events."""
    return ((event.queue, _SHOWN_AS[event.kind]) for event in batch.events if event.kind in _SHOWN_AS)


def _counts_of(batch: TelemetryBatch) -> Iterator[tuple[str, str]]:
    """The same of counters, which count like events."""
    for each in batch.counts:
        if each.arrived_jobs is not None:
            yield each.queue, "arrivals"
        if each.started_jobs is not None:
            yield each.queue, "starts"
        if each.finished_jobs is not None:
            yield each.queue, "ends"
