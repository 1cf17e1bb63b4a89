"""The event log as Spark reads it; a test holds it equal to what the store writes."""

from dataclasses import fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

from headway.scaling.keys import parts_of
from headway.scaling.model.event_row import SCHEMA_VERSION, EventRow, Version

NEWER = "a newer version of events"

_TYPES = {Version: IntegerType(), str: StringType(), int: LongType(), float: DoubleType(), bool: BooleanType()}

EVENTS = StructType([StructField(each.name, _TYPES[parts_of(each.type)[0]]) for each in fields(EventRow)])


def readable(events: DataFrame) -> DataFrame:
    """``events`` as they are. Whoever reads a row of a newer version fails, with ``NEWER`` in its error.

    Passed over, it would be missing from metrics that seem whole; so the reading stops, and loses nothing.
    """
    is_newer = F.coalesce("schema_version", F.lit(0)) > SCHEMA_VERSION
    return events.where(F.when(is_newer, F.raise_error(F.lit(NEWER)).cast("boolean")).otherwise(F.lit(True)))  # noqa: FBT003
