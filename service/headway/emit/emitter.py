"""Reports what happens to jobs from inside somebody else's program: a web process, a worker, a script.

    jobs --one write that never waits--> pipe --one thread of the process that made the emitter--> control plane

    Emitter.from_environment().report("enqueued", "mine/mail", "job 1")

A process that is forked later writes to the same pipe: what it has written outlives it, and it needs no thread and no
connection of its own. Telemetry is dropped, and counted, rather than that a job is late, fails or is lost.
"""

import atexit
import fcntl
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from os import write
from time import monotonic, time
from typing import Self

from headway.emit.frames import WAKE, EventKind, packed
from headway.emit.http_sender import HttpSender
from headway.emit.relay import Relay, Sender
from headway.environment import ClientSettings
from headway.errors import HeadwayError, Misconfigured
from headway.local.https import https_context

CLOSED_WITHIN_S = 1.0
OWNER_SEEN_S = 1.0
PIPE_BYTES = 1 << 20  # some 5,000 events, and the most that Linux allows everybody

log = logging.getLogger(__name__)


class Emitter:
    """Takes what happens to jobs, in any thread and in processes forked later."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._lost = 0
        """What this process could not write since it last could."""
        self._open()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.close)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """An emitter for the control plane that ``HEADWAY_URL``, ``HEADWAY_TOKEN_FILE`` and ``HEADWAY_TLS_CA`` name.

        A mistake in them is logged, and all events are dropped: no program fails for it.
        """
        try:
            settings = ClientSettings.from_env(environment)
            tls = settings.tls
            context = None if tls is None else https_context(tls.ca, certificate=tls.certificate, key=tls.key)
            return cls(HttpSender(settings.url, token=settings.token, tls=context))
        except HeadwayError as error:
            return cls(_Nobody(str(error)))

    @property
    def dropped_events(self) -> int:
        """How many events are lost, as far as this process knows: those of its children in the one that made it."""
        return self._lost + self._relay.dropped_events

    def report(
        self,
        kind: EventKind,
        queue: str,
        job_id: str,
        *,
        at_s: float | None = None,
        enqueued_at_s: float | None = None,
        started_at_s: float | None = None,
        attempt: int | None = None,
        job_class: str | None = None,
    ) -> None:
        """Something has happened to a job, now or at ``at_s``. Never raises, and never waits.

        Args:
            kind: ``enqueued``: it waits; ``started``; ``finished``: it has ended well; ``failed``: this attempt has
                failed; ``retried``: it gets another attempt; ``revoked``: it has left its queue without a start, as one
                that has expired.
            queue: As Headway names it, ``connection/queue``.
            job_id: Of this job alone, and the same in each of its attempts.
            at_s: Unix seconds, as all times here.
            enqueued_at_s: Of ``started``: since when it waited. ``None``: not known, and its wait is not measured.
            started_at_s: Of ``finished`` and ``failed``: when it began. ``None``: not known.
            attempt: 1 is the first. ``None``: not known, and taken for the first.
            job_class: What it is, such as the name of its function.
        """
        # Few steps, because a job waits for them: each call of a function costs a microsecond.
        try:
            if self._is_forked:
                self._stay_with_owner()
            event = (
                self._lost,
                kind,
                queue,
                job_id,
                time() if at_s is None else at_s,
                enqueued_at_s,
                started_at_s,
                attempt,
                job_class,
            )
            write(self._write_fd, packed(event))
            self._lost = 0
        except Exception as error:  # noqa: BLE001 - whatever it is, the job of whoever reports must not fail for it
            self._lost += 1
            log.debug("event dropped: %r", error)

    def close(self, within_s: float = CLOSED_WITHIN_S) -> None:
        """Send what is left; return when it has arrived, or after ``within_s``. Nothing in a forked process."""
        if self._owner != os.getpid():
            return
        self._relay.end()
        with suppress(OSError):
            os.write(self._write_fd, WAKE)
        self._relay.join(within_s)

    def _open(self) -> None:
        """Begin to take events for this process and those that it forks."""
        self._owner = os.getpid()
        self._is_forked = False
        """From the process that reads the pipe."""
        self._owner_seen_s = 0.0
        """When that one was last seen alive."""
        read_fd, self._write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        os.set_blocking(self._write_fd, False)
        with suppress(OSError, AttributeError):  # the user's pipes are used up, or it is no Linux
            fcntl.fcntl(self._write_fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._relay = Relay(read_fd, self._sender)

    def _forked(self) -> None:
        self._is_forked = True
        self._owner_seen_s = 0.0
        self._lost = 0  # its parent counts those
        self._relay.dropped_events = 0

    def _stay_with_owner(self) -> None:
        """Read the pipe here, if the process that did so has ended: a daemon's first one does as soon as it forks."""
        now_s = monotonic()
        if now_s - self._owner_seen_s < OWNER_SEEN_S:
            return
        self._owner_seen_s = now_s
        if not _is_alive(self._owner):
            self._open()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is another user's
    return True


class _Nobody:
    """Takes the place of a control plane that the settings do not name."""

    def __init__(self, why: str) -> None:
        self._why = why

    def send(self, _body: bytes) -> None:
        raise Misconfigured(self._why)

    def close(self) -> None:
        pass
