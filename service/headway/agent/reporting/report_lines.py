"""The lines that a worker's reporter writes, checked and bounded. Pure.

A job can write any line into its worker's pipe. What a line says is therefore bounded in length and number, and names
nothing that is opened, signalled or run. The protocol: ``headway/workers/celery_reporter/headway_celery_reporter.py``.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headway.scaling.model import QueueOrder, RunningJob

LINE_BYTES_MAX = 4096  # with its line feed: what the kernel writes into a pipe in one piece
REPORT_NAME_CHARS_MAX = 500  # as many as the control plane takes of a text
PARTS_MAX = 1_000  # of one beat: 10,000 running jobs with long names
COUNT_MAX = 2**53
SLOTS_MAX = 10_000  # as in host.toml
UNIX_TIME_MAX_S = 1e10
_DIGEST_CHARS = 16
_ORDERS = {each.value: each for each in QueueOrder}


class ReportKind(StrEnum):
    """What a line says of a job."""

    RECEIVED = "received"
    BEGUN = "begun"
    ENDED = "ended"


class Outcome(StrEnum):
    """How a job ended."""

    FINISHED = "finished"
    FAILED = "failed"
    RETRIED = "retried"
    REJECTED = "rejected"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """One thing that happened to one job, as its worker reported it. Times are Unix seconds of the host."""

    kind: ReportKind
    job_id: str
    queue: str
    """Its own name, without the connection."""
    at_s: float
    job_class: str | None = None
    attempt: int | None = None
    entered_at_s: float | None = None
    """When it entered its queue; ``None``: its message does not say."""
    eta_s: float | None = None
    """Not before this; ``None``: it is not delayed."""
    is_redelivered: bool | None = None
    received_at_s: float | None = None
    """Of a job that begins, when its worker took it from its queue; no line says it, see ``Receptions``."""
    started_at_s: float | None = None
    """Of a job that ended; ``None``: it never began, or that is not known."""
    outcome: Outcome | None = None
    is_requeued: bool = False
    """A rejected job is in its queue again."""
    is_cut: bool = False
    """The process that ran it is gone, and nothing of its library has ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatState:
    """What each line of a beat says of the worker as a whole. ``None`` is unknown."""

    ended: int | None
    """Jobs since the worker started."""
    slots: int | None
    """Jobs that it can run at once now."""
    slots_max: int | None
    """Jobs that it can run at once after it has grown by itself, as Celery's ``--autoscale`` lets it."""
    is_stopping: bool
    loop: int | None
    """Rises while the library's own loop turns."""
    lost: int
    """Lines that the main process could not write so far."""
    execution: str | None = None
    """How the worker runs jobs, by the name of Celery's pool: "prefork", "solo", …"""
    queue_order: QueueOrder | None = None
    """In what order it takes from its queues; a strict one is that of ``queues``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatPart(BeatState):
    """One line of a beat, which holds the worker's whole state."""

    number: int
    part: int
    parts: int
    at_s: float
    running: tuple[RunningJob, ...]
    queues: tuple[str, ...]
    """The queues that the worker consumes."""
    unnamed: int = 0
    """What it runs beside ``running``, of all parts together."""


class Malformed(Exception):
    """A line is no line of the protocol."""


def understood(line: bytes) -> JobReport | BeatPart | None:
    """What ``line`` says; ``None`` where it is of a kind that this version does not know.

    Raises:
        Malformed: it is no line of the protocol.
    """
    try:
        # Only bytes: of a line that begins with a byte order mark, json would guess the encoding.
        body = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no JSON: {type(error).__name__}") from None
    if not isinstance(body, dict) or body.get("v") != 1:
        raise Malformed("no object of version 1")
    kind = body.get("t")
    if kind == "beat":
        return _beat(body)
    if isinstance(kind, str) and kind in set(ReportKind):
        return _job(ReportKind(kind), body)
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _job(kind: ReportKind, body: Mapping[str, Any]) -> JobReport:
    outcome, redelivered = None, body.get("redelivered")
    if kind is ReportKind.ENDED:
        try:
            outcome = Outcome(body.get("outcome", ""))
        except ValueError:
            raise Malformed("an end without its outcome") from None
    return JobReport(
        kind=kind,
        job_id=_name(body.get("id")),
        queue=_name(body.get("queue")),
        at_s=_time(body.get("at_s")),
        job_class=_name_if_any(body.get("class")),
        attempt=_count_if_any(body.get("attempt"), least=1, most=2**32 - 1),
        entered_at_s=_time_if_any(body.get("entered_at_s")),
        eta_s=_time_if_any(body.get("eta_s")),
        is_redelivered=redelivered if isinstance(redelivered, bool) else None,
        started_at_s=_time_if_any(body.get("started_at_s")),
        outcome=outcome,
        is_requeued=body.get("requeued") is True,
        is_cut=kind is ReportKind.ENDED and body.get("cut") is True,
    )


def _beat(body: Mapping[str, Any]) -> BeatPart:
    running, queues = body.get("running"), body.get("queues")
    if not isinstance(running, list) or not isinstance(queues, list):
        raise Malformed("a beat without its jobs or queues")
    parts = _count(body.get("parts"), least=1, most=PARTS_MAX)
    return BeatPart(
        number=_count(body.get("n")),
        part=_count(body.get("part"), most=parts - 1),
        parts=parts,
        at_s=_time(body.get("at_s")),
        running=tuple(map(_running, running)),
        queues=tuple(map(_name, queues)),
        ended=_count_if_any(body.get("ended")),
        slots=_count_if_any(body.get("slots"), most=SLOTS_MAX),
        slots_max=_count_if_any(body.get("slots_max"), most=SLOTS_MAX),
        is_stopping=body.get("stopping") is True,
        loop=_count_if_any(body.get("loop")),
        lost=_count(body.get("lost")),
        execution=_name_if_any(body.get("pool")),
        queue_order=_ORDERS.get(str(body.get("order"))),
        unnamed=_count(body.get("unnamed", 0), most=SLOTS_MAX),  # an earlier version wrote none
    )


def _running(row: Any) -> RunningJob:
    if not isinstance(row, list) or len(row) < 5:
        raise Malformed("a running job that is no list of five")
    job_id, queue, job_class, attempt, started_at_s, *_ = row
    return RunningJob(
        job_id=_name(job_id),
        queue=_name(queue),
        job_class=_name_if_any(job_class),
        attempt=_count_if_any(attempt, least=1, most=2**32 - 1),
        started_at_s=_time(started_at_s),
    )


def _name(value: Any) -> str:
    """``value`` as a text that the control plane takes. Of a longer one, its beginning and a digest of all of it."""
    if not isinstance(value, str) or not value:
        raise Malformed("a name that is none")
    text = value.encode(errors="replace").decode().replace("\0", "?")
    if len(text) <= REPORT_NAME_CHARS_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{text[: REPORT_NAME_CHARS_MAX - _DIGEST_CHARS - 1]}~{digest}"


def _name_if_any(value: Any) -> str | None:
    return None if value is None or value == "" else _name(value)


def _time(value: Any) -> float:
    found = _time_if_any(value)
    if found is None:
        raise Malformed("no time")
    return found


def _time_if_any(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed("a time that is no number")
    if not 0 <= value <= UNIX_TIME_MAX_S or not math.isfinite(value):
        raise Malformed("a time that is none")
    return float(value)


def _count(value: Any, *, least: int = 0, most: int = COUNT_MAX) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Malformed("a count that is none")
    return value


def _count_if_any(value: Any, *, least: int = 0, most: int = COUNT_MAX) -> int | None:
    return None if value is None else _count(value, least=least, most=most)
