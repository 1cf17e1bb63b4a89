"""Spark for history: a session for work in bulk, on this machine's cores or on a cluster."""

import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import headway
import headway_spark
from headway.errors import Misconfigured, Unavailable
from headway_spark.java import java_home
from headway_spark.session import close, embedded, submitted

HEAP_MB = 1024
_BULK: Mapping[str, str] = MappingProxyType(
    {
        # What the stream is better off without pays here: each plan runs once, over much.
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.files.ignoreCorruptFiles": "false",
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
    if "PYSPARK_GATEWAY_PORT" in env:
        session = submitted()
    elif master is not None:
        session = _of_cluster(master, env, work_dir=work_dir)
    else:
        count = cores or os.cpu_count() or 1
        more = {**_BULK, "spark.sql.shuffle.partitions": str(2 * count), "spark.driver.memory": f"{HEAP_MB}m"}
        home = java_home(env, shim_dir=work_dir / "java")
        session = embedded(java_home=home, work_dir=work_dir, cores=count, more=more)
    try:
        yield session
    finally:
        close(session)


def _of_cluster(master: str, env: Mapping[str, str], *, work_dir: Path) -> SparkSession:
    """The session on the cluster at ``master``, whose executors are sent our packages."""
    os.environ["JAVA_HOME"] = str(java_home(env, shim_dir=work_dir / "java"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        **_BULK,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.submit.pyFiles": str(packaged(work_dir)),
    }
    builder = SparkSession.builder.master(master).appName("headway")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
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
