"""The pipeline by spark-submit: the same stream, on a master and two workers that are processes of their own."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

import psutil
import pyspark
import pytest
from pyspark.sql import SparkSession

from headway.__main__ import main
from headway.errors import Unavailable
from headway.scaling.measure import BucketRow, bucket_rows, class_rows
from headway.scaling.model import JobEvent, QueueSample
from headway_spark import class_archive
from headway_spark.java import java_home
from headway_spark.stream.pipeline import Progress, Stream
from headway_spark.studies.bulk import packaged
from proof.producers import OVERDUE, Producer
from proof.truth import COUNTS, Rows, differing, keyed, stored, totals
from spark.events import publish, table
from support.ports import free_port
from support.tree import ROOT

# Its own environment, as the containers have it: six JVMs with a quarter to half a GB each.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

HOME = Path(pyspark.__file__).parent
WITHIN_S = 240
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def running(*argv: str, log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(argv, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(holds: Callable[[], bool], log: Path) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        with suppress(Unavailable):  # where Spark takes the whole machine, Postgres is asked again
            if holds():
                return
        assert time.monotonic() < deadline_s, log.read_text()[-3000:]
        time.sleep(0.5)  # to look for rows costs as much as to make them


class Kept:
    """A sink that keeps the newest of each row."""

    def __init__(self) -> None:
        self.rows: list[BucketRow] = []

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.rows += rows

    def beat(self) -> None: ...

    def close(self) -> None: ...


def events(batches: int) -> list[JobEvent | QueueSample]:
    """Late ones among them, but none that ingest would have to move."""
    producer = Producer("app", [], seed="cluster", events_per_s=1.0)
    reported = [producer._batch() for _ in range(batches)]
    return [each for batch in reported for each in (*batch.events, *batch.samples) if each.queue != OVERDUE]


def test_a_cluster_gives_the_rows_that_the_embedded_stream_gives(
    spark: SparkSession, migrated_url: str, tmp_path: Path
) -> None:
    """One master, two workers, and `spark-submit sparkjobs/submit.py` with the packages as a zip."""
    reported = events(90)
    first, second = reported[: len(reported) // 2], reported[len(reported) // 2 :]
    publish(tmp_path / "log", "1.parquet", table(first))
    with cluster(tmp_path) as (master_url, env, master_log):
        env |= {
            "HEADWAY_DATABASE_URL": migrated_url,
            "HEADWAY_EVENT_LOG": str(tmp_path / "log"),
            "HEADWAY_CHECKPOINT": str(tmp_path / "checkpoint"),
            "HEADWAY_STATE_DIR": str(tmp_path / "work"),
        }
        zipped = packaged(tmp_path)
        with submitted(master_url, zipped, log=tmp_path / "submit.log", env=env) as submit:
            await_rows(migrated_url, first, tmp_path / "submit.log")
            publish(tmp_path / "log", "2.parquet", table(second))  # on top of the state that the executors hold
            await_rows(migrated_url, reported, tmp_path / "submit.log")
            assert str(zipped) in python_path_of(submit)
        said = master_log.read_text()
    assert len(set(re.findall(r"Launching executor app-\S+ on worker (\S+)", said))) == 2, said[-3000:]
    found = keyed(stored(migrated_url))
    assert differing(embedded_rows(spark, tmp_path, [first, second]), found) == []
    assert (
        differing(keyed([*bucket_rows(reported), *class_rows(e for e in reported if isinstance(e, JobEvent))]), found)
        == []
    )


def test_a_backtest_on_a_cluster_gives_the_figures_that_simulate_gives(tmp_path: Path) -> None:
    """`headway backtest --master` as a process, its packages sent to the executors, and `headway simulate` here."""
    chance, at_s = Random(1), 0.0
    trace = tmp_path / "mail.csv"
    with trace.open("w") as lines:
        lines.write("t_arrival,service_s\n")
        for _ in range(400):
            at_s += chance.expovariate(1 / 6)
            lines.write(f"{at_s:.3f},{chance.lognormvariate(0.5, 1):.3f}\n")
    with cluster(tmp_path, memory="1g") as (master_url, env, _):
        words = ["--grid", "risk=0.5,2", "--master", master_url, "--json", str(tmp_path / "backtest.json")]
        argv = [sys.executable, "-m", "headway", "backtest", str(trace), *words]
        with running(*argv, log=tmp_path / "backtest.log", env=env) as process:
            until(lambda: process.poll() is not None, tmp_path / "backtest.log")
        assert process.returncode == 0, (tmp_path / "backtest.log").read_text()[-3000:]
    (pool,) = json.loads((tmp_path / "backtest.json").read_text())["pools"]
    assert main(["simulate", str(trace), "--json", str(tmp_path / "simulate.json")]) == 0
    (alone,) = json.loads((tmp_path / "simulate.json").read_text())["rehearsals"]
    played = {each["candidate"]: each for each in pool["rehearsals"]}
    assert set(played) == {"as it is", "risk=0.5", "risk=2"}
    figures = set(alone) - {"workload", "strategy", "risk", "pool"}
    assert {name: alone[name] for name in figures} == {name: played["as it is"][name] for name in figures}


def await_rows(database_url: str, reported: list[JobEvent | QueueSample], log: Path) -> None:
    until(lambda: counted(stored(database_url)) == counted(bucket_rows(reported)), log)


def counted(rows: Iterable[BucketRow]) -> int:
    """How many counts there are in them: each event but those that put a job back has one, and a retry two."""
    return sum(totals(list(rows))[name] for name in COUNTS)


def embedded_rows(spark: SparkSession, folder: Path, files: list[list[JobEvent | QueueSample]]) -> Rows:
    """The rows of the same files, one after the other, in this process's own JVM."""
    sink, log_dir = Kept(), folder / "embedded"
    stream = Stream(spark, log_dir=log_dir, checkpoint=log_dir / "checkpoint", sink=sink, pace_s=0.0)
    publish(log_dir, "1.parquet", table(files[0]))
    stream.start()
    try:
        jobs = 0
        for number, reported in enumerate(files, 1):
            if number > 1:
                publish(log_dir, f"{number}.parquet", table(reported))
            jobs += counted(bucket_rows(reported))
            deadline_s = time.monotonic() + WITHIN_S
            stream.run(
                is_stopping=lambda: (
                    counted(keyed(sink.rows).values()) == jobs  # noqa: B023 - asked here
                    or time.monotonic() > deadline_s  # noqa: B023 - asked here
                )
            )
    finally:
        stream.stop()
    return keyed(sink.rows)


@contextmanager
def cluster(folder: Path, *, memory: str = "512m") -> Iterator[tuple[str, dict[str, str], Path]]:
    """A master and two workers of one core each: where the master is, an environment for a driver, its log."""
    port = free_port()
    env = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "JAVA_HOME": str(java_home(os.environ, shim_dir=folder / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        # Of drivers, too, and of executors, which have it from their worker.
        "JAVA_TOOL_OPTIONS": f"{QUICK} {class_archive.used()}",
    }
    deploy, master_url = "org.apache.spark.deploy", f"spark://127.0.0.1:{port}"
    spark_class, quiet = str(HOME / "bin" / "spark-class"), ("--webui-port", "0")
    log = folder / "master.log"
    with ExitStack() as stack:
        master = [spark_class, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), *quiet]
        stack.enter_context(running(*master, log=log, env=env))
        until(lambda: "ALIVE" in log.read_text(), log)
        for number in range(2):
            worker = [spark_class, f"{deploy}.worker.Worker", "--cores", "1", "--memory", memory, *quiet]
            words = ["--work-dir", str(folder / f"apps-{number}"), master_url]
            stack.enter_context(running(*worker, *words, log=folder / f"worker-{number}.log", env=env))
        until(lambda: log.read_text().count("Registering worker") == 2, log)
        yield master_url, env, log


@contextmanager
def submitted(master_url: str, zipped: Path, *, log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The pipeline by spark-submit, with an executor on each worker."""
    confs = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }
    words = [word for name, value in confs.items() for word in ("--conf", f"{name}={value}")]
    argv = [str(HOME / "bin" / "spark-submit"), "--master", master_url, "--driver-memory", "512m", *words]
    files = ["--py-files", str(zipped), str(ROOT / "sparkjobs" / "submit.py")]
    with running(*argv, *files, log=log, env=env) as process:
        yield process


def python_path_of(submit: subprocess.Popen[bytes]) -> list[str]:
    """Where the driver searches for packages first."""
    found: list[str] = []
    for each in psutil.Process(submit.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a child that has just ended is no driver
            if "submit.py" in " ".join(each.cmdline()):
                found += each.environ().get("PYTHONPATH", "").split(":")[:1]
    return found
