"""What a broker holds: which queues, and of which library."""

from dataclasses import dataclass

import redis

from headway.collect import rq
from headway.collect.broker import connect, unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundQueue:
    """A queue in a broker, as it was at one moment."""

    library: str
    name: str
    waiting_jobs: int
    workers: int
    """Worker processes that listen to it, of whomever started them."""


def discover(url: str) -> tuple[FoundQueue, ...]:
    """The queues in the broker at ``url``, by name; an empty queue counts as well as a full one.

    Raises:
        Misconfigured: the URL cannot be one.
        Unavailable: the broker does not answer.
    """
    client = connect(url)
    try:
        names = sorted(str(key).removeprefix(rq.LIST) for key in client.smembers(rq.QUEUES))
        with client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.llen(rq.LIST + name)
                pipe.scard(f"{rq.WORKERS}:{name}")
            counts = iter(pipe.execute())
        return tuple(
            FoundQueue(library="rq", name=name, waiting_jobs=next(counts), workers=next(counts)) for name in names
        )
    except (redis.RedisError, OSError) as error:
        raise unavailable(url, error) from error
    finally:
        client.close()
