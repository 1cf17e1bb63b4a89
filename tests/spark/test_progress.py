"""A stream whose batch does not get on: Spark hangs, or Postgres lets it wait."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program gives it

from headway.errors import Unavailable
from headway_spark.session import ask
from headway_spark.stream.pipeline import Stream, file_events
from lab.programs import sees
from spark.events import publish, table
from spark.streams import Kept, Waiting, jobs


def test_a_batch_that_hangs_in_spark_is_no_progress_though_the_jvm_answers(spark: SparkSession, tmp_path: Path) -> None:
    """A heartbeat that only asks the JVM goes on, and nobody replaces what will never measure again."""

    def hanging() -> DataFrame:
        hang = F.expr("coalesce(reflect('java.lang.Thread', 'sleep', 600000L), '')")
        return file_events(spark, tmp_path / "log").withColumn("queue", F.concat("queue", hang))

    publish(tmp_path / "log", "1.parquet", table(jobs(0, 10)))
    stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=tmp_path / "checkpoint", sink=Kept(), source=hanging)
    stream.start()
    with running(stream):
        assert sees(lambda: raises(lambda: stream.require_progress(within_s=1.0)), within_s=90)
        ask(spark)  # it answers
        stream.require_progress(within_s=3600.0)


def test_a_batch_whose_rows_wait_for_postgres_is_not_hung(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever replaced it would wait for the same, and start Java for nothing."""

    publish(tmp_path / "log", "1.parquet", table(jobs(0, 10)))
    sink = Waiting()
    stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=tmp_path / "checkpoint", sink=sink)
    stream.start()
    with running(stream):
        assert sink.is_writing.wait(90)
        time.sleep(0.1)
        stream.require_progress(within_s=0.05)


@contextmanager
def running(stream: Stream) -> Iterator[None]:
    """The stream under way in a thread, until the block ends."""
    stopping = threading.Event()

    def run() -> None:
        with suppress(Unavailable):
            stream.run(is_stopping=stopping.is_set)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        stream.stop()


def raises(act: Callable[[], object]) -> bool:
    try:
        act()
    except Unavailable:
        return True
    return False
