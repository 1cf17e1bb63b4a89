"""Any queues of RabbitMQ, whoever publishes to them and consumes from them: counted, without events."""

from collections.abc import Collection
from typing import Any

from headway.collect.rabbitmq.broker_address import SCHEMES, refusals
from headway.collect.rabbitmq.broker_reader import BrokerReader
from headway.collect.rabbitmq.dramatiq_queues import ENDINGS, belongs, delayed_by_queue, owner_of
from headway.collect.rabbitmq.head_times import HeadTimes
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.collect.rabbitmq.queue_sample import UNKNOWN, QueueSamples, serves_workers
from headway.collect.source import Cursor, Figure, FoundQueue, Library, Reading, bounded, unseen
from headway.connections import Connection

TIMESTAMPS = "set message_interceptors.incoming.set_header_timestamp.overwrite = true in rabbitmq.conf (3.12 or later)"


class RabbitmqSource:
    """The queues of one virtual host. One thread polls."""

    acknowledges_ends = True
    """Whether consumers are taken to acknowledge a job when it has ended."""
    consumers_are_workers = False
    """Whether each consumer of a queue is known to be a worker process."""

    def __init__(self, connection: Connection, cursor: Cursor | None) -> None:
        """Go on with the queues of ``cursor``: one that was deleted since is empty."""
        self._connection = connection
        self._reader = BrokerReader(connection, self._is_read, cursor)
        self._samples = QueueSamples(
            connection, HeadTimes(self._reader.api.head_time_s), acknowledges_ends=self.acknowledges_ends
        )

    def cursor(self) -> dict[str, Any]:
        """The queues that were seen; nothing is reported job by job, so nothing can be reported twice."""
        return self._reader.cursor()

    def discover(self) -> tuple[FoundQueue, ...]:
        """The queues in the virtual host that an application has declared, by name."""
        listed, consumers = self._reader.listed()
        aside, own = self._reader.aside(listed, consumers), self._own({each.name for each in listed})
        return tuple(
            FoundQueue(
                name=each.name,
                waiting_jobs=each.ready_jobs or 0,
                workers=found.consumers if self.consumers_are_workers and (found := consumers.get(each.name)) else None,
                is_aside=each.name in aside,
            )
            for each in sorted(listed, key=lambda each: each.name)
            if each.name in own
        )

    def poll(self, at_s: float) -> Reading:
        """Depths, and ages where messages have a timestamp, as they are now."""
        counts, names = self._reader.read(at_s), self._reader.known
        endings = [name for name in counts if name.endswith(ENDINGS)]  # few of a thousand, most often none
        others = {name for name in endings if not self._is_own(name, names)}
        queues = {name: count for name, count in counts.items() if name not in others} if others else counts
        beside = {name: counts[name] for name in others if belongs(name, names)}
        delayed = delayed_by_queue(beside)
        return Reading(
            at_s=at_s, samples=self._samples.of(queues, at_s, delayed=lambda name, _: delayed.get(name, UNKNOWN))
        )

    def close(self) -> None:
        """Let the broker go."""
        self._reader.close()

    def _is_read(self, queue: ListedQueue) -> bool:
        is_read = any(self._connection.reads(name) for name in (queue.name, owner_of(queue.name)) if name is not None)
        return is_read and serves_workers(queue, self._connection)

    def _own(self, names: Collection[str]) -> frozenset[str]:
        """Those of ``names`` that are queues of an application."""
        return frozenset(name for name in names if self._is_own(name, names))

    def _is_own(self, name: str, names: Collection[str]) -> bool:
        """Whether ``name`` is read for itself; one of Dramatiq's others only where it is named without a pattern."""
        if owner_of(name) is None or name in self._connection.named_queues:
            return True
        return self._connection.reads(name) and not belongs(name, names)


EMIT = "report the jobs: docs/how-to/report-jobs.md"
RABBITMQ = Library(
    name="rabbitmq",
    title="RabbitMQ",
    schemes=SCHEMES,
    refusals=refusals,
    open=RabbitmqSource,
    is_first_choice=True,
    accuracy={
        Figure.WAITING: bounded("5 s, of more than 50 quorum queues"),
        Figure.IN_FLIGHT: bounded(
            "5 s, of quorum queues; jobs of consumers that acknowledge before a job ends, or never; unknown without "
            "the management API",
            remedy="acknowledge a job when it has ended",
        ),
        Figure.DELAYED: bounded("of Dramatiq's queues alone, while a worker consumes them; not when they are due"),
        Figure.OLDEST_AGE: bounded(
            "5 s, of classic queues whose messages have a timestamp; else unknown", remedy=TIMESTAMPS
        ),
        Figure.ENTRIES: unseen(remedy=EMIT),
        Figure.STARTS: unseen(remedy=EMIT),
        Figure.ENDS: unseen(remedy=EMIT),
        Figure.BUSY_WORKERS: unseen(),
    },
)
