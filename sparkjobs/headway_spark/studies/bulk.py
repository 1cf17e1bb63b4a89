"""Spark for history: a session for work in bulk, on this machine's cores or on a cluster."""

import os
import signal
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import headway
import headway_spark
from headway.errors import Misconfigured, Unavailable
from headway_spark.java import java_home
from headway_spark.session import close, open_session

HEAP_MB = 1024
POLL_S = 0.2
T = TypeVar("T")
_BULK: Mapping[str, str] = MappingProxyType(
    {
        # What the stream is better off without pays here: each plan runs once, over much.
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.maxPartitionBytes": "64m",
        "spark.sql.parquet.filterPushdown": "true",
        # Rows carry the jobs of a whole pool: a few of them fill a batch.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
        "spark.rpc.message.maxSize": "512",
    }
)


@contextmanager
def bulk_session(
    env: Mapping[str, str], *, work_dir: Path, master: str | None = None, cores: int | None = None
) -> Iterator[SparkSession]:
    """A session for bulk work, closed at the end: spark-submit's, that of the cluster at ``master``, or our own.

    Raises:
        Misconfigured: there is no Java, or the cluster cannot be reached.
    """
    if master is not None and "PYSPARK_GATEWAY_PORT" not in env:
        session = _of_cluster(master, env, work_dir=work_dir)
    else:
        count = cores or os.cpu_count() or 1
        more = {
            **_BULK,
            "spark.sql.files.minPartitionNum": str(count),
            "spark.sql.shuffle.partitions": str(2 * count),
            "spark.driver.memory": f"{HEAP_MB}m",
        }
        session = open_session(env, work_dir=work_dir, cores=count, more=more)
    before = _plain_interrupt()
    try:
        yield session
    finally:
        close(session)
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _plain_interrupt() -> Any:
    """Let Ctrl-C be Python's own again, and return what it was; ``None`` where it is not ours to say.

    Spark's handler speaks with the JVM wherever the main thread is, also amid its own conversation with it.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGINT, signal.default_int_handler)


def interruptible(session: SparkSession, action: Callable[[], T], *, meanwhile: Callable[[], object] = bool) -> T:
    """What ``action`` returns, done in a thread, so that Ctrl-C never comes amid a conversation with the JVM.

    ``meanwhile`` is called again and again, and once after the end, in this thread. Ctrl-C cancels what Spark does.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(action())
        except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
            done.set_exception(error)

    thread = InheritableThread(run)
    thread.start()
    try:
        while not done.done():
            thread.join(POLL_S)
            meanwhile()
    except KeyboardInterrupt:
        session.sparkContext.cancelAllJobs()
        raise
    finally:
        thread.join()
        meanwhile()
    return done.result()


def framed(session: SparkSession, table: pa.Table, *, schema: StructType, file: Path, group_rows: int) -> DataFrame:
    """``table`` as rows of ``schema``.

    On this machine they pass through ``file``, in groups of ``group_rows``: the JVM's memory is not made for all of
    them at once. A cluster's machines may not see such a file.
    """
    if not str(session.sparkContext.master).startswith("local"):
        return session.createDataFrame(table, schema)
    pq.write_table(table, file, row_group_size=group_rows)
    return session.read.schema(schema).parquet(str(file))


def _of_cluster(master: str, env: Mapping[str, str], *, work_dir: Path) -> SparkSession:
    """The session on the cluster at ``master``, whose executors are sent our packages."""
    os.environ["JAVA_HOME"] = str(java_home(env, shim_dir=work_dir / "java"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging = Path(headway_spark.__file__).with_name("log4j2.properties")
    settings = {
        **_BULK,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.submit.pyFiles": str(packaged(work_dir)),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
    }
    builder = SparkSession.builder.master(master).appName("headway")
    try:
        return builder.config(map={**settings}).getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise Unavailable(f"--master={master}: Spark cannot run there; it says why above") from error


def packaged(folder: Path) -> Path:
    """Our two packages as one zip in ``folder``, for machines on which they are not installed."""
    path = folder / "headway.zip"
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for package in (headway, headway_spark):
                root = Path(package.__path__[0])
                for file in sorted(root.rglob("*.py")):
                    archive.write(file, Path(root.name) / file.relative_to(root))
    except OSError as error:
        raise Misconfigured(f"{path} cannot be written: {error.strerror}") from error
    return path
