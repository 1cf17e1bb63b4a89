"""Which queues Celery has declared in a broker: kombu writes a set for each exchange, which it never removes."""

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import redis

from headway.collect.celery.binding_members import SEPARATOR, Binding, binding_from
from headway.collect.celery.internal_queues import is_internal, is_internal_exchange, receives_events
from headway.collect.prepared_commands import exchange, prepared, sound
from headway.connections import Connection
from headway.local.topic_pattern import topic_matches

SEPARATORS_MAX = 20  # of one broker's applications
BINDINGS = "_kombu.binding."
SCANNED_KEYS = 1_000  # a poll scans as many keys for new queues: a third of a millisecond of the broker's
READ_AGAIN = 20  # sets a poll
QUEUES_MAX = 10_000
OTHERS_HOLD_S = 86_400.0
PATTERNS_MAX = 1_000  # of topic exchanges: a new routing key is compared with each, in a millisecond
ROUTES_KEPT = 10_000
_OWN = (SEPARATOR,)

log = logging.getLogger(__name__)


class QueueBindings:
    """The queues of one connection that were found, and by which routes their messages come."""

    def __init__(
        self,
        client: "redis.Redis",
        connection: Connection,
        *,
        known: Iterable[str],
        separators: Any = None,
        others_at_s: float | None = None,
    ) -> None:
        """Begin with the queues ``known``: after a flush no producer that still runs declares them again.

        ``separators`` are those of their lists, where they are not kombu's own. ``others_at_s`` is what an earlier
        object had found.
        """
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
        self.lists: list[str] = []
        """The lists for priorities that the last call has scanned."""
        self._glob = "".join(f"\\{each}" if each in "\\[]*?^" else each for each in connection.prefix or "")
        self._filters_types = True
        """Whether the server can name the lists alone, as from Redis 6 on."""
        self._unreadable: set[str] = set()
        self.all_separators: list[str] = [SEPARATOR]
        self.further_separators: dict[str, list[str]] = {}
        """Queue -> those of its lists, where they are not kombu's own alone."""
        for queue, each in (separators if isinstance(separators, dict) else {}).items():
            for separator in each:
                self._note_separator(str(queue), str(separator))
        self.queues: dict[str, None] = dict.fromkeys(
            queue for queue in known if connection.reads(queue) and not is_internal(queue)
        )
        self._at_s = others_at_s or 0.0
        """When keys were scanned last."""
        self.others_at_s = others_at_s
        """When a binding was last seen of a queue that is not read: the connection leaves it out, or it is unread."""

    def scan_all(self, *, at_s: float) -> None:
        """Scan all keys."""
        self._at_s = at_s
        found: list[str] = []
        cursor = self._scan(0)
        found += self.lists
        while cursor:
            cursor = self._scan(cursor)
            found += self.lists
        self.lists = found
        self._scan_from = 0
        self.is_whole = True

    def scan_on(self, *, at_s: float) -> None:
        """Scan all keys the first time, then some, going on where the last call ended."""
        self._at_s = at_s
        if self._scan_from is None:
            self.scan_all(at_s=at_s)
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

    @property
    def has_one_queue(self) -> bool:
        """Whether the broker has a single queue, so that its workers serve no other."""
        return len(self.queues) == 1 and not self._has_others

    @property
    def _has_others(self) -> bool:
        # A flush removes the bindings of queues that are in use, and no producer that still runs binds them again.
        return self.others_at_s is not None and self._at_s - self.others_at_s < OTHERS_HOLD_S

    @property
    def separators(self) -> int:
        """How many pairs of a queue and a separator of its lists are known."""
        return sum(map(len, self.further_separators.values()))

    def separators_of(self, queue: str) -> Sequence[str]:
        """What stands between the queue's name and a priority in the keys of its lists."""
        return self.further_separators.get(queue, _OWN)

    def _scan(self, cursor: int) -> int:
        """Scan keys from ``cursor`` on, for bindings and for lists. Returns where to go on; 0: all were scanned."""
        commands = [prepared("SCAN", cursor, "MATCH", f"{self._glob}{BINDINGS}*", "COUNT", SCANNED_KEYS)]
        if self._filters_types:
            # A list for a priority ends with it. The others are called like their queues.
            lists = ("SCAN", cursor, "MATCH", f"{self._glob}*[0-9]", "COUNT", SCANNED_KEYS, "TYPE", "list")
            commands.append(prepared(*lists))
        found, *listed = exchange(self._client, commands)
        sound([found])
        self._take_lists(listed)
        cursor, keys = found
        new = sorted({str(key) for key in keys} - self._known.keys())
        self._take(new)
        self._known.update(dict.fromkeys(new))
        return int(cursor)

    def _take_lists(self, replies: Sequence[Any]) -> None:
        self.lists = []
        for reply in replies:
            if not isinstance(reply, Exception):
                self.lists = [str(key) for key in reply[1]]
            elif isinstance(reply, redis.ResponseError):
                self._filters_types = False
                log.warning(
                    "priorities unread connection=%s: the server cannot name its lists (%s), so that only those of the "
                    "default priority_steps are counted",
                    self._connection.name,
                    reply,
                )
            else:
                raise reply

    def _note_separator(self, queue: str, separator: str) -> None:
        known = self.further_separators.get(queue, _OWN)
        if separator in known or len(self.all_separators) >= SEPARATORS_MAX:
            return
        if separator not in self.all_separators:
            self.all_separators.append(separator)
        self.further_separators[queue] = [*known, separator]

    def _take(self, keys: Sequence[str]) -> None:
        replies = exchange(self._client, [prepared("SMEMBERS", key) for key in keys])
        for key, members in zip(keys, replies, strict=True):
            name = key.removeprefix(self._begins)
            if is_internal_exchange(name) or isinstance(members, Exception):
                continue
            for member in sorted(members):
                binding = binding_from(member, exchange=name, separators=self.all_separators)
                if binding is None:
                    self.others_at_s = self._at_s
                    self._pass_over(name, member)
                    continue
                if not (is_internal(binding.queue) or receives_events(binding.queue, binding.routing_key)):
                    self._bind(name, binding)

    def _bind(self, exchange: str, binding: Binding) -> None:
        queue, is_new = binding.queue, binding.queue not in self.queues
        if queue and not self._connection.reads(queue):
            self.others_at_s = self._at_s
        elif queue and not (is_new and len(self.queues) >= QUEUES_MAX):
            self.queues[queue] = None
            self._routes[exchange, binding.routing_key] = queue
            self._note_separator(queue, binding.separator)
            if binding.pattern:
                self._bind_topic(exchange, queue, binding.routing_key)

    def _pass_over(self, exchange: str, member: str) -> None:
        if exchange not in self._unreadable and len(self._unreadable) < QUEUES_MAX:
            self._unreadable.add(exchange)
            log.warning(
                "binding unread connection=%s exchange=%r member=%r: its separator does not show, so that "
                "its queue is not read",
                self._connection.name,
                exchange,
                member,
            )

    def _bind_topic(self, exchange: str, queue: str, routing_key: str) -> None:
        bound = (exchange, queue, routing_key)
        if bound not in self._patterns and len(self._patterns) < PATTERNS_MAX:
            self._patterns[bound] = tuple(routing_key.split("."))
            self._queue_by_topic.cache_clear()
