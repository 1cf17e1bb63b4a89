"""The two threads that talk, with a real port at the other end: when they ask, and what they ask for."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from headway.agent.controlplane import retry, rpc
from headway.agent.controlplane import session as links
from headway.agent.controlplane.client import ControlClient, HostUpdate
from headway.agent.controlplane.isolation import NEVER_S, Contact
from headway.agent.controlplane.session import ControlSession
from headway.agent.desired_state import DesiredState
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.ends.exit_log import Ended
from headway.local import procfs
from headway.scaling.model import EventKind, HostCapacity, JobEvent, Worker, WorkerState
from headway.wire import lines
from headway.wire.v1 import agent_pb2
from support.fake_control import FakeControl, row, serving
from support.waiting import eventually

NEWS = HostUpdate(capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1), templates=(), workers=())


@contextmanager
def linked(root: Path, *ports: int) -> Iterator[tuple[ControlSession, Contact]]:
    folder = StateFolder(root)
    contact = Contact(folder)
    link = ControlSession(
        ControlClient(*(f"127.0.0.1:{port}" for port in ports), token=None, clock=procfs.since_boot_s),
        folder,
        identity=folder.identity(),
        host_name="here",
        orders=DesiredState(),
        wake=lambda: None,
        contact=contact,
    )
    link.publish(NEWS, is_urgent=True)
    link.start()
    try:
        yield link, contact
    finally:
        link.close(within_s=5.0)


@pytest.fixture
def control() -> FakeControl:
    return FakeControl()


def is_held(control: FakeControl) -> bool:
    """Whether a poll waits that knows the newest orders."""
    last = control.polls[-1] if control.polls else None
    return last is not None and last.revision == control.answer.revision > 0


def test_asked_anew_a_poll_that_is_held_is_answered_at_once(tmp_path: Path, control: FakeControl) -> None:
    control.assign(row(1))
    with serving(control) as port, linked(tmp_path, port) as (link, contact):
        eventually(lambda: is_held(control))
        asked_at_s = procfs.since_boot_s()
        link.ask_anew()
        eventually(lambda: contact.times_s()[1] >= asked_at_s)
        assert control.polls[-1].revision == 0 or is_held(control)
        eventually(lambda: is_held(control))  # and the next one waits again


def test_orders_of_another_epoch_are_answered_with_a_report_at_once(
    tmp_path: Path, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that was restored knows of this host what was long ago."""
    monkeypatch.setattr(links, "REPORT_EVERY_S", 3_600.0)
    control.assign(row(1), epoch=5)
    with serving(control) as port, linked(tmp_path, port):
        eventually(lambda: is_held(control))
        eventually(lambda: control.reports)
        for epoch in (3, 7):
            reports = len(control.reports)
            control.assign(row(1), epoch=epoch)
            eventually(lambda reports=reports: len(control.reports) > reports)


class Unanswered(FakeControl):
    """Reports get no answer while ``is_deaf``."""

    is_deaf = False
    unanswered = 0

    def Report(self, request: Any, context: Any) -> agent_pb2.ReportResponse:  # noqa: N802
        if self.is_deaf:
            self.unanswered += 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "as the test wants it")
        return super().Report(request, context)


def test_an_end_of_which_the_report_was_not_answered_is_reported_again(tmp_path: Path) -> None:
    """The control plane counts failures by reports: once, and not never."""
    control = Unanswered()
    worker = Worker(worker_id="w", pool="mail", template="t", pid=7, state=WorkerState.RUNNING, started_at_s=1.0)
    with serving(control) as port, linked(tmp_path, port) as (link, _):
        eventually(lambda: control.reports)
        control.is_deaf = True
        link.publish(replace(NEWS, ended=[Ended(worker=worker, exit_code=3)]), is_urgent=True)
        eventually(lambda: control.unanswered)
        assert not any(report.workers for report in control.reports)
        control.is_deaf = False
        (reported,) = eventually(lambda: control.reports[-1].workers)
        assert (reported.worker_id, reported.state, reported.exit_code) == ("w", agent_pb2.WORKER_STATE_GONE, 3)
        link.publish(NEWS, is_urgent=True)
        eventually(lambda: not control.reports[-1].workers)


def test_only_an_answer_with_the_orders_in_force_is_word_of_what_is_to_run(
    tmp_path: Path, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that nobody has decided yet, nor what a restored database knows of long ago."""
    monkeypatch.setattr("headway.agent.controlplane.client.POLL_WAIT_S", 0.1)
    monkeypatch.setattr(links, "SESSION_QUICK_ANSWER_S", 0.1)

    def answered(count: int) -> None:
        polls = len(control.polls) + count + 1  # the last of these may still wait
        eventually(lambda: len(control.polls) >= polls)

    with serving(control) as port, linked(tmp_path, port) as (_, contact):
        answered(2)
        assert contact.times_s()[1] == NEVER_S
        control.assign(row(1), epoch=7, revision=3)
        eventually(lambda: contact.times_s()[1] > NEVER_S)
        control.assign(row(2), epoch=6, revision=9)
        answered(1)
        answered_at_s = contact.times_s()[1]
        answered(2)
        assert contact.times_s()[1] == answered_at_s
        control.assign(row(1), epoch=7, revision=3)
        eventually(lambda: contact.times_s()[1] > answered_at_s)


# --- one of several control planes -----------------------------------------------------------------------------------


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first address is called first; any may be."""
    monkeypatch.setattr("headway.wire.lines.random.randrange", lambda _: 0)


def test_agents_begin_with_any_of_the_addresses() -> None:
    clients = [ControlClient("a:1", "b:1", token=None, clock=procfs.since_boot_s) for _ in range(64)]
    assert {client._calls._lines.now.address for client in clients} == {"a:1", "b:1"}
    for client in clients:
        client.close()


@pytest.mark.usefixtures("in_order")
def test_where_one_control_plane_has_died_the_next_is_called_and_it_stays_with_that(
    tmp_path: Path, control: FakeControl
) -> None:
    control.assign(row(1))
    other = FakeControl()
    other.answer = control.answer
    with serving(other) as other_port, ExitStack() as stack:
        with serving(control) as port:
            link, _ = stack.enter_context(linked(tmp_path, port, other_port))
            eventually(lambda: is_held(control))
            assert not other.peers
        eventually(lambda: is_held(other))
        other.assign(row(2), revision=9)
        eventually(lambda: link.received.orders.revision == 9)
        with serving(control, port=port):
            peers = len(control.peers)
            link.publish(NEWS, is_urgent=True)
            eventually(lambda: other.reports)
            assert len(control.peers) == peers


@pytest.mark.usefixtures("in_order")
def test_one_that_hangs_is_left_for_the_next_with_the_poll_that_it_holds(
    tmp_path: Path, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its network answers, so that the connection lives and the poll would be held for minutes."""
    control.assign(row(1))
    other = FakeControl()
    with serving(control) as port, serving(other) as other_port, linked(tmp_path, port, other_port) as (link, _):
        eventually(lambda: is_held(control) and control.reports)
        monkeypatch.setattr(rpc, "CALL_TIMEOUT_S", 0.3)
        control.is_awake.clear()
        other.assign(row(2), revision=5)
        link.publish(NEWS, is_urgent=True)
        eventually(lambda: link.received.orders.revision == 5)
        control.is_awake.set()


def test_the_only_one_is_called_anew_when_it_has_hung_twice_and_its_new_orders_arrive(
    tmp_path: Path, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the address may be a balancer, and the connection be to one that hangs for good."""
    control.assign(row(1))
    with serving(control) as port, linked(tmp_path, port) as (link, _):
        eventually(lambda: is_held(control) and control.reports)
        monkeypatch.setattr(rpc, "CALL_TIMEOUT_S", 0.3)
        control.is_awake.clear()
        link.publish(NEWS, is_urgent=True)
        eventually(lambda: len(control.peers) >= 2)
        control.is_awake.set()
        control.assign(row(2))
        eventually(lambda: link.received.orders.revision == 2)


@pytest.mark.usefixtures("in_order")
def test_one_that_cannot_serve_is_borne_with_for_a_while_and_left_for_the_next_then(
    tmp_path: Path, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres is away for all of them, or for this one only."""
    other = FakeControl()
    with serving(control) as port, serving(other) as other_port, linked(tmp_path, port, other_port) as (link, _):
        eventually(lambda: control.polls and control.reports)
        control.fails_with = grpc.StatusCode.UNAVAILABLE
        calls_before = control.failed
        link.publish(NEWS, is_urgent=True)
        eventually(lambda: control.failed >= calls_before + 3)
        assert not other.peers
        assert len(control.peers) == 1, "nobody has to connect anew because Postgres is away"
        monkeypatch.setattr(lines, "LINE_PATIENCE_S", 0.0)
        eventually(lambda: other.reports)


def started(job_id: str) -> JobEvent:
    return JobEvent(queue="celery/mail", job_id=job_id, kind=EventKind.STARTED, at_s=1.0)


def test_events_of_jobs_arrive_in_order_under_the_name_of_the_host(tmp_path: Path, control: FakeControl) -> None:
    with serving(control) as port, linked(tmp_path, port) as (link, _):
        link.events.send([started("1"), started("2")])
        eventually(lambda: len(control.batches) == 1)
        link.events.send([started("3")])
        eventually(lambda: len(control.batches) == 2)
    assert [each.job_id for batch in control.batches for each in batch.events] == ["1", "2", "3"]
    assert [batch.sequence for batch in control.batches] == [1, 2]
    assert {batch.producer.rpartition("-")[0] for batch in control.batches} == {"agent-host-1"}


def test_events_of_a_time_without_a_control_plane_arrive_when_it_is_back(tmp_path: Path, control: FakeControl) -> None:
    control.fails_with = grpc.StatusCode.UNAVAILABLE
    with serving(control) as port, linked(tmp_path, port) as (link, _):
        link.events.send([started("1")])
        eventually(lambda: control.failed >= 3)
        control.fails_with = None
        eventually(lambda: len(control.batches) == 1)
    assert [each.job_id for each in control.batches[0].events] == ["1"]


def test_what_is_refused_holds_up_nothing(
    tmp_path: Path, control: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "REFUSED_RETRY_S", 0.1)
    with serving(control) as port, linked(tmp_path, port) as (link, _):
        eventually(lambda: bool(control.reports))
        control.fails_with = grpc.StatusCode.PERMISSION_DENIED
        link.events.send([started("1")])
        eventually(lambda: control.refused_batches >= 1)
        control.fails_with = None
        link.events.send([started("2")])
        eventually(lambda: len(control.batches) == 1)
    assert [each.job_id for each in control.batches[0].events] == ["2"]


def test_what_is_left_is_sent_before_the_agent_ends(tmp_path: Path, control: FakeControl) -> None:
    with serving(control) as port, linked(tmp_path, port) as (link, _):
        eventually(lambda: bool(control.reports))
        link.events.send([started("1")])
    assert [each.job_id for batch in control.batches for each in batch.events] == ["1"]
