"""Events in a pipe between processes of one program, and as JSON for the control plane.

In the pipe each is a line of JSON. Whoever writes may have become another user since it was forked, as web servers'
workers do: nothing that it writes can make more of the reader than events.
"""

import json
from collections.abc import Callable, Mapping
from json import encoder
from typing import Any, Literal, get_args

LINE_BYTES_MAX = 4_096  # POSIX: what several processes write to a pipe at once stays whole up to this
TEXT_CHARS_MAX = 500  # of these, the control plane takes no more, and refuses the batch for one that is
ATTEMPT_MAX = 2**32 - 1
LOST_MAX = 2**32
TIME_MAX_S = 1e11
WAKE = b"\n"
"""A line without an event."""

Event = tuple[int, str, str, str, float, float | None, float | None, int | None, str | None]
"""How many its writer has lost since the one before, and what ``NAMES`` say."""
NAMES = ("kind", "queue", "job_id", "at_s", "enqueued_at_s", "started_at_s", "attempt", "job_class")
NEEDED = frozenset({"kind", "queue", "job_id", "at_s"})
EventKind = Literal["enqueued", "started", "finished", "failed", "retried", "revoked"]
KINDS: frozenset[str] = frozenset(get_args(EventKind))

_encoded = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _line_encoder() -> Callable[[Event], str]:
    """What ``JSONEncoder.encode`` does, with its C part made once: making it takes most of the time of a short line."""
    plain = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:  # another Python than CPython
        return plain.encode
    sorts_keys = skips_keys = False
    parts = make(
        None, plain.default, encoder.encode_basestring, None, ":", ",", sorts_keys, skips_keys, plain.allow_nan
    )
    return lambda event: "".join(parts(event, 0))


_line = _line_encoder()


def packed(event: Event) -> bytes:
    """The line of ``event``. Raises ``ValueError`` or ``TypeError``."""
    line = _line(event).encode() + WAKE
    if len(line) > LINE_BYTES_MAX:
        raise ValueError(f"an event of {len(line)} bytes")
    return line


def unpacked(data: bytes) -> tuple[list[Event], int, bytes]:
    """The events in ``data``, how many lines hold none, and the begun line at its end."""
    *lines, rest = data.split(WAKE)
    if len(rest) > LINE_BYTES_MAX:
        lines, rest = [*lines, rest], b""
    read = [_event(line) for line in lines if line]
    found = [event for event in read if event is not None]
    return found, len(read) - len(found), rest


def _event(line: bytes) -> Event | None:
    try:
        lost, *values = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    is_event = type(lost) is int and 0 <= lost <= LOST_MAX and len(values) == len(NAMES)
    return (lost, *values) if is_event else None


def json_of(event: Event) -> bytes:
    """What ``POST /v1/telemetry`` takes. Raises ``ValueError`` or ``TypeError`` for what it would refuse."""
    known = {name: value for name, value in zip(NAMES, event[1:], strict=True) if value is not None}
    if not known.keys() >= NEEDED:
        raise ValueError(f"an event without {min(NEEDED - known.keys())}")
    for name, value in known.items():
        if not _CHECKS[name](value):
            raise ValueError(f"{name}={value!r:.100} is none")
    return _encoded(known).encode()


def _is_name(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= TEXT_CHARS_MAX and "\0" not in value and bool(value.encode())


def _is_time(value: Any) -> bool:
    return type(value) in {int, float} and 0 < value < TIME_MAX_S


def _is_attempt(value: Any) -> bool:
    return type(value) is int and 1 <= value <= ATTEMPT_MAX


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "kind": KINDS.__contains__,
    "queue": _is_name,
    "job_id": _is_name,
    "at_s": _is_time,
    "enqueued_at_s": _is_time,
    "started_at_s": _is_time,
    "attempt": _is_attempt,
    "job_class": _is_name,
}
