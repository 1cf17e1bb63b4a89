"""Workers that report to their agent: how they come to, what is believed, and what happens where it goes wrong."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.celery_command import including, worker_word
from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Ready, Reporter
from headway.agent.monitoring.monitor import Monitor
from headway.agent.reporting import run_folder
from headway.agent.reporting.loading import ENDS_WITH_MAX, Loading, LoadingDoubts
from headway.agent.reporting.reporters import FIRST_WORD_S
from headway.agent.workers.crash_backoff import CRASH_WITHIN_S, PAUSE
from headway.agent.workers.manager import WorkerManager
from headway.control.agents.report_validation import check_report
from headway.local import procfs
from headway.scaling.model import STRICT_QUEUES_MAX, ActivitySource, HostCapacity, QueueOrder, WorkerState
from headway.scaling.reconcile import Drain
from headway.store.hosts.host_reports import HostReport
from support.fake_celery import DIES_LATE, DIES_NAMED, DIES_UNNAMED, REPORTER, celery_template
from support.waiting import eventually
from support.workers import Stage, printed, reconcile_until, start, states

Say = Callable[[str], None]


@pytest.fixture(autouse=True)
def reporter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """What the agent's installation has for a reporter, which a test may change."""
    content = [REPORTER]
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setattr(run_folder, "_roots", lambda _: iter([place]))
    monkeypatch.setattr(run_folder, "reporter_source", lambda: content[0].encode())
    return lambda text: content.__setitem__(0, text)


def pipes(tmp_path: Path) -> list[str]:
    return [each.name for each in (tmp_path / "run").glob("*/pipes/*")]


def watch(stage: Stage, fleet: WorkerManager) -> Monitor:
    return Monitor(stage.folder, fleet.reporters, clock=stage.clock)


def is_idle(fleet: WorkerManager, monitor: Monitor) -> bool:
    fleet.reporters.read()
    (record,) = fleet.running()
    activity = monitor.activity(record)
    return activity.is_busy is False and activity.source is ActivitySource.REPORTER


def run_one(fleet: WorkerManager) -> str:
    """Start a worker. Its id, once it is ready."""
    fleet.act([start()])
    reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
    return fleet.running()[0].worker_id


def words_of(stage: Stage, worker_id: str) -> str:
    return next(each for each in printed(stage, worker_id).splitlines() if each.startswith("words"))


def test_a_worker_reports_with_no_word_in_its_template(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(celery_template(tmp_path, "-Q", "mail", environment={"PYTHONPATH": "src"})) as fleet:
        worker_id = run_one(fleet)
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))
        assert words_of(stage, worker_id) == f"words --app shop worker --include {run_folder.REPORTER} -Q mail"
        environment = procfs.environment(fleet.running()[0].pid)
        module = fleet.reporters._folder.module
        assert environment["PYTHONPATH"] == f"src:{module}"
        assert environment["HEADWAY_REPORTER_PIPE"] == str(module.parent / "pipes" / worker_id)
        (worker,) = fleet.workers(monitor.activity)
        assert (worker.is_busy, worker.activity_source, worker.running_jobs) == (False, ActivitySource.REPORTER, 0)
        assert worker.activity_known_at_s == pytest.approx(stage.clock(), abs=60.0)


def test_the_order_that_workers_report_is_that_of_their_template_also_when_all_are_gone(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    reporter(REPORTER.replace('queues=["mail"]', 'queues=["urgent", "bulk"], order="strict"'))
    template = celery_template(tmp_path)
    known = HostFile(templates={template.name: template})
    with stage.fleet(template) as fleet:
        worker_id = run_one(fleet)
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))
        (reported,) = monitor.templates(known)
        assert (reported.queue_order, reported.strict_queues) == (QueueOrder.STRICT, ("urgent", "bulk"))
        fleet.act([Drain(worker_id=worker_id)])
        reconcile_until(fleet, lambda: not fleet.running())
        assert monitor.templates(known) == (reported,)


def test_a_control_plane_takes_the_order_of_a_worker_with_many_queues(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    """It refuses all that a host reports for one that is too long."""
    queues = [f"queue-{number}" for number in range(STRICT_QUEUES_MAX + 50)]
    queues[0] *= 100
    reporter(REPORTER.replace('queues=["mail"]', f'queues={queues}, order="strict"'))
    template = celery_template(tmp_path)
    with stage.fleet(template) as fleet:
        run_one(fleet)
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))
        (reported,) = monitor.templates(HostFile(templates={template.name: template}))
    assert reported.strict_queues[1:] == tuple(queues[1:STRICT_QUEUES_MAX])
    check_report(
        HostReport(
            host_id="h",
            boot_id="b",
            sequence=1,
            epoch_seen=1,
            received_at_s=0.0,
            capacity=HostCapacity(cpu_cores=1.0, memory_bytes=10**9),
            templates=(reported,),
        )
    )


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (["slots=4"], (4, 1)),
        (["slots=2, slots_max=8"], (8, 1)),  # with --autoscale, while there is little to do
        # What is planned with it, each of them can run. Of the same length, Python would take it for compiled already.
        (["slots=4", "slots = 2"], (2, 1)),
        (["slots=1"], (1, None)),
        (["slots=None"], (1, None)),
    ],
)
def test_a_template_has_the_slots_that_its_workers_report(
    stage: Stage, tmp_path: Path, reporter: Say, said: list[str], known: tuple[int, int | None]
) -> None:
    """Whatever host.toml says: the application may set worker_pool or worker_concurrency. The next will do the same."""
    template = celery_template(tmp_path)
    with stage.fleet(template) as fleet:
        monitor = watch(stage, fleet)
        for slots in said:
            reporter(REPORTER.replace("slots=4", slots))
            fleet.act([start()])
            reconcile_until(fleet, lambda: set(states(fleet)) == {WorkerState.RUNNING})
        eventually(lambda: fleet.reporters.read() and len(fleet.reporters.consumers) == len(said))
        (reported,) = monitor.templates(HostFile(templates={"py": template}))
        assert (reported.slots, reported.written_slots) == known
        fleet.act([Drain(worker_id=each.worker_id) for each in fleet.running()])
        reconcile_until(fleet, lambda: not states(fleet))
        assert not fleet.reporters.slots
        assert monitor.templates(HostFile(templates={"py": template})) == (reported,)


def test_workers_of_one_template_that_report_different_orders_keep_to_none(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    with stage.fleet(celery_template(tmp_path)) as fleet:
        monitor = watch(stage, fleet)
        for order in ("in_turn", "random"):
            reporter(REPORTER.replace('queues=["mail"]', f'queues=["mail"], order="{order}"'))
            fleet.act([start()])
            reconcile_until(fleet, lambda: set(states(fleet)) == {WorkerState.RUNNING})
        eventually(lambda: fleet.reporters.read() and len(fleet.reporters.consumers) == 2)
        assert fleet.reporters.queue_orders == {"py": (None, ())}
        (reported,) = monitor.templates(HostFile(templates={"py": celery_template(tmp_path)}))
        assert reported.queue_order is None


def test_a_template_that_becomes_one_of_another_library_loses_the_order_that_its_workers_reported(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    """Workers of the old command line may still drain, and the order was kept for the new one as long as it stood."""
    reporter(REPORTER.replace('queues=["mail"]', 'queues=["mail"], order="in_turn"'))
    template = celery_template(tmp_path)
    other = replace(template, argv=("dramatiq", "shop"), reporter=Reporter.NONE)
    with stage.fleet(template) as fleet:
        worker_id = run_one(fleet)
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))
        (reported,) = monitor.templates(HostFile(templates={template.name: template}))
        assert reported.queue_order is QueueOrder.IN_TURN
        changed = HostFile(templates={template.name: other})
        assert [each.queue_order for each in monitor.templates(changed)] == [None]
        fleet.act([Drain(worker_id=worker_id)])
        reconcile_until(fleet, lambda: not fleet.running())
        assert [each.queue_order for each in monitor.templates(changed)] == [None]


@pytest.mark.parametrize("reporter_key", Reporter)
def test_whether_a_worker_reports_replaces_no_worker(tmp_path: Path, reporter_key: Reporter) -> None:
    template = celery_template(tmp_path, reporter=reporter_key)
    assert template.content_hash == celery_template(tmp_path).content_hash


def test_a_template_without_a_reporter_has_no_word_of_it(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(celery_template(tmp_path, reporter=Reporter.NONE)) as fleet:
        worker_id = run_one(fleet)
        assert words_of(stage, worker_id) == "words --app shop worker"
        assert not {"PYTHONPATH", "HEADWAY_REPORTER_PIPE"} & set(procfs.environment(fleet.running()[0].pid)) - set(
            stage.environment
        )
    assert not list((tmp_path / "run").iterdir())


def test_behind_a_shell_a_person_adds_the_word_and_the_rest_is_there(stage: Stage, tmp_path: Path) -> None:
    template = celery_template(tmp_path)
    inner = f"{template.argv[0]} worker --include {run_folder.REPORTER}; exit 0"
    with stage.fleet(celery_template(tmp_path, argv=("sh", "-c", inner))) as fleet:
        run_one(fleet)
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))


def test_a_pipe_goes_with_its_worker(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(celery_template(tmp_path)) as fleet:
        worker_id = run_one(fleet)
        assert pipes(tmp_path) == [worker_id]
        fleet.act([Drain(worker_id=worker_id)])
        reconcile_until(fleet, lambda: not fleet.workers())
        assert pipes(tmp_path) == []
    assert not list((tmp_path / "run").iterdir())


def test_the_next_agent_reads_the_workers_of_the_last(stage: Stage, tmp_path: Path) -> None:
    template = celery_template(tmp_path)
    with stage.fleet(template) as fleet:
        worker_id = run_one(fleet)
    assert pipes(tmp_path) == [worker_id]
    with stage.fleet(template) as fleet:
        monitor = watch(stage, fleet)
        assert monitor.activity(fleet.running()[0]).is_busy is None
        eventually(lambda: is_idle(fleet, monitor))


FORGOTTEN = """
began_s = time.time() - 60.0
a = {"id": "a", "queue": "mail", "class": "send", "attempt": 1}
line(t="begun", **a, at_s=began_s)
line(t="ended", **a, at_s=began_s + 1.0, started_at_s=began_s, outcome="finished")
"""


def test_the_next_agent_does_not_believe_a_worker_that_lists_a_job_whose_end_it_has_reported(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    """Up to Celery 5.5, after its broker was away."""
    said = REPORTER.replace("def beats", f"{FORGOTTEN}def beats")
    reporter(said.replace("running=[]", 'running=[["a", "mail", "send", 1, began_s]]'))
    with stage.fleet(celery_template(tmp_path)) as fleet:
        run_one(fleet)
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))
    with stage.fleet() as fleet:
        monitor = watch(stage, fleet)
        eventually(lambda: is_idle(fleet, monitor))


def test_the_next_agent_awaits_for_a_while_what_the_workers_of_the_last_do(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(celery_template(tmp_path)) as fleet:
        worker_id = run_one(fleet)
        assert fleet.reporters.awaited() == frozenset(), "it has started the worker itself"
    with stage.fleet() as fleet:
        assert fleet.reporters.awaited() == {worker_id}
        eventually(lambda: (fleet.reporters.read(), not fleet.reporters.awaited())[1])
        assert fleet.reporters.activity(worker_id).is_busy is False
    with stage.fleet() as fleet:
        assert fleet.reporters.awaited() == {worker_id}
        stage.clock.ahead_s += FIRST_WORD_S
        assert fleet.reporters.awaited() == frozenset(), "perhaps it never reports"


def test_the_next_agent_removes_the_pipe_of_a_worker_that_is_gone(stage: Stage, tmp_path: Path) -> None:
    template = celery_template(tmp_path)
    with stage.fleet(template) as fleet:
        run_one(fleet)
        pid = fleet.running()[0].pid
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with stage.fleet(template):
        assert pipes(tmp_path) == []


def test_a_worker_of_an_agent_without_pipes_is_not_known(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(celery_template(tmp_path, reporter=Reporter.NONE)) as fleet:
        run_one(fleet)
    with stage.fleet(celery_template(tmp_path)) as fleet:
        monitor = watch(stage, fleet)
        fleet.reporters.read()
        assert monitor.activity(fleet.running()[0]).source is None


def test_a_pipe_that_cannot_be_made_starts_the_worker_without(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_folder, "_roots", lambda _: iter([tmp_path / "none"]))
    with stage.fleet(celery_template(tmp_path)) as fleet:
        fleet.act([start(), start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING] * 2)
    assert sum("the pipe of a worker cannot be made" in each for each in caplog.messages) == 1


def test_a_worker_that_reports_is_ready_whatever_it_prints(stage: Stage, tmp_path: Path) -> None:
    """As with logging of the application's own: it was stopped after a minute as one that was not ready, amid a job."""
    never = Ready(pattern=r"as nobody prints", timeout_s=60.0)
    with stage.fleet(celery_template(tmp_path, ready=never)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: (fleet.reporters.read(), states(fleet) == [WorkerState.RUNNING])[1])
        (taken,) = fleet.start_watch.take_start_ups()
        assert 0 < taken.start_up_s < never.timeout_s


# --- a reporter that the worker cannot load ---


@pytest.mark.parametrize(("broken", "tries"), [(DIES_NAMED, 1), (DIES_UNNAMED, 2)])
def test_a_start_that_the_reporter_ends_is_repeated_without_and_is_no_failure(
    stage: Stage, tmp_path: Path, reporter: Say, broken: str, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    reporter(broken)
    template = celery_template(tmp_path)
    with stage.fleet(template) as fleet:
        with_it, without = _started_twice(fleet)
        assert run_folder.REPORTER in words_of(stage, with_it)
        assert run_folder.REPORTER not in words_of(stage, without)
        assert not fleet._gate.backoff.pauses
        assert fleet.ends.take() == []
        for _ in range(tries - 1):
            fleet.act([start()])
            reconcile_until(fleet, lambda: len(fleet.workers()) == 1)
        third = run_another(fleet)
        assert run_folder.REPORTER not in words_of(stage, third)
        fourth = run_another(fleet)
        assert run_folder.REPORTER not in words_of(stage, fourth)
        assert sum("started again without its reporter" in each for each in caplog.messages) == tries
        assert not any("failed pool=" in each for each in caplog.messages)
        reporter(REPORTER)
        fleet.use(HostFile(templates={template.name: template}))
        assert run_folder.REPORTER in words_of(stage, run_another(fleet)), "host.toml is another: it is tried again"


BY_AGE = Ready(after_s=0.05)


def test_a_start_that_the_reporter_ends_after_it_was_taken_for_ready_is_repeated_without(
    stage: Stage, tmp_path: Path, reporter: Say, caplog: pytest.LogCaptureFixture
) -> None:
    """Ready by its age alone, it was a crash loop without end, and each further start had the reporter, too."""
    death = tmp_path / "death"
    reporter(DIES_LATE.format(death=str(death)))
    with stage.fleet(celery_template(tmp_path, ready=BY_AGE)) as fleet:
        for _ in range(ENDS_WITH_MAX):
            before = {each.worker_id for each in fleet.running()}
            fleet.act([start()])
            reconcile_until(fleet, lambda: set(states(fleet)) == {WorkerState.RUNNING})
            death.touch()
            reconcile_until(fleet, lambda before=before: {each.worker_id for each in fleet.running()} == before)
            death.unlink()
            another = run_another(fleet)
            eventually(lambda another=another: "ready." in printed(stage, another))
            assert run_folder.REPORTER not in words_of(stage, another)
            stage.clock.ahead_s += CRASH_WITHIN_S
            fleet.scan()
        assert not fleet._gate.backoff.pauses
        assert not fleet.reporters.doubts.allows("py")
        assert "not reporting template=py" in caplog.text


def test_what_ends_without_the_reporter_too_after_it_was_taken_for_ready_is_a_failure(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    template = celery_template(tmp_path, ready=BY_AGE)
    program = Path(template.argv[0])
    program.write_text(
        program.read_text().replace("words = sys", "time.sleep(0.3); sys.exit('no broker'); words = sys")
    )
    with stage.fleet(template) as fleet:
        for _ in range(ENDS_WITH_MAX + 1):
            fleet.act([start()])
            reconcile_until(fleet, lambda: not fleet.workers())
            fleet.act([start()])
            reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
            stage.clock.ahead_s += PAUSE.longest_s
            reconcile_until(fleet, lambda: not fleet.workers())
        assert fleet.reporters.doubts.allows("py")


def test_a_worker_that_has_reported_and_dies_soon_has_failed(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(celery_template(tmp_path, ready=BY_AGE)) as fleet:
        worker_id = run_one(fleet)
        eventually(lambda: (fleet.reporters.read(), fleet.reporters.beat(worker_id))[1])
        os.killpg(fleet.running()[0].pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])


def test_a_worker_that_dies_of_its_first_job_soon_has_loaded_the_reporter(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    dies = 'line(t="begun", id="a", queue="mail"); os._exit(3)'
    reporter(REPORTER.replace("threading.Thread(target=beats, daemon=True).start()", dies))
    with stage.fleet(celery_template(tmp_path, ready=BY_AGE)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
        assert fleet.reporters.doubts.allows("py")


def test_a_start_that_ended_by_chance_takes_the_reporter_from_no_later_one(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    """As where the broker was away for a moment."""
    reporter(DIES_UNNAMED)
    with stage.fleet(celery_template(tmp_path)) as fleet:
        _, without = _started_twice(fleet)
        assert run_folder.REPORTER not in words_of(stage, without)
        reporter(REPORTER)
        assert run_folder.REPORTER in words_of(stage, run_another(fleet))
        reporter(DIES_UNNAMED)
        fleet.act([start()])
        reconcile_until(fleet, lambda: len(fleet.workers()) == 2)
        reporter(REPORTER)
        run_another(fleet)
        assert run_folder.REPORTER in words_of(stage, run_another(fleet)), "the one between was good"


def test_starts_that_end_together_by_chance_take_the_reporter_from_no_later_one(
    stage: Stage, tmp_path: Path, reporter: Say
) -> None:
    """Two that met the same hiccup were taken for two proofs, and the template never reported again."""
    reporter(DIES_UNNAMED)
    with stage.fleet(celery_template(tmp_path)) as fleet:
        fleet.act([start(), start(), start()])
        reconcile_until(fleet, lambda: not fleet.workers())
        reporter(REPORTER)
        fleet.act([start(), start(), start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING] * 3)
        assert not any(run_folder.REPORTER in words_of(stage, each.worker_id) for each in fleet.running())
        assert run_folder.REPORTER in words_of(stage, run_another(fleet))


def test_only_a_start_that_the_reporters_absence_helps_counts_against_it() -> None:
    """The broker came back between a start with the reporter and one without: that is one hint, whatever was before."""
    doubts = LoadingDoubts()
    for _ in range(5):
        assert doubts.note_end("py", has_loaded=True, why="no broker")
        assert not doubts.note_end("py", has_loaded=False, why="no broker")
    assert doubts.note_end("py", has_loaded=True, why="no broker")
    doubts.note_ready("py", has_loaded=False)
    assert doubts.allows("py")


def test_a_start_that_ends_with_and_without_the_reporter_is_one_failure(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with stage.fleet(celery_template(tmp_path, "--broken")) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: not fleet.workers())
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
        (pause,) = fleet._gate.backoff.pauses.values()
        assert pause.failures == 1
        assert fleet.reporters.doubts.allows("py"), "its workers end without the reporter, too"


def test_a_start_that_ends_well_before_it_is_ready_is_not_repeated(stage: Stage, tmp_path: Path) -> None:
    """As a burst worker that finds nothing to do, or one that goes to the background."""
    template = celery_template(tmp_path)
    Path(template.argv[0]).write_text("#!/bin/sh\nexit 0\n")
    with stage.fleet(template) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])


def _started_twice(fleet: WorkerManager) -> tuple[str, str]:
    """The ids of a first start, which ends, and of the second, which becomes ready."""
    fleet.act([start()])
    (first,) = fleet.running()
    reconcile_until(fleet, lambda: not fleet.workers())
    return first.worker_id, run_one(fleet)


def run_another(fleet: WorkerManager) -> str:
    before = {each.worker_id for each in fleet.running()}
    fleet.act([start()])
    reconcile_until(fleet, lambda: set(states(fleet)) == {WorkerState.RUNNING})
    return next(each.worker_id for each in fleet.running() if each.worker_id not in before)


# --- what is read, and when ---


def test_what_a_worker_reported_last_is_not_lost_with_it(stage: Stage, tmp_path: Path, reporter: Say) -> None:
    reporter(
        REPORTER
        + """
line(t="begun", id="a", queue="mail")
"""
    )
    with stage.fleet(celery_template(tmp_path)) as fleet:
        worker_id = run_one(fleet)
        os.killpg(fleet.running()[0].pid, signal.SIGKILL)
        reconcile_until(fleet, lambda: not fleet.workers())
        assert [each.job_id for each in fleet.reporters.take_events()[worker_id].reports] == ["a"]
        assert fleet.reporters.take_events() == {}


def test_of_pipes_that_are_full_each_has_its_turn(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much some write, one reading takes so much, and begins the next time where it left off."""
    monkeypatch.setattr("headway.agent.reporting.reporters.BYTES_PER_SCAN_MAX", 1)
    with stage.fleet() as fleet:
        template = celery_template(tmp_path)
        for name in "abc":
            fleet.reporters.prepare(name, "mail", template, uid=None)
        writers = {name: os.open(next((tmp_path / "run").glob(f"*/pipes/{name}")), os.O_RDWR) for name in "abc"}
        for _ in range(3):
            for writer in writers.values():
                os.write(writer, b'{"v":1,"t":"begun","id":"j","queue":"q","at_s":1}\n')
            fleet.reporters.read()
        assert {name: fleet.reporters.activity(name).is_busy for name in "abc"} == dict.fromkeys("abc", True)
        for name, writer in writers.items():
            os.close(writer)
            fleet.reporters.end(name)


@pytest.mark.parametrize(
    ("argv", "loads"),
    [
        (("celery", "worker"), True),
        (("/v/bin/python3.12", "-m", "celery", "-A", "shop", "worker"), True),
        (("/v/bin/python", "/v/bin/celery", "-A", "worker", "worker"), True),
        (("python", "-W", "error::E", "-m", "celery", "worker"), True),
        (("python", "-E", "-m", "celery", "worker"), False),
        (("python", "-sI", "-m", "celery", "worker"), False),
        (("sudo", "-u", "app", "celery", "worker"), False),
        (("sh", "-c", "celery worker"), False),
        (("npm", "run", "worker"), False),
        (("./app.pex", "-m", "celery", "worker"), False),
        (("docker", "run", "shop", "celery", "worker"), False),
        (("celery", "-A", "shop", "beat"), False),
        (("celery", "-A", "worker"), False),
        (("celery", "multi", "start", "worker"), False),
    ],
)
def test_the_agent_adds_its_word_where_argv_itself_is_celery(argv: tuple[str, ...], loads: bool) -> None:
    assert (worker_word(argv) is not None) is loads
    assert (including(argv, "reporter") != argv) is loads


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("celery worker -Q a", "celery worker --include reporter -Q a"),
        ("celery worker --include shop.more -Q a", "celery worker --include shop.more,reporter -Q a"),
        ("celery worker --include=x,y", "celery worker --include=x,y,reporter"),
        ("celery worker -I x -I y", "celery worker -I x -I y,reporter"),  # Celery takes the last
        ("celery worker -Ix", "celery worker -Ix,reporter"),
        ("celery worker --include", "celery worker --include reporter --include"),
    ],
)
def test_what_a_template_includes_itself_stays_included(words: str, found: str) -> None:
    assert " ".join(including(words.split(), "reporter")) == found


def test_the_reporters_folder_takes_no_modules_place(tmp_path: Path) -> None:
    loading = Loading(module=tmp_path / "module", pipe=tmp_path / "pipe")
    assert loading.environment({})["PYTHONPATH"] == str(tmp_path / "module")
    assert loading.environment({"PYTHONPATH": ""})["PYTHONPATH"] == str(tmp_path / "module")
    assert loading.environment({"PYTHONPATH": "a:"})["PYTHONPATH"] == f"a::{tmp_path / 'module'}"
