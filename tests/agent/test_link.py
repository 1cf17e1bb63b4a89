"""The two threads that talk, with a real port at the other end: when they ask, and what they ask for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.fake_control import FakeControl, eventually, row, serving
from headway.agent import link as links
from headway.agent import procfs
from headway.agent.client import ControlClient, HostNews
from headway.agent.folder import StateFolder
from headway.agent.isolation import Contact
from headway.agent.link import Link
from headway.agent.orders import Orders
from headway.scaling.model import HostCapacity

NEWS = HostNews(capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1), templates=(), workers=())


@contextmanager
def linked(root: Path, port: int, *, wake: Callable[[], None] = lambda: None) -> Iterator[tuple[Link, Contact]]:
    folder = StateFolder(root)
    contact = Contact(folder)
    link = Link(
        ControlClient(f"127.0.0.1:{port}", token=None, clock=procfs.since_boot_s),
        folder,
        identity=folder.identity(),
        host_name="here",
        orders=Orders(),
        wake=wake,
        contact=contact,
    )
    link.publish(NEWS, is_urgent=False)
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


def test_orders_of_another_epoch_are_answered_with_a_report_at_once(tmp_path: Path, control: FakeControl) -> None:
    """A database that was restored knows of this host what was long ago."""
    control.assign(row(1), epoch=5)
    with serving(control) as port, linked(tmp_path, port):
        eventually(lambda: is_held(control))
        eventually(lambda: control.reports)
        for epoch in (3, 7):
            reports = len(control.reports)
            control.assign(row(1), epoch=epoch)
            eventually(lambda reports=reports: len(control.reports) > reports, within_s=links.REPORT_EVERY_S / 2)
