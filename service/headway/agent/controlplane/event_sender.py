"""The thread that sends events of jobs to the control plane. Where it takes none for long, the oldest are dropped."""

import logging
import threading
import time
from collections.abc import Iterable

from headway.agent.controlplane.client import ControlClient
from headway.agent.controlplane.enrolment import Membership
from headway.agent.controlplane.event_queue import EventQueue
from headway.agent.controlplane.retry import PAUSE, RetryState
from headway.errors import Forbidden, HeadwayError, Invalid
from headway.scaling.model import JobEvent, QueueReceptions, TelemetryBatch

EVENTS_GATHERED_S = 0.2  # from the first event to its way

log = logging.getLogger(__name__)


class EventSender:
    """Sends what it is given, in order, each event in one batch."""

    def __init__(self, client: ControlClient, membership: Membership) -> None:
        self._client = client
        self._membership = membership
        self._changed = threading.Condition()
        # What follows is read and written under the condition's lock.
        self._events = EventQueue()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def send(self, events: Iterable[JobEvent], receptions: Iterable[QueueReceptions] = ()) -> None:
        """Hand over what happened to jobs. Never waits for the control plane."""
        with self._changed:
            self._events.add(events, receptions)
            self._changed.notify_all()

    def close(self, *, within_s: float) -> None:
        """Send what is left in one attempt, if there is time for it."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(within_s)

    def _run(self) -> None:
        talk = RetryState("events of jobs")
        is_last = False
        while not is_last:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing or not self._events.is_empty)
                is_last = self._changed.wait_for(lambda: self._is_closing, EVENTS_GATHERED_S)
            pause_s = self._send(talk)
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing, pause_s)

    def _send(self, talk: RetryState) -> float:
        """Send one batch. Returns how long to wait before the next one."""
        try:
            self._send_batch()
        except HeadwayError as error:
            return talk.failed(error)
        except Exception:
            # A defect of ours must not end the thread: the jobs of this host would never be measured again.
            log.exception("%s failed", talk.name)
            return PAUSE.longest_s
        talk.succeeded()
        return 0.0

    def _send_batch(self) -> None:
        with self._changed:
            if self._events.is_empty:
                return
        identity = self._membership.identity()
        with self._changed:
            batch = self._events.take(host_id=identity.host_id, sent_at_s=time.time())
        if batch is None:
            return
        try:
            receipt = self._client.send(batch, identity=identity)
        except (Forbidden, Invalid):
            self._forget(batch)  # no later attempt brings it
            raise
        self._forget(batch)
        if receipt.refused:
            log.debug("events left out by the control plane: %s", receipt.refused)

    def _forget(self, batch: TelemetryBatch) -> None:
        with self._changed:
            self._events.sent(batch)
