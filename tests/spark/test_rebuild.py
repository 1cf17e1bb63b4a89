"""What a stream left, lost or spoiled is made anew from the log, and says what the log says."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headway.errors import Misconfigured, Unavailable
from headway.scaling.measure import BucketRow
from headway.scaling.model import EventKind, JobEvent
from headway_spark.event_log.archive import Archive
from headway_spark.event_log.log_files import files
from headway_spark.stream import checkpoint as checkpoints
from headway_spark.stream import rebuild as module
from headway_spark.stream import source_log
from headway_spark.stream.checkpoint import order
from headway_spark.stream.keeper import Keeper
from headway_spark.stream.pipeline import Progress
from headway_spark.stream.rebuild import Rebuild, Rebuilt, Stopped, is_due
from spark.events import publish, table
from spark.streams import Kept, stream_until
from support.defined_rows import bucket_rows


class Written(Kept):
    """A sink that remembers every version of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: list[BucketRow] = []

    def write(self, rows: Iterable[BucketRow], progress: Progress) -> None:
        self.versions += rows
        super().write(list(rows), progress)


def job(at_s: float, number: int) -> JobEvent:
    return JobEvent(
        queue="redis/mail", job_id=f"{number}", kind=EventKind.STARTED, at_s=at_s, enqueued_at_s=at_s - number % 7
    )


class Log:
    """A log as ingest, stream and keeper leave it, and what happened in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.checkpoint = folder, folder / "log", folder / "checkpoint"
        self.now_s = time.time()
        self.events: list[JobEvent] = []
        self.archive = Archive(self.log)
        self.archive.recover()
        self._files = 0

    def ingested(self, *ages_s: float, written_ago_s: float | None = None) -> str:
        """A file in hot/ with a start so many seconds ago each."""
        self._files += 1
        reported = [job(self.now_s - age_s, len(self.events) + n) for n, age_s in enumerate(ages_s)]
        self.events += reported
        written_ago_s = min(ages_s) if written_ago_s is None else written_ago_s
        name = f"{round((self.now_s - written_ago_s) * 1000):013d}-abc-{self._files:06d}.parquet"
        publish(self.log, name, table(reported), age_s=written_ago_s)
        return name

    def streamed(self, spark: SparkSession, kept: Kept) -> None:
        """Everything read by a stream, and moved to the archive behind it."""
        stream_until(spark, self.folder, kept, started_jobs=len(self.events))
        Keeper(self.archive, log_dir=self.log, checkpoint=self.checkpoint).step()

    def rebuild(self, spark: SparkSession, kept: Kept, *, is_stopping: Callable[[], bool] = lambda: False) -> Rebuilt:
        return Rebuild(
            session=spark,
            log_dir=self.log,
            checkpoint=self.checkpoint,
            work_dir=self.folder,
            sink=kept,
            is_stopping=is_stopping,
        ).run()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def hot(log: Log) -> set[str]:
    return {path.name for path in (log.log / "hot").iterdir()}


def take_newest_commit_back(log: Log) -> None:
    """What a power cut does to a commit that was written just before."""
    newest = max((path for path in (log.checkpoint / "commits").glob("[0-9]*")), key=lambda path: int(path.name))
    newest.unlink()
    (newest.with_name(f".{newest.name}.crc")).unlink(missing_ok=True)


def test_what_is_counted_leaves_hot_and_what_is_not_stays(spark: SparkSession, log: Log) -> None:
    log.ingested(30, 31)
    log.streamed(spark, Kept())
    unread = log.ingested(5)
    Keeper(log.archive, log_dir=log.log, checkpoint=log.checkpoint).step()
    assert hot(log) == {unread}
    assert len(files(log.log)) == 2


def test_a_file_stays_in_hot_until_its_batch_is_committed(spark: SparkSession, log: Log) -> None:
    """A restart asks for it again, and the archive gives it back only before a stream runs."""
    kept = Kept()
    log.ingested(40)
    log.streamed(spark, kept)
    second = log.ingested(30)
    stream_until(spark, log.folder, kept, started_jobs=len(log.events))
    take_newest_commit_back(log)
    Keeper(log.archive, log_dir=log.log, checkpoint=log.checkpoint).step()
    assert hot(log) == {second}


def test_a_lost_checkpoint_and_its_rows_are_made_anew(spark: SparkSession, log: Log) -> None:
    for age_s in (4_000, 3_000, 500, 20):
        log.ingested(age_s, age_s + 3, age_s + 90)
    lost = Kept()
    log.streamed(spark, lost)
    assert hot(log) == set()
    log.ingested(10, 11)  # not read yet
    shutil.rmtree(log.checkpoint)
    found = Written()
    rebuilt = log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events))
    assert len(found.versions) == len(found.rows)  # each once, and whole
    assert (rebuilt.rows, rebuilt.files) == (len(found.rows), 5)
    # From there a stream goes on: what is late corrects its own bucket, and nothing is read twice.
    log.ingested(12, 21, 550, written_ago_s=0)
    log.now_s += 1
    stream_until(spark, log.folder, found, started_jobs=len(log.events))
    assert found.ordered() == list(bucket_rows(log.events))
    Keeper(log.archive, log_dir=log.log, checkpoint=log.checkpoint).step()
    assert hot(log) == set()
    assert not is_due(log.checkpoint, log.log)


def test_hours_that_were_merged_are_read_as_well(spark: SparkSession, log: Log) -> None:
    for age_s in (6_000, 5_000, 60):
        log.ingested(age_s)
    log.streamed(spark, Kept())
    while log.archive.merge_next(log.now_s + 3_600, is_stopping=lambda: False):
        pass
    assert [path.name for path in (log.log / "archive").glob("*.parquet")]
    shutil.rmtree(log.checkpoint)
    found = Kept()
    log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events))


def test_rows_that_have_expired_are_left_alone(spark: SparkSession, log: Log) -> None:
    """Their files may be gone in part: what is written must be whole."""
    log.ingested(8_000)
    log.ingested(7_100, 30)
    log.streamed(spark, Kept())
    shutil.rmtree(log.checkpoint)
    found = Kept()
    rebuilt = log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events[1:]))
    assert rebuilt.from_s > log.now_s - 7_200 - 1
    assert len(files(log.log)) == 2


def test_what_waits_since_longer_than_rows_live_is_counted_all_the_same(spark: SparkSession, log: Log) -> None:
    log.ingested(30_000)
    log.ingested(29_000)
    log.checkpoint.mkdir()
    (log.checkpoint / "metadata").write_text("torn")
    found = Kept()
    log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events))


def test_an_empty_log_rebuilds_to_an_empty_checkpoint(spark: SparkSession, log: Log) -> None:
    rebuilt = log.rebuild(spark, Kept())
    assert (rebuilt.files, rebuilt.rows) == (0, 0)
    log.ingested(5)
    found = Kept()
    stream_until(spark, log.folder, found, started_jobs=1)
    assert found.ordered() == list(bucket_rows(log.events))


def test_rebuilding_twice_changes_nothing(spark: SparkSession, log: Log) -> None:
    log.ingested(600, 40)
    log.streamed(spark, Kept())
    found = Kept()
    log.rebuild(spark, found)
    log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events))
    log.ingested(3)
    stream_until(spark, log.folder, found, started_jobs=len(log.events))
    assert found.ordered() == list(bucket_rows(log.events))


def test_a_rebuild_that_was_cut_short_goes_on_and_no_stream_starts_before(spark: SparkSession, log: Log) -> None:
    log.ingested(600, 40)
    log.streamed(spark, Kept())
    shutil.rmtree(log.checkpoint)
    with pytest.raises(Stopped):
        log.rebuild(spark, Kept(), is_stopping=lambda: True)
    assert is_due(log.checkpoint, log.log)
    with pytest.raises(Misconfigured, match="a rebuild has begun and not ended"):
        stream_until(spark, log.folder, Kept(), started_jobs=1)
    log.ingested(3)  # meanwhile
    found = Kept()
    log.rebuild(spark, found)
    stream_until(spark, log.folder, found, started_jobs=len(log.events))
    assert found.ordered() == list(bucket_rows(log.events))


@pytest.mark.parametrize("stage", ["amid the state", "before the rows", "amid the rows", "before the end"])
def test_killed_anywhere_it_ends_the_same(
    spark: SparkSession, log: Log, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.ingested(600, 601, 40)
    log.ingested(30)
    log.streamed(spark, Kept())

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    at = {
        "amid the state": (module, "sync_tree"),
        "before the rows": (Rebuild, "_counted"),
        "amid the rows": (Rebuild, "_sent"),
        "before the end": (module, "note_taken"),
    }[stage]
    with monkeypatch.context() as patch:
        patch.setattr(*at, killed)
        with pytest.raises(Killed):
            log.rebuild(spark, Kept())
    assert is_due(log.checkpoint, log.log)  # no stream starts from what is there
    made = (log.checkpoint / "metadata").read_text()
    log.ingested(2)
    found = Kept()
    log.rebuild(spark, found)
    is_made_again = (log.checkpoint / "metadata").read_text() != made
    assert is_made_again == (stage == "amid the state")  # it goes on where it was
    stream_until(spark, log.folder, found, started_jobs=len(log.events))
    assert found.ordered() == list(bucket_rows(log.events))
    assert not checkpoints.rebuilding(log.checkpoint).exists()


def test_a_mark_that_is_torn_begins_anew(spark: SparkSession, log: Log) -> None:
    log.ingested(40)
    log.streamed(spark, Kept())
    checkpoints.rebuilding(log.checkpoint).write_text("{")
    found = Kept()
    log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events))


def test_what_the_sink_raises_ends_the_rebuild(spark: SparkSession, log: Log) -> None:
    class Broken(Kept):
        def write(self, rows: Iterable[BucketRow], _: Progress) -> None:
            raise Unavailable("Postgres could not be reached")

    log.ingested(40)
    with pytest.raises(Unavailable, match="Postgres could not be reached"):
        log.rebuild(spark, Broken())
    assert is_due(log.checkpoint, log.log)


# --- what a start refuses --------------------------------------------------------------------------------------------


def refusal(spark: SparkSession, log: Log) -> str:
    with pytest.raises(Misconfigured, match="run `headway pipeline rebuild`") as refused:
        stream_until(spark, log.folder, Kept(), started_jobs=1)
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


def test_no_stream_starts_without_a_checkpoint_beside_an_archive(spark: SparkSession, log: Log) -> None:
    log.ingested(40)
    log.streamed(spark, Kept())
    shutil.rmtree(log.checkpoint)
    assert is_due(log.checkpoint, log.log)
    assert "the log's archive holds events of the last two hours" in refusal(spark, log)


def test_a_start_that_was_killed_while_making_its_checkpoint_is_a_first_start(spark: SparkSession, log: Log) -> None:
    (log.checkpoint / "offsets").mkdir(parents=True)
    (log.checkpoint / ".metadata.tmp").write_text("to")
    log.ingested(40)
    assert not is_due(log.checkpoint, log.log)
    found = Kept()
    stream_until(spark, log.folder, found, started_jobs=1)
    assert found.ordered() == list(bucket_rows(log.events))


def test_an_ordered_rebuild_is_due(spark: SparkSession, log: Log) -> None:
    log.ingested(40)
    log.streamed(spark, Kept())
    assert not is_due(log.checkpoint, log.log)
    order(log.checkpoint)
    assert is_due(log.checkpoint, log.log)
    found = Kept()
    log.rebuild(spark, found)
    assert found.ordered() == list(bucket_rows(log.events))


def test_a_first_start_needs_no_rebuild(log: Log) -> None:
    assert not is_due(log.checkpoint, log.log)
    log.ingested(40)
    assert not is_due(log.checkpoint, log.log)


@pytest.mark.parametrize("part", ["offsets", "metadata"])
def test_no_stream_starts_from_a_checkpoint_that_lacks_a_part(spark: SparkSession, log: Log, part: str) -> None:
    """Spark would begin anew, and overwrite whole counts with what is left in hot/."""
    log.ingested(40)
    log.streamed(spark, Kept())
    path = log.checkpoint / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not is_due(log.checkpoint, log.log)
    assert "a part of it is missing" in refusal(spark, log)


def test_no_stream_starts_from_an_old_copy_of_a_checkpoint(spark: SparkSession, log: Log) -> None:
    kept = Kept()
    log.ingested(40)
    log.streamed(spark, kept)
    shutil.copytree(log.checkpoint, log.folder / "copy")
    log.ingested(30)
    log.streamed(spark, kept)
    shutil.rmtree(log.checkpoint)
    (log.folder / "copy").rename(log.checkpoint)
    assert "it is older than the archive" in refusal(spark, log)


def test_no_stream_starts_from_another_checkpoint(spark: SparkSession, log: Log) -> None:
    log.ingested(40)
    log.streamed(spark, Kept())
    metadata = log.checkpoint / "metadata"
    metadata.write_text(json.dumps({"id": "d9f1a0a8-0000-4000-8000-000000000000"}))
    (log.checkpoint / ".metadata.crc").unlink(missing_ok=True)
    assert "what another checkpoint has read" in refusal(spark, log)


def test_a_commit_that_a_power_cut_took_back_costs_nothing(spark: SparkSession, log: Log) -> None:
    """The files of a batch that is asked for again come back from the archive."""
    kept = Kept()
    log.ingested(40)
    log.streamed(spark, kept)
    second = log.ingested(30)
    log.streamed(spark, kept)
    take_newest_commit_back(log)
    assert hot(log) == set()
    keeper = Keeper(log.archive, log_dir=log.log, checkpoint=log.checkpoint)
    keeper.restore()
    assert hot(log) == {second}
    found = Kept()
    stream_until(spark, log.folder, found, started_jobs=1)
    assert found.ordered() == list(bucket_rows(log.events[1:]))


def test_a_keeper_runs_beside_its_stream(spark: SparkSession, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway_spark.stream.keeper.KEEPER_STEP_S", 0.05)
    found, stopping = Kept(), threading.Event()
    keeper = Keeper(log.archive, log_dir=log.log, checkpoint=log.checkpoint)
    thread = threading.Thread(target=keeper.run, args=[stopping.wait])
    thread.start()
    try:
        for age_s in range(60, 0, -10):
            log.ingested(age_s)
            stream_until(spark, log.folder, found, started_jobs=len(log.events))
    finally:
        stopping.set()
        thread.join(10)
    keeper.step()
    assert found.ordered() == list(bucket_rows(log.events))
    assert hot(log) == set()
    assert source_log.committed_until(log.checkpoint) >= 0
