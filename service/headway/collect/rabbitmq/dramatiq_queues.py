"""Dramatiq's queues in RabbitMQ: beside each of them stand one of delayed messages and one of dead ones. Pure.

A worker takes delayed messages at once, up to a thousand, holds them, and puts each into its own queue when it is due.
Without a worker nobody does so: they stay where they are, however long they are due. When that is, the body says, which
is not read.
"""

from collections.abc import Collection

from headway.collect.rabbitmq.broker_reader import QueueCount
from headway.collect.rabbitmq.queue_sample import DelayedCount

_DELAYED, _DEAD = ".DQ", ".XQ"


def owner_of(queue: str) -> str | None:
    """The queue to which ``queue`` belongs by its name; ``None``: it has none of the two endings."""
    owner = queue.removesuffix(_DELAYED).removesuffix(_DEAD)
    return owner if owner and len(queue) - len(owner) == len(_DEAD) else None


def belongs(queue: str, names: Collection[str]) -> bool:
    """Whether ``queue`` has delayed or dead messages of a queue: Dramatiq declares all three, so ``names`` has them."""
    owner = owner_of(queue)
    return owner is not None and all(f"{owner}{ending}" in names for ending in ("", _DELAYED, _DEAD))


def delayed_name(queue: str) -> str:
    """The queue of the delayed messages of ``queue``."""
    return f"{queue}{_DELAYED}"


def delayed_from(count: QueueCount) -> DelayedCount:
    """The delayed messages, of which ``count`` is the count."""
    is_left = bool(count.ready_jobs) and not count.consumers
    return DelayedCount(
        # Some of those that no worker has taken may be due.
        jobs=None if is_left or count.unacked_jobs is None else count.ready_jobs + count.unacked_jobs,
        is_left=is_left,
        is_held=bool(count.unacked_jobs),
    )
