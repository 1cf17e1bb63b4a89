"""What a worker start leaves: found, counted, shown, and asked to stop once where that cuts no job.

The programs have the names of libraries, for a main process is known by its command line.
"""

import json
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.templates import Reporter, Stop, Template
from headway.agent.config.worker_programs import bears_second_stop, starts_worker
from headway.agent.fleet_end import awaited_line
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.workers.manager import WorkerManager
from headway.local import procfs
from headway.scaling.model import ActivitySource, Assignment, WorkerState
from headway.scaling.reconcile import Drain, Start, Upkeep, reconcile
from support.processes import runs
from support.waiting import eventually
from support.workers import PRINTS_READY, Stage, printed, reconcile_until, start, states, template

# Hears each signal to stop, and finishes its job when the file is there. With a fork, it has a copy that does the job.
WORKER = """
import os, pathlib, signal, sys, time
told = []
def say(word):  # in one piece, beside what the copy says
    os.write(1, b'%s %d\\n' % (word, os.getpid()))
def hear(*_):
    told.append(1)
    say(b'told')
if {forks!r}:
    if os.fork() == 0:  # dies of the signal, as the children of a pool do
        if {has_own_group!r}:
            os.setpgrp()
        say(b'copy')
        while not pathlib.Path({done!r}).exists():
            time.sleep(0.01)
        os._exit(0)
signal.signal(signal.SIGTERM, hear)
say(b'ready')
while not (told and pathlib.Path({done!r}).exists()):
    time.sleep(0.01)
os.write(1, b'done\\n')
"""
# As npm: hands the signal on to its child, which is a shell, and ends when that has died of it.
NPM = """
import signal, subprocess, sys
child = subprocess.Popen(['sh', '-c', sys.argv[1] + '; true'])
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
child.wait()
sys.exit({status})
"""


class Programs:
    """A program with the name of a library's, and what wraps it."""

    def __init__(self, folder: Path, library: str, *, forks: bool = False) -> None:
        """Of RQ, as there, a copy that does a job has a process group of its own."""
        self.done = folder / "done"
        self._program = folder / library
        self._program.write_text(WORKER.format(done=str(self.done), forks=forks, has_own_group=library == "rq"))
        self.words = (sys.executable, str(self._program), "worker")
        self.line = shlex.join(self.words)

    def template(self, argv: Sequence[str], **values: object) -> Template:
        return replace(template(ready=PRINTS_READY, **values), argv=tuple(argv))

    def behind_npm(self, *, status: int = 0) -> Template:
        return self.template((sys.executable, "-c", NPM.format(status=status), self.line))


def whole_lines(stage: Stage, worker_id: str) -> list[str]:
    """What was printed, without a line that is being printed just now."""
    return printed(stage, worker_id).split("\n")[:-1]


def stops_of(stage: Stage, worker_id: str) -> list[int]:
    return [int(line.split()[1]) for line in whole_lines(stage, worker_id) if line.startswith("told")]


def said(stage: Stage, worker_id: str, word: str) -> int:
    line = eventually(lambda: next((each for each in whole_lines(stage, worker_id) if each.startswith(word)), None))
    return int(line.split()[1])


def running(fleet: WorkerManager) -> None:
    reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])


def due(fleet: WorkerManager, *, workers: int) -> tuple[object, ...]:
    """What the agent would do for so many workers of the pool."""
    wanted = Assignment(pool="mail", host_id="h", template="py", base_workers=workers)
    return reconcile(fleet.all_workers(), [wanted], upkeep=Upkeep(keeping_places=fleet.keeping_places()))


# --- asked to stop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["celery", "dramatiq", "rq"])
@pytest.mark.parametrize("status", [0, 143])
def test_a_worker_behind_npm_is_asked_once_and_finishes_its_job(
    stage: Stage, tmp_path: Path, library: str, status: int
) -> None:
    """Npm signals its shell alone, which dies of it: the worker took jobs for another minute, and was killed at one."""
    programs = Programs(tmp_path, library, forks=True)
    with stage.fleet(programs.behind_npm(status=status)) as fleet:
        fleet.act([start()])
        running(fleet)
        (npm,) = fleet.workers()
        main = said(stage, npm.worker_id, "ready")
        fleet.act([Drain(worker_id=npm.worker_id)])
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert stops_of(stage, npm.worker_id) == [main]
        (left,) = fleet.remains.workers()
        assert (left.pid, left.state, left.is_left_behind) == (main, WorkerState.DRAINING, True)
    with stage.fleet(programs.behind_npm()) as fleet:  # and an agent that comes then asks no second time
        fleet.scan()
        programs.done.touch()
        reconcile_until(fleet, lambda: fleet.remains.workers() == ())
    assert stops_of(stage, npm.worker_id) == [main]
    assert "done" in printed(stage, npm.worker_id).splitlines()  # beside what its copies print


@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_main_process_that_a_killed_wrapper_leaves_is_asked_once(
    stage: Stage, tmp_path: Path, is_restarted: bool
) -> None:
    programs = Programs(tmp_path, "celery", forks=True)
    with stage.fleet(programs.behind_npm()) as fleet:
        fleet.act([start()])
        running(fleet)
        fleet.note_mains()
        (npm,) = fleet.running()
        main, copy = said(stage, npm.worker_id, "ready"), said(stage, npm.worker_id, "copy")
        if not is_restarted:
            os.kill(npm.pid, signal.SIGKILL)
            reconcile_until(fleet, lambda: fleet.remains.workers())
    if is_restarted:
        os.kill(npm.pid, signal.SIGKILL)
        os.waitpid(npm.pid, 0)
    with stage.fleet(programs.behind_npm()) as fleet:
        reconcile_until(fleet, lambda: stops_of(stage, npm.worker_id) == [main])
        assert runs(copy), "the signal would have killed it, with its job"
        (left,) = fleet.remains.workers()
        assert left.pid == main
        for _ in range(3):
            fleet.scan()
        programs.done.touch()
        reconcile_until(fleet, lambda: fleet.remains.workers() == ())
    assert stops_of(stage, npm.worker_id) == [main]


@pytest.mark.parametrize("library", ["celery", "rq", "unknown"])
def test_copies_that_a_killed_worker_leaves_are_not_asked(stage: Stage, tmp_path: Path, library: str) -> None:
    """The children of a pool, and RQ's process of a job, die of the signal."""
    programs = Programs(tmp_path, library, forks=True)
    with stage.fleet(programs.template(programs.words)) as fleet:
        fleet.act([start()])
        running(fleet)
        fleet.note_mains()
        (worker,) = fleet.workers()
        copy = said(stage, worker.worker_id, "copy")
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.remains.workers())
        for _ in range(3):
            fleet.scan()
        assert runs(copy)
        programs.done.touch()
        reconcile_until(fleet, lambda: fleet.remains.workers() == ())
    assert "told" not in printed(stage, worker.worker_id)


@pytest.mark.parametrize(
    ("library", "is_asked_again"),
    [
        ("celery", True),  # to which a second TERM is harmless
        ("rq", False),  # which drops its job at a second one
    ],
)
def test_a_wrapper_that_has_perhaps_passed_the_signal_on_is_not_doubled_where_that_cuts_a_job(
    stage: Stage, tmp_path: Path, library: str, is_asked_again: bool
) -> None:
    """As an entry point whose trap sends the signal to its child, and which ends without waiting."""
    programs = Programs(tmp_path, library)
    passes_on = f"trap 'kill -TERM $pid' TERM; {programs.line} & pid=$!; wait $pid"
    with stage.fleet(programs.template(("sh", "-c", passes_on))) as fleet:
        fleet.act([start()])
        running(fleet)
        (worker,) = fleet.workers()
        main = said(stage, worker.worker_id, "ready")
        fleet.act([Drain(worker_id=worker.worker_id)])
        reconcile_until(fleet, lambda: fleet.remains.workers())
        expected = [main] * (1 + is_asked_again)
        reconcile_until(fleet, lambda: stops_of(stage, worker.worker_id) == expected)
        for _ in range(3):
            fleet.scan()
        programs.done.touch()
        reconcile_until(fleet, lambda: fleet.remains.workers() == ())
    assert stops_of(stage, worker.worker_id) == expected


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_celery_behind_the_real_npm_leaves_when_it_is_asked(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("from celery import Celery\napp = Celery(broker='memory://')\n")
    celery = f"{sys.executable} -m celery -A tasks worker -c 1 --loglevel INFO --without-mingle --without-gossip"
    (tmp_path / "package.json").write_text(json.dumps({"scripts": {"worker": celery}}))
    behind = replace(
        template(ready=replace(PRINTS_READY, pattern=r" ready\.$")),
        argv=("npm", "run", "worker"),
        working_directory=str(tmp_path),
    )
    with stage.fleet(behind) as fleet:
        fleet.act([start()])
        running(fleet)
        (worker,) = fleet.workers()
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.all_workers() == ())
    assert printed(stage, worker.worker_id).count("Warm shutdown (MainProcess)") == 1


REPORTS = """
import json, os, pathlib, signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
pipe = os.open(os.environ['HEADWAY_REPORTER_PIPE'], os.O_RDWR | os.O_NONBLOCK)
print('ready', flush=True)
n = 0
while not pathlib.Path({done!r}).exists():
    n += 1
    os.write(pipe, json.dumps({{'v': 1, 't': 'beat', 'n': n, 'part': 0, 'parts': 1, 'queues': ['mail'], 'begun': 1,
        'running': [['j1', 'mail', 'shop.send', 1, time.time()]], 'ended': 0, 'slots': 1, 'stopping': bool(told),
        'loop': n, 'lost': 0, 'at_s': time.time()}}).encode() + b'\\n')
    time.sleep(0.05)
"""


def test_what_a_wrapper_leaves_reports_on_and_its_job_is_named(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "celery").write_text(REPORTS.format(done=str(tmp_path / "done")))
    line = shlex.join([sys.executable, str(tmp_path / "celery"), "worker"])
    behind = template(ready=PRINTS_READY, reporter=Reporter.CELERY)
    with stage.fleet(replace(behind, argv=("sh", "-c", f"{line}; true"))) as fleet:
        fleet.act([start()])
        running(fleet)
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.remains.workers())

        def reports_its_job() -> bool:
            fleet.reporters.read()
            (left,) = fleet.remains.workers()
            return [job.job_id for job in left.running] == ["j1"] and left.is_busy is True

        reconcile_until(fleet, reports_its_job)
        (left,) = fleet.remains.workers()
        assert awaited_line([left]) == (
            f"waiting for 1 worker that finishes its job: mail (process {left.pid}, job j1 of shop.send)"
        )
    with stage.fleet(template()) as fleet:  # and to the next agent
        reconcile_until(fleet, reports_its_job)
        (tmp_path / "done").touch()
        reconcile_until(fleet, lambda: fleet.remains.workers() == ())
        assert fleet.reporters.watchable() == frozenset(), "its pipe is gone with it"


# --- counted ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["celery", "rq"])
def test_what_is_left_of_a_worker_that_nobody_asked_keeps_its_place(stage: Stage, tmp_path: Path, library: str) -> None:
    programs = Programs(tmp_path, library, forks=True)
    with stage.fleet(programs.template(programs.words)) as fleet:
        fleet.act([start()])
        running(fleet)
        (worker,) = fleet.workers()
        said(stage, worker.worker_id, "copy")
        stage.clock.ahead_s += 11.0
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.remains.workers())
        assert due(fleet, workers=1) == ()
        assert due(fleet, workers=2) == (Start(pool="mail", template="py"),)
    with stage.fleet(programs.template(programs.words)) as fleet:  # the next agent knows it, too
        assert due(fleet, workers=1) == ()
        programs.done.touch()
        reconcile_until(fleet, lambda: due(fleet, workers=1) == (Start(pool="mail", template="py"),))


def test_what_is_left_of_a_worker_that_was_asked_has_no_place_to_keep(stage: Stage, tmp_path: Path) -> None:
    """Its place was taken from it before: what the control plane wants now is wanted beside it."""
    programs = Programs(tmp_path, "celery")
    with stage.fleet(programs.behind_npm()) as fleet:
        fleet.act([start()])
        running(fleet)
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.remains.workers())
        assert due(fleet, workers=1) == (Start(pool="mail", template="py"),)
        programs.done.touch()
        reconcile_until(fleet, lambda: fleet.all_workers() == ())


def test_a_worker_that_did_not_get_ready_keeps_its_place_until_it_has_ended(stage: Stage, tmp_path: Path) -> None:
    """One that ignores the signal would be there for ever, and every minute another beside it."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(600)"
    with stage.fleet(template(code, ready=replace(PRINTS_READY, timeout_s=5.0))) as fleet:
        fleet.act([start()])
        (worker,) = fleet.workers()
        eventually(lambda: "x" in printed(stage, worker.worker_id))
        stage.clock.ahead_s += 6.0
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.DRAINING])
        assert due(fleet, workers=1) == ()
        os.kill(worker.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])


# --- into the background ---------------------------------------------------------------------------------------------


def test_a_start_that_goes_to_the_background_is_the_last_until_that_process_has_ended(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pool of two had 25 of them: each start ended well and left another one, which nobody listed."""
    programs = Programs(tmp_path, "celery", forks=True)
    detached = programs.template(("sh", "-c", f"setsid {programs.line} & sleep 0.5; exit 0"))
    with stage.fleet(detached) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: fleet.remains.workers())
        (left,) = fleet.remains.workers()
        assert left.goes_to_background
        assert left.is_left_behind
        assert (
            f"pool=mail template=py: it ended with 0 and left process {left.pid}: it goes to the background. "
            "Remove --detach, or the & of a shell, from its argv; nothing of the template is started before that "
            "process has ended"
        ) in caplog.text
        stage.clock.ahead_s += 400.0
        fleet.scan()
        (worker_id,) = {path.stem for path in (stage.folder.root / "workers").glob("*.log")}
        reconcile_until(fleet, lambda: stops_of(stage, worker_id) == [left.pid])
    with stage.fleet(detached) as fleet:
        fleet.act([start()])
        assert (states(fleet)[-1], fleet.running()) == (WorkerState.BACKING_OFF, ())
        assert fleet.next_check_s() > 1.0
        programs.done.touch()
        reconcile_until(fleet, lambda: fleet.all_workers() == ())
        assert due(fleet, workers=1) == (Start(pool="mail", template="py"),)


FORKS_TWICE = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
time.sleep(1.0)
if os.fork(): time.sleep(0.5); os._exit(0)
time.sleep(1.0)
os.execv('/bin/sh', ['sh', '-c', 'sleep 600; true'])
"""


def test_a_process_in_the_background_is_found_however_often_it_forks(stage: Stage) -> None:
    """As of `celery --detach`: five were started, and three of them ran on, unseen, when all had ended."""
    with stage.fleet(template(FORKS_TWICE, stop=Stop(drain_timeout_s=40.0))) as fleet:
        fleet.act([start()])

        def is_shell() -> bool:
            return any(procfs.command_line(each.pid)[:1] == ("sh",) for each in fleet.remains.workers())

        reconcile_until(fleet, is_shell)
        assert fleet.remains.in_background("py") is not None
        assert (states(fleet), fleet.running()) == ([WorkerState.BACKING_OFF], ())
        fleet.kill_all(why="the test is over")


def test_what_a_job_of_a_worker_that_ends_well_has_sent_to_the_background_is_its_own_affair(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold a worker's place for as long as it lives."""
    monkeypatch.setattr("headway.agent.workers.ends.orphan_roles.CRASH_WITHIN_S", 0.2)
    later = "import subprocess, sys, time; time.sleep(1.0); subprocess.Popen([sys.executable, '-c', {!r}])"
    with stage.fleet(template(later.format("import time; time.sleep(600)"), stop=Stop())) as fleet:
        fleet.act([start()])
        fleet.scan()
        (worker,) = fleet.workers()
        stage.clock.ahead_s += 11.0
        reconcile_until(fleet, lambda: fleet.workers() == ())
        fleet.scan()
        assert fleet.remains.workers() == ()
    (child,) = [pid for pid in procfs.pids() if worker.worker_id in procfs.environment(pid).values()]
    os.kill(child, signal.SIGKILL)


DAEMON = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
STARTS_DAEMON = f"import subprocess, sys; {DAEMON}"


def children_of(worker_id: str) -> list[int]:
    return [pid for pid in procfs.pids() if worker_id in procfs.environment(pid).values()]


def end_all(pids: Sequence[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("is_burst", [False, True])
def test_what_a_job_of_a_library_leaves_soon_after_the_start_holds_back_no_other_worker(
    stage: Stage, tmp_path: Path, is_burst: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As a tunnel that the one job of `rq worker --max-jobs 1` has opened: the template was barred while it lived."""
    (tmp_path / "rq").write_text(STARTS_DAEMON)
    ends_soon = replace(template(), argv=(sys.executable, str(tmp_path / "rq"), "worker"))
    with stage.fleet(ends_soon) as fleet:
        fleet.act([start(is_burst=is_burst)])
        (worker,) = fleet.workers()
        reconcile_until(fleet, lambda: fleet.running() == ())
        fleet.scan()
        assert (fleet.remains.workers(), fleet.remains.in_background("py")) == ((), None)
    end_all(children_of(worker.worker_id))
    assert "--detach" not in caplog.text


HAS_ENDED_A_JOB = f"""
import json, os, subprocess, sys, time
pipe = os.open(os.environ['HEADWAY_REPORTER_PIPE'], os.O_RDWR | os.O_NONBLOCK)
job = {{'v': 1, 'id': 'j1', 'queue': 'mail', 'class': 'shop.send', 'attempt': 1, 'at_s': time.time()}}
for more in {{'t': 'begun'}}, {{'t': 'ended', 'outcome': 'finished'}}:
    os.write(pipe, json.dumps({{**job, **more}}).encode() + b'\\n')
{DAEMON}
"""


@pytest.mark.parametrize(
    ("code", "is_burst", "is_in_background"),
    [
        (STARTS_DAEMON, False, True),
        (STARTS_DAEMON, True, False),
        (HAS_ENDED_A_JOB, False, False),
    ],
)
def test_a_worker_that_had_a_reason_to_end_has_not_gone_to_the_background(
    stage: Stage, code: str, is_burst: bool, is_in_background: bool
) -> None:
    """What an unknown program leaves soon after its start counts all the same: it may be what takes jobs."""
    with stage.fleet(template(code, reporter=Reporter.CELERY)) as fleet:
        fleet.act([start(is_burst=is_burst)])
        reconcile_until(fleet, lambda: fleet.remains.workers())
        (left,) = fleet.remains.workers()
        assert left.goes_to_background is is_in_background
        assert (left.worker_id in fleet.keeping_places()) is is_in_background
        end_all([left.pid])


def test_a_worker_that_is_asked_to_stop_as_it_has_begun_has_not_gone_to_the_background(stage: Stage) -> None:
    at_term = (
        "import os, signal, time; signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); print('ready', flush=True)"
    )
    with stage.fleet(template(f"{STARTS_DAEMON}; {at_term}; time.sleep(600)", ready=PRINTS_READY)) as fleet:
        fleet.act([start()])
        running(fleet)
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.remains.workers())
        (left,) = fleet.remains.workers()
        assert not left.goes_to_background
        assert due(fleet, workers=1) == (Start(pool="mail", template="py"),)
        end_all([left.pid])


LEAVES_AT_TERM = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
time.sleep(1.0)
{leaves}
print('ready', flush=True)
time.sleep(600)
"""
LEAVES_COPY = "if os.fork() == 0: os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
IDLE, BUSY = (Activity(is_busy=each, source=ActivitySource.BROKER) for each in (False, True))


@pytest.mark.parametrize(
    ("leaves", "early_s", "activity", "is_counted"),
    [
        (DAEMON, 0.2, NOT_KNOWN, False),
        (DAEMON, 0.2, IDLE, False),
        (DAEMON, 0.2, BUSY, True),  # it may have been killed, and its job's process may go on
        (DAEMON, 600.0, NOT_KNOWN, True),  # as the processes of a pool, which begin with their worker
        (LEAVES_COPY, 0.2, NOT_KNOWN, True),
    ],
)
def test_a_daemon_of_a_job_of_a_worker_that_was_taken_over_is_its_own_affair(
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    leaves: str,
    early_s: float,
    activity: Activity,
    is_counted: bool,
) -> None:
    """Nobody sees how a worker of an earlier agent ends: each of these daemons counted for as long as it lived."""
    monkeypatch.setattr("headway.agent.workers.ends.orphan_roles.CRASH_WITHIN_S", early_s)
    (tmp_path / "rq").write_text(LEAVES_AT_TERM.format(leaves=leaves))
    later = replace(template(ready=PRINTS_READY), argv=(sys.executable, str(tmp_path / "rq"), "worker"))
    with stage.fleet(later) as fleet:
        fleet.act([start()])
        running(fleet)
        (worker,) = fleet.workers()
    waiting_for_end = threading.Thread(target=os.waitpid, args=(worker.pid, 0))
    waiting_for_end.start()  # it is the test's child, which nobody else waits for
    with stage.fleet(later) as fleet:
        fleet.cuts.activity = lambda _: activity
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        fleet.scan()
        assert bool(fleet.remains.workers()) is is_counted
    waiting_for_end.join()
    end_all(children_of(worker.worker_id))


# --- by command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "is_worker"),
    [
        ("celery --app shop worker -Q mail", True),
        ("/srv/venv/bin/python3 /srv/venv/bin/celery -A shop worker", True),
        ("python -m celery -A shop worker", True),
        ("celery -A shop beat", False),
        ("rq worker mail", True),
        ("python manage.py rqworker mail", True),
        ("rq info", False),
        ("dramatiq shop.tasks", True),
        ("python -m dramatiq shop.tasks", True),
        ("arq shop.WorkerSettings", True),
        ("huey_consumer shop.huey", True),
        ("procrastinate --app shop.app worker", True),
        ("procrastinate --app shop.app schema", False),
        ("taskiq worker shop:broker", True),
        ("php artisan queue:work redis", True),
        ("php artisan serve", False),
        ("bundle exec sidekiq", False),  # Ruby becomes sidekiq itself, under a title of its own
        ("sh -c celery", False),
        ("npm run worker", False),
        ("node worker.js", False),
    ],
)
def test_workers_of_the_known_libraries_are_recognized(line: str, is_worker: bool) -> None:
    assert starts_worker(line.split()) == is_worker


@pytest.mark.parametrize(
    ("line", "number", "bears"),
    [
        ("celery -A shop worker", signal.SIGTERM, True),
        ("celery -A shop worker", signal.SIGINT, False),  # the second INT is a cold shutdown
        ("rq worker mail", signal.SIGTERM, False),
        ("dramatiq shop", signal.SIGTERM, False),
    ],
)
def test_only_celery_bears_a_second_term(line: str, number: int, bears: bool) -> None:
    assert bears_second_stop(line.split(), number) == bears


def test_a_title_that_sidekiq_sets_is_recognized() -> None:
    assert starts_worker(["sidekiq 7.2.4 shop [0 of 5 busy]"])
    assert starts_worker(["[celeryd: worker@h:MainProcess] -active- (worker)"])
    assert not starts_worker(["[celeryd: worker@h:ForkPoolWorker-1]"])
