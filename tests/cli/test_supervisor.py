"""The supervisor with real, small children: each is a line of Python."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from headway.cli.local import process_orphans, supervisor
from headway.cli.local.data_dir import DataDir
from headway.cli.local.supervisor import Child, Supervisor
from headway.cli.process.shutdown import Stopped, Stopping
from headway.errors import Refused, Unavailable
from headway.local import procfs
from support.processes import runs
from support.waiting import eventually

SLEEP = "import time; time.sleep(60)"
WATCH = "import os, time; from headway.cli.process import parent_watch as parent; parent.watch(lambda: os._exit(0)); "


class FakeClock:
    """Real time, and what a test adds to it; once ``stopped_at_s`` is set, nothing but that."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.stopped_at_s: float | None = None

    def __call__(self) -> float:
        return (time.monotonic() if self.stopped_at_s is None else self.stopped_at_s) + self.ahead_s


class Stage:
    """A supervisor in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.layout = DataDir(root / "data")
        self.layout.create()
        self.stopping, self.clock, self.said = Stopping(), FakeClock(), []
        self.supervisor = Supervisor(self.layout, stopping=self.stopping, say=self.said.append, clock=self.clock)

    def child(self, name: str, code: str, **other) -> Child:
        return Child(name=name, argv=(sys.executable, "-c", textwrap.dedent(code)), env=dict(os.environ), **other)

    def stop(self) -> None:
        self.supervisor.stop_children()
        self.supervisor.stop_servers()

    def tend_until(self, holds: Callable[[], object]) -> None:
        def polled() -> object:
            self.supervisor.tend()
            return holds()

        eventually(polled)


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.stop()


def test_a_child_is_ready_when_its_check_says_so(stage, tmp_path):
    mark = tmp_path / "mark"
    code = f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep(60)"
    stage.supervisor.start(stage.child("control", code, is_ready=lambda _: mark.exists()))
    stage.supervisor.wait_ready("control")
    assert mark.exists()


def test_what_a_child_prints_is_in_its_log_after_what_earlier_ones_printed(stage):
    stage.layout.log("control").write_text("of an earlier run\n")
    stage.supervisor.start(stage.child("control", f"print('mine', flush=True); {SLEEP}"))
    eventually(lambda: stage.layout.log("control").read_text() == "of an earlier run\nmine\n")


def test_a_log_that_has_grown_too_large_is_put_aside_at_the_next_start(stage, monkeypatch):
    monkeypatch.setattr("headway.cli.local.child_log.LOG_BYTES_MAX", 10)
    stage.layout.log("control").write_text("a long story of an earlier run\n")
    stage.supervisor.start(stage.child("control", f"print('mine', flush=True); {SLEEP}"))
    eventually(lambda: stage.layout.log("control").read_text() == "mine\n")
    assert "earlier" in stage.layout.log("control").with_suffix(".log.1").read_text()


def test_a_last_task_is_run_to_its_end_also_when_all_is_asked_to_end(stage, tmp_path):
    stage.stopping.stop()
    mark = tmp_path / "mark"
    code = f"import pathlib, time; time.sleep(0.2); pathlib.Path({str(mark)!r}).touch(); raise SystemExit(3)"
    assert stage.supervisor.finish(stage.child("agent", code)) == 3
    assert mark.exists()
    assert stage.supervisor.pid("agent") is None


def test_a_last_task_that_does_not_end_is_killed(stage, tmp_path):
    mark = tmp_path / "pid"
    code = f"import os, pathlib, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    assert stage.supervisor.finish(stage.child("agent", code, stop_within_s=1.0)) is None
    assert "is not done after 1 s: killed" in stage.said[-1]
    assert not mark.exists() or not runs(int(mark.read_text()))


def test_a_child_that_dies_is_started_again_after_a_pause_that_doubles(stage):
    stage.supervisor.start(stage.child("collect", SLEEP))
    stage.supervisor.wait_ready("collect")
    stage.clock.stopped_at_s = time.monotonic()  # a slow machine may take longer than the pause between two lines
    for pause_s in (0.5, 1, 2):
        before = stage.supervisor.pid("collect")
        os.kill(before, signal.SIGKILL)
        stage.tend_until(lambda: stage.supervisor.pid("collect") is None)
        assert stage.said[-1].endswith(f"starting it again in {pause_s:g} s")
        assert stage.said[-1].startswith("collect ended (signal SIGKILL); ")
        stage.clock.ahead_s += pause_s - 0.1
        stage.supervisor.tend()
        assert stage.supervisor.pid("collect") is None, "the pause is not over"
        stage.clock.ahead_s += 0.2
        stage.tend_until(lambda: stage.supervisor.pid("collect"))
        assert stage.supervisor.pid("collect") != before
        stage.tend_until(lambda: stage.said[-1] == "collect is back")


def test_a_ready_check_is_asked_anew_after_a_restart_with_the_time_since_that_start(stage):
    asked = []
    stage.supervisor.start(stage.child("pipeline", SLEEP, is_ready=lambda ran_s: asked.append(ran_s) or ran_s >= 20))
    stage.clock.ahead_s += 20
    stage.supervisor.wait_ready("pipeline")
    os.kill(stage.supervisor.pid("pipeline"), signal.SIGKILL)
    stage.tend_until(lambda: stage.supervisor.pid("pipeline") is None)
    stage.clock.ahead_s += 1
    asked.clear()
    stage.tend_until(lambda: len(asked) == 2)
    assert asked[-1] < 20
    assert "pipeline is back" not in stage.said
    stage.clock.ahead_s += 20
    stage.supervisor.tend()
    assert stage.said[-1] == "pipeline is back"


def test_a_child_that_ran_well_for_a_minute_is_started_again_soon(stage):
    stage.supervisor.start(stage.child("collect", SLEEP))
    stage.supervisor.wait_ready("collect")
    for _ in range(3):
        os.kill(stage.supervisor.pid("collect"), signal.SIGKILL)
        stage.tend_until(lambda: stage.supervisor.pid("collect") is None)
        stage.clock.ahead_s += 30
        stage.tend_until(lambda: stage.supervisor.pid("collect") is not None)
    stage.clock.ahead_s += 61
    os.kill(stage.supervisor.pid("collect"), signal.SIGKILL)
    stage.tend_until(lambda: stage.supervisor.pid("collect") is None)
    assert stage.said[-1].endswith("starting it again in 0.5 s")


def test_a_child_that_fails_three_times_before_it_was_ready_ends_the_start_with_its_own_words(stage):
    code = """
        import sys
        print('noise', file=sys.stderr)
        print('headway: the database is on strike', file=sys.stderr)
        print('more noise', file=sys.stderr)
        sys.exit(2)
    """
    stage.supervisor.start(stage.child("control", code, is_ready=lambda _: False))
    with pytest.raises(Unavailable) as raised:
        stage.supervisor.wait_ready("control")
    assert str(raised.value) == (
        f"control does not start: the database is on strike; its log: {stage.layout.log('control')}"
    )
    assert stage.layout.log("control").read_text().count("strike") == 3


def test_a_child_that_nothing_can_be_asked_is_ready_once_it_has_lived_a_while(stage):
    stage.supervisor.start(stage.child("collect", "raise SystemExit(2)", ready_after_s=50))
    with pytest.raises(Unavailable, match="collect does not start: it said nothing"):
        stage.supervisor.wait_ready("collect")
    stage.supervisor.start(stage.child("agent", SLEEP, ready_after_s=50))
    stage.clock.ahead_s += 50
    stage.supervisor.wait_ready("agent")


def test_a_child_that_is_never_ready_ends_the_start(stage):
    stage.supervisor.start(stage.child("pipeline", SLEEP, is_ready=lambda _: False, ready_within_s=90))
    stage.clock.ahead_s += 91
    with pytest.raises(Unavailable, match=r"pipeline is not ready after 90 s; its log: .*pipeline\.log"):
        stage.supervisor.wait_ready("pipeline")


def test_waiting_for_a_child_ends_when_this_process_is_asked_to(stage):
    stage.supervisor.start(stage.child("pipeline", SLEEP, is_ready=lambda _: False))
    with stage.stopping.listening(repeated=lambda: None):
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Stopped):
            stage.supervisor.wait_ready("pipeline")
    assert stage.stopping.signal_number == signal.SIGTERM


def test_what_is_run_once_has_ended_when_the_call_returns_and_fails_with_its_own_words(stage):
    stage.supervisor.complete(stage.child("migrate", "print('headway: done')"))
    assert "done" in stage.layout.log("migrate").read_text()
    with pytest.raises(Unavailable, match="migrate failed: no such database; its log: "):
        stage.supervisor.complete(stage.child("migrate", "raise SystemExit('headway: no such database')"))
    stage.supervisor.tend()
    assert stage.supervisor.pid("migrate") is None, "it is not watched any more"


def test_a_child_that_others_need_stops_after_them(stage, tmp_path):
    order = tmp_path / "order"
    code = """
        import signal, sys, time
        def end(*_):
            while {after!r} not in open({order!r}).read():
                time.sleep(0.01)
            with open({order!r}, 'a') as order:
                order.write({name!r} + ' ')
            sys.exit()
        signal.signal(signal.SIGTERM, end)
        open({order!r} + {name!r}, 'w')
        time.sleep(60)
    """
    order.touch()
    for name, after, needs in (("agent", "pipeline", ("control",)), ("control", "", ()), ("pipeline", "", ())):
        mark = tmp_path / f"order{name}"
        text = code.format(order=str(order), name=name, after=after)
        child = stage.child(name, text, is_ready=lambda _, mark=mark: mark.exists(), needs=needs, stop_within_s=50)
        stage.supervisor.start(child)
    stage.supervisor.wait_ready("agent", "control", "pipeline")
    stage.stop()
    assert order.read_text().split() == ["pipeline", "agent", "control"]


def test_all_children_but_one_are_ended_and_that_one_goes_on(stage):
    for name, needs in (("agent", ("control",)), ("control", ())):
        stage.supervisor.start(stage.child(name, SLEEP, needs=needs))
    control = stage.supervisor.pid("control")
    stage.supervisor.stop_children(but="control")
    assert stage.supervisor.pid("agent") is None
    assert stage.supervisor.pid("control") == control
    assert runs(control)


def test_a_child_that_will_not_stop_is_killed_with_its_whole_session(stage, tmp_path):
    family = tmp_path / "family"
    code = f"""
        import pathlib, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        other = subprocess.Popen([sys.executable, '-c', {SLEEP!r}])
        pathlib.Path({str(family)!r}).write_text(str(other.pid))
        time.sleep(60)
    """
    stage.supervisor.start(stage.child("pipeline", code, is_ready=lambda _: family.exists(), stop_within_s=0.2))
    stage.supervisor.wait_ready("pipeline")
    eventually(lambda: family.read_text())
    stage.stop()
    assert "did not stop within 0.2 s: killed" in stage.said[-1]
    eventually(lambda: not runs(int(family.read_text())))


def test_a_child_that_waits_for_jobs_is_waited_for_by_name_and_asked_again_where_this_process_is(stage, monkeypatch):
    code = """
        import signal, time
        asked = []
        signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
        while len(asked) < 2:
            time.sleep(0.01)
    """
    waits = stage.child("agent", code, stop_within_s=float("inf"), awaited=lambda: "waiting for mail (process 7)")
    stage.supervisor.start(waits)
    pid = stage.supervisor.pid("agent")
    eventually(lambda: not procfs.would_die_of(pid, signal.SIGTERM))
    stage.stopping.signals_received = 1
    monkeypatch.setattr(supervisor, "AWAITED_EVERY_S", 0.05)
    ending = threading.Thread(target=stage.stop)
    ending.start()
    line = "waiting for mail (process 7); Ctrl-C again kills them, and cuts their jobs"
    eventually(lambda: stage.said[-2:] == [line, line])
    assert runs(pid)
    stage.stopping.signals_received = 2
    ending.join(30.0)
    assert not runs(pid)
    assert not any("killed" in each for each in stage.said)


def test_what_a_child_leaves_in_its_session_ends_with_it(stage, tmp_path):
    family = tmp_path / "family"
    code = f"""
        import os, pathlib, subprocess, sys
        other = subprocess.Popen([sys.executable, '-c', {SLEEP!r}])
        pathlib.Path({str(family)!r}).write_text(str(other.pid))
        os._exit(1)
    """
    stage.supervisor.start(stage.child("pipeline", code))
    stage.tend_until(lambda: stage.supervisor.pid("pipeline") is None)
    eventually(lambda: not runs(int(family.read_text())))


class FakeServer:
    """An embedded server that dies when asked to."""

    url, pid = "postgresql://here", 1

    def __init__(self) -> None:
        self.alive, self.released = True, False

    def is_running(self) -> bool:
        return self.alive

    def release(self) -> None:
        self.released = True

    def wait_stopped(self, timeout_s: float) -> bool:
        return True


def test_an_embedded_server_found_dead_is_brought_back(stage):
    servers = []

    def ensure() -> FakeServer:
        if len(servers) == 1:
            servers.append(None)
            raise Unavailable("the disk is full")
        servers.append(FakeServer())
        return servers[-1]

    stage.supervisor.keep("postgres", ensure)
    servers[0].alive = False
    stage.supervisor.tend()
    assert stage.said == [
        "postgres ended; bringing it back",
        "postgres does not come back: the disk is full; next try in 0.5 s",
    ]
    stage.supervisor.tend()
    assert len(servers) == 2, "the pause is not over"
    stage.clock.ahead_s += 1
    stage.supervisor.tend()
    stage.stop()
    assert servers[2].released


PARENT = """
import sys, time
from pathlib import Path
from headway.cli.local.data_dir import DataDir
from headway.cli.process.shutdown import Stopping
from headway.cli.local.supervisor import Child, Supervisor
layout = DataDir(Path(sys.argv[1]))
layout.create()
supervisor = Supervisor(layout, stopping=Stopping(), say=print)
import os
for name, code in (("obeys", sys.argv[2]), ("deaf", sys.argv[3])):
    argv = (sys.executable, "-c", code)
    supervisor.start(Child(name=name, argv=argv, env=dict(os.environ), stop_within_s=0.3))
supervisor.wait_ready("obeys", "deaf")
print("ready", flush=True)
time.sleep(60)
"""


def test_children_end_when_their_parent_is_killed_and_the_next_parent_ends_the_deaf(tmp_path, monkeypatch):
    monkeypatch.setattr(process_orphans, "TERM_END_S", 60.0)
    root, mark = tmp_path / "data", tmp_path / "watching"
    argv = [sys.executable, "-c", PARENT, str(root), f"{WATCH}open({str(mark)!r}, 'w'); time.sleep(60)", SLEEP]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "ready\n"
    eventually(mark.exists)
    children = {row["name"]: row["pid"] for row in json.loads((root / "children.json").read_text())}
    parent.kill()
    parent.communicate()
    eventually(lambda: not runs(children["obeys"]))
    assert runs(children["deaf"])

    said = []
    process_orphans.clear(root / "children.json", stopping=Stopping(), say=said.append)
    assert not runs(children["deaf"])
    assert said == [
        f"waiting for what an earlier run left: deaf (process {children['deaf']})",
        "ending what an earlier run left: deaf (SIGTERM)",
    ]
    assert not (root / "children.json").exists()


def test_what_ignores_its_end_is_killed_with_its_session(tmp_path, monkeypatch):
    monkeypatch.setattr(process_orphans, "TERM_END_S", 0.5)
    monkeypatch.setattr(process_orphans, "KILL_END_S", 60.0)
    ready = tmp_path / "ready"
    code = f"import signal, time; signal.signal(15, signal.SIG_IGN); open({str(ready)!r}, 'w'); time.sleep(60)"
    argv = (sys.executable, "-c", code)
    stubborn = subprocess.Popen(argv, start_new_session=True)
    eventually(ready.exists)
    created_at_s = psutil.Process(stubborn.pid).create_time()
    record, said = tmp_path / "children.json", []
    started = process_orphans.Started(
        name="pipeline", pid=stubborn.pid, created_at_s=created_at_s, argv=argv, stop_within_s=0
    )
    process_orphans.record(record, [started])
    process_orphans.clear(record, stopping=Stopping(), say=said.append)
    assert [line.rpartition("(")[2] for line in said[1:]] == ["SIGTERM)", "SIGKILL)"]
    assert stubborn.wait(60) == -signal.SIGKILL


def test_a_process_that_only_has_the_same_pid_is_left_alone(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        created_at_s = psutil.Process(other.pid).create_time()
        argv = (sys.executable, "-c", SLEEP)
        record = tmp_path / "children.json"
        started = process_orphans.Started(
            name="agent", pid=other.pid, created_at_s=created_at_s, argv=argv, stop_within_s=0
        )
        process_orphans.record(
            record,
            [
                process_orphans.Started(**{**_fields(started), "created_at_s": created_at_s - 5}),
                process_orphans.Started(**{**_fields(started), "argv": ("something", "else")}),
            ],
        )
        process_orphans.clear(record, stopping=Stopping(), say=lambda _: pytest.fail("there was nothing to wait for"))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_record_that_cannot_be_read_is_nobodys(tmp_path):
    record = tmp_path / "children.json"
    record.write_text('[{"name": "agent"')
    process_orphans.clear(record, stopping=Stopping(), say=print)
    assert not record.exists()


def test_a_data_folder_has_one_parent(tmp_path):
    layout = DataDir(tmp_path / "data")
    layout.create()
    with (
        process_orphans.only_parent(layout),
        pytest.raises(Refused, match=rf"another headway \(process {os.getpid()}\) uses the data folder"),
        process_orphans.only_parent(layout),
    ):
        pytest.fail("two parents")
    with process_orphans.only_parent(layout):
        pass


def test_a_parent_keeps_its_data_folder_and_its_children_when_its_files_are_deleted(stage):
    """Its lock alone, or with the record of its children: the next parent would end these as an earlier run's."""
    layout = stage.layout
    layout.create()
    with process_orphans.only_parent(layout):
        stage.supervisor.start(stage.child("pipeline", "import time; time.sleep(60)"))
        child = psutil.Process(stage.supervisor.pid("pipeline"))
        eventually(lambda: "sleep(60)" in child.cmdline()[-1])  # it is this program by then, and no copy of ours
        for deleted, process in ((layout.lock, str(os.getpid())), (layout.children, "unknown")):
            deleted.unlink()
            with (
                pytest.raises(Refused, match=rf"another headway \(process {process}\) uses the data folder"),
                process_orphans.only_parent(layout),
            ):
                pytest.fail("two parents")
        assert stage.supervisor.pid("pipeline") is not None
    stage.supervisor.stop_children()


def _fields(started: process_orphans.Started) -> dict:
    return {name: getattr(started, name) for name in ("name", "pid", "created_at_s", "argv", "stop_within_s")}


def beating(file: Path) -> str:
    return f"import pathlib, time\nwhile True:\n    pathlib.Path({str(file)!r}).touch()\n    time.sleep(0.02)"


def test_a_child_without_a_heartbeat_is_named_and_replaced(stage, tmp_path):
    """One that is stopped does not end, so only its silence shows; what is hung answers no request to stop either."""
    file = tmp_path / "heartbeat"
    stage.supervisor.start(stage.child("pipeline", beating(file), heartbeat=file))
    stage.tend_until(file.exists)
    stage.tend_until(lambda: stage.supervisor.pid("pipeline"))
    before = stage.supervisor.pid("pipeline")
    os.kill(before, signal.SIGSTOP)
    stage.clock.stopped_at_s = time.monotonic()
    said = []
    for _ in range(24):
        stage.supervisor.tend()
        said.append(list(stage.said))
        stage.clock.ahead_s += 1
    first = next(number for number, lines in enumerate(said) if any("not responding" in line for line in lines))
    assert first <= 8, "within ten seconds"
    assert f"pipeline (process {before}) has had no heartbeat for 20 s: killed" in stage.said
    stage.clock.stopped_at_s = None
    stage.tend_until(lambda: not runs(before))
    stage.tend_until(lambda: stage.supervisor.pid("pipeline") not in {None, before})


def test_a_child_that_was_stopped_for_a_moment_is_left_alone(stage, tmp_path):
    file = tmp_path / "heartbeat"
    stage.supervisor.start(stage.child("pipeline", beating(file), heartbeat=file))
    stage.tend_until(file.exists)
    before = stage.supervisor.pid("pipeline")
    os.kill(before, signal.SIGSTOP)
    stage.clock.stopped_at_s = time.monotonic()
    for _ in range(8):
        stage.supervisor.tend()
        stage.clock.ahead_s += 1
    os.kill(before, signal.SIGCONT)
    stage.tend_until(lambda: stage.said[-1:] == [f"pipeline (process {before}) responds again"])
    assert stage.supervisor.pid("pipeline") == before


def test_a_parent_that_stood_still_itself_takes_nobody_for_hung(stage, tmp_path):
    """A machine that was suspended stops all: the parent may poll before its child could write a heartbeat."""
    file = tmp_path / "heartbeat"
    stage.supervisor.start(stage.child("pipeline", beating(file), heartbeat=file))
    stage.tend_until(file.exists)
    before = stage.supervisor.pid("pipeline")
    os.kill(before, signal.SIGSTOP)
    stage.clock.stopped_at_s = time.monotonic()
    stage.supervisor.tend()
    stage.clock.ahead_s += 3600
    stage.supervisor.tend()
    assert stage.said == []
    os.kill(before, signal.SIGCONT)
