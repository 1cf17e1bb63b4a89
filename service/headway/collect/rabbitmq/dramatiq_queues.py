"""Dramatiq's queues in RabbitMQ: beside each of them stand one of delayed messages and one of dead ones. Pure.

A worker takes delayed messages at once, up to a thousand, holds them, and puts each into its own queue when it is due.
Without a worker nobody does so: they stay where they are, however long they are due. When that is, the body says, which
is not read.
"""

from collections.abc import Collection, Mapping

from headway.collect.rabbitmq.broker_reader import QueueCount
from headway.collect.rabbitmq.queue_sample import DelayedCount

ENDINGS = _DELAYED, _DEAD = ".DQ", ".XQ"


def owner_of(queue: str) -> str | None:
    """The queue to which ``queue`` belongs by its name; ``None``: it has none of the two endings."""
    return queue[: -len(_DEAD)] or None if queue.endswith(ENDINGS) else None


def belongs(queue: str, names: Collection[str]) -> bool:
    """Whether ``queue`` has delayed or dead messages of a queue: Dramatiq declares all three, so ``names`` has them."""
    owner = owner_of(queue)
    return owner is not None and all(f"{owner}{ending}" in names for ending in ("", _DELAYED, _DEAD))


def delayed_by_queue(counts: Mapping[str, QueueCount]) -> dict[str, DelayedCount]:
    """The delayed messages of each queue that has some beside it, by ``counts`` of what belongs to queues."""
    of_delayed = {name: count for name, count in counts.items() if name.endswith(_DELAYED)}
    return {name.removesuffix(_DELAYED): _delayed(count) for name, count in of_delayed.items()}


def _delayed(count: QueueCount) -> DelayedCount:
    is_left = bool(count.ready_jobs) and not count.consumers
    return DelayedCount(
        # Some of those that no worker has taken may be due.
        jobs=None if is_left or count.unacked_jobs is None else count.ready_jobs + count.unacked_jobs,
        is_left=is_left,
        is_held=bool(count.unacked_jobs),
    )
