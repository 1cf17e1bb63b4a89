"""Telemetry on its way to the control plane, delivered exactly once whatever ends in between.

    empty -> pending        offer: events and the source's cursor behind them are in the file before they are sent
    pending -> pending      push: no answer; again after a pause, under the same number, also by the next process
    pending -> empty        push: answered

Readings without events are not worth a file: if they do not arrive, the next reading replaces them. They still take a
number that no batch had before: numbers are reserved in the file, many at a time.
"""

import json
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from headway.emit.outbox_folder import BEGIN_ANEW, json_pieces, read_json, write_json
from headway.errors import HeadwayError, Invalid, Misconfigured, Unavailable
from headway.local.backoff import DoublingPause
from headway.scaling.model import (
    BrokerPoll,
    EventKind,
    JobEvent,
    QueueSample,
    Redelivery,
    Suspension,
    TelemetryBatch,
    WorkerActivity,
)
from headway.scaling.model.due_jobs import due_from_pairs, due_to_pairs

VERSION = 1
RESERVED_AT_ONCE = 1000  # at two batches a second the file is written for this every eight minutes
PAUSE = DoublingPause(0.2, 5.0)

_NAMES = {kind: tuple(each.name for each in fields(kind)) for kind in (JobEvent, QueueSample, WorkerActivity)}

log = logging.getLogger(__name__)


class Outbox:
    """The way out of one producer. Used by one thread; its file's folder belongs to this process."""

    def __init__(
        self,
        file: Path,
        *,
        name: str,
        send: Callable[[TelemetryBatch], object],
        clock: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Go on where the file's last user ended; ``name`` begins the producer's name at the file's first use.

        Raises:
            Misconfigured: the file cannot be read.
        """
        self._file = file
        self._send = send
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._problem: str | None = None
        self._refused = ""
        held = read_json(file)
        if held is None:
            held = {"version": VERSION, "producer": f"{name}-{uuid4().hex}", "reserved": 0}
        if held.get("version") != VERSION:
            raise Misconfigured(f"state file {file} is of another version of Headway; {BEGIN_ANEW}")
        try:
            self._producer: str = held["producer"]
            self._next: int = held["reserved"]
            self._pending = _batch(self._producer, held.get("pending"))
        except (KeyError, TypeError, ValueError, Invalid) as error:
            raise Misconfigured(
                f"state file {file} holds what was not written to it: {error!r}; {BEGIN_ANEW}"
            ) from error
        self._reserved = self._next
        self._is_written = True
        self._has_record = self._pending is not None
        cursor = held.get("cursor")
        self._cursor = None if cursor is None else tuple(json_pieces(cursor))
        """As JSON: as objects, 200,000 remembered jobs would take several times the memory."""

    @property
    def has_cursor(self) -> bool:
        """Whether there is a ``cursor``, without the work of reading it."""
        return self._cursor is not None

    @property
    def cursor(self) -> dict[str, Any] | None:
        """A copy of how far the source was read when the last events were offered; None before the first."""
        return None if self._cursor is None else dict(json.loads(b"".join(self._cursor)))

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be sent, so that something new may be offered."""
        return self._pending is None

    @property
    def pause_s(self) -> float:
        """How long to wait before the next ``push``: 0 after an answer, longer after each failure."""
        if not self._failures:
            return 0.0
        longest_s = PAUSE.after_s(self._failures)
        return longest_s * (0.5 + 0.5 * self._chance())  # so that producers cut off together do not come back together

    def offer(
        self,
        *,
        events: Iterable[JobEvent] = (),
        samples: Iterable[QueueSample] = (),
        activities: Iterable[WorkerActivity] = (),
        polls: Iterable[BrokerPoll] = (),
        cursor: dict[str, Any] | None = None,
    ) -> None:
        """Take what is to be sent. ``cursor``: how far the source was read for ``events``; stored with them.

        ``polls`` are in no file: another process sends none of them.
        """
        assert self.is_empty, "one batch at a time"
        if cursor is not None:
            self.keep(cursor)
        self._pending = TelemetryBatch(
            producer=self._producer,
            sequence=self._taken_number(),
            sent_at_s=0.0,
            events=tuple(events),
            samples=tuple(samples),
            activities=tuple(activities),
            polls=tuple(polls),
        )
        self._is_written &= not self._pending.events

    def keep(self, cursor: dict[str, Any]) -> None:
        """Store ``cursor`` with the next ``push``, whatever that sends."""
        self._cursor = tuple(json_pieces(cursor))
        self._is_written = False

    def push(self) -> bool:
        """Try once to get everything out. Returns whether nothing is left; never raises what time may cure."""
        if self._pending is None and self._is_written:
            return True
        try:
            self._write()
            if self._pending is not None:
                # The moment of this attempt: from an old one the clock's offset would appear as minutes.
                self._answered(self._send(replace(self._pending, sent_at_s=self._clock())))
        except Invalid as error:
            log.error("telemetry dropped producer=%s: the control plane will never take it: %s", self._producer, error)  # noqa: TRY400
        except HeadwayError as error:
            self._failed(error)
            return False
        self._log_change(None)
        self._failures = 0
        self._pending = None
        return True

    def close(self) -> None:
        """Record that nothing is pending, so that what was answered is not sent again after a long time."""
        if self._has_record and self.is_empty:
            self._is_written = False
            self._write()

    def _taken_number(self) -> int:
        number = self._next
        self._next += 1
        if number >= self._reserved:
            self._reserved = number + RESERVED_AT_ONCE
            self._is_written = False
        return number

    def _write(self) -> None:
        if self._is_written:
            return
        pending = self._pending if self._pending and self._pending.events else None
        state = {
            "version": VERSION,
            "producer": self._producer,
            "reserved": self._reserved,
            "pending": None if pending is None else _mapping(pending),
        }
        try:
            write_json(self._file, state, {} if self._cursor is None else {"cursor": self._cursor})
        except OSError as error:
            raise Unavailable(f"state file {self._file} cannot be written: {error.strerror}") from error
        self._is_written = True
        self._has_record = pending is not None

    def _answered(self, receipt: object) -> None:
        """Log a change in what the control plane leaves out."""
        refused = getattr(receipt, "refused", "")
        if refused and not self._refused:
            log.warning("telemetry refused in part producer=%s: %s", self._producer, refused)
        elif self._refused and not refused:
            log.info("telemetry taken whole again producer=%s", self._producer)
        self._refused = refused

    def _failed(self, error: HeadwayError) -> None:
        self._failures += 1
        self._log_change(str(error))
        if self._pending is not None and not self._pending.events:
            self._pending = None  # the next reading holds more

    def _log_change(self, problem: str | None) -> None:
        """Log a change."""
        if problem is not None and self._problem is None:
            log.warning("telemetry held producer=%s: %s", self._producer, problem)
        elif problem is None and self._problem is not None:
            log.info("telemetry flows again producer=%s", self._producer)
        self._problem = problem


def _mapping(batch: TelemetryBatch) -> dict[str, Any]:
    return {
        "sequence": batch.sequence,
        "events": [_known(event) for event in batch.events],
        "samples": [_known_sample(sample) for sample in batch.samples],
        "activities": [_known(activity) for activity in batch.activities],
    }


def _known(value: JobEvent | QueueSample | WorkerActivity) -> dict[str, Any]:
    # Flat values: dataclasses.asdict would copy each deeply, which was a quarter of a busy collector's processor.
    return {name: each for name in _NAMES[type(value)] if (each := getattr(value, name)) is not None}


def _known_sample(sample: QueueSample) -> dict[str, Any]:
    known = _known(sample)
    known.pop("due")
    return known | {"due": due_to_pairs(sample.due)} if sample.due else known


def _sample(held: dict[str, Any]) -> QueueSample:
    suspension = Suspension(held["suspension"]) if "suspension" in held else None
    redelivery = Redelivery(held["redelivery"]) if "redelivery" in held else None
    known = {"due": due_from_pairs(held.get("due", ())), "suspension": suspension, "redelivery": redelivery}
    return QueueSample(**{**held, **known})


def _batch(producer: str, held: dict[str, Any] | None) -> TelemetryBatch | None:
    if held is None:
        return None
    return TelemetryBatch(
        producer=producer,
        sequence=held["sequence"],
        sent_at_s=0.0,
        events=tuple(JobEvent(**{**event, "kind": EventKind(event["kind"])}) for event in held["events"]),
        samples=tuple(map(_sample, held["samples"])),
        activities=tuple(WorkerActivity(**activity) for activity in held["activities"]),
    )
