"""The stream over real files: nothing twice, nothing missing, through a restart."""

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headway.errors import Misconfigured, Unavailable
from headway.scaling.measure import CLASS_BUCKET_S, BucketRow
from headway.scaling.model import JobEvent, QueueSample
from headway.scaling.model.event_row import SCHEMA_VERSION
from headway.store.events.event_files import SCHEMA
from headway_spark.event_log import schema
from headway_spark.stream import source_log
from headway_spark.stream.pipeline import LATENESS_S, Progress, Stream
from headway_spark.stream.warm_up import warm_up
from spark.events import publish, table
from spark.streams import START_S, Kept, Waiting, bounded, jobs, stream_until
from support.defined_rows import bucket_rows


def test_a_restart_neither_repeats_nor_misses_an_event(spark: SparkSession, tmp_path: Path) -> None:
    before, after = jobs(0, 100), jobs(100, 100)
    sample = QueueSample(queue="redis/mail", at_s=START_S + 1, waiting_jobs=3, oldest_age_s=0.1)
    kept = Kept()
    publish(tmp_path / "log", "1.parquet", table([*before, sample]))
    stream_until(spark, tmp_path, kept, started_jobs=100)
    publish(tmp_path / "log", "2.parquet", table(after))
    stream_until(spark, tmp_path, kept, started_jobs=200)
    assert kept.ordered() == list(bucket_rows([*before, *after, sample]))


def test_a_late_event_corrects_its_own_bucket(spark: SparkSession, tmp_path: Path) -> None:
    """Within the lateness bound an event belongs where it happened, not where it arrived."""
    on_time, late = jobs(3_000, 10), jobs(0, 10)  # five minutes apart
    kept = Kept()
    publish(tmp_path / "log", "1.parquet", table(on_time))
    stream_until(spark, tmp_path, kept, started_jobs=10)
    publish(tmp_path / "log", "2.parquet", table(late))
    stream_until(spark, tmp_path, kept, started_jobs=20)
    assert kept.ordered() == list(bucket_rows([*on_time, *late]))


def test_what_is_past_the_bound_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """An event that comes all the same does not overwrite its bucket, which is complete, with what is left of it."""
    kept, past = Kept(), int(10 * (LATENESS_S + CLASS_BUCKET_S)) + 100
    stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=tmp_path / "checkpoint", sink=kept)
    batches = [jobs(0, 10), jobs(past, 10), jobs(past + 100, 10), jobs(10, 10) + jobs(past + 200, 10)]
    stream.start()
    try:
        for number, events in enumerate(batches, start=1):
            publish(tmp_path / "log", f"{number}.parquet", table(events))
            stream.run(is_stopping=bounded(lambda number=number: kept.batches == number))
    finally:
        stream.stop()
    assert kept.ordered() == list(bucket_rows([*batches[0], *batches[1], *batches[2], *jobs(past + 200, 10)]))


def test_a_trimmed_list_of_files_makes_no_file_new(spark: SparkSession, tmp_path: Path) -> None:
    """Also not one that was read long ago and was never moved to the archive."""
    interval = "spark.sql.streaming.fileSource.log.compactInterval"
    before = spark.conf.get(interval)
    spark.conf.set(interval, "2")
    try:
        kept, hot = Kept(), tmp_path / "log" / "hot"
        stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=tmp_path / "checkpoint", sink=kept)
        stream.start()
        try:
            for number in range(4):
                rows = table(jobs(100 * number, 10))
                publish(tmp_path / "log", f"{number}.parquet", rows, age_s=(3 - number) * source_log.KEPT_S)
                stream.run(is_stopping=bounded(lambda number=number: kept.batches > number))
        finally:
            stream.stop()
        again = Kept()
        publish(tmp_path / "log", "0.parquet", table(jobs(0, 10)), age_s=3 * source_log.KEPT_S)
        publish(tmp_path / "log", "4.parquet", table(jobs(400, 10)))
        stream_until(spark, tmp_path, again, started_jobs=10)
    finally:
        spark.conf.set(interval, before)
    lists = (tmp_path / "checkpoint" / "sources" / "0").glob("*.compact")
    newest = max(lists, key=lambda path: int(path.stem)).read_text()
    assert "/hot/0.parquet" not in newest
    assert (hot / "0.parquet").exists()
    assert again.ordered() == list(bucket_rows(jobs(400, 10)))


def test_a_file_that_is_no_parquet_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    publish(tmp_path / "log", "2.parquet", table(jobs(0, 10)))
    (tmp_path / "log" / "hot" / "1.parquet").write_text("no such thing")
    stream_until(spark, tmp_path, kept, started_jobs=10)
    assert sum(row.started_jobs for row in kept.rows.values()) == 10


def test_the_warm_up_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    warm_up(spark, work_dir=tmp_path, is_stopping=lambda: False)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_is_one_sentence_that_says_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    publish(tmp_path / "log", "1.parquet", table(jobs(0, 10)))
    stream_until(spark, tmp_path, Kept(), started_jobs=10)
    for path in (tmp_path / "checkpoint" / "offsets").iterdir():
        path.write_text("no such thing")
    with pytest.raises(
        Misconfigured,
        match=r"^the stream cannot go on from .* or is damaged \(.+\); run `headway pipeline rebuild`",
    ) as refused:
        stream_until(spark, tmp_path, Kept(), started_jobs=1)
    assert len(str(refused.value).splitlines()) == 1


def test_what_the_sink_raises_is_what_the_stream_ends_with(spark: SparkSession, tmp_path: Path) -> None:
    class Broken(Kept):
        def write(self, rows: Sequence[BucketRow], _: Progress) -> None:
            raise Unavailable("Postgres could not be reached")

    publish(tmp_path / "log", "1.parquet", table(jobs(0, 10)))
    with pytest.raises(Unavailable, match=r"^Postgres could not be reached$"):
        stream_until(spark, tmp_path, Broken(), started_jobs=1)


def test_a_stop_does_not_wait_for_a_sink_that_waits(spark: SparkSession, tmp_path: Path) -> None:
    publish(tmp_path / "log", "1.parquet", table(jobs(0, 10)))
    sink = Waiting()
    stream = Stream(spark, log_dir=tmp_path / "log", checkpoint=tmp_path / "checkpoint", sink=sink)
    stream.start()
    stream.run(is_stopping=bounded(sink.is_writing.is_set))
    began_s = time.monotonic()
    stream.stop()
    assert sink.is_closed.is_set()
    assert time.monotonic() - began_s < 60  # far below what the sink would have waited


# --- versions of the log's rows ---------------------------------------------------------------------------------------


def of_version(number: int, events: list[JobEvent]) -> pa.Table:
    rows = table(events)
    return rows.set_column(0, SCHEMA.field(0), pa.array([number] * len(rows), pa.int32()))


def test_an_older_files_missing_columns_are_unknown_and_newer_ones_are_not_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    kept, events = Kept(), jobs(0, 10)
    older = of_version(0, events[:10]).drop_columns(["job_class", "delayed_jobs", "attempt"])
    oldest = table(events[10:12]).drop_columns(["schema_version"])
    wider = table(events[12:])
    publish(tmp_path / "log", "1.parquet", older)
    publish(tmp_path / "log", "2.parquet", oldest)
    publish(tmp_path / "log", "3.parquet", wider.append_column("shard", pa.array(["a"] * len(wider))))
    stream_until(spark, tmp_path, kept, started_jobs=10)
    assert kept.ordered() == list(bucket_rows(events))


def test_rows_of_a_newer_version_stop_the_stream_and_wait_for_one_that_knows_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, before, after = Kept(), jobs(0, 10), jobs(10, 10)
    publish(tmp_path / "log", "1.parquet", table(before))
    stream_until(spark, tmp_path, kept, started_jobs=10)
    publish(tmp_path / "log", "2.parquet", of_version(2, after))
    for _ in range(2):  # a start over, too
        with pytest.raises(Misconfigured, match="a newer version than this pipeline reads, 1: install the version"):
            stream_until(spark, tmp_path, kept, started_jobs=20)
    assert kept.ordered() == list(bucket_rows(before))
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
    stream_until(spark, tmp_path, kept, started_jobs=20)
    assert kept.ordered() == list(bucket_rows([*before, *after]))


def test_the_stream_reads_what_ingest_writes() -> None:
    assert schema.SCHEMA_VERSION == SCHEMA_VERSION
