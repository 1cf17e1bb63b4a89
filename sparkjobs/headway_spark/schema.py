"""The event log as Spark reads it; a test holds it equal to what the store writes."""

from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

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
        StructField("producer", StringType()),
        StructField("sequence", LongType()),
    ]
)
