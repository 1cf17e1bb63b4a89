"""Collectors at work: one thread a broker connection polls, sends, waits. One that fails does not touch another."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote

from headway.collect.broker import connect, shown
from headway.collect.change_filter import ChangeFilter
from headway.collect.rq import PollResult, RqBroker
from headway.emit.outbox import Outbox
from headway.emit.outbox_folder import BEGIN_ANEW, StateFolder
from headway.errors import Misconfigured, Unavailable
from headway.local.backoff import DoublingPause
from headway.scaling.model import JobEvent, QueueSample, TelemetryBatch, WorkerActivity

POLL_S = 0.5  # a queue that wakes from nothing is seen within this; a poll costs the broker well under a millisecond
CATCH_UP_S = 0.05  # the pause between polls that cannot take everything that is new: a third of the processor is left
PAUSE = DoublingPause(0.5, 5.0)
BATCH_ITEMS_MAX = 9_000  # ingest takes 10,000

log = logging.getLogger(__name__)


class Collector:
    """One connection: what it holds goes to one outbox."""

    def __init__(self, connection: str, url: str, outbox: Outbox, *, clock: Callable[[], float] = time.time) -> None:
        """Raises ``Misconfigured`` where ``url`` cannot be one."""
        self._connection = connection
        self._url = url
        self._outbox = outbox
        self._clock = clock
        self._client = connect(url)
        self._broker = self._new_broker()
        self._news = ChangeFilter()
        self._failures = 0
        self._queues: tuple[str, ...] | None = None

    def turn(self) -> float:
        """Poll once and send what is new; before that, what could not be sent yet. Returns the pause until the next."""
        began_s = time.monotonic()
        if not self._outbox.is_empty and not self._outbox.push():
            return self._outbox.pause_s
        try:
            poll_once = self._broker.poll_once(at_s=self._clock())
        except Unavailable as error:
            return self._lost(error)
        self._back(poll_once)
        if not self._send(poll_once):
            return self._outbox.pause_s
        return CATCH_UP_S if poll_once.has_more else max(0.0, began_s + POLL_S - time.monotonic())

    def run(self, stop: threading.Event) -> None:
        """Take turns until ``stop`` is set."""
        while not stop.is_set():
            try:
                pause_s = self.turn()
            except Exception:
                # A bug. What was half taken in is forgotten, and read again from the last that was sent.
                log.exception("collector failed connection=%s", self._connection)
                self._broker, self._news = self._new_broker(), ChangeFilter()
                pause_s = PAUSE.longest_s
            stop.wait(pause_s)

    def close(self) -> None:
        """Let broker and file go."""
        self._outbox.close()
        self._client.close()

    def _new_broker(self) -> RqBroker:
        try:
            return RqBroker(self._client, url=self._url, connection=self._connection, cursor=self._outbox.cursor)
        except (KeyError, TypeError, ValueError) as error:
            raise Misconfigured(
                f"state of connection {self._connection!r} holds what was not written there: {error!r}; {BEGIN_ANEW}"
            ) from error

    def _send(self, poll_once: PollResult) -> bool:
        """Get what is new of ``poll_once`` out. Returns whether all of it was answered."""
        if self._outbox.cursor is None:
            self._outbox.keep(self._broker.cursor())  # from now on it is known where the reports began
        samples, activities = self._news.due(poll_once.samples, poll_once.activities, at_s=poll_once.at_s)
        cursor = self._broker.cursor() if poll_once.events else None
        for events, some_samples, some_activities in _batches(poll_once.events, samples, activities):
            self._outbox.offer(
                events=events, samples=some_samples, activities=some_activities, cursor=cursor if events else None
            )
            if not self._outbox.push():
                return False
            self._news.sent(some_samples, some_activities, at_s=poll_once.at_s)
        return self._outbox.push()

    def _lost(self, error: Unavailable) -> float:
        if not self._failures:
            log.warning("broker lost connection=%s: %s", self._connection, error)
        self._failures += 1
        return PAUSE.after_s(self._failures) * random.uniform(0.5, 1.0)  # noqa: S311 - so that many do not come back together

    def _back(self, poll_once: PollResult) -> None:
        if self._failures:
            log.info("broker back connection=%s", self._connection)
        self._failures = 0
        queues = tuple(sorted(sample.queue for sample in poll_once.samples))
        if queues != self._queues:
            log.info("watching connection=%s url=%s queues=%s", self._connection, shown(self._url), ",".join(queues))
        self._queues = queues


def _batches(
    events: tuple[JobEvent, ...], samples: list[QueueSample], activities: list[WorkerActivity]
) -> Iterator[tuple[tuple[JobEvent, ...], list[QueueSample], list[WorkerActivity]]]:
    """Everything in as few batches as ingest takes; all events in the first, because a cursor goes with all of them."""
    while events or samples or activities:
        room = max(0, BATCH_ITEMS_MAX - len(events))
        some_samples, samples = samples[:room], samples[room:]
        room -= len(some_samples)
        some_activities, activities = activities[:room], activities[room:]
        yield events, some_samples, some_activities
        events = ()


class Collectors:
    """One collector a connection, each in a thread of its own."""

    def __init__(
        self, brokers: Mapping[str, str], *, folder: StateFolder, send: Callable[[TelemetryBatch], object]
    ) -> None:
        """Prepare a collector for each of ``brokers``: connection name -> URL.

        Raises:
            Misconfigured: a URL cannot be one, or a state file cannot be read.
        """
        self._stop = threading.Event()
        self._collectors = {
            connection: Collector(connection, url, _outbox(connection, folder, send))
            for connection, url in brokers.items()
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


def _outbox(connection: str, folder: StateFolder, send: Callable[[TelemetryBatch], object]) -> Outbox:
    file = folder.path / f"{quote(connection, safe='')}.json"
    return Outbox(file, name=f"collect-{connection}", send=send, clock=time.time)
