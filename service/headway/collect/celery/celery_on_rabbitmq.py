"""Celery's queues in RabbitMQ: counted, without taking a message and without a queue of Headway's own.

Workers publish heartbeats here, too, but to have them one would declare a queue and bind it to ``celeryev``: a write.
So what workers have not acknowledged is a lower bound of the jobs in flight: with early acknowledgements, Celery's
default, a job that runs is not among it. Workers report it themselves:
docs/decisions/0027-nothing-declared-in-rabbitmq.md.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any

from headway.collect.celery.delay_chains import DelayChains, DelayQueue
from headway.collect.celery.delay_routes import DelayRoutes
from headway.collect.celery.internal_queues import is_internal
from headway.collect.rabbitmq.broker_address import SCHEMES, refusals
from headway.collect.rabbitmq.broker_reader import QueueCount
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.collect.rabbitmq.queue_sample import UNKNOWN, DelayedCount, serves_workers
from headway.collect.rabbitmq.rabbitmq_source import RABBITMQ, RabbitmqSource
from headway.collect.source import Cursor, Figure, Library, Reading, bounded, unseen
from headway.connections import Connection
from headway.scaling.model import BrokerPoll, PolledQueue


class CeleryOnRabbitmq(RabbitmqSource):
    """The queues of one virtual host that are Celery's. One thread polls."""

    # By default a task is acknowledged before it runs, and the broker cannot tell which it is.
    acknowledges_ends = False
    consumers_are_workers = True

    _polled_at_s: float | None = None

    def __init__(self, connection: Connection, cursor: Cursor | None) -> None:
        """Go on with the queues of ``cursor``, and with when messages entered those of Celery's delays."""
        super().__init__(connection, cursor)
        before = cursor or {}
        self._chains = DelayChains(before.get("delays"), before.get("prefixed_delays"))
        self._routes = DelayRoutes(self._reader.api.bindings, before.get("delay_routes"))

    def cursor(self) -> dict[str, Any]:
        """The queues that were seen, and when messages entered those of Celery's delays."""
        plain, prefixed = self._chains.to_state()
        delays = {"delays": plain, "prefixed_delays": prefixed, "delay_routes": self._routes.to_state()}
        return {**super().cursor(), **delays}

    def poll(self, at_s: float) -> Reading:
        """Depths, and ages where messages have a timestamp, as they are now."""
        began_s = time.monotonic()
        counts = self._reader.read(at_s)
        until_s = at_s + time.monotonic() - began_s
        self._chains.forget_except(self._reader.known)
        levels = {name: self._chains.level(name) for name in counts}
        queues = {name: count for name, count in counts.items() if levels[name] is None}
        delayed = {level: counts[name] for name, level in levels.items() if level is not None}
        current = {level: each.ready_jobs for level, each in delayed.items() if each.is_current}
        self._chains.see(current, at_s=at_s)
        unread = (name for name, gone_s in self._reader.known.items() if gone_s is None and name not in counts)
        is_whole = all(self._chains.level(name) is None for name in unread)
        has_delayed = is_whole and any(each.ready_jobs for each in delayed.values())
        only = self._routes.only_queue(queues, at_s=at_s) if has_delayed else None
        of_levels = self._delayed(delayed, at_s) if only is not None else UNKNOWN
        samples = self._samples.of(
            queues,
            at_s,
            # Of a classic queue, workers hold such jobs among the others.
            delayed=lambda name, count: of_levels if name == only and not count.is_classic else UNKNOWN,
        )
        return Reading(at_s=at_s, samples=samples, poll=self._entries(queues, at_s, until_s))

    def _entries(self, queues: Mapping[str, QueueCount], at_s: float, until_s: float) -> BrokerPoll:
        """What bounds the entries of jobs."""
        unknown = (name for name, gone_s in self._reader.known.items() if gone_s is None and name not in queues)
        rows = [PolledQueue(queue=self._connection.queue(name), waiting_jobs=0) for name in unknown]
        rows += [
            PolledQueue(
                queue=self._connection.queue(name),
                waiting_jobs=count.ready_jobs,
                held_jobs=count.unacked_jobs,
                consumers=count.consumers,
                is_ordered=count.keeps_order,
            )
            for name, count in queues.items()
            if count.is_there and not (count.keeps_order and count.ready_jobs == 0 and count.unacked_jobs == 0)
        ]
        after_s, self._polled_at_s = self._polled_at_s, at_s
        return BrokerPoll(
            connection=self._connection.name,
            at_s=at_s,
            until_s=until_s,
            after_s=after_s,
            queues=tuple(rows),
            finds_all=self._reader.has_listed,
        )

    def _is_read(self, queue: ListedQueue) -> bool:
        if self._chains.accepts(queue):
            return True
        if is_internal(queue.name) or not serves_workers(queue, self._connection):
            return False
        return self._connection.reads(queue.name)

    def _own(self, names: Collection[str]) -> frozenset[str]:
        return frozenset(name for name in names if self._chains.level(name) is None)

    def _delayed(self, levels: Mapping[DelayQueue, QueueCount], at_s: float) -> DelayedCount:
        """Jobs due later of the only queue that they can come to, by how many are at each level.

        For quorum queues Celery delays jobs in queues of its own, for all queues together: to which one a message goes
        is written in the message. Where these are empty, workers may hold some all the same: for a direct exchange,
        Celery delays nothing in the broker.
        """
        counts = {level: each.ready_jobs for level, each in levels.items() if each.ready_jobs}
        due = self._chains.due(counts, at_s=at_s)
        return UNKNOWN if due is None else DelayedCount(jobs=sum(counts.values()), due=due)


REMEDY = "workers that Headway starts report them; start others with --include headway.emit.celery"
CELERY_ON_RABBITMQ = Library(
    name="celery",
    title="Celery on RabbitMQ",
    schemes=SCHEMES,
    refusals=refusals,
    open=CeleryOnRabbitmq,
    accuracy={
        **RABBITMQ.accuracy,  # how good depth and age are, which the broker itself shows
        Figure.IN_FLIGHT: bounded(
            "a lower bound: what workers have not acknowledged; with early acknowledgements what runs is not among it",
            remedy=REMEDY,
        ),
        Figure.DELAYED: bounded(
            "5 s, where Celery delays jobs of one quorum queue in the virtual host; else unknown. A job counts from "
            "when it may be due"
        ),
        Figure.ENTRIES: unseen(remedy="import headway.emit.celery where tasks are sent"),
        Figure.STARTS: unseen(remedy=REMEDY),
        Figure.ENDS: unseen(remedy=REMEDY),
        Figure.BUSY_WORKERS: unseen(remedy=REMEDY),
    },
)
