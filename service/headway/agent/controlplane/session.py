"""The threads that talk with the control plane: one reports, one polls, one sends events. None ever touches a worker.

Whatever fails here is tried again; meanwhile the assignment in force stays in force. Errors are logged on state change.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from headway.agent.controlplane.client import ControlClient, HostUpdate, PollAnswer
from headway.agent.controlplane.enrolment import Membership
from headway.agent.controlplane.event_sender import EventSender
from headway.agent.controlplane.isolation import Contact, isolation_limits_s
from headway.agent.controlplane.report_queue import ReportQueue
from headway.agent.controlplane.retry import PAUSE, RetryState
from headway.agent.controlplane.rpc import GivenUp
from headway.agent.desired_state import DesiredState
from headway.agent.model import Identity, ReceivedHint
from headway.agent.state.state_dir import StateFolder
from headway.errors import HeadwayError, NotFound, Unauthenticated
from headway.local import procfs
from headway.scaling.model import KillOrder, PoolQueues

REPORT_EVERY_S = 15.0
REPORT_JITTER = 0.2
SESSION_REPORT_GAP_S = 0.2  # changes that come together are sent together
SESSION_SPREAD_S = 2.0  # what every agent finds out at the same moment they do not all do at the same moment
SESSION_QUICK_ANSWER_S = 1.0  # an answer that brings nothing new comes after the wait, or something is wrong

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedState:
    """The control plane's last answer: assignments in force, the newest hints, and the queues of the host's pools."""

    orders: DesiredState
    hints: tuple[ReceivedHint, ...] = ()
    kills: tuple[KillOrder, ...] = ()
    pools: tuple[PoolQueues, ...] | None = None
    """``None``: there was no answer yet."""


class ControlSession:
    """The connection of one agent.

    From threads of its own it calls ``wake`` when new orders have come, and ``cuts_reported`` with the ids of cuts that
    the control plane knows now.
    """

    def __init__(
        self,
        client: ControlClient,
        folder: StateFolder,
        *,
        identity: Identity,
        host_name: str,
        orders: DesiredState,
        wake: Callable[[], None],
        join_token: str | None = None,
        contact: Contact,
        cuts_reported: Callable[[Collection[str]], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._contact = contact
        self._cuts_reported = cuts_reported
        self._host_name = host_name
        self._wake = wake
        self._boot_id = procfs.boot_id()
        self.membership = Membership(
            client,
            folder,
            identity=identity,
            host_name=host_name,
            boot_id=self._boot_id,
            join_token=join_token or "",
            moved=self._moved,
        )
        self.events = EventSender(client, self.membership)
        # Milliseconds since boot: greater than any sequence an earlier agent of this boot came to, one report a time.
        self._sequence = int(procfs.since_boot_s() * 1000)
        self._changed = threading.Condition()
        # What follows is read and written under the condition's lock.
        self._received = ReceivedState(orders=orders)
        self._received_as = identity.cluster_id, identity.host_id
        """The cluster and host id under which that was received."""
        self._epoch_seen = orders.epoch
        self._pending = ReportQueue()
        self._is_due = False
        self._due_by_s = float("inf")
        """When a report is due that every agent may have reason to send just now."""
        self._is_closing = False
        self._wanted_at_once, self._reported_at_once = 1, 0
        """How often an answer was wanted at once, and how much of that the last answer has served."""
        self._threads = [
            threading.Thread(target=self._run_reports, name="report", daemon=True),
            threading.Thread(target=self._run_polls, name="poll", daemon=True),
        ]

    # --- for the main thread -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to talk."""
        for thread in self._threads:
            thread.start()
        self.events.start()

    @property
    def received(self) -> ReceivedState:
        """The control plane's last answer."""
        with self._changed:
            return self._received

    def publish(self, update: HostUpdate, *, is_urgent: bool) -> None:
        """Hand over what the next report contains: it is sent at once if it is urgent.

        It is urgent, too, where other workers are idle than was reported.
        """
        with self._changed:
            self._pending.add(update)
            if is_urgent or self._pending.has_idle_news:
                self._is_due = True
                self._changed.notify_all()

    def ask_anew(self) -> None:
        """Ask now what is to run, also where an answer is waited for."""
        self._wanted_at_once += 1
        self._client.give_up_poll()

    def close(self, *, within_s: float) -> None:
        """Send the last report, if there is time for it, and disconnect."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._threads[0].join(within_s)
        self.events.close(within_s=within_s)
        self._client.close()
        for thread in self._threads:
            thread.join(within_s)

    # --- reports -----------------------------------------------------------------------------------------------------

    def _run_reports(self) -> None:
        talk = RetryState("report")
        while self._wait_until_due():
            self._try(self._report, talk)
            self._pause(SESSION_REPORT_GAP_S)
        if self._is_due:
            self._try(self._report, talk, is_last=True)

    def _wait_until_due(self) -> bool:
        """Whether to go on: returns when a report is due, or false when this ends."""
        jitter = random.uniform(1.0 - REPORT_JITTER, 1.0 + REPORT_JITTER)  # noqa: S311 - no secret
        until_s = time.monotonic() + REPORT_EVERY_S * jitter
        with self._changed:
            while not (self._is_closing or (self._is_due and self._pending.has_update)):
                wait_s = min(until_s, self._due_by_s) - time.monotonic()
                if wait_s <= 0:
                    break
                self._changed.wait(wait_s)
            return not self._is_closing

    def _report(self) -> None:
        identity = self.membership.identity()
        with self._changed:
            batch = self._pending.batch()
            if batch is None:
                return
            self._is_due, self._due_by_s = False, float("inf")
            self._sequence += 1
            sequence, epoch_seen = self._sequence, self._epoch_seen
        self._contact.commit_to(isolation_limits_s(batch.templates))
        sent_at_s = procfs.since_boot_s()
        try:
            received = self._client.report(
                batch,
                identity=identity,
                host_name=self._host_name,
                boot_id=self._boot_id,
                sequence=sequence,
                epoch_seen=epoch_seen,
            )
        except HeadwayError:
            with self._changed:
                self._is_due = True
            raise
        if self.membership.is_foreign(identity, received.cluster_id):
            with self._changed:
                self._is_due = True
            return
        self._contact.received(sent_at_s=sent_at_s)
        if received.credential:
            self.membership.renew(identity, received.credential)
        self._cuts_reported({each.cut_id for each in batch.cuts})
        with self._changed:
            self._pending.reported(batch)

    # --- polls -------------------------------------------------------------------------------------------------------

    def _run_polls(self) -> None:
        talk = RetryState("poll")
        while not self._is_closing:
            asked_at_s = time.monotonic()
            has_news = self._try(self._poll, talk)
            if has_news is False and time.monotonic() - asked_at_s < SESSION_QUICK_ANSWER_S:
                self._pause(SESSION_QUICK_ANSWER_S)

    def _poll(self) -> bool:
        """Whether the answer brought new orders."""
        identity = self.membership.identity()
        having = self.received.orders
        # After a poll that failed the answer shall come at once, also where nothing has changed meanwhile.
        wanted = self._wanted_at_once
        epoch, revision = (having.epoch, having.revision) if wanted == self._reported_at_once else (0, 0)
        self._reported_at_once = 0
        answer = self._client.poll(identity, epoch=epoch, revision=revision)
        if self.membership.is_foreign(identity, answer.cluster_id):
            return False
        has_news = self._receive(answer, identity)
        self._reported_at_once = wanted
        if self.received.orders.are_confirmed_by(epoch=answer.epoch, revision=answer.revision):
            self._contact.answered(asked_at_s=answer.asked_at_s)
        return has_news

    def _receive(self, answer: PollAnswer, identity: Identity) -> bool:
        with self._changed:
            if self._received_as != (identity.cluster_id, identity.host_id):
                return False  # enrolled anew meanwhile: this answer was for who the host was before
            self._epoch_seen = max(self._epoch_seen, answer.epoch)
            orders = self._received.orders
            if orders.epoch not in {0, answer.epoch}:
                # Another leader's, or of a database that was restored: it may know of this host what was long ago.
                self._due_by_s = min(self._due_by_s, time.monotonic() + random.uniform(0.0, SESSION_SPREAD_S))  # noqa: S311
                self._changed.notify_all()
            is_newer = orders.are_outdated_by(epoch=answer.epoch, revision=answer.revision)
            if is_newer:
                orders = DesiredState(
                    cluster_id=answer.cluster_id,
                    epoch=answer.epoch,
                    revision=answer.revision,
                    assignments=answer.assignments,
                )
            if is_newer or orders.are_confirmed_by(epoch=answer.epoch, revision=answer.revision):
                queues = {each.pool: each.queues for each in answer.pools}
                is_newer |= queues != orders.queues
                orders = orders if queues == orders.queues else replace(orders, queues=queues)
            self._received = ReceivedState(orders=orders, hints=answer.hints, pools=answer.pools, kills=answer.kills)
        if is_newer or answer.kills:
            self._wake()
        return is_newer

    def _moved(self, before: Identity, now: Identity) -> None:
        with self._changed:
            orders = self._received.orders
            is_same = (now.host_id, now.cluster_id) == (before.host_id, orders.cluster_id)
            self._received_as = now.cluster_id, now.host_id
            if not is_same:
                # Revisions are counted for a host of a cluster: an assignment to the new one is newer whatever its
                # revision.
                self._received = ReceivedState(orders=orders.moved_to(now.cluster_id))
                self._epoch_seen = 0
        if not is_same:
            self._wake()

    # --- trying again ------------------------------------------------------------------------------------------------

    def _try(self, call: Callable[[], bool | None], talk: RetryState, *, is_last: bool = False) -> bool | None:
        """What ``call`` returns; ``None`` where it failed, after the pause that follows a failure."""
        identity, was_let_in = self.membership.now
        try:
            result = call()
        except HeadwayError as error:
            if self._is_closing:
                return None
            if isinstance(error, GivenUp):
                return None  # asked anew at once
            if isinstance(error, Unauthenticated) and self.membership.now[0].credential != identity.credential:
                return None  # made with a credential that was replaced meanwhile
            pause_s = talk.failed(error)
            if isinstance(error, NotFound | Unauthenticated):
                self.membership.forget(identity)
                if was_let_in:  # it may be let in by something else that it has, and that need not wait for a person
                    pause_s = min(pause_s, random.uniform(0.0, PAUSE.longest_s))  # noqa: S311 - no secret
            if not is_last:
                self._pause(pause_s)
            return None
        except Exception:
            # A defect of ours must not silence the host: it would count as lost while it works.
            log.exception("%s failed", talk.name)
            self._pause(PAUSE.longest_s)
            return None
        talk.succeeded()
        return result

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closing, seconds)
