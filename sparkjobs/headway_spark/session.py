"""The Spark session of the pipeline: its own on this machine, or the one that spark-submit was asked for.

Each setting has been measured; docs/why/stream-figures.md has the figures.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headway.errors import Misconfigured
from headway_spark import class_archive
from headway_spark.java import java_home

Session = SparkSession
"""What ``open_session`` gives, for those who only pass it on."""

CORES = 2
HEAP_MB = 768
JVM_END_BOUND_S = 5.0
POLL_MS = (
    200  # how long a stream without new files waits before it polls again: a fifth of the latency goal, little CPU
)

# The thorough compiler begins ten times later than by default: during a start it would take as much time as Spark does,
# and what repeats for minutes still gets it.
_LATER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)
_LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


# What the stream wants wherever it runs.
_STREAM: Mapping[str, str] = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    # One task a stage: the rows of a micro-batch are few, and each further task costs more than it saves.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.maxPartitionBytes": "64m",
    "spark.sql.files.openCostInBytes": "0",
    # Above 128 groups, the default, rows are sorted instead of hashed; a rebuild has thousands, each of a KB or two.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.streaming.pollingDelay": f"{POLL_MS}ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # Each job's plan is written down for a user interface that nobody opens: in the shortest way.
    "spark.sql.ui.explainMode": "simple",
    # The list of files read is written anew every so many batches, and old versions of it live so long.
    "spark.sql.streaming.fileSource.log.compactInterval": "50",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "60s",
    # The watermark is a literal in the plan: generated code would be compiled anew whenever it moves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A file that cannot be read must not stop every queue's metrics; ingest writes whole files or none.
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
}


def open_session(
    env: Mapping[str, str], *, work_dir: Path, cores: int = CORES, more: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """The session of the cluster that spark-submit was given; this process's own where nobody did.

    ``cores`` and the settings ``more`` are for the latter.
    """
    if "PYSPARK_GATEWAY_PORT" in env:  # spark-submit's JVM is there already and says where to be found
        return _session(SparkSession.builder, _STREAM)
    home = java_home(env, shim_dir=work_dir / "java")
    return embedded(java_home=home, work_dir=work_dir, cores=cores, more=more)


def embedded(
    *,
    java_home: Path,
    work_dir: Path,
    jvm_options: str = "",
    classes: str | None = None,
    cores: int = CORES,
    more: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """A session in this process's own JVM, bound to loopback, behind a secret, quiet and small.

    ``classes`` are the options about archived classes, by default those that use them where they are. ``more`` settings
    have the last word.

    Raises:
        Misconfigured: this Java, or this user, cannot run Spark.
    """
    require_user_name(os.geteuid())
    os.environ["JAVA_HOME"] = str(java_home)
    # The launcher reads its configuration here; one left in the environment by another Spark would speak first.
    os.environ.pop("SPARK_HOME", None)
    # Where a stage needs Python, it is this one: the first on PATH has not got our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    logging = Path(__file__).with_name("log4j2.properties")
    local = work_dir / "local"
    shutil.rmtree(local, ignore_errors=True)  # of a run that was killed
    local.mkdir(parents=True, exist_ok=True)
    os.environ["SPARK_LOCAL_DIRS"] = str(local)
    settings = {
        **_STREAM,
        "spark.driver.memory": f"{HEAP_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Loopback is every local user's. The JVM draws the secret itself, and it is in no word, file or environment.
        "spark.authenticate": "true",
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Xss4m {_LATER} "
        f"-Dlog4j2.configurationFile={logging.as_uri()} "
        # Spark's launcher wants to write into the home, which a service's user often cannot.
        f'"-Duser.home={work_dir}" '
        # In the machine's own, libraries that a killed JVM leaves would stay for ever.
        f'"-Djava.io.tmpdir={local}" {class_archive.used() if classes is None else classes} {jvm_options}'.strip(),
        "spark.sql.warehouse.dir": (work_dir / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        # Kept for a user interface that is not there.
        "spark.ui.retainedJobs": "5",
        "spark.ui.retainedStages": "5",
        "spark.ui.retainedTasks": "20",
        "spark.sql.ui.retainedExecutions": "2",
        # Relies on rename being atomic, as it is on a local disk, and halves a micro-batch.
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_CHECKPOINTS,
        # Above so many files a batch, Spark runs a job with a task a file only to list them: on a local disk that is
        # twice the work of catching up.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        # The few files of a micro-batch are one task's, those of catching up some tasks'; by default they are split
        # among as many as there are cores. All of them are new, so searching for what could be skipped finds nothing.
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.maxPartitionBytes": "8m",
        "spark.sql.parquet.filterPushdown": "false",
        **more,
    }
    try:
        return _session(SparkSession.builder.master(f"local[{cores}]"), settings)
    except PySparkException as error:
        raise Misconfigured(
            f"the Java at {java_home} does not start Spark; it says why above. Another one is taken from JAVA_HOME"
        ) from error


def require_user_name(uid: int) -> None:
    """Raise ``Misconfigured`` where ``uid`` has no name: Spark logs in by it, and its own refusal is a long trace."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        raise Misconfigured(
            f"Spark needs a user with a name, and user id {uid} has no entry in /etc/passwd: add one, "
            "or run the pipeline as another user"
        ) from None


def _session(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    return builder.appName("headway").config(map=dict(settings)).getOrCreate()


def has_jvm(session: SparkSession, *, after_s: float = 0.0) -> bool:
    """Whether the JVM that this process started runs on for ``after_s``; one that somebody else started is taken to."""
    process = _gateway(session).proc
    if process is None:
        return True
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        return True
    return False


def ask(session: SparkSession) -> None:
    """Return once the JVM has answered a question; of one that is stopped, never. From any thread."""
    session.sparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]  # noqa: SLF001 - as below


def close(session: SparkSession, *, bound_s: float = JVM_END_BOUND_S) -> None:
    """Stop Spark and see its JVM off within ``bound_s``, if this process started it."""
    gateway = _gateway(session)
    if has_jvm(session):
        session.stop()
    gateway.shutdown()
    process = gateway.proc
    if process is None:
        return
    process.stdin.close()  # at the end of its input the JVM leaves, also where this process is killed
    try:
        process.wait(bound_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _gateway(session: SparkSession) -> Any:
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - PySpark shows the process it started in no other way
    return gateway
