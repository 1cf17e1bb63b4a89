"""`headway collect` as a process."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from collect.rq_jobs import Rq, fail, work
from emit.service import Service, serving
from headway.__main__ import main
from headway.cli.process.parent_watch import PARENT_FD
from headway.collect.rq.rq_source import SEEN
from headway.scaling.model import EventKind
from support.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(Service()) as service:
        yield service


class Process:
    """Collectors of one state folder, one after another."""

    def __init__(self, tmp_path: Path, control: str, brokers: str) -> None:
        self._log = (tmp_path / "log").open("ab+")
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
            "HEADWAY_STATE_DIR": str(tmp_path / "state"),
            "HEADWAY_CONTROL": control,
            "HEADWAY_BROKERS": brokers,
        }
        self.running: subprocess.Popen[bytes] | None = None

    def start(self, **more: object) -> None:
        asked = [sys.executable, "-m", "headway", "collect"]
        env = {**self.env, **more.pop("env", {})}
        self.running = subprocess.Popen(asked, env=env, stdout=self._log, stderr=self._log, **more)

    def end(self, number: int = signal.SIGTERM, *, within_s: float = 60.0) -> int:
        self.running.send_signal(number)
        return self.running.wait(within_s)

    @property
    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode()


@pytest.fixture
def process(tmp_path: Path, service: Service, valkey_url: str) -> Iterator[Process]:
    process = Process(tmp_path, service.address, f"redis={valkey_url}")
    yield process
    if process.running and process.running.poll() is None:
        process.running.kill()
        process.running.wait()


def test_killed_at_any_moment_it_reports_each_job_once(rq: Rq, service: Service, process: Process) -> None:
    due: Counter[tuple[str, EventKind]] = Counter()

    def some_work() -> None:
        for task, ended in ((work, EventKind.FINISHED), (fail, EventKind.FAILED)) * 5:
            job_id = rq.queue().enqueue(task).id
            due.update([(job_id, EventKind.ENQUEUED), (job_id, EventKind.STARTED), (job_id, ended)])
            rq.run(jobs=1)

    process.start()
    eventually(lambda: "watching" in process.log)
    for turn in range(3):
        if turn == 1:
            service.forgets_to_answer.set()  # the batch under way is taken and never answered
        some_work()
        service.calls.clear()
        eventually(lambda: service.calls)
        process.end(signal.SIGKILL)
        service.forgets_to_answer.clear()
        some_work()
        process.start()
    some_work()
    eventually(lambda: len(service.events) >= due.total())
    assert process.end() == 0
    assert Counter((event.job_id, event.kind) for event in service.events) == due


def test_it_ends_soon_when_asked_also_while_a_call_waits_for_its_answer(
    rq: Rq, service: Service, process: Process
) -> None:
    service.forgets_to_answer.set()
    rq.queue().enqueue(work)
    process.start()
    eventually(lambda: service.calls)
    assert process.end() == 0
    eventually(lambda: service.left_s)
    assert service.left_s[0] > 0.0, "the call was given up before its time was over"
    assert "Traceback" not in process.log


def test_it_ends_with_its_parent(rq: Rq, service: Service, process: Process) -> None:
    reader, writer = os.pipe()
    process.start(env={PARENT_FD: str(reader)}, pass_fds=(reader,))
    os.close(reader)
    rq.queue().enqueue(work)
    eventually(lambda: service.calls)
    os.close(writer)
    assert process.running.wait(60.0) == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_broker_that_is_not_there_yet_is_one_line_and_waited_for(
    tmp_path: Path, service: Service, process: Process, number: int, status: int
) -> None:
    process.env["HEADWAY_BROKERS"] = f"redis=unix://{tmp_path}/none.sock"
    process.start()
    eventually(lambda: "broker lost" in process.log)
    assert f"broker unix://{tmp_path}/none.sock cannot be reached" in process.log
    assert process.running.poll() is None
    assert process.end(number) == status
    assert len(process.log.splitlines()) == 1


def test_a_state_folder_serves_one_process(rq: Rq, process: Process) -> None:
    process.start()
    eventually(lambda: "watching" in process.log)
    asked = [sys.executable, "-m", "headway", "collect"]
    second = subprocess.run(asked, env=process.env, capture_output=True, text=True, check=False, timeout=100)
    assert second.returncode == 2
    assert f"in use by process {process.running.pid}" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    process.end()


def test_check_shows_what_brokers_hold_and_fails_with_every_one_that_does_not_answer(
    rq: Rq, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWAY_BROKERS", raising=False)
    rq.queue().enqueue(work)
    rq.queue("news").enqueue(work)
    rq.run("news")
    ours = f"redis={rq.url}"
    assert main(["collect", "--check", "--broker", ours]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"queues of RQ in {rq.url}: 2",
        "  redis/mail  waiting jobs: 1  workers: 0",
        "  redis/news  waiting jobs: 0  workers: 0",
        "  exact: waiting, in flight, oldest age, busy workers",
        "  bounded: delayed, to unknown while the package rq-scheduler has jobs; schedule jobs with RQ itself",
        f"  bounded: entries, to {SEEN.bound}; {SEEN.remedy}",
        f"  bounded: starts, to {SEEN.bound}; {SEEN.remedy}",
        f"  bounded: ends, to {SEEN.bound}; {SEEN.remedy}",
    ]
    away = ["--broker", "a=redis://:secret@127.0.0.1:1/0", "--broker", "b=redis://127.0.0.1:2/0"]
    assert main(["collect", "--check", "--broker", ours, *away]) == 2
    reported = capsys.readouterr().err
    assert "broker redis://:***@127.0.0.1:1/0 cannot be reached" in reported
    assert "broker redis://127.0.0.1:2/0 cannot be reached" in reported
    assert "secret" not in reported
    assert main(["collect", "--check", *away, "--broker", "c=sqs://u:secret@h"]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith("headway: connection 'c': broker URL 'sqs://u:***@h': expected ")
