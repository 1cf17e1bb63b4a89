"""Real Celery workers of each pool report what they do, and no job notices."""

import os
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.waiting import eventually
from workers.celery_reporter.reporting import FINISHED, POOLS, ReportingWorker, reporting, unreported

pytestmark = pytest.mark.e2e

FAILED = ["received", "begun", "failed"]
LIVES = {
    "works": FINISHED,
    "fails": FAILED,
    "unstored": FAILED,
    "retries": ["received", "begun", "retried", "received", "begun", "finished"],
    "ignored": FINISHED,
    "rejected": ["received", "begun", "rejected"],
    "put back": ["received", "begun", "rejected", "received", "begun", "finished"],
    "calls": FINISHED,  # what it calls itself is no job
    "expired": ["received", "revoked"],
    "later é": FINISHED,
}
LIVES_OF_PROCESSES = {
    "killed": FAILED,
    "lost": ["received", "begun", "rejected", "received", "begun", "finished"],
    "late": FAILED,
    "softly late": FAILED,
    "leaves": FAILED,
    "terminated": ["received", "begun", "revoked"],
}
LIVES_OF_GREENLETS = {"terminated": ["received", "begun", "revoked"]}


@pytest.fixture
def broker(valkey_url: str) -> str:
    return f"redis+socket://{urlsplit(valkey_url).path}"


@pytest.mark.parametrize("acks", ["early", "late"])
@pytest.mark.parametrize("pool", POOLS)
def test_each_life_of_a_job_is_reported(pool: str, acks: str, broker: str, tmp_path: Path) -> None:
    more = {"prefork": LIVES_OF_PROCESSES, "gevent": LIVES_OF_GREENLETS, "eventlet": LIVES_OF_GREENLETS}.get(pool, {})
    lives = {**LIVES, **more}
    environment = {"ACKS_LATE": "1"} if acks == "late" else {}
    with reporting(tmp_path, broker, (*POOLS[pool], "--queues=celery,other"), environment) as worker:
        for name in set(lives) - {"expired", "later é"}:
            worker.send(name)
        worker.send("works", job_id="expired", expires=-1)
        worker.send("works", job_id="later é", queue="other", countdown=1.0)
        eventually(lambda: all(len(worker.life(name)) >= len(lives[name]) for name in lives))
        assert {name: worker.life(name) for name in lives} == lives
        assert {line["id"] for line in worker.lines if line["t"] != "beat"} == set(lives)

        beat = worker.next_beat()
        begun = Counter(kind for life in lives.values() for kind in life)["begun"]
        assert (beat["running"], beat["begun"], beat["ended"]) == ([], begun, begun)
        assert (beat["slots"], sorted(beat["queues"])) == (1 if pool == "solo" else 2, ["celery", "other"])
        assert (beat["connected"], beat["stopping"], beat["lost"]) == (True, False, 0)
        assert not unreported(worker)

        assert sorted(line["attempt"] for line in worker.events("retries")) == [1, 1, 1, 2, 2, 2]
        assert [line["redelivered"] for line in worker.events("put back") if line["t"] == "begun"] == [False, True]
        assert [line["requeued"] for line in worker.events("put back") if "requeued" in line] == [True]
        cut = {name for name in lives for line in worker.events(name) if "cut" in line}
        assert cut == {"killed", "lost"} & set(lives)
        (received, begins, ends) = worker.events("later é")
        assert begins["eta_s"] == received["eta_s"] == pytest.approx(received["at_s"] + 1.0, abs=30.0)
        assert begins["at_s"] == ends["started_at_s"] <= ends["at_s"]
        assert {line["queue"] for line in worker.events("later é")} == {"other"}
        assert {line["class"] for line in worker.events("later é")} == {"works"}


@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_that_stops_says_so_and_names_its_job_until_it_ends(pool: str, broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS[pool]) as worker:
        worker.send("works", 5.0)
        eventually(lambda: [job[0] for job in worker.beats[-1]["running"]] == ["works"])
        ((job_id, queue, job_class, attempt, started_at_s),) = worker.beats[-1]["running"]
        assert (job_id, queue, job_class, attempt) == ("works", "celery", "works", 1)
        begun = next(line for line in worker.lines if line["t"] == "begun")
        assert started_at_s == pytest.approx(begun["at_s"], abs=1.0)
        worker.process.terminate()
        eventually(lambda: worker.beats[-1]["stopping"])
        assert [job[0] for job in worker.beats[-1]["running"]] == ["works"]
        assert worker.process.wait(60) == 0
        assert worker.life("works") == FINISHED
        assert not unreported(worker)
        assert (tmp_path / "jobs.log").read_text().split("\n")[:-1] == ["works begins", "works ends"]


@pytest.mark.parametrize("pool", POOLS)
def test_no_beat_misses_a_job_that_runs(pool: str, broker: str, tmp_path: Path) -> None:
    """Jobs begin and end all the time, and children are replaced."""
    words = (*POOLS[pool], "--max-tasks-per-child=20") if pool == "prefork" else POOLS[pool]
    with reporting(tmp_path, broker, words) as worker:
        names = [f"job {number}" for number in range(120)]
        for number, name in enumerate(names):
            worker.send("works", 0.01 + 0.3 * (number % 3 == 0), job_id=name)
        eventually(lambda: sum(line["t"] == "ended" for line in worker.lines) == len(names))
        assert all(worker.life(name) == FINISHED for name in names)
        assert len(worker.beats) > 2
        assert not unreported(worker)


def test_a_job_that_is_terminated_runs_until_its_process_has_ended(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS["prefork"]) as worker:
        worker.send("lingers", 5.0)
        eventually(lambda: worker.life("lingers") == ["received", "begun", "revoked"])
        _, begun, ended = worker.events("lingers")
        assert ended["at_s"] - begun["at_s"] > 4.0  # sleep goes by another clock than times of day, which may be set
        assert sum(begun["at_s"] < beat["at_s"] < ended["at_s"] for beat in worker.beats) >= 2
        assert not unreported(worker)
        assert worker.next_beat()["running"] == []


def test_a_job_that_is_revoked_while_it_waits_in_its_worker_is_received_once(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS["prefork"]) as worker:
        for number in range(2):
            worker.send("works", 4.0, job_id=f"first {number}")
        worker.send("works", job_id="next")
        worker.send("works", job_id="later", countdown=4.0)
        eventually(lambda: worker.life("next") == worker.life("later") == ["received"])
        worker.app.control.revoke(["next", "later"])
        eventually(lambda: worker.life("next")[1:] and worker.life("later")[1:])
        assert worker.life("next") == worker.life("later") == ["received", "revoked"]


def test_a_beat_counts_what_the_pool_runs_that_is_no_request_of_celerys(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS["prefork"]) as worker:
        assert worker.next_beat()["unnamed"] == 0
        worker.send("batched")
        eventually(lambda: worker.beats[-1]["unnamed"] == 1)
        assert worker.beats[-1]["running"] == []
        eventually(lambda: worker.beats[-1]["unnamed"] == 0)


@pytest.mark.parametrize("pool", ["gevent", "eventlet", "solo", "threads"])
def test_the_beat_goes_on_while_a_job_keeps_the_loop(pool: str, broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS[pool]) as worker:
        worker.send("spins", 7.0)
        eventually(lambda: worker.beats[-1]["running"])
        first = worker.next_beat()
        second = worker.next_beat()
        assert [job[0] for job in first["running"]] == [job[0] for job in second["running"]] == ["spins"]
        if pool != "threads":
            assert second["loop"] == first["loop"]
        eventually(lambda: worker.life("spins") == FINISHED)
        eventually(lambda: worker.beats[-1]["loop"] > second["loop"])


def test_the_pools_size_and_the_queues_are_those_of_now(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, (*POOLS["prefork"], "--queues=celery,other")) as worker:
        worker.app.control.pool_grow(2)
        eventually(lambda: worker.beats[-1]["slots"] == 4)
        worker.app.control.pool_shrink(1)
        eventually(lambda: worker.beats[-1]["slots"] == worker.beats[-1]["slots_max"] == 3)
        worker.app.control.cancel_consumer("other")
        eventually(lambda: worker.beats[-1]["queues"] == ["celery"])
        worker.app.control.add_consumer("third")
        eventually(lambda: sorted(worker.beats[-1]["queues"]) == ["celery", "third"])
        worker.send("works", queue="third")
        eventually(lambda: worker.life("works") == FINISHED)
        assert {line["queue"] for line in worker.events("works")} == {"third"}


def test_a_pool_that_grows_by_itself_says_how_far(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, ("--pool=prefork", "--autoscale=3,1")) as worker:
        assert (worker.beats[0]["slots"], worker.beats[0]["slots_max"]) == (1, 3)
        for number in range(3):
            worker.send("works", 4.0, job_id=f"job {number}")
        eventually(lambda: len(worker.beats[-1]["running"]) == 3)
        assert worker.beats[-1]["slots"] == 3


def test_a_worker_that_remote_control_stops_says_so(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS["prefork"]) as worker:
        worker.send("works", 5.0)
        eventually(lambda: worker.beats[-1]["running"])
        worker.app.control.shutdown()
        eventually(lambda: worker.beats[-1]["stopping"])
        assert worker.process.wait(60) == 0
        assert worker.life("works") == FINISHED


def test_a_job_that_closes_the_pipe_is_reported_and_gets_no_line_in_its_own_files(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, ("--pool=prefork", "--concurrency=1")) as worker:
        worker.send("reopens")
        worker.send("works")
        eventually(lambda: worker.life("works") == worker.life("reopens") == FINISHED)
        assert {(tmp_path / f"own {number}").read_text() for number in range(8)} == {""}


@pytest.mark.parametrize(
    ("pool", "state"),
    [(pool, "full") for pool in POOLS] + [("prefork", "gone"), ("prefork", "a file"), ("threads", "not there")],
)
def test_no_job_notices_a_pipe_that_nobody_reads(pool: str, state: str, broker: str, tmp_path: Path) -> None:
    environment = {}
    if state == "not there":
        environment["HEADWAY_REPORTER_PIPE"] = str(tmp_path / "none")
    elif state == "a file":
        (tmp_path / "a file").touch()
        environment["HEADWAY_REPORTER_PIPE"] = str(tmp_path / "a file")
    worker = ReportingWorker(tmp_path, broker, *POOLS[pool], environment=environment)
    try:
        if state == "full":
            fill(worker.pipe)
        elif state == "gone":
            worker.pipe.unlink()
        names = {f"job {number}" for number in range(60)}
        for name in names:
            worker.send("works", 0.0, job_id=name)
        log = tmp_path / "jobs.log"
        eventually(lambda: log.exists() and log.read_text().count(" ends\n") == len(names))
        assert worker.stop() == 0
        assert {line.removesuffix(" ends") for line in log.read_text().split("\n") if line.endswith("ends")} == names
        assert "raised" not in worker.log.read_text()
        if state == "a file":
            assert (tmp_path / "a file").read_bytes() == b""
    finally:
        worker.close()


def fill(pipe: Path) -> None:
    file = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        while True:
            os.write(file, b"x" * 4096)
    except BlockingIOError:
        os.close(file)


def test_a_reader_that_comes_back_finds_the_state_and_how_much_was_lost(broker: str, tmp_path: Path) -> None:
    with reporting(tmp_path, broker, POOLS["threads"]) as worker:
        for number in range(1000):
            worker.send("works", 0.0, job_id=f"job {number} {'x' * 200}")
        log = tmp_path / "jobs.log"
        eventually(lambda: log.exists() and log.read_text().count(" ends\n") == 1000)
        assert len([line for line in worker.lines if line["t"] == "ended"]) < 1000
        beat = worker.next_beat()
        eventually(lambda: worker.beats[-1]["n"] > beat["n"])
        assert worker.beats[-1]["lost"] > 0
        assert (worker.beats[-1]["begun"], worker.beats[-1]["ended"], worker.beats[-1]["running"]) == (1000, 1000, [])


def test_an_application_that_loads_the_reporter_itself_reports_once(broker: str, tmp_path: Path) -> None:
    also = "import importlib, headway_celery_reporter, reported_shop\nimportlib.reload(headway_celery_reporter)"
    (tmp_path / "also.py").write_text(also)
    with reporting(tmp_path, broker, (*POOLS["prefork"], "--include=also")) as worker:
        worker.send("works")
        eventually(lambda: worker.life("works") == FINISHED)
        numbers = [beat["n"] for beat in worker.beats]
        assert numbers == list(range(1, len(numbers) + 1))
