"""Events in a pipe between processes of one program, and as JSON for the control plane.

A frame is two bytes of length and a tuple in ``marshal``, the fastest there is: whoever packs it runs a job, and reader
and writer are the same Python, forked. All that takes longer is left to the reader.
"""

import json
import marshal
from collections.abc import Callable, Mapping
from marshal import dumps
from typing import Any, Literal, get_args

FRAME_BYTES_MAX = 4_096  # POSIX: what several processes write to a pipe at once stays whole up to this
TEXT_CHARS_MAX = 500  # of these, the control plane takes no more, and refuses the batch for one that is
ATTEMPT_MAX = 2**32 - 1
TIME_MAX_S = 1e11
LENGTH_BYTES = 2
EVENT_BYTES_MAX = FRAME_BYTES_MAX - LENGTH_BYTES
WAKE = bytes(LENGTH_BYTES)
"""A frame without an event."""

Event = tuple[int, str, str, str, float, float | None, float | None, int | None, str | None]
"""How many its writer has lost since the one before, and what ``NAMES`` say."""
NAMES = ("kind", "queue", "job_id", "at_s", "enqueued_at_s", "started_at_s", "attempt", "job_class")
NEEDED = frozenset({"kind", "queue", "job_id", "at_s"})
EventKind = Literal["enqueued", "started", "finished", "failed", "retried"]
KINDS: frozenset[str] = frozenset(get_args(EventKind))

_encoded = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def packed(event: Event) -> bytes:
    """The frame of ``event``. Raises ``ValueError``."""
    try:
        frame = dumps(event)
    except ValueError:  # a kind of text or number that marshal does not know
        frame = dumps(tuple([_plain(value) for value in event]))
    size_bytes = len(frame)
    if size_bytes > EVENT_BYTES_MAX:
        raise ValueError(f"an event of {size_bytes} bytes")
    return size_bytes.to_bytes(LENGTH_BYTES, "little") + frame


def unpacked(data: bytes) -> tuple[list[Event], bytes]:
    """The events in ``data``, and the begun frame at its end."""
    found, at = [], 0
    while len(data) - at >= LENGTH_BYTES:
        begin = at + LENGTH_BYTES
        end = begin + int.from_bytes(data[at:begin], "little")
        if end > len(data):
            break
        if end > begin:
            found.append(marshal.loads(data[begin:end]))  # noqa: S302 - written by this program
        at = end
    return found, data[at:]


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


def _plain(value: str | float | None) -> str | float | None:
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value
