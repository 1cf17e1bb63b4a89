"""Celery's queues in RabbitMQ: counted, without taking a message and without a queue of Headway's own.

Workers publish heartbeats here, too, but to have them one would declare a queue and bind it to ``celeryev``: a write.
So what workers have not acknowledged is a lower bound of the jobs in flight: with early acknowledgements, Celery's
default, a job that runs is not among it. Workers report it themselves:
docs/decisions/0027-nothing-declared-in-rabbitmq.md.
"""

import re
import time
from collections.abc import Mapping

from headway.collect.celery.delayed_delivery import delay_level, due_by_levels
from headway.collect.rabbitmq.broker_address import SCHEMES, refusals
from headway.collect.rabbitmq.broker_reader import QueueCount
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.collect.rabbitmq.queue_sample import UNKNOWN, DelayedCount
from headway.collect.rabbitmq.rabbitmq_source import TIMESTAMPS, RabbitmqSource
from headway.collect.source import QUEUES_POLLED_MAX, Figure, FoundQueue, Library, Reading, bounded, unseen
from headway.scaling.model import BrokerPoll, PolledQueue

INTERNAL = re.compile(r"celeryev\..*|.*\.celery\.pidbox|.*\.reply\.celery\.pidbox")


class CeleryOnRabbitmq(RabbitmqSource):
    """The queues of one virtual host that are Celery's. One thread polls."""

    acknowledges_ends = (
        False  # by default a task is acknowledged before it runs, and the broker cannot tell which it is
    )

    _polled_at_s: float | None = None

    def discover(self) -> tuple[FoundQueue, ...]:
        """The queues that an application has declared. A worker is one consumer of each queue that it serves."""
        listed, consumers = self._reader.listed()
        return tuple(
            FoundQueue(
                name=each.name,
                waiting_jobs=each.ready_jobs or 0,
                workers=found.consumers if (found := consumers.get(each.name)) is not None else None,
            )
            for each in sorted(listed, key=lambda each: each.name)
            if delay_level(each.name) is None
        )

    def poll(self, at_s: float) -> Reading:
        """Depths, and ages where messages have a timestamp, as they are now."""
        began_s = time.monotonic()
        counts = self._reader.read(at_s)
        until_s = at_s + time.monotonic() - began_s
        levels = {name: delay_level(name) for name in counts}
        queues = {name: count for name, count in counts.items() if levels[name] is None}
        delayed = {level: counts[name].ready_jobs for name, level in levels.items() if level is not None}
        is_only = len(queues) == 1
        samples = self._samples.of(queues, at_s, delayed=lambda count: _delayed(count, delayed, is_only=is_only))
        return Reading(at_s=at_s, samples=samples, poll=self._entries(queues, at_s, until_s))

    def _entries(self, queues: Mapping[str, QueueCount], at_s: float, until_s: float) -> BrokerPoll | None:
        """What bounds the entries of jobs; ``None`` where more queues have jobs than one message names."""
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
        if len(rows) > QUEUES_POLLED_MAX:
            return None
        return BrokerPoll(
            connection=self._connection.name,
            at_s=at_s,
            until_s=until_s,
            after_s=after_s,
            queues=tuple(rows),
            finds_all=self._reader.has_listed,
        )

    def _is_read(self, queue: ListedQueue) -> bool:
        if delay_level(queue.name) is not None:
            return True
        return not INTERNAL.fullmatch(queue.name) and super()._is_read(queue)


def _delayed(count: QueueCount, delayed: Mapping[int, int], *, is_only: bool) -> DelayedCount:
    """Jobs due later of one queue, of which so many are ``delayed`` at each level.

    Of a classic queue, workers hold such jobs among the others. For quorum queues Celery delays jobs in queues of its
    own, for all queues together: to which one a message goes is written in the message. Where these are empty, workers
    may hold some all the same: for a direct exchange, Celery delays nothing in the broker.
    """
    total = sum(delayed.values())
    if not is_only or not total or count.is_classic:
        return UNKNOWN
    return DelayedCount(jobs=total, due=due_by_levels(delayed))


REMEDY = "start workers with --include headway.emit.celery"
CELERY_ON_RABBITMQ = Library(
    name="celery",
    title="Celery on RabbitMQ",
    schemes=SCHEMES,
    refusals=refusals,
    open=CeleryOnRabbitmq,
    accuracy={
        Figure.WAITING: bounded("5 s, of more than 50 quorum queues"),
        Figure.IN_FLIGHT: bounded(
            "a lower bound: what workers have not acknowledged; with early acknowledgements what runs is not among it",
            remedy=REMEDY,
        ),
        Figure.DELAYED: bounded(
            "5 s, where the virtual host has one quorum queue; else unknown. A time when a job is due is a latest time"
        ),
        Figure.OLDEST_AGE: bounded(
            "5 s, of classic queues whose messages have a timestamp; else unknown", remedy=TIMESTAMPS
        ),
        Figure.ENTRIES: unseen(remedy="import headway.emit.celery where tasks are sent"),
        Figure.STARTS: unseen(remedy=REMEDY),
        Figure.ENDS: unseen(remedy=REMEDY),
        Figure.BUSY_WORKERS: unseen(remedy=REMEDY),
    },
)
