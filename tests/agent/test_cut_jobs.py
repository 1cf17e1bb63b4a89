"""An end of a worker that had a job, or may have had one, is noted with the job until the control plane knows it."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.templates import Reporter, Stop
from headway.agent.fleet_end import FleetEnd
from headway.agent.loop import stop_left
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.report_lines import JobReport, Outcome, ReportKind
from headway.agent.reporting.reporters import JobReports
from headway.agent.system.wake_pipe import WakePipe
from headway.agent.workers.ends.cut_jobs import CUTS_KEPT_MAX, CutLog, cuts_of
from headway.agent.workers.manager import WorkerManager
from headway.local import procfs
from headway.scaling.model import ActivitySource, CutCause, RunningJob, WorkerState
from headway.scaling.reconcile import Drain
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually
from support.workers import PRINTS_READY, SLEEP, STUBBORN, Stage, reconcile_until, record, start, states, template

JOB = RunningJob(job_id="j1", queue="redis/mail", job_class="shop.send", attempt=1, started_at_s=1_000.0)
OTHER_JOB = RunningJob(job_id="j2", queue="redis/mail", started_at_s=1_001.0)
BUSY = Activity(is_busy=True, source=ActivitySource.REPORTER, running=(JOB,))
IDLE = Activity(is_busy=False, source=ActivitySource.REPORTER)
READY = "print('ready', flush=True);"


def cuts(fleet: WorkerManager) -> list[tuple[CutCause, str | None, bool]]:
    return [(each.cause, each.job and each.job.job_id, each.is_certain) for each in fleet.cuts.log.unsent]


def running(fleet: WorkerManager, activity: Activity) -> int:
    """The pid of a worker that runs and of which that is known."""
    fleet.cuts.activity = lambda _: activity
    fleet.act([start()])
    reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
    return fleet.workers()[0].pid


# --- which ends cut a job --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activity", "found"),
    [
        (BUSY, [(CutCause.SIGNAL, "j1", True)]),
        (replace(BUSY, running=(JOB, OTHER_JOB)), [(CutCause.SIGNAL, "j1", True), (CutCause.SIGNAL, "j2", True)]),
        (Activity(is_busy=True, source=ActivitySource.CPU), [(CutCause.SIGNAL, None, True)]),
        (NOT_KNOWN, [(CutCause.SIGNAL, None, False)]),
        (IDLE, []),
    ],
)
def test_a_worker_that_is_killed_from_outside_has_lost_what_it_had(
    stage: Stage, activity: Activity, found: list[tuple[CutCause, str | None, bool]]
) -> None:
    """As by a kernel that is short of memory."""
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        os.kill(running(fleet, activity), signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.running() == ())
        assert cuts(fleet) == found
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == found, "until a report was answered"
        fleet.cuts.log.forget({each.cut_id for each in fleet.cuts.log.unsent})
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == []


BY_BROKER = Activity(is_busy=True, source=ActivitySource.BROKER)
BY_CPU = Activity(is_busy=True, source=ActivitySource.CPU)
# Once it is told, which is when it was seen to run: one that ends after a while may have ended before that.
ENDS_WITH = f"import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit({{}})); {READY} signal.pause()"


@pytest.mark.parametrize(
    ("code", "activity"), [(0, BUSY), (1, BUSY), (0, BY_BROKER), (1, IDLE), (1, NOT_KNOWN), (1, BY_CPU)]
)
def test_a_worker_that_ends_by_itself_has_lost_nothing(stage: Stage, code: int, activity: Activity) -> None:
    with stage.fleet(template(ENDS_WITH.format(code), ready=PRINTS_READY)) as fleet:
        os.kill(running(fleet, activity), signal.SIGUSR1)
        reconcile_until(fleet, lambda: fleet.running() == ())
        assert cuts(fleet) == []


@pytest.mark.parametrize("activity", [BY_BROKER, replace(BY_BROKER, source=ActivitySource.CHILD)])
def test_a_worker_that_fails_while_its_broker_shows_a_job_has_cut_it(stage: Stage, activity: Activity) -> None:
    """It has no reporter, so nothing else says so."""
    with stage.fleet(template(ENDS_WITH.format(1), ready=PRINTS_READY)) as fleet:
        os.kill(running(fleet, activity), signal.SIGUSR1)
        reconcile_until(fleet, lambda: fleet.running() == ())
        assert cuts(fleet) == [(CutCause.ENDED, None, True)]


FAILS_WHEN_ASKED = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
print('ready', flush=True)
time.sleep(600)
"""


def test_a_worker_that_was_asked_to_stop_finishes_its_job_before_it_fails(stage: Stage) -> None:
    with stage.fleet(template(FAILS_WHEN_ASKED, ready=PRINTS_READY)) as fleet:
        running(fleet, BY_BROKER)
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert cuts(fleet) == []


def test_a_worker_that_dies_of_the_signal_to_stop_did_as_it_was_asked(stage: Stage) -> None:
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        running(fleet, NOT_KNOWN)
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert cuts(fleet) == []


REPORTS_A_JOB = """
import json, os, signal, time
pipe = os.open(os.environ['HEADWAY_REPORTER_PIPE'], os.O_RDWR | os.O_NONBLOCK)
job = {'v': 1, 'id': 'j1', 'queue': 'mail', 'class': 'shop.send', 'attempt': 1, 'at_s': time.time()}
os.write(pipe, json.dumps({**job, 't': 'begun'}).encode() + b'\\n')
if %s:
    os.write(pipe, json.dumps({**job, 't': 'ended', 'outcome': 'finished'}).encode() + b'\\n')
signal.signal(signal.SIGTERM, %s)
print('ready', flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("at_term", ["lambda *_: os._exit(0)", "signal.SIG_DFL"])
@pytest.mark.parametrize("has_ended", [False, True])
def test_a_worker_that_was_asked_to_stop_and_ends_amid_a_job_by_its_own_report_has_cut_it(
    stage: Stage, at_term: str, has_ended: bool
) -> None:
    """As with REMAP_SIGTERM, or where a wrapper passes the signal on to each of its processes."""
    code = REPORTS_A_JOB % (has_ended, at_term)
    with stage.fleet(template(code, ready=PRINTS_READY, reporter=Reporter.CELERY)) as fleet:
        running(fleet, NOT_KNOWN)
        fleet.drain_all()
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert cuts(fleet) == ([] if has_ended else [(CutCause.ENDED, "j1", True)])


def test_a_worker_that_dies_of_its_first_job_before_it_is_seen_to_be_ready_has_cut_it(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    code = REPORTS_A_JOB.replace("print('ready', flush=True)", "os.kill(os.getpid(), signal.SIGKILL)") % (
        False,
        "signal.SIG_DFL",
    )
    with stage.fleet(template(code, ready=PRINTS_READY, reporter=Reporter.CELERY)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: [each.state for each in fleet.workers()] == [WorkerState.BACKING_OFF])
        assert cuts(fleet) == [(CutCause.SIGNAL, "j1", True)]
    assert " job=j1 class=shop.send said=" in caplog.text


def test_a_job_whose_process_died_is_cut_by_its_workers_report(stage: Stage) -> None:
    lost = JobReport(kind=ReportKind.ENDED, job_id="j1", queue="mail", at_s=9.0, outcome=Outcome.FAILED, is_cut=True)
    said = JobReports(pool="mail", template="py", reports=(lost, replace(lost, job_id="j2", is_cut=False)))
    with stage.fleet(template()) as fleet:
        fleet.cuts.note_reports("w", said)
        assert cuts(fleet) == [(CutCause.ENDED, "j1", True)]


def test_a_kill_at_the_drain_deadline_cuts_what_the_worker_had(stage: Stage) -> None:
    with stage.fleet(template(STUBBORN, ready=PRINTS_READY, stop=Stop(drain_timeout_s=40.0))) as fleet:
        running(fleet, BUSY)
        fleet.drain_all()
        stage.clock.ahead_s += 41.0
        fleet.scan()
        assert cuts(fleet) == [(CutCause.DRAIN_DEADLINE, "j1", True)]
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert cuts(fleet) == [(CutCause.DRAIN_DEADLINE, "j1", True)]


WORDS = shlex.join([sys.executable, "-c", READY + SLEEP])
BEHIND_A_SHELL = replace(template(ready=PRINTS_READY), argv=("bash", "-c", f"(exec -a celery {WORDS} worker); exit $?"))


def test_behind_a_shell_the_worker_is_killed_and_not_the_shell_alone(stage: Stage) -> None:
    """A shell ends with 128 and the signal's number where its child was killed."""
    with stage.fleet(BEHIND_A_SHELL) as fleet:
        shell = running(fleet, BUSY)
        fleet.note_mains()
        (main,) = fleet.running()[0].mains
        assert main.pid != shell
        os.kill(main.pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.running() == ())
        assert cuts(fleet) == [(CutCause.SIGNAL, "j1", True)]


def test_a_worker_behind_a_shell_is_reported_by_the_process_that_its_broker_knows(stage: Stage) -> None:
    """By the shell's, what the broker says of it came through the agent alone: an idle word was believed for 12 s."""
    with stage.fleet(BEHIND_A_SHELL) as fleet:
        shell = running(fleet, BUSY)
        fleet.note_mains()
        (record,), (worker,) = fleet.running(), fleet.workers()
        (main,) = record.mains
        assert (record.pid, worker.pid) == (shell, main.pid)
        assert replace(record, mains=(main, main)).known_pid == shell


def test_a_killed_wrapper_whose_worker_works_on_has_cut_nothing(stage: Stage) -> None:
    with stage.fleet(BEHIND_A_SHELL) as fleet:
        shell = running(fleet, BUSY)
        fleet.note_mains()
        os.kill(shell, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.remains.workers())
        assert cuts(fleet) == []


# --- killed by a person ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_draining", [False, True])
def test_a_person_may_kill_a_worker(stage: Stage, is_draining: bool, caplog: pytest.LogCaptureFixture) -> None:
    with stage.fleet(template(STUBBORN, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, BUSY)
        (worker,) = fleet.workers()
        if is_draining:
            fleet.drain_all()
        assert fleet.kill(worker.worker_id, why="anna asked for it")
        assert not fleet.kill(worker.worker_id, why="anna asked for it")
        assert f"forcing pool=mail pid={pid}: anna asked for it" in caplog.text
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert cuts(fleet) == [(CutCause.KILLED, "j1", True)]
        assert fleet.ends.take()[0].worker.is_forced
        assert not fleet.kill(worker.worker_id, why="anna asked for it")


def test_nothing_is_killed_that_the_agent_has_no_record_of(stage: Stage) -> None:
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, BUSY)
        for name in ("", "f" * 32, str(pid)):
            assert not fleet.kill(name, why="")
        fleet.scan()
        assert states(fleet) == [WorkerState.RUNNING]


@pytest.mark.parametrize("suffix", ["", "-left"])
def test_what_a_worker_has_left_may_be_killed_by_either_id(stage: Stage, suffix: str) -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], start_new_session=True);"
    with stage.fleet(template(child + SLEEP, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, IDLE)
        (worker,) = fleet.workers()
        os.kill(pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: fleet.remains.workers())
        (left,) = fleet.remains.workers()
        assert fleet.kill(worker.worker_id + suffix, why="anna asked for it")
        reconcile_until(fleet, lambda: not fleet.remains.workers())
        assert not runs(left.pid)
        assert cuts(fleet) == [(CutCause.KILLED, None, False)]


@pytest.mark.parametrize(
    ("has_ended", "before", "found"),
    [
        (False, NOT_KNOWN, (CutCause.KILLED, "j1", True)),
        (True, NOT_KNOWN, (CutCause.KILLED, None, False)),
        (True, BUSY, (CutCause.KILLED, "j1", False)),  # known to an agent that is gone
        (True, IDLE, (CutCause.KILLED, None, False)),
    ],
)
def test_stop_workers_names_the_jobs_that_a_kill_cuts(
    stage: Stage,
    caplog: pytest.LogCaptureFixture,
    has_ended: bool,
    before: Activity,
    found: tuple[CutCause, str | None, bool],
) -> None:
    code = REPORTS_A_JOB % (has_ended, "signal.SIG_IGN")
    with stage.fleet(template(code, ready=PRINTS_READY, reporter=Reporter.CELERY)) as fleet:
        pid = running(fleet, before)
        fleet.cuts.keep(fleet.running())
    assert stop_left(stage.folder, wakes=WakePipe(), is_forced=True) == 0
    assert not runs(pid)
    assert (" cause=killed job=j1 class=shop.send" in caplog.text) == (found[1] is not None)
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == [found]


# --- gone while nobody watched ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activity", "found"),
    [(BUSY, [(CutCause.VANISHED, "j1", True)]), (NOT_KNOWN, [(CutCause.VANISHED, None, False)]), (IDLE, [])],
)
def test_a_worker_that_is_gone_when_its_agent_comes_back_has_lost_what_it_had(
    stage: Stage, activity: Activity, found: list[tuple[CutCause, str | None, bool]]
) -> None:
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, activity)
        fleet.cuts.keep(fleet.running())
    killed(pid)
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == found


@pytest.mark.parametrize(
    ("activity", "is_burst", "found"),
    [
        (BY_BROKER, False, [(CutCause.VANISHED, None, True)]),
        (NOT_KNOWN, False, [(CutCause.VANISHED, None, False)]),
        (IDLE, False, []),
        (NOT_KNOWN, True, []),  # it ends by itself
    ],
)
def test_a_worker_that_was_taken_over_and_is_killed_has_lost_what_it_had(
    stage: Stage, activity: Activity, is_burst: bool, found: list[tuple[CutCause, str | None, bool]]
) -> None:
    """Nobody sees how it ends: after a restart of its agent no kill was an incident."""
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        fleet.act([start(is_burst=is_burst)])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        fleet.cuts.activity = lambda _: activity
        killed(fleet.workers()[0].pid)
        reconcile_until(fleet, lambda: fleet.running() == ())
        assert cuts(fleet) == found


def test_a_worker_that_was_taken_over_and_asked_to_stop_did_as_it_was_asked(stage: Stage) -> None:
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, BY_BROKER)
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        fleet.cuts.activity = lambda _: BY_BROKER
        fleet.drain_all()
        os.waitpid(pid, 0)
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert cuts(fleet) == []


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_worker_that_was_taken_over_has_cut_the_job_that_it_reports(stage: Stage, has_ended: bool) -> None:
    code = REPORTS_A_JOB % (has_ended, "signal.SIG_DFL")
    reports = template(code, ready=PRINTS_READY, reporter=Reporter.CELERY)
    with stage.fleet(reports) as fleet:
        pid = running(fleet, NOT_KNOWN)
    with stage.fleet(reports) as fleet:
        fleet.reporters.read()
        killed(pid)
        reconcile_until(fleet, lambda: fleet.running() == ())
        assert cuts(fleet) == [(CutCause.VANISHED, None, False) if has_ended else (CutCause.ENDED, "j1", True)]


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_worker_that_was_asked_to_stop_may_have_ended_meanwhile(stage: Stage) -> None:
    with stage.fleet(template(STUBBORN, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, BUSY)
        fleet.cuts.keep(fleet.running())
        fleet.drain_all()
    killed(pid)
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == []


def in_another_container(body: dict[str, object]) -> None:
    body["processes_id"] = "of the container before"


def killed_at_its_end(body: dict[str, object]) -> None:
    body["is_ending"] = True


@pytest.mark.parametrize("change", [in_another_container, killed_at_its_end])
def test_unless_it_was_killed_together_with_its_agent(
    stage: Stage, change: Callable[[dict[str, object]], None]
) -> None:
    """As by `docker stop`, and where a service manager's time to stop is over."""
    with stage.fleet(template(STUBBORN, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, BUSY)
        fleet.cuts.keep(fleet.running())
        fleet.drain_all()
    killed(pid)
    body = json.loads((stage.folder.root / "workers.json").read_text())
    change(body)
    (stage.folder.root / "workers.json").write_text(json.dumps(body))
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == [(CutCause.VANISHED, "j1", True)]


def test_an_agent_that_is_killed_as_it_ends_its_workers_has_written_that_down(stage: Stage) -> None:
    with stage.fleet(template(STUBBORN, ready=PRINTS_READY)) as fleet:
        running(fleet, BUSY)
        FleetEnd(fleet, stage.folder, clock=stage.clock)
        assert json.loads((stage.folder.root / "workers.json").read_text())["is_ending"] is True
    assert json.loads((stage.folder.root / "workers.json").read_text())["is_ending"] is False, (
        "it ended in its own time"
    )


def test_after_a_reboot_what_ran_before_has_lost_what_it_had(stage: Stage) -> None:
    with stage.fleet(template(READY + SLEEP, ready=PRINTS_READY)) as fleet:
        pid = running(fleet, BUSY)
        fleet.cuts.keep(fleet.running())
        fleet.drain_all()
    os.waitpid(pid, 0)
    body = json.loads((stage.folder.root / "workers.json").read_text())
    (stage.folder.root / "workers.json").write_text(json.dumps({**body, "boot_id": "of-the-boot-before"}))
    with stage.fleet(template()) as fleet:
        assert cuts(fleet) == [(CutCause.REBOOT, "j1", True)]
        (cut,) = fleet.cuts.log.unsent
        assert (cut.pool, cut.template, cut.cut_at_s, cut.job) == ("mail", "py", None, JOB)


# --- kept ------------------------------------------------------------------------------------------------------------


def test_the_newest_cuts_are_kept_and_each_counts_once(stage: Stage) -> None:
    with stage.folder.only_agent():
        log = CutLog(stage.folder, boot_id=procfs.boot_id())
        workers = [record(f"{number:032x}", pid=1, started_ticks=1) for number in range(CUTS_KEPT_MAX + 5)]
        for first in range(0, len(workers), 67):  # each note writes all that are kept
            for _ in range(2):
                ended = (cuts_of(each, NOT_KNOWN, cause=CutCause.SIGNAL, at_s=5.0) for each in workers[first:][:67])
                log.note([cut for cuts in ended for cut in cuts])
        unsent = log.unsent
        assert len({each.cut_id for each in unsent}) == len(unsent) == CUTS_KEPT_MAX
        assert unsent[-1].worker_id == f"{CUTS_KEPT_MAX + 4:032x}"
        assert CutLog(stage.folder, boot_id=procfs.boot_id()).unsent == unsent
        (stage.folder.root / "cuts.json").write_text('{"cuts": [{"cut_id": 1}, 5], "boot_id": 7}')
        assert CutLog(stage.folder, boot_id=procfs.boot_id()).unsent == ()


def test_a_job_that_ends_two_processes_of_one_worker_is_cut_twice(stage: Stage) -> None:
    """As where a pool's process dies of it, and its broker delivers it to the same worker again."""
    worker = record("a" * 32, pid=1, started_ticks=1)
    with stage.folder.only_agent():
        log = CutLog(stage.folder, boot_id=procfs.boot_id())
        for started_at_s in (1_000.0, 1_000.4, 1_030.0, 1_030.0):  # of one start, two reports may differ a little
            job = RunningJob(job_id="j1", queue="mail", job_class=None, attempt=1, started_at_s=started_at_s)
            busy = Activity(is_busy=True, running=(job,))
            log.note(cuts_of(worker, busy, cause=CutCause.ENDED, at_s=5.0))
        assert [each.job.started_at_s for each in log.unsent if each.job] == [1_000.0, 1_030.0]


# --- through the wire ------------------------------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with one_host(tmp_path) as host:
        yield host


@pytest.mark.e2e
def test_an_order_kills_the_worker_and_its_report_says_what_that_cut(host: Host) -> None:
    host.agent()
    host.control.assign(row(1, template="stubborn"))
    (pid,) = host.control.running(1)
    (worker,) = host.control.workers()
    order = agent_pb2.KillOrder(worker_id=worker.worker_id, requested_by="anna")
    host.control.assign(row(0, template="stubborn"), kills=(order,))
    eventually(lambda: not runs(pid))
    cut = eventually(lambda: next((cut for report in host.control.reports for cut in report.cuts), None))
    assert (cut.worker_id, cut.pool, cut.cause) == (worker.worker_id, "mail", "killed")
    assert (cut.is_certain, cut.HasField("job"), cut.HasField("age_s")) == (False, False, True)
    eventually(lambda: host.control.reports[-1].workers == [])
    eventually(lambda: not host.control.reports[-1].cuts, within_s=90.0)  # once a report of it was answered
    assert "anna asked for it" in host.logged()


# --- a lost signal ---------------------------------------------------------------------------------------------------

REPORTS = """
import json, os, pathlib, signal, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: (asked.append(1), print('asked', flush=True)))
pipe = os.open(os.environ['HEADWAY_REPORTER_PIPE'], os.O_RDWR | os.O_NONBLOCK)
print('ready', flush=True)
n = 0
while len(asked) < 2:
    n += 1
    os.write(pipe, json.dumps({'v': 1, 't': 'beat', 'n': n, 'part': 0, 'parts': 1, 'running': [], 'queues': ['mail'],
        'begun': 0, 'ended': 0, 'slots': 1, 'stopping': %s, 'loop': n, 'lost': 0, 'at_s': time.time()}).encode()
        + b'\\n')
    time.sleep(0.05)
"""


@pytest.mark.parametrize(("stopping", "is_repeated"), [("False", True), ("bool(asked)", False)])
def test_the_signal_is_repeated_where_the_worker_reports_that_it_does_not_stop(
    stage: Stage, stopping: str, is_repeated: bool
) -> None:
    with stage.fleet(template(REPORTS % stopping, ready=PRINTS_READY, reporter=Reporter.CELERY)) as fleet:
        running(fleet, NOT_KNOWN)
        (worker,) = fleet.workers()
        fleet.act([Drain(worker_id=worker.worker_id)])

        def has_beat(after_s: float) -> bool:
            fleet.reporters.read()
            beat = fleet.reporters.beat(worker.worker_id)
            return beat is not None and beat.received_at_s > after_s

        asked_at_s = stage.clock()
        eventually(lambda: has_beat(asked_at_s))
        fleet.scan()
        assert fleet.running(), "a handler may take a moment"
        stage.clock.ahead_s += 6.0
        since_s = stage.clock()
        eventually(lambda: has_beat(since_s))
        fleet.scan()
        if is_repeated:
            reconcile_until(fleet, lambda: fleet.workers() == ())
        else:
            assert fleet.running()
