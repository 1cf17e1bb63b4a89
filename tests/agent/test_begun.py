"""An agent is killed between a worker's start and the record of its process: the next one knows it by its place.

What proves a process to be that worker is the file that it prints to, which the agent makes for each start.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.agent.config.templates import WORKER_ID, Stop, Template
from headway.agent.workers import recovery
from headway.local import procfs
from headway.scaling.model import Worker, WorkerState
from headway.scaling.reconcile import Drain
from support.waiting import eventually
from support.workers import SLEEP, Stage, reconcile_until, start, template

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a worker as another user")
NOBODY = 65534
BARE = f"import os, sys; os.execve(sys.executable, [sys.executable, '-c', {SLEEP!r}], {{}})"
# A child in a session of its own, as RQ's workers have where they are told to.
WITH_CHILD = (
    f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True);{SLEEP}"
)
# One that is nobody's child any more.
WITH_DAEMON = f"""
import os, time
if os.fork() == 0:
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.01)
        os.setsid()
        {SLEEP}
    os._exit(0)
{SLEEP}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "state")
    yield stage
    stage.clear()
    _end(each for each in procfs.pids() if str(tmp_path) in str(procfs.output_files(each)))


def _end(pids: Any) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def killed_as_it_starts(stage: Stage, given: Template) -> Worker:
    """The worker that an agent has started which did not live to write down its process."""
    with stage.fleet(given) as fleet:
        fleet.save = lambda **_: type(fleet).save(fleet) if not fleet.running() else None
        fleet._starts.note = lambda _: None
        fleet.act([start(restart_generation=4)])
        (worker,) = fleet.workers()
        eventually(lambda: _says_it(worker.pid) or _prints(worker.pid))
    return worker


def _says_it(pid: int) -> bool:
    return WORKER_ID in procfs.environment(pid)


def _prints(pid: int) -> bool:
    return bool(procfs.output_files(pid)) and procfs.environment(pid) == {}


@pytest.mark.parametrize("code", [SLEEP, BARE, WITH_CHILD])
def test_a_worker_is_taken_over_by_its_place_and_the_file_it_prints_to(stage: Stage, code: str) -> None:
    """Also one that overwrote its environment, and of a family its main process."""
    given = template(code, stop=Stop(drain_timeout_s=77.0))
    before = killed_as_it_starts(stage, given)
    if code == WITH_CHILD:
        eventually(lambda: [each for each in procfs.children(before.pid) if each.session == each.pid])
    with stage.fleet(given) as fleet:
        (found,) = fleet.all_workers()
        assert (found.pid, found.worker_id, found.state) == (before.pid, before.worker_id, before.state)
        assert (found.pool, found.template, found.restart_generation) == ("mail", "py", 4)
        assert [each.stop.drain_timeout_s for each in fleet.running()] == [77.0]
        assert [each.number for each in fleet.running()] == [0]
        fleet.act([Drain(worker_id=found.worker_id)])
        reconcile_until(fleet, lambda: not fleet.running())
    with stage.fleet(given) as fleet:
        # Its child is left behind if the agent saw it before its worker ended.
        assert [each for each in fleet.all_workers() if not each.is_left_behind] == []


def unknown_after(stage: Stage, given: Template) -> list[int]:
    """The pids of what the next agent counts and leaves alone; it takes nothing over."""
    with stage.fleet(given) as fleet:
        assert fleet.running() == ()
        found = fleet.all_workers()
        assert {each.state for each in found} <= {WorkerState.UNKNOWN}
        return [each.pid for each in found]


def test_of_two_that_may_be_it_none_is_taken_over(stage: Stage) -> None:
    given = template(WITH_DAEMON)
    before = killed_as_it_starts(stage, given)
    eventually(lambda: len([each for each in procfs.pids() if _leads(each, before)]) >= 2)
    assert unknown_after(stage, given) == [before.pid]


def _leads(pid: int, worker: Worker) -> bool:
    known = procfs.stat(pid)
    is_its = procfs.environment(pid).get(WORKER_ID) == worker.worker_id
    return known is not None and known.session == pid and not known.is_over and is_its


def test_what_began_long_after_the_place_is_not_taken_over(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As what a worker has left that has ended since."""
    given = template()
    before = killed_as_it_starts(stage, given)
    monkeypatch.setattr(recovery, "BEGUN_WITHIN_S", -1.0)
    assert unknown_after(stage, given) == [before.pid]


def test_a_place_without_a_process_is_free(stage: Stage) -> None:
    before = killed_as_it_starts(stage, template())
    os.kill(before.pid, signal.SIGKILL)
    os.waitpid(before.pid, 0)
    with stage.fleet(template()) as fleet:
        assert fleet.all_workers() == ()


class Forged:
    """A process of nobody's that bears the marks of a worker."""

    def __init__(self, worker: Worker, *, beside: int | None = None) -> None:
        environment = {**procfs.environment(worker.pid)}
        self.process = subprocess.Popen(
            ["/bin/sleep", "600"],
            env=environment,
            user=NOBODY,
            group=NOBODY,
            start_new_session=True,
            stdout=beside or subprocess.DEVNULL,
        )
        eventually(lambda: Path(f"/proc/{self.process.pid}/comm").read_text() == "sleep\n")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def as_nobody() -> Template:
    slept = template(name="py", user="nobody")
    return Template(
        name="py",
        argv=("/bin/sleep", "600"),
        user="nobody",
        environment={},
        working_directory="/",
        ready=slept.ready,
    )


@as_root
def test_forged_marks_neither_take_a_workers_place_nor_stand_in_its_way(stage: Stage) -> None:
    """The job wants its own process taken for the worker, or the worker left to nobody."""
    before = killed_as_it_starts(stage, as_nobody())
    forged = Forged(before)
    with stage.fleet(as_nobody()) as fleet:
        assert [each.pid for each in fleet.running()] == [before.pid]
    forged.end()


@as_root
def test_forged_marks_of_a_worker_that_is_gone_are_not_taken_over(stage: Stage) -> None:
    """The process bears them, is of the template's user and began in time; it prints elsewhere."""
    before = killed_as_it_starts(stage, as_nobody())
    forged = Forged(before)
    os.kill(before.pid, signal.SIGKILL)
    os.waitpid(before.pid, 0)
    assert unknown_after(stage, as_nobody()) == [forged.process.pid]
    assert forged.process.poll() is None
    forged.end()


@as_root
def test_nobody_but_the_worker_can_open_the_file_it_prints_to(stage: Stage) -> None:
    """Not by its name, and not by the descriptor of the worker, either: it is root's own."""
    before = killed_as_it_starts(stage, as_nobody())
    log = stage.folder.root / "workers" / f"{before.worker_id}.log"
    for path in (log, Path(f"/proc/{before.pid}/fd/1")):
        tried = subprocess.run(["/bin/sh", "-c", f": >> {path}"], user=NOBODY, group=NOBODY, capture_output=True)
        assert tried.returncode != 0
        assert b"ermission denied" in tried.stderr
    assert log.stat().st_mode & 0o077 == 0


@as_root
def test_what_became_another_user_is_not_taken_over_by_its_place(stage: Stage) -> None:
    """The place says whose it is about to be."""
    before = killed_as_it_starts(stage, as_nobody())
    path = stage.folder.root / "workers.json"
    assert f'"uid":{NOBODY}' in path.read_text()
    path.write_text(path.read_text().replace(f'"uid":{NOBODY}', '"uid":12345'))
    assert unknown_after(stage, as_nobody()) == [before.pid]


def test_a_place_that_an_earlier_version_recorded_says_too_little(stage: Stage) -> None:
    before = killed_as_it_starts(stage, template())
    path = stage.folder.root / "workers.json"
    path.write_text(path.read_text().replace(f'"uid":{os.geteuid()}', '"uid":null'))
    assert unknown_after(stage, template()) == [before.pid]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from support.workers import SLEEP, Stage, start, template
from headway.agent.workers import worker_process as processes
spawned = processes.spawn
left = {after}
def spawn(*given, **more):
    global left
    process = spawned(*given, **more)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return process
processes.spawn = spawn
with Stage(Path({root!r})).fleet(template()) as fleet:
    fleet.act([start() for _ in range(5)])
"""


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_killed_agent_leaves_no_worker_that_the_next_does_not_know(stage: Stage, after: int) -> None:
    """A real one, killed as soon as one of five workers has been started."""
    code = KILLED.format(paths=sys.path, after=after, root=str(stage.folder.root))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with stage.fleet(template()) as fleet:
        found = fleet.all_workers()
        assert [each.state for each in found] == [WorkerState.STARTING] * after
        assert len({each.pid for each in found}) == after
        assert sorted(each.number for each in fleet.running()) == list(range(after))
        assert fleet.free_number("py") == after  # the places without a process have none


def test_hundreds_of_forged_marks_are_neither_taken_over_nor_logged_one_by_one(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The job wants the agent's log full."""
    with stage.fleet(template()) as fleet:
        agent_id = fleet._agent_id
    forging = (
        "import os, sys, time\n"
        f"agent_id, count = {agent_id!r}, 300\n"
        "for number in range(count):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        marks = {'HEADWAY_AGENT_ID': agent_id, 'HEADWAY_WORKER_ID': f'{number:032x}'}\n"
        "        os.execve('/bin/sleep', ['/bin/sleep', '600'], marks)\n"
        "print('done', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", forging], stdout=subprocess.PIPE, text=True) as forger:
        assert forger.stdout is not None
        assert forger.stdout.readline() == "done\n"
        pids = [each.pid for each in procfs.children(forger.pid)]
        eventually(lambda: all(WORKER_ID in procfs.environment(pid) for pid in pids))
        with stage.fleet(template()) as fleet:
            assert fleet.all_workers() == ()
        _end([*pids, forger.pid])
    reported = [each for each in caplog.messages if "never started" in each]
    assert len(reported) == 1
    assert "never started: 300, as pid=" in reported[0]
