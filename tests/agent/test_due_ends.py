"""Workers that end well of their own accord, by an option or after a job: no crash loop, and started again."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.commands.ending_options import idle_end_options, work_end_options
from headway.agent.config.templates import Template
from headway.agent.model import Activity
from headway.agent.workers.manager import WorkerManager
from headway.agent.workers.starts.suspended_starts import IDLE_START_EVERY_S
from headway.scaling.model import ActivitySource, Assignment, WorkerState
from support.workers import Stage, reconcile_until, start, states, template

ENDED_ONE = Activity(is_busy=False, source=ActivitySource.BROKER, ended_jobs=1)
FAILS = "import sys; sys.exit(1)"


def rq(folder: Path, *words: str, code: str = "print('ready', flush=True)") -> Template:
    """A program with the name of RQ's that ends at once."""
    (folder / "rq").write_text(code)
    return replace(template(), argv=(sys.executable, str(folder / "rq"), "worker", *words))


def is_held(stage: Stage, fleet: WorkerManager) -> bool:
    wanted = Assignment(pool="mail", host_id="h", template="py", base_workers=1)
    (row,) = fleet.suspended_starts.marked([wanted], now_s=stage.clock())
    return row.is_suspended


@pytest.mark.parametrize(
    ("words", "has_ended_a_job", "is_paused"),
    [
        (("--max-jobs", "10"), False, False),
        (("--burst",), False, True),
        (("--max-idle-time", "5"), False, True),
        (("--max-idle-time", "5"), True, False),
        ((), True, False),
    ],
)
def test_a_worker_whose_end_was_due_is_started_again_without_a_back_off(
    stage: Stage, tmp_path: Path, words: tuple[str, ...], has_ended_a_job: bool, is_paused: bool
) -> None:
    """It was a crash loop, with pauses of up to five minutes. An empty queue ends each as soon as it has started."""
    with stage.fleet(rq(tmp_path, *words)) as fleet:
        if has_ended_a_job:
            fleet.cuts.activity = lambda _: ENDED_ONE
        fleet.act([start()])
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert not fleet._gate.backoff.pauses
        assert is_held(stage, fleet) is is_paused
        stage.clock.ahead_s += IDLE_START_EVERY_S
        assert not is_held(stage, fleet)


@pytest.mark.parametrize(
    ("words", "code"),
    [((), "print('ready', flush=True)"), (("--max-jobs", "10"), FAILS), (("--burst",), FAILS)],
)
def test_other_ends_soon_after_the_start_are_failures(
    stage: Stage, tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    with stage.fleet(rq(tmp_path, *words, code=code)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])


def test_a_due_end_ends_the_pause_of_its_kind(stage: Stage, tmp_path: Path) -> None:
    with stage.fleet(rq(tmp_path, "--max-jobs", "1", code=FAILS)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.BACKING_OFF])
        rq(tmp_path, "--max-jobs", "1")
        stage.clock.ahead_s += 10.0
        reconcile_until(fleet, lambda: fleet.workers() == ())
        fleet.act([start()])
        reconcile_until(fleet, lambda: fleet.workers() == ())
        (pause,) = fleet._gate.backoff.pauses.values()
        assert pause.until_s <= stage.clock()


@pytest.mark.parametrize(
    ("line", "idle", "work"),
    [
        ("rq worker -b mail", ["-b"], []),
        ("rq worker --max-idle-time=5 --max-jobs 10", ["--max-idle-time"], ["--max-jobs"]),
        ("python manage.py rqworker --burst", ["--burst"], []),
        ("nice -n 5 rq worker --burst --max-jobs 10", ["--burst"], ["--max-jobs"]),
        ("php artisan queue:work --stop-when-empty --max-time=60", ["--stop-when-empty"], ["--max-time"]),
        ("arq shop.WorkerSettings --burst", ["--burst"], []),
        ("procrastinate --app shop worker --one-shot", ["--one-shot"], []),
        ("celery -A shop worker -b redis://", [], []),
        ("./worker --burst --max-jobs 1", [], []),
    ],
)
def test_options_that_end_a_worker_are_read_off_its_command_line(line: str, idle: list[str], work: list[str]) -> None:
    for argv in (line.split(), ["sh", "-c", f"exec {line}"], ["bash", "-c", f"{line}; true"]):
        assert (list(idle_end_options(argv)), list(work_end_options(argv))) == (idle, work)
