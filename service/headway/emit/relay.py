"""What one process has to report, on its way to the control plane: from a pipe, by one thread, in batches."""

import json
import logging
import os
import selectors
import socket
import threading
import time
from typing import Protocol
from uuid import uuid4

from headway.emit.frames import json_of, unpacked
from headway.emit.kept_events import KeptEvents
from headway.errors import HeadwayError, Invalid
from headway.local.backoff import DoublingPause

GATHERED_S = 0.2  # from the first event to its way: of a process that is killed at most so much is missing
READ_BYTES = 1 << 16
READS_AT_ONCE = 32  # so that what is read is sent, however much comes
PAUSE = DoublingPause(0.2, 5.0)

log = logging.getLogger(__name__)


class Sender(Protocol):
    """Takes batches to a control plane."""

    def send(self, body: bytes) -> None:
        """Send the JSON of one batch. Raises ``Invalid`` where it is never taken, else another ``HeadwayError``."""

    def close(self) -> None:
        """Let the connection go."""


class Relay:
    """Reads events from a pipe and sends them. The thread lives in the process that made it."""

    def __init__(self, read_fd: int, sender: Sender) -> None:
        self._read_fd = read_fd
        self._sender = sender
        self._producer = f"emit-{socket.gethostname()}-{uuid4().hex}"
        self._sequence = 0
        self._rest = b""
        self._kept = KeptEvents()
        self._batch: list[bytes] = []
        """Under way as ``_sequence``, perhaps not for the first time."""
        self._dropped_before = 0
        """Of ``dropped_events``, those that the control plane was sent the number of."""
        self._dropped_with = 0
        """``dropped_events`` as the batch under way has it."""
        self._failures = 0
        self._again_at_s = 0.0
        self._problem: str | None = None
        self._ending = threading.Event()
        self.dropped_events = 0
        """Of all processes that write to the pipe."""
        self._thread = threading.Thread(target=self._run, name="headway-emit", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send what is left, in one attempt. The thread notices with the next line."""
        self._ending.set()

    def join(self, within_s: float) -> None:
        """Return when it has ended, or after ``within_s``."""
        self._thread.join(within_s)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._read_fd, selectors.EVENT_READ)
            is_last = False
            while not is_last:
                is_last = self._ending.is_set()
                if not is_last:
                    selector.select(max(0.0, self._again_at_s - time.monotonic()) if self._batch else None)
                    self._ending.wait(GATHERED_S)
                self._read()
                if is_last or time.monotonic() >= self._again_at_s:
                    self._push()
        self._sender.close()

    def _read(self) -> None:
        """Take what the pipe holds."""
        for _ in range(READS_AT_ONCE):
            try:
                data = os.read(self._read_fd, READ_BYTES)
            except BlockingIOError:
                return
            events, others, self._rest = unpacked(self._rest + data)
            self.dropped_events += others
            for event in events:
                self.dropped_events += event[0]
                try:
                    self.dropped_events += self._kept.keep(json_of(event))
                except (TypeError, ValueError) as error:
                    self.dropped_events += 1
                    log.debug("event dropped: %s", error)

    def _push(self) -> None:
        """Send what is kept, until nothing is or the control plane does not take it now."""
        while self._batch or self._kept:
            if not self._batch:
                self._sequence += 1
                self._batch = self._kept.next_batch()
                self._dropped_with = self.dropped_events
            try:
                self._sender.send(self._body())
            except Invalid as error:
                self.dropped_events += len(self._batch)
                self._log_change(f"{len(self._batch)} events dropped: {error}")
            except HeadwayError as error:
                self._failures += 1
                self._again_at_s = time.monotonic() + PAUSE.after_s(self._failures)
                self._log_change(f"held back: {error}")
                return
            else:
                self._dropped_before = self._dropped_with
                self._log_change(None)
            self._batch, self._failures = [], 0

    def _body(self) -> bytes:
        head = {
            "producer": self._producer,
            "sequence": self._sequence,
            "sent_at_s": time.time(),
            "dropped_events": self._dropped_with - self._dropped_before,
        }
        return b'%s,"events":[%s]}' % (json.dumps(head).encode()[:-1], b",".join(self._batch))

    def _log_change(self, problem: str | None) -> None:
        if problem is not None and self._problem is None:
            log.warning("telemetry of jobs: %s", problem)
        elif problem is None and self._problem is not None:
            log.info("telemetry of jobs flows again; %d events were dropped", self.dropped_events)
        self._problem = problem
