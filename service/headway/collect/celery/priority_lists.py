"""The lists in which Celery's messages wait in Redis: one for each queue and priority of ``priority_steps``.

The priority stands behind the queue's name and the application's separator; jobs of the first priority are in the list
that is called like the queue. Which priorities there are, only the lists say, and an empty list is none.
"""

import logging
from collections.abc import Iterable
from typing import Any

from headway.collect.celery.binding_members import SEPARATOR
from headway.collect.celery.queue_bindings import QueueBindings
from headway.connections import Connection

PRIORITIES = ("3", "6", "9")  # kombu's own priority_steps, behind the first
LISTS_MAX = 100  # of one queue; whoever may write can make up any number
PASSED_OVER_MAX = 10_000  # lists that are no queue's

log = logging.getLogger(__name__)


class PriorityLists:
    """Which lists each queue of one connection has."""

    def __init__(self, connection: Connection, bindings: QueueBindings, *, known: Any) -> None:
        """``known`` is what ``found`` gave before: an application that is at rest has no lists to find."""
        self._name = connection.queue
        self._prefix = connection.prefix or ""
        self._bindings = bindings
        self.version = 0
        """Grows when a queue has other lists."""
        self.outdated: dict[str, tuple[str, ...]] = {}
        """Queues that have other lists since the last call, and those that they had before."""
        self.unread: set[str] = set()
        """Queues of which some lists are left out, as there are too many."""
        self._keys: dict[str, tuple[str, ...]] = {}
        self.found: dict[str, list[str]] = {}
        """Queue -> what the keys of its lists end with beyond kombu's own priorities; a cursor holds it."""
        self._passed_over: set[str] = set()
        self._seen = (0, 0)
        for queue, endings in (known if isinstance(known, dict) else {}).items():
            self.found[str(queue)] = [str(each) for each in endings][:LISTS_MAX]

    def of(self, queue: str) -> tuple[str, ...]:
        """The keys of the lists of ``queue``."""
        if queue not in self._keys:
            separators = self._bindings.separators_of(queue)
            own = ["", *(f"{separator}{each}" for separator in separators for each in PRIORITIES)]
            endings = dict.fromkeys([*own, *self.found.get(queue, ())])
            self._keys[queue] = tuple(f"{self._prefix}{queue}{ending}" for ending in endings)
        return self._keys[queue]

    def take(self, keys: Iterable[str]) -> set[str]:
        """Take lists that are in the broker. Returns the queues of which a list is new."""
        self.outdated = {}
        seen = len(self._bindings.queues), self._bindings.separators
        if seen != self._seen:  # what was nobody's may be somebody's now
            self._passed_over.clear()
            if seen[1] != self._seen[1]:
                for each in list(self._keys):
                    self._renew(each)
            self._seen = seen
        return {queue for key in keys if key not in self._passed_over and (queue := self._taken(key)) is not None}

    def _taken(self, key: str) -> str | None:
        name = key.removeprefix(self._prefix)
        queue = self._queue_of(name)
        if queue is not None and key not in self.of(queue):
            if len(self.found.get(queue, ())) < LISTS_MAX:
                self.found.setdefault(queue, []).append(name.removeprefix(queue))
                self._renew(queue)
                return queue
            self._leave_out(queue)
        if len(self._passed_over) < PASSED_OVER_MAX:
            self._passed_over.add(key)
            if queue is None and SEPARATOR in name:
                log.warning("list unread list=%r: no binding names its queue, so its jobs are not counted", key)
        return None

    def _renew(self, queue: str) -> None:
        before = self._keys.pop(queue, ())
        if self.of(queue) != before:
            self.outdated.setdefault(queue, before)
            self.version += 1

    def _queue_of(self, name: str) -> str | None:
        """The queue whose list for a priority this is: the last separator stands between both.

        ``None``: it is none, or the list of a queue that is called so.
        """
        queues = self._bindings.queues
        if name in queues:
            return None
        for separator in self._bindings.all_separators:
            queue, _, priority = name.rpartition(separator)
            if queue in queues and priority.isdecimal() and separator in self._bindings.separators_of(queue):
                return queue
        return None

    def _leave_out(self, queue: str) -> None:
        if queue not in self.unread:
            self.unread.add(queue)
            log.warning(
                "lists unread queue=%s: it has more than %d for priorities, so more jobs wait than are counted",
                self._name(queue),
                LISTS_MAX,
            )
