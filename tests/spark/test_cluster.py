"""The pipeline by spark-submit: the same stream, on a master and two workers that are processes of their own."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import psycopg
import pyspark
import pytest
from psycopg.sql import SQL, Identifier
from pyspark.sql import SparkSession

from headway.__main__ import main
from headway.errors import Unavailable
from headway.scaling.measure import BucketRow
from headway.scaling.model import JobEvent, QueueSample
from headway_spark import class_archive
from headway_spark.java import java_home
from headway_spark.stream.pipeline import Progress, Stream
from headway_spark.studies.bulk import packaged
from proof.producers import OVERDUE, Producer
from proof.truth import COUNTS, Rows, differing, keyed, stored, totals
from spark.events import publish, table
from support.defined_rows import bucket_rows, class_rows
from support.ports import free_port
from support.tree import ROOT

# Its own environment, as the containers have it: six JVMs with a quarter to one GB each.
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
    """A sink that keeps the newest of each row, and how many counts there are in them."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.counts = 0

    def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
        self.rows = {**self.rows, **keyed(rows)}
        self.counts = counted(self.rows.values())

    def beat(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where the master is, the environment of a driver, and what the master has said."""

    url: str
    env: dict[str, str]
    log: Path


def events(batches: int) -> list[JobEvent | QueueSample]:
    """Late ones among them, but none that ingest would have to move."""
    producer = Producer("app", [], seed="cluster", events_per_s=1.0)
    reported = [producer._batch() for _ in range(batches)]
    return [each for batch in reported for each in (*batch.events, *batch.samples) if each.queue != OVERDUE]


def test_a_cluster_gives_the_rows_that_the_embedded_stream_gives(
    spark: SparkSession, cluster: Cluster, migrated_url: str, tmp_path: Path
) -> None:
    """One master, two workers, and `spark-submit sparkjobs/submit.py` with the packages as a zip."""
    reported = events(90)
    first, second = reported[: len(reported) // 2], reported[len(reported) // 2 :]
    publish(tmp_path / "log", "1.parquet", table(first))
    env = {
        **cluster.env,
        "HEADWAY_DATABASE_URL": migrated_url,
        "HEADWAY_EVENT_LOG": str(tmp_path / "log"),
        "HEADWAY_CHECKPOINT": str(tmp_path / "checkpoint"),
        "HEADWAY_STATE_DIR": str(tmp_path / "work"),
    }
    zipped, before = packaged(tmp_path), len(cluster.log.read_text())
    with submitted(cluster.url, zipped, log=tmp_path / "submit.log", env=env) as submit:
        await_rows(migrated_url, first, tmp_path / "submit.log")
        publish(tmp_path / "log", "2.parquet", table(second))  # on top of the state that the executors hold
        await_rows(migrated_url, reported, tmp_path / "submit.log")
        assert str(zipped) in python_path_of(submit)
    said = cluster.log.read_text()[before:]
    assert len(set(re.findall(r"Launching executor app-\S+ on worker (\S+)", said))) == 2, said[-3000:]
    found = keyed(stored(migrated_url))
    assert differing(embedded_rows(spark, tmp_path, [first, second]), found) == []
    assert (
        differing(keyed([*bucket_rows(reported), *class_rows(e for e in reported if isinstance(e, JobEvent))]), found)
        == []
    )


def test_a_backtest_on_a_cluster_gives_the_figures_that_simulate_gives(cluster: Cluster, tmp_path: Path) -> None:
    """`headway backtest --master` as a process, its packages sent to the executors, and `headway simulate` here."""
    chance, at_s = Random(1), 0.0
    trace = tmp_path / "mail.csv"
    with trace.open("w") as lines:
        lines.write("t_arrival,service_s\n")
        for _ in range(400):
            at_s += chance.expovariate(1 / 6)
            lines.write(f"{at_s:.3f},{chance.lognormvariate(0.5, 1):.3f}\n")
    words = ["--grid", "risk=0.5,2", "--master", cluster.url, "--json", str(tmp_path / "backtest.json")]
    argv = [sys.executable, "-m", "headway", "backtest", str(trace), *words]
    with running(*argv, log=tmp_path / "backtest.log", env=cluster.env) as process:
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
    """Wait until the rows in Postgres count every event: a sum there takes a thousandth of what reading them does."""
    wanted = counted(bucket_rows(reported))
    sums = SQL("select coalesce(sum({}), 0)::bigint from queue_buckets").format(
        SQL(" + ").join(map(Identifier, COUNTS))
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        until(lambda: connection.execute(sums).fetchone() == (wanted,), log)


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
        for number in range(len(files)):
            if number:
                publish(log_dir, f"{number + 1}.parquet", table(files[number]))
            # Of all at once: an attempt that failed in one file may be tried again in the next, and then counts once.
            wanted = counted(bucket_rows([each for reported in files[: number + 1] for each in reported]))
            deadline_s = time.monotonic() + WITHIN_S
            stream.run(
                is_stopping=lambda: (
                    sink.counts == wanted  # noqa: B023 - asked here
                    or time.monotonic() > deadline_s  # noqa: B023 - asked here
                )
            )
            assert sink.counts == wanted
    finally:
        stream.stop()
    return sink.rows


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core each, for one application after another."""
    folder, port = tmp_path_factory.mktemp("cluster"), free_port()
    env = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "JAVA_HOME": str(java_home(os.environ, shim_dir=folder / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        # Of drivers, too, and of executors, which have it from their worker.
        "JAVA_TOOL_OPTIONS": f"{QUICK} {class_archive.used()}",
    }
    deploy, url = "org.apache.spark.deploy", f"spark://127.0.0.1:{port}"
    spark_class, quiet = str(HOME / "bin" / "spark-class"), ("--webui-port", "0")
    log = folder / "master.log"
    with ExitStack() as stack:
        master = [spark_class, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), *quiet]
        stack.enter_context(running(*master, log=log, env=env))
        until(lambda: "ALIVE" in log.read_text(), log)
        for number in range(2):
            worker = [spark_class, f"{deploy}.worker.Worker", "--cores", "1", "--memory", "1g", *quiet]
            words = ["--work-dir", str(folder / f"apps-{number}"), url]
            stack.enter_context(running(*worker, *words, log=folder / f"worker-{number}.log", env=env))
        until(lambda: log.read_text().count("Registering worker") == 2, log)
        yield Cluster(url=url, env=env, log=log)


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
