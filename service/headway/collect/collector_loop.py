"""Collectors at work: one thread a broker connection polls, sends, waits. One that fails does not touch another."""

import logging
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headway.collect.change_filter import ChangeFilter
from headway.collect.libraries import Libraries
from headway.collect.poll_pacing import PollPacing
from headway.collect.source import QUEUES_POLLED_MAX, Library, Reading, Source
from headway.connections import COLLECTOR, Connection
from headway.emit.outbox import Outbox
from headway.emit.outbox_folder import BEGIN_ANEW
from headway.errors import Invalid, Misconfigured, Unavailable
from headway.local.backoff import DoublingPause
from headway.scaling.model import BrokerPoll, JobEvent, QueueSample, TelemetryBatch, WorkerActivity

CATCH_UP_S = 0.05  # the pause between polls that cannot take everything that is new: a third of the processor is left
PAUSE = DoublingPause(0.5, 4.0)  # a broker that is back is read within 5 s
BATCH_ITEMS_MAX = 9_000  # ingest takes 10,000
PROBLEM_CHARS_MAX = 300
STORED_EVERY_S = 60.0  # what a source has learned; its events are stored at once
LOGGED_MAX = 20  # names of queues in a line of the log
FIRST_LIBRARY = "rq"  # whose cursors were written before a cursor named its library

log = logging.getLogger(__name__)


class Collector:
    """One connection: what it holds goes to one outbox."""

    def __init__(
        self, connection: Connection, library: Library, outbox: Outbox, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Raises ``Misconfigured`` where the connection's URL cannot be one."""
        self._connection = connection
        self._library = library
        self._outbox = outbox
        self._clock = clock
        self._source = self._opened()
        self._news = ChangeFilter()
        self._pacing = PollPacing(connection.every_s, processor_share=connection.processor_share)
        self._failures = 0
        self._problem: str | None = None
        """Why the last turn failed."""
        self._is_half_taken = False
        """Whether the source may have forgotten what was not sent."""
        self._queues: tuple[str, ...] | None = None
        self._is_new_to_file = False
        """Whether the queues are others than when the cursor was stored."""
        self._stored_at_s = -math.inf
        """When the cursor was stored last, beside those of events."""

    def turn(self) -> float:
        """Poll once and send what is new; before that, what could not be sent yet. Returns the pause until the next."""
        began_s, processor_s = time.monotonic(), time.thread_time()
        if not self._outbox.is_empty and not self._outbox.push():
            return self._outbox.pause_s
        try:
            self._forget_half_taken()
            reading = self._source.poll(self._clock())
        except (Unavailable, Misconfigured) as error:  # also while the file of a password is being replaced
            return self._lost(error)
        self._refuse_foreign(reading)
        self._back(reading)
        if not self._send(reading):
            return self._outbox.pause_s
        if reading.has_more:
            return CATCH_UP_S
        self._pace(time.thread_time() - processor_s)
        return max(0.0, began_s + self._pacing.interval_s - time.monotonic())

    def run(self, stop: threading.Event) -> None:
        """Take turns until ``stop`` is set."""
        while not stop.is_set():
            try:
                pause_s = self.turn()
            except Exception as error:  # noqa: BLE001 - a bug in one must not end the thread; it is logged
                pause_s = self._failed(error)
            stop.wait(pause_s)

    def _failed(self, error: Exception) -> float:
        """Begin anew after a bug, or after an answer that no such broker gives. Returns the pause."""
        problem = repr(error)[:PROBLEM_CHARS_MAX]
        if problem != self._problem:  # the same one comes back with each turn
            log.error(
                "collector failed connection=%s: %s; either %s is no broker of %s, or this is a bug of Headway",
                self._connection.name,
                problem,
                self._connection.shown_url,
                self._library.title,
                exc_info=error,
            )
        self._problem = problem
        self._is_half_taken = True
        return PAUSE.longest_s

    def _forget_half_taken(self) -> None:
        """After a turn that failed, read again from the last that was sent."""
        if self._is_half_taken:
            with suppress(Exception):
                self._source.close()
            self._source, self._news = self._opened(), ChangeFilter()
            self._is_half_taken = False

    def _pace(self, processor_s: float) -> None:
        before_s = self._pacing.interval_s
        self._pacing.took(processor_s)
        interval_s, every_s = self._pacing.interval_s, self._connection.every_s
        if (interval_s > every_s) != (before_s > every_s):
            log.info(
                "polls %s connection=%s interval_s=%.1f turn_processor_s=%.3f",
                "come less often" if interval_s > every_s else "come as often as asked",
                self._connection.name,
                interval_s,
                processor_s,
            )

    def close(self) -> None:
        """Let broker and file go."""
        self._outbox.close()
        self._source.close()

    def _opened(self) -> Source:
        """A source that goes on from what was sent last."""
        cursor = self._outbox.cursor
        library = FIRST_LIBRARY if cursor is None else cursor.get("library", FIRST_LIBRARY)
        if cursor is not None and library != self._library.name:
            log.warning(
                "library changed connection=%s from=%s to=%s: what waits and runs now is reported anew",
                self._connection.name,
                library,
                self._library.name,
            )
            cursor = None
        try:
            return self._library.open(self._connection, cursor)
        except (KeyError, TypeError, ValueError) as error:
            raise Misconfigured(
                f"state of connection {self._connection.name!r} holds what was not written there: {error!r}; "
                f"{BEGIN_ANEW}"
            ) from error

    def _cursor(self) -> dict[str, Any]:
        return {**self._source.cursor(), "library": self._library.name}

    def _send(self, reading: Reading) -> bool:
        """Get what is new of ``reading`` out. Returns whether all of it was answered."""
        is_due = not 0.0 <= reading.at_s - self._stored_at_s < STORED_EVERY_S
        if not self._outbox.has_cursor or self._is_new_to_file or is_due:
            self._outbox.keep(self._cursor())  # from now on it is known where the reports began, and of which queues
            self._is_new_to_file, self._stored_at_s = False, reading.at_s
        samples, activities = self._news.due(reading.samples, reading.activities, at_s=reading.at_s)
        interval_s = self._pacing.interval_s
        samples = [replace(sample, poll_interval_s=interval_s) for sample in samples]
        polls = self._polls(reading)
        batches = _batches(reading.events, samples, activities)
        for events, some_samples, some_activities in batches or [((), [], [])] * len(polls):
            self._outbox.offer(
                events=events,
                samples=some_samples,
                activities=some_activities,
                polls=polls,
                cursor=self._cursor() if events else None,  # without a name, which would hold it until the answer
            )
            polls = ()
            if not self._outbox.push():
                return False
            self._news.sent(some_samples, some_activities, at_s=reading.at_s)
        return self._outbox.push()

    def _polls(self, reading: Reading) -> tuple[BrokerPoll, ...]:
        """What to send of the poll itself. Where it found no queue, nothing else shows that the broker was read."""
        poll = reading.poll
        if poll is None and not reading.samples and self._news.is_heartbeat_due(at_s=reading.at_s):
            poll = BrokerPoll(connection=self._connection.name, at_s=reading.at_s, until_s=reading.at_s)
        return () if poll is None or len(poll.queues) > QUEUES_POLLED_MAX else (poll,)

    def _refuse_foreign(self, reading: Reading) -> None:
        """Raise ``Invalid`` where a source names queues of another connection: they would be those of its pools."""
        begins = self._connection.queue("")
        named = {sample.queue for sample in reading.samples} | {event.queue for event in reading.events}
        named |= set() if reading.poll is None else {row.queue for row in reading.poll.queues}
        foreign = [queue for queue in named if not queue.startswith(begins)]
        if foreign:
            raise Invalid(f"library {self._library.name!r} names queue {min(foreign)!r}, which is none of {begins}…")

    def _lost(self, error: Unavailable | Misconfigured) -> float:
        if not self._failures:
            log.warning("broker lost connection=%s: %s", self._connection.name, error)
        self._failures += 1
        return PAUSE.after_s(self._failures) * random.uniform(0.5, 1.0)  # noqa: S311 - so that many do not come back together

    def _back(self, reading: Reading) -> None:
        if self._failures or self._problem:
            log.info("broker back connection=%s", self._connection.name)
        self._failures, self._problem = 0, None
        queues = tuple(sorted(sample.queue for sample in reading.samples))
        if queues != self._queues:
            before = self._queues or ()
            log.info(
                "watching connection=%s library=%s url=%s queues=%d new=%s gone=%s",
                self._connection.name,
                self._library.name,
                self._connection.shown_url,
                len(queues),
                _listed(sorted(set(queues) - set(before))),
                _listed(sorted(set(before) - set(queues))),
            )
            self._is_new_to_file = self._queues is not None
        self._queues = queues


def _listed(queues: Sequence[str]) -> str:
    """The first of ``queues``, and how many more there are: thousands may come at once."""
    more = f",… and {len(queues) - LOGGED_MAX} more" if len(queues) > LOGGED_MAX else ""
    return ",".join(queues[:LOGGED_MAX]) + more or "none"


def _batches(
    events: tuple[JobEvent, ...], samples: list[QueueSample], activities: list[WorkerActivity]
) -> list[tuple[tuple[JobEvent, ...], list[QueueSample], list[WorkerActivity]]]:
    """Everything in as few batches as ingest takes; all events in the first, because a cursor goes with all of them."""
    batches = []
    while events or samples or activities:
        room = max(0, BATCH_ITEMS_MAX - len(events))
        some_samples, samples = samples[:room], samples[room:]
        room -= len(some_samples)
        some_activities, activities = activities[:room], activities[room:]
        batches.append((events, some_samples, some_activities))
        events = ()
    return batches


class Collectors:
    """One collector a connection, each in a thread of its own."""

    def __init__(
        self,
        connections: Iterable[Connection],
        *,
        libraries: Libraries,
        folder: Path,
        send: Callable[[TelemetryBatch], object],
    ) -> None:
        """Prepare a collector for each of ``connections``, whose names differ.

        Raises:
            Misconfigured: no library reads a connection, a URL cannot be one, or a state file cannot be read.
        """
        self._stop = threading.Event()
        self._collectors = {
            each.name: Collector(each, libraries.of(each), _outbox(each.name, folder, send)) for each in connections
        }
        self._threads: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """Start polling."""
        for connection, collector in self._collectors.items():
            # A daemon: a broker that does not answer cannot hold up the end, and the file is whole at any moment.
            thread = threading.Thread(target=collector.run, args=(self._stop,), name=connection, daemon=True)
            self._threads[connection] = thread
            thread.start()

    def ask_to_stop(self) -> None:
        """Let no collector begin another turn."""
        self._stop.set()

    def wait_stopped(self, within_s: float) -> None:
        """Wait for the turns under way; whoever has ended by then lets its broker and file go."""
        until_s = time.monotonic() + within_s
        for connection, thread in list(self._threads.items()):
            thread.join(max(0.0, until_s - time.monotonic()))
            if not thread.is_alive():
                self._collectors[connection].close()
                del self._threads[connection]


def _outbox(connection: str, folder: Path, send: Callable[[TelemetryBatch], object]) -> Outbox:
    file = folder / f"{quote(connection, safe='')}.json"
    # Where two of them poll one connection, the host's name shows which to end.
    return Outbox(file, name=f"{COLLECTOR}{connection}-{socket.gethostname()}", send=send, clock=time.time)
