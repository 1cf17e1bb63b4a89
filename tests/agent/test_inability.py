"""A worker that runs and takes no jobs is named, leaves first, and is replaced."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Template
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.monitoring.inability import INABILITY_AFTER_S, InabilityWatch
from headway.agent.monitoring.monitor import INABILITIES_FILE, Monitor
from headway.agent.reporting.worker_report import Beat
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.main_process import MainProcess
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.scaling.model import Inability
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually
from support.workers import record as a_record
from support.workers import template

SLOTS = 4


def beat(at_s: float, **values: Any) -> Beat:
    given = {
        "ended": 0,
        "slots": SLOTS,
        "slots_max": SLOTS,
        "queues": ("mail",),
        "lost": 0,
    }
    return Beat(received_at_s=at_s, **{**given, "is_stopping": False, "loop": int(at_s * 10), **values})


class Watched:
    """One worker, and what its watch sees in polls that are five seconds apart."""

    def __init__(self, record: Record, known: Template) -> None:
        self.record, self.template = record, known
        self.watch, self.now_s = InabilityWatch(), 100.0
        self.news = 0

    def poll(self, *beats: Beat | None) -> Inability | None:
        for each in beats or (None,):
            self.now_s += 5.0
            self.news += self.watch.scan(
                [self.record],
                beat=lambda _, each=each: each,
                templates={self.template.name: self.template},
                now_s=self.now_s,
            )
        return self.watch.of(self.record.worker_id)

    def beats(self, count: int, **values: Any) -> list[Beat]:
        return [beat(self.now_s + 5.0 * (number + 1) - 1.0, **values) for number in range(count)]


@pytest.fixture
def sleeping() -> Iterator[Popen[bytes]]:
    process = Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def watched(sleeping: Popen[bytes]) -> Watched:
    known = template(slots=SLOTS)
    process = procfs.stat(sleeping.pid)
    assert process is not None
    record = a_record("f" * 32, pid=process.pid, started_ticks=process.started_ticks)
    return Watched(replace(record, template="py", template_hash=known.content_hash), known)


def test_a_stopped_process_is_named_after_some_seconds_and_not_after_a_moment(
    watched: Watched, sleeping: Popen[bytes]
) -> None:
    assert watched.poll(None, None) is None
    sleeping.send_signal(signal.SIGSTOP)
    eventually(lambda: procfs.stat(sleeping.pid).state == "T")
    assert watched.poll() is None
    assert watched.poll(None, None) is Inability.STOPPED
    assert watched.news == 1
    sleeping.send_signal(signal.SIGCONT)
    eventually(lambda: procfs.stat(sleeping.pid).state != "T")
    assert watched.poll() is None
    assert watched.news == 2
    sleeping.send_signal(signal.SIGSTOP)
    eventually(lambda: procfs.stat(sleeping.pid).state == "T")
    assert watched.poll() is None, "the seconds begin anew"


def test_a_main_process_that_has_ended_and_that_nobody_reaped_is_named(watched: Watched) -> None:
    """Behind a wrapper that does not notice: the wrapper runs, and nobody takes jobs."""
    ended = Popen([sys.executable, "-c", ""])
    eventually(lambda: (found := procfs.stat(ended.pid)) is not None and found.state == "Z")
    zombie = procfs.stat(ended.pid)
    main = MainProcess(pid=zombie.pid, started_ticks=zombie.started_ticks)
    watched.record = replace(watched.record, mains=(main,))
    assert watched.poll(None, None, None) is Inability.ZOMBIE
    ended.wait()


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"queues": ()}, Inability.CONSUMERS_CANCELLED),
        ({"slots": SLOTS - 1, "slots_max": SLOTS - 1}, Inability.POOL_SHRUNK),
        ({"slots": SLOTS - 1, "slots_max": None}, Inability.POOL_SHRUNK),
        ({"slots": 1}, None),  # with --autoscale, while there is little to do
        ({}, None),
        ({"slots": SLOTS + 1, "slots_max": SLOTS + 1}, None),
        ({"queues": (), "is_stopping": True}, None),  # as it should
        ({"queues": (), "loop": 7}, None),  # its loop stands still, as without its broker
    ],
)
def test_what_a_worker_reports_of_its_queues_and_slots_is_taken_seriously(
    watched: Watched, values: dict[str, Any], found: Inability | None
) -> None:
    assert watched.poll(*watched.beats(2)) is None
    assert watched.poll(*watched.beats(4, **values)) is found


@pytest.mark.parametrize("values", [{"queues": ()}, {"slots": 1, "slots_max": 1}])
def test_a_worker_that_never_had_more_has_lost_nothing(watched: Watched, values: dict[str, Any]) -> None:
    """As of a template with the wrong number of slots: each replacement would be replaced, without end."""
    assert watched.poll(*watched.beats(6, **values)) is None


def test_an_old_beat_says_nothing(watched: Watched) -> None:
    assert watched.poll(*watched.beats(2)) is None
    old = beat(watched.now_s, queues=())
    assert watched.poll(old, old, old) is None


@pytest.mark.e2e
def test_a_real_agent_names_a_stopped_worker_and_replaces_it(tmp_path: Path) -> None:
    text = '[templates.sleep]\nargv = ["sleep", "600"]\nready_after_s = 0.0\n'
    with one_host(tmp_path, text) as host:
        agent = host.agent()
        host.control.assign(row(1))
        (pid,) = host.control.running(1)
        os.kill(pid, signal.SIGSTOP)
        assert eventually(lambda: _named(host, pid), within_s=INABILITY_AFTER_S + 60.0) == "stopped"
        fresh = eventually(lambda: host.control.pids() - {pid}, within_s=90.0)
        assert len(fresh) == 1
        draining = agent_pb2.WORKER_STATE_DRAINING
        eventually(
            lambda: host.control.pids(draining) == {pid}, within_s=90.0
        )  # the replacement has proved that it stays
        os.kill(pid, signal.SIGCONT)  # the signal to stop has waited for that
        eventually(lambda: not runs(pid))
        assert "takes no jobs pool=mail" in host.logged()
        assert agent.poll() is None


def _named(host: Host, pid: int) -> str:
    return next(
        (
            each.inability
            for report in host.control.reports
            for each in report.workers
            if each.pid == pid and each.inability
        ),
        "",
    )


def test_workers_that_all_consume_nothing_are_spared_until_the_control_plane_has_had_time_to_say_why(
    watched: Watched,
) -> None:
    watched.poll(*watched.beats(2))
    assert watched.watch.spared(now_s=watched.now_s) == frozenset()
    watched.poll(*watched.beats(3, queues=()))
    assert watched.watch.spared(now_s=watched.now_s) == {watched.record.worker_id}
    watched.poll(*watched.beats(4, queues=()))
    assert watched.watch.spared(now_s=watched.now_s) == frozenset()


def test_nobody_is_spared_beside_one_that_takes_jobs(watched: Watched) -> None:
    other = replace(watched.record, worker_id="e" * 32)
    for queues in (("mail",), (), (), ()):
        watched.now_s += 5.0
        watched.watch.scan(
            [watched.record, other],
            beat=lambda name, queues=queues: beat(watched.now_s - 1.0, queues=queues if name[0] == "f" else ("mail",)),
            templates={watched.template.name: watched.template},
            now_s=watched.now_s,
        )
    assert watched.watch.of(watched.record.worker_id) is Inability.CONSUMERS_CANCELLED
    assert watched.watch.spared(now_s=watched.now_s) == frozenset()


# --- after a restart of the agent ------------------------------------------------------------------------------------


class FakeReporters:
    """What one worker reports."""

    def __init__(self) -> None:
        self.last: Beat | None = None
        self.queue_orders: dict[str, Any] = {}
        self.slots: dict[str, int] = {}

    def beat(self, _: str) -> Beat | None:
        return self.last

    def activity(self, _: str) -> Activity:
        return NOT_KNOWN


class Monitored:
    """One worker under agents that follow each other in one state folder, polled every five seconds."""

    def __init__(self, watched: Watched, folder: StateFolder) -> None:
        self.watched, self.folder, self.now_s = watched, folder, 100.0
        self.restart()

    def restart(self) -> None:
        self.reporters = FakeReporters()
        self.monitor = Monitor(self.folder, self.reporters, clock=lambda: self.now_s)

    def poll(self, polls: int = 1, *, queues: tuple[str, ...] | None = None) -> Inability | None:
        known = self.watched.template
        for _ in range(polls):
            self.now_s += 5.0
            if queues is not None:
                self.reporters.last = beat(self.now_s - 1.0, queues=queues)
            self.monitor.scan([self.watched.record], HostFile(templates={known.name: known}))
        return self.monitor.activity(self.watched.record).inability


@pytest.fixture
def monitored(watched: Watched, tmp_path: Path) -> Iterator[Monitored]:
    folder = StateFolder(tmp_path.resolve() / "state")
    with folder.only_agent():
        yield Monitored(watched, folder)


def test_an_agent_that_takes_over_a_worker_without_consumers_knows_so_at_once(monitored: Monitored) -> None:
    """The worker reports no queue that it has lost: for the next agent, a paused pool took jobs."""
    monitored.poll(2, queues=("mail",))
    assert monitored.poll(3, queues=()) is Inability.CONSUMERS_CANCELLED
    monitored.restart()
    assert monitored.poll() is Inability.CONSUMERS_CANCELLED, "before its first report"
    assert monitored.monitor.inabilities.spared(now_s=monitored.now_s) == {monitored.watched.record.worker_id}, (
        "the control plane may know the reason"
    )
    assert monitored.poll(3, queues=()) is Inability.CONSUMERS_CANCELLED
    assert monitored.monitor.inabilities.spared(now_s=monitored.now_s) == frozenset()
    assert monitored.poll(queues=("mail",)) is None


def test_a_worker_that_loses_its_consumers_after_the_restart_is_named(monitored: Monitored) -> None:
    monitored.poll(2, queues=("mail",))
    monitored.restart()
    assert monitored.poll(1) is None
    assert monitored.poll(4, queues=()) is Inability.CONSUMERS_CANCELLED


def test_a_worker_that_does_not_report_to_the_next_agent_is_named_no_more(monitored: Monitored) -> None:
    monitored.poll(2, queues=("mail",))
    monitored.poll(3, queues=())
    monitored.restart()
    assert monitored.poll(3) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"%s": 5}', '{"%s": {"slots_max": 4, "had_queues": true, "inability": "x"}}']
)
def test_a_file_that_no_agent_has_written_means_that_nothing_is_known(monitored: Monitored, text: str) -> None:
    worker_id = monitored.watched.record.worker_id
    (monitored.folder.root / INABILITIES_FILE).write_text(text.replace("%s", worker_id))
    monitored.restart()
    assert monitored.poll(4, queues=()) is None
