"""Events from a Kafka topic instead of the event log: the same columns, one JSON object a message.

Spark is the first to read these events, so the checks of ingest are done here: a message's own time
bounds its ``at_s``, and one that is no event is left out by the first step of the query.
"""

import time
from collections.abc import Callable

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.errors import Misconfigured
from headway_spark.event_log.schema import EVENTS

PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
KAFKA_LATE_S = 600.0  # as ingest: what is older counts as this old
EARLY_S = 1.0
# A stream without a checkpoint begins here: rows live two hours, and the first buckets, made of a part, are older.
KAFKA_BACK_S = 2 * 3_600.0 + 2 * KAFKA_LATE_S
KAFKA_MESSAGES_MAX = 200_000  # a trigger: bounds the memory of catching up


def source(session: SparkSession, *, servers: str, topic: str) -> Callable[[], DataFrame]:
    """The topic's events, as ``pipeline.Stream`` asks for them at each start."""
    return lambda: events(messages(session, servers=servers, topic=topic))


def messages(session: SparkSession, *, servers: str, topic: str) -> DataFrame:
    """The topic as a stream.

    Raises:
        Misconfigured: Spark has not got its Kafka connector.
    """
    since_ms = round((time.time() - KAFKA_BACK_S) * 1_000)
    reader = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingTimestamp", str(since_ms))
        .option("startingOffsetsByTimestampStrategy", "latest")  # where the topic has nothing as new
        .option("maxOffsetsPerTrigger", KAFKA_MESSAGES_MAX)
    )
    try:
        return reader.load()
    except PySparkException as error:
        if "kafka" not in str(error) or "find data source" not in str(error):
            raise
        raise Misconfigured(
            "HEADWAY_SOURCE=kafka needs Spark's Kafka connector, which is not there: set "
            f"HEADWAY_SPARK_PACKAGES={PACKAGE}, or give spark-submit `--packages {PACKAGE}`"
        ) from error


def events(messages: DataFrame) -> DataFrame:
    """What the messages hold, one row a message.

    In:  value binary, a JSON object whose keys are columns of ``schema.EVENTS``; timestamp timestamp.
    Out: as ``schema.EVENTS``. received_at_s is the message's timestamp, never later than now; at_s lies in
         [received - 600 s, received + 1 s]. Of what is no such object everything but the times is null.
    """
    names = messages.select(
        F.from_json(F.col("value").cast("string"), EVENTS).alias("event"),
        F.least("timestamp", F.current_timestamp()).cast("double").alias("message_at_s"),
    ).select("event.*", "message_at_s")
    received_s = F.col("message_at_s")
    at_s = F.greatest(F.least(F.col("at_s"), received_s + EARLY_S), received_s - KAFKA_LATE_S)
    return names.withColumns(
        # `least` and `greatest` pass over null: what has no time must not be given one.
        {"received_at_s": received_s, "at_s": F.when(F.col("at_s").isNotNull(), at_s)}
    ).drop("message_at_s")
