"""What the counts of a RabbitMQ's queue are as a sample, and which queues are read at all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headway.collect.rabbitmq.broker_reader import STREAM, QueueCount
from headway.collect.rabbitmq.head_times import Age, HeadTimes
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.connections import Connection
from headway.scaling.model import DueJobs, QueueSample, Suspension
from headway.scaling.view import copied


def serves_workers(queue: ListedQueue, connection: Connection) -> bool:
    """Whether ``queue`` can have workers that come and go: one that goes with its last consumer cannot.

    Such a queue is read where the connection names it without a pattern.
    """
    return queue.kind != STREAM and (not queue.is_transient or queue.name in connection.named_queues)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedCount:
    """The jobs of a queue that are due later."""

    jobs: int | None = None
    """``None``: not known."""
    due: tuple[DueJobs, ...] = ()
    is_left: bool = False
    """Whether some wait for a worker to take them, without which they never run."""
    is_held: bool = False
    """Whether workers hold some: others would have to take them if these left."""


UNKNOWN = DelayedCount()


class QueueSamples:
    """Makes the samples of one connection's queues."""

    def __init__(self, connection: Connection, heads: HeadTimes, *, acknowledges_ends: bool) -> None:
        """``acknowledges_ends``: consumers hold a job until it has ended; else they may run others as well."""
        self._connection = connection
        self._acknowledges_ends = acknowledges_ends
        self._heads = heads
        self._empty: dict[str, tuple[QueueCount, DelayedCount, QueueSample]] = {}
        """Of queues in which nothing waits: most of a thousand are as they were, but for the time."""
        self._consumed: set[str] = set()
        """Queues that had a consumer when they were last counted, or before."""
        self._fetched: set[str] = set()
        """Those of the others of which somebody held a job: its workers take jobs with ``basic.get``."""

    def of(
        self,
        counts: Mapping[str, QueueCount],
        at_s: float,
        *,
        delayed: Callable[[str, QueueCount], DelayedCount] = lambda *_: UNKNOWN,
    ) -> tuple[QueueSample, ...]:
        """A sample a queue."""
        self._heads.read(counts, at_s)
        waits = {name: delayed(name, count) for name, count in counts.items()}
        samples = {name: self._sample(name, count, waits[name], at_s) for name, count in counts.items()}
        self._empty = {
            name: (count, waits[name], samples[name]) for name, count in counts.items() if not count.ready_jobs
        }
        self._consumed &= counts.keys()
        self._fetched &= counts.keys()
        return tuple(samples.values())

    def _sample(self, name: str, count: QueueCount, delayed: DelayedCount, at_s: float) -> QueueSample:
        """What consumers hold is in flight: which of it has begun, the broker does not know.

        Where they acknowledge before they run a job, it is a lower bound. Each consumer counts as a worker: the broker
        knows no processes. A worker that holds delayed jobs has one job at least: if it left, others would have to
        take them. If no worker is there to take them, one job at least waits for one.
        """
        known, delayed_before, before = self._empty.get(name, (None, None, None))
        if before is not None and known is count and (delayed_before is delayed or delayed_before == delayed):
            return copied(before, at_s=at_s)
        # Of workers that acknowledge before they run a job, all that they hold may wait.
        may_wait = not self._acknowledges_ends and bool(count.unacked_jobs)
        age = Age() if delayed.is_left or may_wait else self._heads.age(name, count, at_s)
        is_exact = self._acknowledges_ends and not delayed.is_held
        return QueueSample(
            queue=self._connection.queue(name),
            at_s=at_s,
            waiting_jobs=None if delayed.is_left else count.ready_jobs,
            waiting_min_jobs=count.ready_jobs + 1 if delayed.is_left else None,
            in_flight_jobs=count.unacked_jobs if is_exact else None,
            in_flight_min_jobs=None if is_exact else _least(count.unacked_jobs, delayed),
            delayed_jobs=delayed.jobs,
            due=delayed.due,
            oldest_age_s=age.age_s,
            oldest_age_max_s=age.age_max_s,
            reports_arrivals=False,
            reports_starts=False,
            reports_ends=False,
            listed_workers=count.consumers,
            suspension=self._suspension(name, count),
            useful_workers=1 if count.has_single_consumer else None,
            message_ttl_s=count.message_ttl_s,
        )

    def _suspension(self, name: str, count: QueueCount) -> Suspension | None:
        """Whether a queue lacks consumers; ``None`` where it may be one that needs none.

        Consumers that were cancelled finish what they hold. What is held where no consumer was ever seen, was taken
        without one, and so will the rest be.
        """
        if count.consumers is None:
            return None
        if count.consumers:
            self._consumed.add(name)
            self._fetched.discard(name)
            return Suspension.NONE
        if name in self._consumed:
            return Suspension.NO_CONSUMERS
        if count.unacked_jobs:
            self._fetched.add(name)
        is_unknown = count.unacked_jobs is None or name in self._fetched
        return None if is_unknown else Suspension.NO_CONSUMERS


def _least(unacked_jobs: int | None, delayed: DelayedCount) -> int | None:
    return (unacked_jobs or 0) + 1 if delayed.is_held else unacked_jobs
