"""The Spark session of the embedded pipeline. Each setting has been measured; docs/decisions/0004 has the figures."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

HEAP_MB = 768
POLL_MS = 200  # how long a stream without news waits before it looks again: a fifth of the latency goal, little CPU

_LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def embedded(*, java_home: Path, work_dir: Path, jvm_options: str = "") -> SparkSession:
    """A session in this process's own JVM, bound to loopback, quiet and small."""
    os.environ["JAVA_HOME"] = str(java_home)
    # The launcher reads its configuration here; one left in the environment by another Spark would speak first.
    os.environ.pop("SPARK_HOME", None)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    logging = Path(__file__).with_name("log4j2.properties")
    settings = {
        "spark.driver.memory": f"{HEAP_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Xss4m -Dlog4j2.configurationFile={logging.as_uri()} "
        f"-Dderby.system.home={work_dir} {jvm_options}".strip(),
        "spark.local.dir": str(work_dir / "local"),
        "spark.sql.warehouse.dir": (work_dir / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        # One task a stage: the rows of a micro-batch are few, and each further task costs more than it saves.
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.files.maxPartitionBytes": "64m",
        "spark.sql.files.openCostInBytes": "0",
        # Relies on rename being atomic, as it is on a local disk, and halves a micro-batch.
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_CHECKPOINTS,
        "spark.sql.streaming.pollingDelay": f"{POLL_MS}ms",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        # A file that cannot be read must not stop every queue's metrics; ingest writes whole files or none.
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("headway")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
