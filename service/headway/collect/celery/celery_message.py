"""A message of Celery as kombu writes it into Redis: its envelope. The body, a task's arguments, is never decoded."""

import json
import math
from dataclasses import dataclass
from typing import Any

from headway.local.iso_time import unix_s

ATTEMPTS_MAX = 2**31  # as of the reporter in the worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What the envelope of a message says."""

    tag: str = ""
    """Which delivery it is; the same when a worker puts it back."""
    due_s: float | None = None
    """When it is due (``eta``, ``countdown``): infinite where it expires before; ``None``: at once, or unknown."""
    is_due_known: bool = True
    """Whether the envelope says so. Of the first task protocol, the body does."""
    is_put_back: bool = False
    """Whether a worker took it and put it back."""
    job_id: str = ""
    attempt: int = 1
    """Which attempt of the job it is, 1 the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A message that a worker holds."""

    exchange: str
    routing_key: str
    message: Message


def message_from(text: str) -> Message:
    """The message that ``text`` is; one that says nothing where it is none."""
    try:
        return _message(json.loads(text))
    except (ValueError, RecursionError):
        return Message()


def taken_from(text: str | None) -> Taken | None:
    """The message in the value ``text`` of ``unacked``; ``None`` of what is none."""
    try:
        message, exchange, routing_key = json.loads(text or "")
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(exchange, str) or not isinstance(routing_key, str):
        return None
    return Taken(exchange=exchange, routing_key=routing_key, message=_message(message))


def _message(value: Any) -> Message:
    tag, job_id = _inside(value, "properties", "delivery_tag"), _inside(value, "headers", "id")
    retries = _inside(value, "headers", "retries")
    return Message(
        tag=tag if isinstance(tag, str) else "",
        due_s=_due_s(value),
        is_due_known=not _is_of_first_protocol(value),
        is_put_back=isinstance(tag, str) and _inside(value, "headers", "redelivered") is True,
        job_id=job_id if isinstance(job_id, str) else "",
        attempt=retries + 1 if type(retries) is int and 0 < retries < ATTEMPTS_MAX else 1,
    )


def _due_s(value: Any) -> float | None:
    due_s = unix_s(_inside(value, "headers", "eta"))
    expires_s = None if due_s is None else unix_s(_inside(value, "headers", "expires"))
    return due_s if expires_s is None or due_s is None or expires_s > due_s else math.inf


def _is_of_first_protocol(value: Any) -> bool:
    """Whether it is a task that has no headers of Celery's, as with ``task_protocol = 1``."""
    headers, job_id = _inside(value, "headers"), _inside(value, "properties", "correlation_id")
    return isinstance(headers, dict) and "task" not in headers and isinstance(job_id, str) and bool(job_id)


def _inside(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
