"""A job forges what its worker reports. At worst this is wrong of that worker: nothing else is touched."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.config.templates import Reporter, Template
from headway.agent.model import NOT_KNOWN
from headway.agent.reporting import run_folder
from headway.agent.reporting.report_lines import LINE_BYTES_MAX
from headway.agent.reporting.reporters import EVENTS_HELD_MAX, EVENTS_PER_WORKER_MAX
from headway.agent.reporting.worker_report import QUEUES_NAMED_MAX, RUNNING_JOBS_MAX
from headway.agent.workers.manager import WorkerManager
from headway.scaling.model import RUNNING_JOBS_NAMED_MAX
from support.report_lines import beat, job, line
from support.workers import Stage

NOBODY = 65534
HONEST, FORGER = "a" * 32, "b" * 32


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setattr(run_folder, "_roots", lambda _: iter([place]))
    monkeypatch.setattr(run_folder, "reporter_source", lambda: b"")
    return place


class Pipes:
    """Two workers of two pools that report, one of which forges what it says."""

    def __init__(self, fleet: WorkerManager, place: Path, clock_s: float) -> None:
        self.reporters = fleet.reporters
        template = Template(
            name="py", argv=("celery", "worker"), working_directory="/", environment={}, reporter=Reporter.CELERY
        )
        self._writers = {}
        for worker_id, pool in ((HONEST, "mail"), (FORGER, "video")):
            assert self.reporters.prepare(worker_id, pool, template, uid=None)
            path = next(place.glob(f"*/pipes/{worker_id}"))
            self._writers[worker_id] = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.say(HONEST, beat(at_s=clock_s - 2.0), beat(at_s=clock_s))
        assert self.reporters.activity(HONEST).is_busy is False

    def say(self, worker_id: str, *texts: bytes) -> None:
        """Write each of these, and read: as the agent does, whatever comes."""
        for text in texts:
            for begin in range(0, len(text), LINE_BYTES_MAX):
                os.write(self._writers[worker_id], text[begin : begin + LINE_BYTES_MAX])
                self.reporters.read()

    def flood(self, worker_id: str, text: bytes) -> None:
        """Fill the pipe, and read once."""
        while True:
            try:
                os.write(self._writers[worker_id], text)
            except BlockingIOError:
                break
        self.reporters.read()

    def close(self) -> None:
        for worker_id, writer in self._writers.items():
            os.close(writer)
            self.reporters.end(worker_id)


@pytest.fixture
def pipes(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipes]:
    stage = Stage(tmp_path / "state")
    with stage.fleet() as fleet:
        monkeypatch.setattr(fleet.reporters, "_unix_clock", lambda: 1_000.0)
        monkeypatch.setattr(fleet.reporters, "_clock", lambda: 1_000.0)
        pipes = Pipes(fleet, place, clock_s=1_000.0)
        yield pipes
        assert pipes.reporters.activity(HONEST).is_busy is False, "what another worker forges changes nothing here"
        assert HONEST not in pipes.reporters.take_events()
        pipes.close()


@pytest.mark.parametrize(
    "text",
    [
        b"\0" * 100_000,
        b"x" * 1_000_000,  # one line without an end
        b"\n" * 100_000,
        os.urandom(100_000),
        b"[" * 100_000 + b"\n",
        (b"[" * (LINE_BYTES_MAX - 1) + b"\n") * 50,
        b'{"v":1,"t":"beat","n":' + b"9" * 4_000 + b"}\n",
        b'{"v":1,"t":"begun","id":"a","queue":"q","at_s":1e999}\n',
        b'{"v":1,"t":"beat","__proto__":{},"running":{"length":1000000000}}\n',
        ("é" * 5_000 + "\n").encode("latin-1"),
    ],
)
def test_what_is_no_line_counts_as_nothing_and_is_logged_once(
    pipes: Pipes, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    pipes.say(FORGER, text, text, b"\n")
    assert pipes.reporters.activity(FORGER) == NOT_KNOWN
    (logged,) = [each for each in caplog.messages if "not understood" in each]
    assert FORGER in logged
    assert logged.isprintable()


def test_a_flood_is_read_a_bounded_part_at_a_time_and_the_honest_worker_is_read(pipes: Pipes) -> None:
    for number in range(20):
        pipes.flood(FORGER, job("begun", f"j{number}", at_s=999.0))
        pipes.say(HONEST, beat(at_s=1_000.0 + number / 1_000, n=10_000 + number, loop=10_000 + number))
    events = pipes.reporters.take_events()
    assert len(events[FORGER].reports) <= EVENTS_PER_WORKER_MAX
    assert pipes.reporters.beat(HONEST).loop == 10_019


def test_ten_thousand_running_jobs_are_a_bounded_number_of_that_worker(pipes: Pipes) -> None:
    parts = 500
    for part in range(parts):
        rows = [[f"job-{part}-{number}", "mail", None, None, 1.0] for number in range(60)]
        pipes.say(FORGER, beat(at_s=1_000.0, n=3, part=part, parts=parts, running=rows))
    for number in range(300):
        pipes.say(FORGER, job("begun", f"other-{number}", at_s=1_000.0))
    found = pipes.reporters.activity(FORGER)
    assert (found.running_jobs, len(found.running)) == (RUNNING_JOBS_MAX, RUNNING_JOBS_NAMED_MAX)


def test_names_are_bounded_and_none_is_a_place_or_a_control_character_on_the_wire(pipes: Pipes) -> None:
    evil = ["../../etc/passwd", "\0", "\ud800", "x" * 1_000, "'; drop table jobs; --", "\x1b[2J\n"]
    for name in evil:
        pipes.say(FORGER, job("begun", name, at_s=1.0, queue=name, **{"class": name}))
    pipes.say(FORGER, beat(at_s=1_000.0, queues=[f"q{number}" for number in range(300)]))
    assert len(pipes.reporters.beat(FORGER).queues) == QUEUES_NAMED_MAX
    found = pipes.reporters.activity(FORGER)
    assert (found.running_jobs, len(found.running)) == (len(evil), len(evil) - 1)  # two are no text, and have one name
    for each in found.running:
        for text in (each.job_id, each.queue, each.job_class):
            assert len(text) <= 500
            assert "\0" not in text
            text.encode()


def test_a_job_that_names_another_worker_or_process_names_nothing(pipes: Pipes) -> None:
    names = {
        "worker": HONEST,
        "worker_id": HONEST,
        "pid": 1,
        "pool": "mail",
        "host": "h",
        "user": "root",
        "path": "/etc",
    }
    pipes.say(FORGER, line("begun", at_s=1.0, id="a", queue="mail", **names))
    assert pipes.reporters.activity(FORGER).is_busy is True


def test_a_job_can_claim_that_its_own_worker_is_idle(pipes: Pipes) -> None:
    """That is the worst: this worker leaves before others of its pool, and finishes its jobs."""
    pipes.say(FORGER, job("begun", "real", at_s=999.0), job("ended", "real", at_s=999.1))
    pipes.say(FORGER, beat(at_s=999.0), beat(at_s=1_000.0))
    assert pipes.reporters.activity(FORGER).is_busy is False


def test_times_of_the_future_and_of_the_past_are_this_moment_and_stale(pipes: Pipes) -> None:
    pipes.say(FORGER, beat(at_s=9e9), beat(at_s=9e9, loop=5))
    assert pipes.reporters.activity(FORGER).known_at_s == 1_000.0
    pipes.say(FORGER, beat(at_s=1.0, loop=6), beat(at_s=2.0, loop=7))
    assert pipes.reporters.activity(FORGER).is_busy is None


def test_what_is_held_for_all_workers_together_is_bounded(pipes: Pipes) -> None:
    for number in range(3 * EVENTS_PER_WORKER_MAX // 100):
        pipes.say(FORGER, *(job("received", f"{number}-{each}", at_s=1.0) for each in range(100)))
    assert len(pipes.reporters.take_events()[FORGER].reports) == EVENTS_PER_WORKER_MAX <= EVENTS_HELD_MAX


ATTACKS = """
import json, os, sys
os.setgid(65534); os.setuid(65534)
module, own, other = sys.argv[1:]
def tried(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "done"
print(json.dumps([
    tried(lambda: os.close(os.open(own, os.O_RDWR | os.O_NONBLOCK))),
    tried(lambda: os.close(os.open(other, os.O_RDWR | os.O_NONBLOCK))),
    tried(lambda: os.unlink(own)),
    tried(lambda: os.rename(own, other)),
    tried(lambda: os.unlink(other)),
    tried(lambda: os.mkfifo(own + "2")),
    tried(lambda: open(module + "/headway_celery_reporter.py", "a").close()),
    tried(lambda: open(module + "/celery.py", "w").close()),
    tried(lambda: os.rename(module, module + "2")),
    tried(lambda: open(module + "/headway_celery_reporter.py").close()),
]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a worker as another user")
def test_a_worker_of_another_user_can_open_its_own_pipe_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path("/run")  # whatever is above a test's own folder keeps others out
    monkeypatch.setattr(run_folder, "_roots", lambda _: iter([place]))
    stage = Stage(tmp_path / "state")
    template = Template(
        name="py", argv=("celery", "worker"), working_directory="/", environment={}, reporter=Reporter.CELERY
    )
    with stage.fleet() as fleet:
        own, other = (
            fleet.reporters.prepare(name, "mail", template, uid=uid) for name, uid in (("o", NOBODY), ("p", 0))
        )
        assert own is not None
        assert other is not None
        assert stat.S_IMODE(own.pipe.stat().st_mode) == 0o600
        assert own.pipe.stat().st_uid == NOBODY
        done = subprocess.run(
            [sys.executable, "-c", ATTACKS, str(own.module), str(own.pipe), str(other.pipe)],
            capture_output=True,
            check=True,
            cwd="/",
        )
        assert json.loads(done.stdout) == ["done", *["PermissionError"] * 8, "done"]
        for name in "op":
            fleet.reporters.end(name)
