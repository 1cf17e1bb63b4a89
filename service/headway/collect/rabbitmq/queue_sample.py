"""What the counts of a RabbitMQ's queue are as a sample, and which queues are read at all."""

from headway.collect.rabbitmq.broker_reader import STREAM, QueueCount
from headway.collect.rabbitmq.head_times import HeadTimes
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.connections import Connection
from headway.scaling.model import QueueSample


def serves_workers(queue: ListedQueue, connection: Connection) -> bool:
    """Whether ``queue`` can have workers that come and go: one that goes with its last consumer cannot.

    Such a queue is read where the connection names it without a pattern.
    """
    return queue.kind != STREAM and (not queue.is_transient or queue.name in connection.named_queues)


def sample_of(
    name: str,
    count: QueueCount,
    *,
    connection: Connection,
    heads: HeadTimes,
    at_s: float,
    delayed_jobs: int | None = None,
) -> QueueSample:
    """The sample of one queue. What consumers hold is in flight: which of it has begun, the broker does not know.

    Each consumer counts as a worker: the broker knows no processes.
    """
    age = heads.age(name, count, at_s)
    return QueueSample(
        queue=connection.queue(name),
        at_s=at_s,
        waiting_jobs=count.ready_jobs,
        in_flight_jobs=count.unacked_jobs,
        delayed_jobs=delayed_jobs,
        oldest_age_s=age.age_s,
        oldest_age_max_s=age.age_max_s,
        listed_workers=count.consumers,
    )
