"""Queues that Celery makes for one process: for remote control, its replies, events and broadcasts. Pure.

A worker has its own, under a new name after each start, and no other worker can take what is in them.
"""

import re

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_QUEUE = re.compile(rf"celeryev\..*|.*\.pidbox|bcast\.{_UUID}", re.DOTALL)
_EVENTS = re.compile(rf".+\.{_UUID}", re.DOTALL)
_EVENT_KEYS = frozenset({"#", "worker.#"})  # of monitors, and of the gossip of workers
_EXCHANGE = re.compile(r"celeryev|.*\.pidbox", re.DOTALL)


def is_internal(queue: str) -> bool:
    """Whether Celery calls such a queue so; before ``.pidbox`` stands ``control_exchange``, ``celery`` by default."""
    return _QUEUE.fullmatch(queue) is not None


def is_internal_exchange(exchange: str) -> bool:
    """Whether all queues of the exchange are of this kind."""
    return _EXCHANGE.fullmatch(exchange) is not None


def receives_events(queue: str, routing_key: str) -> bool:
    """Whether a queue is bound as one for events: ``PREFIX.UUID``, by ``event_queue_prefix``, in any exchange."""
    return routing_key in _EVENT_KEYS and _EVENTS.fullmatch(queue) is not None
