"""The pipeline by spark-submit: the same stream, on a master and a worker that are processes of their own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pyspark
import pytest

from architecture.tree import ROOT
from headway.scaling.model import EventKind, JobEvent
from headway_spark.java import java_home
from spark.events import publish, table

# Its own environment, as the containers have it: three JVMs with a third of a GB each.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

HOME = Path(pyspark.__file__).parent
WITHIN_S = 150


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
    while not holds():
        assert time.monotonic() < deadline_s, log.read_text()[-3000:]
        time.sleep(0.1)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def started_jobs(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("select coalesce(sum(started_jobs), 0) from queue_buckets").fetchone()
    assert row
    return int(row[0])


def test_the_stream_runs_on_a_cluster_by_spark_submit(migrated_url: str, tmp_path: Path) -> None:
    now_s = time.time()
    events = [
        JobEvent(queue="redis/mail", job_id=str(n), kind=EventKind.STARTED, at_s=now_s, enqueued_at_s=now_s - 1)
        for n in range(20)
    ]
    publish(tmp_path / "log", "1.parquet", table(events))
    port = free_port()
    env = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "JAVA_HOME": str(java_home(os.environ, shim_dir=tmp_path / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "HEADWAY_DATABASE_URL": migrated_url,
        "HEADWAY_EVENT_LOG": str(tmp_path / "log"),
        "HEADWAY_CHECKPOINT": str(tmp_path / "checkpoint"),
        "HEADWAY_STATE_DIR": str(tmp_path / "work"),
    }
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark_class, master_url = str(HOME / "bin" / "spark-class"), f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    logs = {name: tmp_path / f"{name}.log" for name in ("master", "worker", "submit")}
    with ExitStack() as stack:
        master = [
            spark_class,
            f"{deploy}.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--webui-port",
            "0",
        ]
        stack.enter_context(running(*master, log=logs["master"], env=env))
        until(lambda: "ALIVE" in logs["master"].read_text(), logs["master"])
        worker = [spark_class, f"{deploy}.worker.Worker", "--cores", "1", "--memory", "512m", "--webui-port", "0"]
        stack.enter_context(
            running(*worker, "--work-dir", str(tmp_path / "apps"), master_url, log=logs["worker"], env=env)
        )
        submit = [str(HOME / "bin" / "spark-submit"), "--master", master_url, "--driver-memory", "512m"]
        confs = [
            "spark.executor.memory=512m",
            f"spark.driver.extraJavaOptions={quick}",
            f"spark.executor.extraJavaOptions={quick}",
            "spark.ui.enabled=false",
        ]
        words = [word for conf in confs for word in ("--conf", conf)]
        stack.enter_context(
            running(*submit, *words, str(ROOT / "sparkjobs" / "submit.py"), log=logs["submit"], env=env)
        )
        until(lambda: started_jobs(migrated_url) == len(events), logs["submit"])
        assert "Registered app headway" in logs["master"].read_text()  # the cluster's work, not the driver's own
