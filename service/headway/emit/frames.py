"""Events in a pipe between processes of one program, and as JSON for the control plane.

A frame is two bytes of length and a tuple in ``marshal``, the fastest there is: whoever packs it runs a job, and reader
and writer are the same Python, forked. All that takes longer is left to the reader.
"""

import json
import marshal

FRAME_BYTES_MAX = 4_096  # POSIX: what several processes write to a pipe at once stays whole up to this
TEXT_CHARS_MAX = 1_000  # the control plane takes no more
LENGTH_BYTES = 2
WAKE = bytes(LENGTH_BYTES)
"""A frame without an event."""

Event = tuple[str, str, str, float, float | None, float | None, int | None, str | None]
NAMES = ("kind", "queue", "job_id", "at_s", "enqueued_at_s", "started_at_s", "attempt", "job_class")

_encoded = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def packed(lost: int, event: Event) -> bytes:
    """The frame of ``event``; ``lost``: how many its writer has lost since the one before. Raises ``ValueError``."""
    try:
        frame = marshal.dumps((lost, *event))
    except ValueError:  # a kind of text or number that marshal does not know
        frame = marshal.dumps((lost, *[_plain(value) for value in event]))
    if len(frame) + LENGTH_BYTES > FRAME_BYTES_MAX:
        raise ValueError(f"an event of {len(frame)} bytes")
    return len(frame).to_bytes(LENGTH_BYTES, "little") + frame


def unpacked(data: bytes) -> tuple[list[tuple[int, Event]], bytes]:
    """The events in ``data``, each with how many were lost before it, and the begun frame at its end."""
    found, at = [], 0
    while len(data) - at >= LENGTH_BYTES:
        begin = at + LENGTH_BYTES
        end = begin + int.from_bytes(data[at:begin], "little")
        if end > len(data):
            break
        if end > begin:
            lost, *event = marshal.loads(data[begin:end])  # noqa: S302 - written by this program
            found.append((lost, tuple(event)))
        at = end
    return found, data[at:]


def json_of(event: Event) -> bytes:
    """What ``POST /v1/telemetry`` takes. Raises ``ValueError`` or ``TypeError`` for what it would refuse."""
    known = {name: value for name, value in zip(NAMES, event, strict=True) if value is not None}
    for value in known.values():
        if isinstance(value, str) and not (0 < len(value) <= TEXT_CHARS_MAX and "\0" not in value and value.encode()):
            raise ValueError(f"{value!r:.100} can be no name")
    return _encoded(known).encode()


def _plain(value: str | float | None) -> str | float | None:
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value
