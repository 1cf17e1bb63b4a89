"""The event log as Spark reads it; a test holds it equal to what the store writes. See docs/decisions/0013.

A column that a file lacks is null in it, and one that is not named here is not read: so a column may be added without a
new version. A new version says that who does not know it would read something wrong.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

SCHEMA_VERSION = 1
"""The newest version of rows that is understood, with every older one."""

NEWER = "a newer version of events"

EVENTS = StructType(
    [
        StructField("schema_version", IntegerType()),
        StructField("queue", StringType()),
        StructField("kind", StringType()),
        StructField("job_id", StringType()),
        StructField("job_class", StringType()),
        StructField("at_s", DoubleType()),
        StructField("received_at_s", DoubleType()),
        StructField("enqueued_at_s", DoubleType()),
        StructField("started_at_s", DoubleType()),
        StructField("waiting_jobs", LongType()),
        StructField("in_flight_jobs", LongType()),
        StructField("delayed_jobs", LongType()),
        StructField("oldest_age_s", DoubleType()),
        StructField("attempt", LongType()),
        StructField("reserved_jobs", LongType()),
        StructField("oldest_age_max_s", DoubleType()),
        StructField("reports_arrivals", BooleanType()),
        StructField("reports_starts", BooleanType()),
        StructField("reports_ends", BooleanType()),
        StructField("waiting_min_jobs", LongType()),
        StructField("in_flight_min_jobs", LongType()),
        StructField("producer", StringType()),
        StructField("sequence", LongType()),
    ]
)


def readable(events: DataFrame) -> DataFrame:
    """``events`` as they are. Whoever reads a row of a newer version fails, with ``NEWER`` in its error.

    Passed over, it would be missing from metrics that seem whole; so the reading stops, and loses nothing.
    """
    is_newer = F.coalesce("schema_version", F.lit(0)) > SCHEMA_VERSION
    return events.where(F.when(is_newer, F.raise_error(F.lit(NEWER)).cast("boolean")).otherwise(F.lit(True)))  # noqa: FBT003
