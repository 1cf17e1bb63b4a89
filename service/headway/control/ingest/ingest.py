"""Takes batches of telemetry and answers each when it is durable. See docs/decisions/0003.

Batches that come while a group is being written form the next group: under load a flush serves many, and alone a batch
waits for nobody. A group's way:

    claim its batches -> write and fsync its file -> record the file -> commit -> rename into hot/ -> answer

Wherever it ends early, either nothing is recorded, and the file is deleted, or everything is, and it is published.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter

from headway.control.auth.authenticator import LOCAL, Caller
from headway.control.bounds import DEFAULT as DEFAULT_BOUNDS
from headway.control.bounds import Bounds
from headway.control.ingest.backpressure import DEFAULT, POLL_S, Backpressure, UnreadBound
from headway.control.ingest.batch_validation import Rows, check, items, rows_of
from headway.control.ingest.clock_skew import Offsets
from headway.control.ingest.entry_join import EntryJoin
from headway.control.ingest.event_sources import Counted, EventSources
from headway.control.ingest.host_events import HostEvents
from headway.control.ingest.job_classes import JobClasses
from headway.control.ingest.job_counts import BATCH_JOBS_MAX, is_odd, rows_of_counts, taken
from headway.control.ingest.name_claims import NameClaims
from headway.control.sliding_counter import SlidingCounter
from headway.errors import HeadwayError, Overloaded, Unavailable
from headway.local.throttle import Throttle
from headway.scaling.conditions.installation_facts import WRONG_SHOWN_S
from headway.scaling.model import Receipt, TelemetryBatch
from headway.scaling.model.event_row import EventRow
from headway.store.claimed_names import touch_producers
from headway.store.engine import Connection, Engine, transaction
from headway.store.events.batches import BatchKey, claim_batches, record_file
from headway.store.events.event_log import EventLog
from headway.store.events.recovery import attach, recover, settle
from headway.store.events.telemetry import lock_counts, save_counts, upsert_activities, upsert_samples

log = logging.getLogger(__name__)

WAITING_ITEMS_MAX = 100_000  # some 20 MB, and a few seconds of flushing
WAITING_BATCHES_MAX = 5_000
INGEST_GROUP_ITEMS_MAX = 50_000  # a file of a few MB, written in well under a second
CHECKED_IN_LOOP_MAX = 500  # some 0.5 ms; what is larger is checked beside the calls and evaluations that wait
JOINED_IN_LOOP_MAX = 100  # starts of a long backlog take up to 0.1 ms each
INGEST_SWEEP_S = 30.0  # how soon another ingest's death is noticed; far below the lateness bound
INGEST_STOP_S = 10.0  # what is taken is written before the end, if that is possible at all


@dataclass(slots=True, kw_only=True)
class IngestCounts:
    """What this ingest did since it began."""

    groups: int = 0
    batches: int = 0
    duplicates: int = 0
    events: int = 0
    samples: int = 0
    corrected_times: int = 0
    failed_batches: int = 0
    dropped_events: int = 0
    repeated_events: int = 0
    standby_samples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Waiting:
    """A batch and whoever waits for its receipt."""

    batch: TelemetryBatch
    received_at_s: float
    offset_s: float
    answer: asyncio.Future[Receipt]

    @property
    def key(self) -> BatchKey:
        return BatchKey(self.batch.producer, self.batch.sequence)


@dataclass(slots=True)
class _BatchQueue:
    """Batches in the order they came, and how many items they hold together."""

    batches: deque[_Waiting] = field(default_factory=deque)
    items: int = 0

    def add(self, waiting: _Waiting) -> None:
        self.batches.append(waiting)
        self.items += items(waiting.batch)

    def take(self, items_max: int) -> list[_Waiting]:
        """At least one batch, where there is one, and no more than ``items_max`` items otherwise."""
        group: list[_Waiting] = []
        taken = 0
        while self.batches and (not group or taken + items(self.batches[0].batch) <= items_max):
            group.append(self.batches.popleft())
            taken += items(group[-1].batch)
        self.items -= taken
        return group


class Ingest:
    """Accepts batches into one event log and one database. Started once, stopped once."""

    def __init__(
        self,
        *,
        engine: Engine,
        event_log: EventLog,
        clock: Callable[[], float],
        unread: UnreadBound = DEFAULT,
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self._engine = engine
        self.names = NameClaims(engine=engine, bounds=bounds)
        self._hosts = HostEvents(engine=engine)
        self.entries = EntryJoin()
        self._join_turn = asyncio.Lock()
        self._event_log = event_log
        self._clock = clock
        self._offsets = Offsets()
        self._classes = JobClasses()
        self._sources = EventSources(clock=clock)
        self._odd_counts = Throttle()
        self._queue = _BatchQueue()
        self._wake = asyncio.Event()
        self._flusher: asyncio.Task[None] | None = None
        # One thread: files are written one after another, and nobody else's work delays them.
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ingest")
        self._is_attached = False
        self._is_stopping = False
        self._in_doubt: list[str] = []
        self.counts = IngestCounts()
        self.future_times = SlidingCounter(WRONG_SHOWN_S, clock=clock)
        """Times of jobs that lay in the future: the clock that stamped them is ahead."""
        self.backward_waits = SlidingCounter(WRONG_SHOWN_S, clock=clock)
        """Jobs that were started before they were enqueued: the clock of the host that runs them is behind."""
        self.unread = Backpressure(event_log, unread)
        self.flush_s: float | None = None
        """How long the last group's oldest batch took from being received to being durable; None before the first."""
        self.problem: str | None = None
        """Why telemetry is refused at present; None while it is accepted."""

    @property
    def has_event_log(self) -> bool:
        """Whether the event log is there and was written when it was last tried."""
        return self._is_attached and self.problem is None

    async def start(self) -> None:
        """Finish what dead ingests left, then accept. A missing event log is logged and tried again, not raised."""
        await self._sweep()
        await self.unread.poll()
        self._flusher = asyncio.create_task(self._run(), name="ingest")

    async def stop(self) -> None:
        """Refuse new batches, write those that wait, and let go of the event log."""
        self._is_stopping = True
        self._wake.set()
        if self._flusher is not None:
            _, late = await asyncio.wait([self._flusher], timeout=INGEST_STOP_S)
            for task in late:
                task.cancel()
            await asyncio.wait([self._flusher], timeout=INGEST_STOP_S)
        self._refuse(self._queue.take(self._queue.items), Unavailable("this control plane is stopping, try again"))
        self._disk.shutdown(wait=False)
        await asyncio.to_thread(self._event_log.close)

    async def accept(self, batch: TelemetryBatch, caller: Caller = LOCAL) -> Receipt:
        """Take ``batch`` of ``caller``; return when it can no longer be lost.

        Items of queues for which there is no room are left out, and the receipt says so.

        A caller that gives up waiting takes nothing back: the batch may have been written, and sent again it counts
        once.

        Raises:
            Forbidden: somebody else sends under the producer's name, or a host sends what is not of its pools.
            Invalid: the batch is too large, holds what can be no value, or only queues that there is no room for.
            Overloaded: too much waits already, here or for the pipeline, or the disk is full.
            Unavailable: Postgres or the event log is not there; nothing is known to be written.
        """
        if items(batch) > CHECKED_IN_LOOP_MAX:
            await asyncio.to_thread(check, batch)
        else:
            check(batch)
        if self._is_stopping or self._flusher is None or self._flusher.done():
            raise Unavailable("this control plane does not accept telemetry now: it is starting or stopping; try again")
        self.unread.require_room()
        if self._queue.items + items(batch) > WAITING_ITEMS_MAX or len(self._queue.batches) >= WAITING_BATCHES_MAX:
            raise Overloaded(
                f"{len(self._queue.batches)} batches with {self._queue.items} items wait to be written: "
                "send again after a pause"
            )
        own = await self._hosts.own(batch, caller)
        admitted = await self.names.admit(own.batch, caller)
        await self._sources.note_empty_polls(self._engine, admitted.batch)
        received_at_s = self._clock()
        offset_s = self._offset_s(batch, received_at_s)
        batch = await self._joined(admitted.batch, offset_s)
        if (admitted.batch.polls or admitted.batch.receptions) and not items(batch):
            return Receipt(is_duplicate=False)  # nothing of it is stored
        waiting = _Waiting(
            batch=batch,
            received_at_s=received_at_s,
            offset_s=offset_s,
            answer=asyncio.get_running_loop().create_future(),
        )
        self._queue.add(waiting)
        self._wake.set()
        receipt = await waiting.answer
        left_out = own.refused_items + admitted.refused_items
        if left_out and not receipt.is_duplicate:
            return replace(receipt, refused_items=left_out + receipt.refused_items, refused=admitted.why or own.why)
        return receipt

    async def _joined(self, batch: TelemetryBatch, offset_s: float) -> TelemetryBatch:
        """``batch`` with the entries that are known; one batch at a time."""
        async with self._join_turn:
            if len(batch.events) <= JOINED_IN_LOOP_MAX:
                return self.entries.joined(batch, offset_s=offset_s)
            return await asyncio.to_thread(self.entries.joined, batch, offset_s=offset_s)

    def wrong_clocks_s(self) -> list[float]:
        """By how far the clocks of those who send are behind this one's, negative where ahead: the wrong ones only."""
        return self._offsets.wrong_s(now_s=self._clock())

    def _offset_s(self, batch: TelemetryBatch, received_at_s: float) -> float:
        if batch.sent_at_s == 0:
            return 0.0
        return self._offsets.observe(batch.producer, sent_at_s=batch.sent_at_s, received_at_s=received_at_s)

    # --- one task: groups one after another, and a sweep now and then -------------------------------------------------

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        next_sweep_s = loop.time() + INGEST_SWEEP_S
        while not (self._is_stopping and not self._queue.batches):
            await self.unread.poll()
            if loop.time() >= next_sweep_s:
                next_sweep_s = loop.time() + INGEST_SWEEP_S
                try:
                    await self._sweep()
                except Exception:
                    log.exception("sweep failed")  # the next one may not; what comes meanwhile is still accepted
            elif self._queue.batches:
                await self._serve(self._queue.take(INGEST_GROUP_ITEMS_MAX))
            else:
                self._wake.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min(next_sweep_s, loop.time() + POLL_S)):
                        await self._wake.wait()

    async def _serve(self, group: list[_Waiting]) -> None:
        """Flush ``group`` and answer everyone in it, whatever happens."""
        try:
            receipts = await self._flush(group)
        except HeadwayError as error:
            self._log_change(error)
            self._refuse(group, error)
        except asyncio.CancelledError:
            self._refuse(group, Unavailable("this control plane is stopping, try again"))
            raise
        except Exception as error:
            if len(group) > 1:
                # Whatever is wrong with one batch is not the others' fault.
                for waiting in group:
                    await self._serve([waiting])
                return
            log.exception("telemetry failed producer=%s sequence=%d", *group[0].key)
            self._refuse(group, error)
        else:
            self._log_change(None)
            self.flush_s = max(0.0, self._clock() - min(waiting.received_at_s for waiting in group))
            for waiting in group:
                if not waiting.answer.done():  # its caller may have given up
                    waiting.answer.set_result(receipts[waiting])

    def _refuse(self, group: list[_Waiting], error: Exception) -> None:
        self.counts.failed_batches += len(group)
        for waiting in group:
            if not waiting.answer.done():
                waiting.answer.set_exception(error)

    async def _sweep(self) -> None:
        """Attach if that is still to do, and finish what dead ingests and our own failures left."""
        try:
            await self._prepare()
            await recover(self._engine, self._event_log)
            await self.names.refresh()
            self._log_change(None)
        except Unavailable as error:
            self._log_change(error)

    async def _prepare(self) -> None:
        if not self._is_attached:
            await attach(self._engine, self._event_log)
            self._is_attached = True
        if self._in_doubt:
            await settle(self._engine, self._event_log, self._in_doubt)
            self._in_doubt = []

    def _log_change(self, error: HeadwayError | None) -> None:
        """Log a change, and keep what stands in the way."""
        if error is not None and self.problem is None:
            log.warning("telemetry refused: %s", error)
        elif error is None and self.problem is not None:
            log.info("telemetry accepted again")
        self.problem = None if error is None else str(error)

    # --- one group ---------------------------------------------------------------------------------------------------

    async def _flush(self, group: list[_Waiting]) -> dict[_Waiting, Receipt]:
        await self._prepare()
        first: dict[BatchKey, _Waiting] = {}
        for waiting in group:
            first.setdefault(waiting.key, waiting)  # a batch that came twice counts once
        file = self._event_log.new_name(self._clock())
        loop = asyncio.get_running_loop()
        try:
            made, counted = await self._store(first, file)
            await loop.run_in_executor(self._disk, self._event_log.publish, file)
        except BaseException:
            # Whether the commit went through is not known to who lost the connection meanwhile: ask before deleting.
            self._in_doubt.append(file)
            self._sources.forget()
            raise
        return self._receipts(group, first, made, counted)

    async def _store(
        self, first: dict[BatchKey, _Waiting], file: str
    ) -> tuple[dict[BatchKey, Rows], dict[BatchKey, Counted]]:
        """Write what is new of a group, to Postgres and to ``tmp/file``. Returns what became of each new batch."""
        loop = asyncio.get_running_loop()
        async with transaction(self._engine) as connection:
            files = {
                key: file if w.batch.events or w.batch.samples or w.batch.counts else None for key, w in first.items()
            }
            fresh = await claim_batches(connection, files)
            new = {key: waiting for key, waiting in first.items() if key in fresh}
            counted = await self._sources.counted(
                connection, {key: waiting.batch for key, waiting in new.items()}, ingest=self._event_log.ingest
            )
            new = {key: replace(waiting, batch=counted[key].batch) for key, waiting in new.items()}
            grown = await self._grown(connection, new)
            made, size_bytes = await loop.run_in_executor(self._disk, self._write, new, grown, file)
            rows = sum(len(each.rows) for each in made.values())
            if rows:
                await record_file(
                    connection, file=file, ingest=self._event_log.ingest, rows=rows, size_bytes=size_bytes
                )
            if due := self.names.due({key.producer for key in first}):
                await touch_producers(connection, due)
            await upsert_samples(connection, [sample for each in made.values() for sample in each.samples])
            await upsert_activities(connection, [a for waiting in new.values() for a in waiting.batch.activities])
        return made, counted

    async def _grown(self, connection: Connection, new: dict[BatchKey, _Waiting]) -> dict[BatchKey, list[EventRow]]:
        """The jobs by which counters have grown, by batch; from here on they count from their newest report."""
        keys = {(key.producer, each.queue) for key, waiting in new.items() for each in waiting.batch.counts}
        if not keys:
            return {}
        known = await lock_counts(connection, keys)
        rows: dict[BatchKey, list[EventRow]] = {}
        for key, waiting in sorted(new.items(), key=itemgetter(0)):
            for report in waiting.batch.counts:
                before = known.get((key.producer, report.queue))
                if before is not None and before.sequence > key.sequence:
                    continue  # a newer report has counted what this one says
                found = list(
                    rows_of_counts(before, report, key, received_at_s=waiting.received_at_s, offset_s=waiting.offset_s)
                )
                of_batch = rows.setdefault(key, [])
                is_too_much = len(of_batch) + len(found) > BATCH_JOBS_MAX
                if (is_too_much or is_odd(before, report)) and self._odd_counts.due(key.producer) is not None:
                    log.warning("counters fell or jumped, not counted producer=%s queue=%s", key.producer, report.queue)
                if not is_too_much:
                    of_batch.extend(found)
                known[key.producer, report.queue] = taken(
                    report, sequence=key.sequence, received_at_s=waiting.received_at_s
                )
        await save_counts(connection, known)
        return rows

    def _write(
        self, new: dict[BatchKey, _Waiting], grown: Mapping[BatchKey, list[EventRow]], file: str
    ) -> tuple[dict[BatchKey, Rows], int]:
        made = {
            key: rows_of(
                waiting.batch,
                received_at_s=waiting.received_at_s,
                offset_s=waiting.offset_s,
                classes=self._classes,
            )
            for key, waiting in new.items()
        }
        for key, more in grown.items():
            made[key].rows.extend(more)
        rows = [row for each in made.values() for row in each.rows]
        return made, self._event_log.write_tmp(file, rows) if rows else 0

    def _receipts(
        self,
        group: list[_Waiting],
        first: dict[BatchKey, _Waiting],
        made: dict[BatchKey, Rows],
        counted: dict[BatchKey, Counted],
    ) -> dict[_Waiting, Receipt]:
        receipts = {}
        for waiting in group:
            key, batch = waiting.key, waiting.batch
            if key not in made or first[key] is not waiting:
                receipts[waiting] = Receipt(is_duplicate=True)
                continue
            receipts[waiting] = Receipt(
                is_duplicate=False,
                accepted_events=len(batch.events),
                accepted_samples=len(batch.samples) - counted[key].standby_samples,
                corrected_times=made[key].corrected_times,
                refused_items=counted[key].standby_samples,
                refused=counted[key].why,
            )
        self.counts.groups += 1
        self.future_times.add(sum(rows.future_times for rows in made.values()))
        self.backward_waits.add(sum(rows.backward_waits for rows in made.values()))
        self.counts.batches += len(group)
        self.counts.dropped_events += sum(first[key].batch.dropped_events for key in made)
        self.counts.repeated_events += sum(each.repeated_events for each in counted.values())
        self.counts.standby_samples += sum(each.standby_samples for each in counted.values())
        for receipt in receipts.values():
            self.counts.duplicates += receipt.is_duplicate
            self.counts.events += receipt.accepted_events
            self.counts.samples += receipt.accepted_samples
            self.counts.corrected_times += receipt.corrected_times
        return receipts
