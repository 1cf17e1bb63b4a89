"""Checkpoints in object storage: what Spark needs for them."""

from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headway.errors import Misconfigured

_PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}
# Writes through the file system's own guarantees, not by a rename, which object storage has not got.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def is_remote(checkpoint: Path | str) -> bool:
    """Whether it is a URI, and not a folder."""
    return isinstance(checkpoint, str)


def require(session: SparkSession, uri: str) -> None:
    """Raise ``Misconfigured`` where Spark has not got what reads and writes ``uri``."""
    scheme = uri.partition("://")[0]
    jvm = session._jvm  # noqa: SLF001 - PySpark has no other way to Hadoop's file systems
    assert jvm is not None, "a session without a JVM"
    hadoop = jvm.org.apache.hadoop
    try:
        hadoop.fs.FileSystem.getFileSystemClass(scheme, session._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    except Py4JJavaError as error:
        package = _PACKAGES.get(scheme, "").format(hadoop=hadoop.util.VersionInfo.getVersion())
        cure = (
            f"set HEADWAY_SPARK_PACKAGES={package}, or give spark-submit `--packages {package}`"
            if package
            else f"it reads {', '.join(sorted(_PACKAGES))}, each with its package"
        )
        raise Misconfigured(f"HEADWAY_CHECKPOINT={uri}: Spark has nothing that reads {scheme}://; {cure}") from error
