"""Which queues Celery has declared in a broker: kombu writes a set for each exchange, which it never removes."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import redis

from headway.connections import Connection
from headway.local.topic_pattern import topic_matches

BINDINGS = "_kombu.binding."
INTERNAL = ("celeryev", "celery.pidbox", "reply.celery.pidbox")
SEPARATOR = "\x06\x16"
SCANNED_KEYS = 1_000  # a poll scans as many keys for new queues: a third of a millisecond of the broker's
READ_AGAIN = 20  # sets a poll
QUEUES_MAX = 10_000
PATTERNS_MAX = 1_000  # of topic exchanges: a new routing key is compared with each, in a millisecond
ROUTES_KEPT = 10_000


class QueueBindings:
    """The queues of one connection that were found, and by which routes their messages come."""

    def __init__(self, client: "redis.Redis", connection: Connection, *, known: Iterable[str]) -> None:
        """Begin with the queues ``known``: after a flush no producer that still runs declares them again."""
        self._client = client
        self._connection = connection
        self._begins = f"{connection.prefix or ''}{BINDINGS}"
        self._scan_from: int | None = None
        self._known: dict[str, None] = {}
        """The sets that were read, the one whose turn is next, first."""
        self._routes: dict[tuple[str, str], str] = {}
        """Exchange and routing key -> queue."""
        self._patterns: dict[tuple[str, str, str], tuple[str, ...]] = {}
        """Exchange, queue and binding key of a topic exchange -> the words of that key."""
        self._queue_by_topic = lru_cache(ROUTES_KEPT)(self._found_by_topic)
        self.is_whole = False
        """Whether the last call has scanned all keys."""
        self.queues: dict[str, None] = dict.fromkeys(queue for queue in known if connection.reads(queue))

    def scan_all(self) -> None:
        """Scan all keys."""
        cursor = self._scan(0)
        while cursor:
            cursor = self._scan(cursor)
        self._scan_from = 0
        self.is_whole = True

    def scan_on(self) -> None:
        """Scan all keys the first time, then some, going on where the last call ended."""
        if self._scan_from is None:
            self.scan_all()
        else:
            began_at = self._scan_from
            self._scan_from = self._scan(began_at)
            self.is_whole = began_at == self._scan_from == 0 and len(self._known) <= READ_AGAIN
            again = [key for key, _ in zip(self._known, range(READ_AGAIN), strict=False)]
            self._take(again)  # an exchange may have more queues since
            for key in again:
                self._known[key] = self._known.pop(key)

    def queue_of(self, exchange: str, routing_key: str) -> str | None:
        """The queue that a message came from; ``None``: none that is read."""
        queue = self._routes.get((exchange, routing_key)) or self._queue_by_topic(exchange, routing_key)
        return queue or (routing_key if routing_key in self.queues else None)

    def _found_by_topic(self, exchange: str, routing_key: str) -> str | None:
        key = routing_key.split(".")
        bound = (each for each in self._patterns.items() if each[0][0] == exchange)
        return next((queue for (_, queue, _), pattern in bound if topic_matches(pattern, key)), None)

    def _scan(self, cursor: int) -> int:
        cursor, keys = self._client.scan(cursor, match=f"{self._begins}*", count=SCANNED_KEYS)
        new = sorted({str(key) for key in keys} - self._known.keys())
        self._take(new)
        self._known.update(dict.fromkeys(new))
        return int(cursor)

    def _take(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.smembers(key)
            replies = pipe.execute(raise_on_error=False)
        for key, members in zip(keys, replies, strict=True):
            exchange = key.removeprefix(self._begins)
            if exchange in INTERNAL or isinstance(members, Exception):
                continue
            for member in sorted(members):
                routing_key, _, rest = member.partition(SEPARATOR)
                pattern, _, queue = rest.rpartition(SEPARATOR)
                is_new = queue not in self.queues
                if queue and self._connection.reads(queue) and not (is_new and len(self.queues) >= QUEUES_MAX):
                    self.queues[queue] = None
                    self._routes[exchange, routing_key] = queue
                    if pattern:
                        self._bind_topic(exchange, queue, routing_key)

    def _bind_topic(self, exchange: str, queue: str, routing_key: str) -> None:
        bound = (exchange, queue, routing_key)
        if bound not in self._patterns and len(self._patterns) < PATTERNS_MAX:
            self._patterns[bound] = tuple(routing_key.split("."))
            self._queue_by_topic.cache_clear()
