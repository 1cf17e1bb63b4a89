"""The archive on a real disk: every event in exactly one file that counts, whoever dies where."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway.errors import Misconfigured
from headway.scaling.model import EventKind, JobEvent
from headway_spark.event_log import archive as module
from headway_spark.event_log.archive import ARCHIVE_KEPT_MIN_S, ARCHIVE_MERGE_AFTER_S, Archive, Retention
from headway_spark.event_log.log_files import HOUR_S, drop_left_holds, files, held
from spark.events import publish, table
from support.flushed import Disk

HOUR = 1_763_758_800.0  # on the hour
LATER = HOUR + HOUR_S + ARCHIVE_MERGE_AFTER_S + 1


def name(at_s: float, number: int = 1) -> str:
    return f"{round(at_s * 1000):013d}-abc-{number:06d}.parquet"


def put(log: Path, at_s: float, number: int = 1, *, jobs: int = 2) -> str:
    """A file of ingest's in hot/, with jobs named by its time."""
    events = [
        JobEvent(queue="redis/mail", job_id=f"{at_s:.0f}-{number}-{n}", kind=EventKind.ENQUEUED, at_s=at_s)
        for n in range(jobs)
    ]
    publish(log, name(at_s, number), table(events))
    return name(at_s, number)


def jobs_of(paths: Iterator[Path] | tuple[Path, ...]) -> Counter[str]:
    return Counter(job for path in paths for job in pq.ParquetFile(path).read()["job_id"].to_pylist())


def never() -> bool:
    return False


@pytest.fixture
def log(tmp_path: Path) -> Path:
    Archive(tmp_path).recover()
    return tmp_path


def filled(log: Path, *, hours: int = 1, each: int = 3) -> tuple[Archive, Counter[str]]:
    """An archive with so many files an hour, and the jobs in it."""
    archive = Archive(log)
    for hour in range(hours):
        archive.take([put(log, HOUR + hour * HOUR_S + 60 * n) for n in range(each)])
    return archive, jobs_of(files(log))


def test_what_was_taken_and_what_was_merged_is_there_once(log: Path) -> None:
    archive, jobs = filled(log)
    put(log, HOUR + 200)
    jobs += jobs_of(tuple((log / "hot").iterdir()))
    assert jobs_of(files(log)) == jobs
    assert archive.merge_next(LATER, is_stopping=never)
    assert not archive.merge_next(LATER, is_stopping=never)
    assert [path.name for path in (log / "archive").iterdir()] == ["1763758800-000.parquet"]
    assert jobs_of(files(log)) == jobs
    assert set(jobs.values()) == {1}


def test_an_hour_is_merged_an_hour_after_it_is_over(log: Path) -> None:
    archive, _ = filled(log)
    assert not archive.merge_next(HOUR + HOUR_S + ARCHIVE_MERGE_AFTER_S - 1, is_stopping=never)
    assert archive.merge_next(HOUR + HOUR_S + ARCHIVE_MERGE_AFTER_S, is_stopping=never)


@pytest.mark.parametrize(
    "dies_at", ["while it writes", "before the rename", "before the folder goes", "amid the folder"]
)
def test_a_keeper_killed_while_merging_loses_and_repeats_nothing(
    log: Path, dies_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, jobs = filled(log)

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    def half_removed(folder: Path, **_: object) -> None:
        next(iter(folder.iterdir())).unlink()
        raise Killed

    with monkeypatch.context() as patch:
        if dies_at == "amid the rows":
            patch.setattr(pq.ParquetWriter, "write_table", killed)
        elif dies_at == "before the rename":
            patch.setattr(os, "fsync", killed)
        else:
            patch.setattr(shutil, "rmtree", half_removed if dies_at == "amid the folder" else killed)
        with pytest.raises(Killed):
            archive.merge_next(LATER, is_stopping=never)
    assert jobs_of(files(log)) == jobs  # as a reader finds it before anybody has mended it
    again = Archive(log)
    again.recover()
    again.merge_next(LATER, is_stopping=never)
    assert jobs_of(files(log)) == jobs
    assert [path.name for path in (log / "archive").iterdir()] == ["1763758800-000.parquet"]


def test_a_stop_leaves_a_merge_for_the_next_time(log: Path) -> None:
    archive, jobs = filled(log)
    archive.merge_next(LATER, is_stopping=lambda: True)
    assert [path.name for path in (log / "archive").iterdir()] == ["1763758800-000"]
    assert jobs_of(files(log)) == jobs


def test_what_comes_late_for_a_merged_hour_makes_a_part_of_its_own(log: Path) -> None:
    archive, jobs = filled(log)
    archive.merge_next(LATER, is_stopping=never)
    late = put(log, HOUR + 3_000)
    jobs += jobs_of((log / "hot" / late,))
    assert archive.take([late]) == 1
    assert jobs_of(files(log)) == jobs
    archive.merge_next(LATER, is_stopping=never)
    assert sorted(path.name for path in (log / "archive").iterdir()) == [
        "1763758800-000.parquet",
        "1763758800-001.parquet",
    ]
    assert jobs_of(files(log)) == jobs


def test_a_part_holds_so_many_files_and_no_more(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ARCHIVE_PART_FILES_MAX", 2)
    filled(log, each=5)
    parts = sorted((log / "archive").iterdir())
    assert [len(list(part.iterdir())) for part in parts] == [2, 2, 1]
    Archive(log).take([put(log, HOUR + 900)])  # also when begun anew
    assert [len(list(part.iterdir())) for part in parts] == [2, 2, 2]


def test_files_of_several_versions_are_merged_with_the_columns_of_all(log: Path) -> None:
    archive, _ = filled(log, each=1)
    older = table([JobEvent(queue="q", job_id="old", kind=EventKind.ENQUEUED, at_s=HOUR)]).drop_columns(["sequence"])
    newer = table([JobEvent(queue="q", job_id="new", kind=EventKind.ENQUEUED, at_s=HOUR)])
    newer = newer.append_column("shard", pa.array(["a"]))
    for number, rows in ((7, older), (8, newer)):
        publish(log, name(HOUR, number), rows)
        archive.take([name(HOUR, number)])
    archive.merge_next(LATER, is_stopping=never)
    (path,) = files(log)
    rows = {row["job_id"]: (row["sequence"], row["shard"]) for row in pq.ParquetFile(path).read().to_pylist()}
    assert (rows["old"], rows["new"]) == ((None, None), (0, "a"))


def test_files_that_do_not_go_together_stay_apart_and_stop_nothing(log: Path) -> None:
    archive, _ = filled(log, hours=2, each=1)
    odd = table([JobEvent(queue="q", job_id="odd", kind=EventKind.ENQUEUED, at_s=HOUR)])
    odd = odd.set_column(0, "schema_version", pa.array(["one"]))
    publish(log, name(HOUR, 7), odd)
    archive.take([name(HOUR, 7)])
    jobs = jobs_of(files(log))
    while archive.merge_next(LATER + HOUR_S, is_stopping=never):
        pass
    assert sorted(path.name for path in (log / "archive").iterdir()) == ["1763758800-000", "1763762400-000.parquet"]
    assert jobs_of(files(log)) == jobs


def test_what_is_no_parquet_is_put_aside(log: Path) -> None:
    archive, jobs = filled(log)
    (log / "hot" / name(HOUR, 9)).write_text("no such thing")
    archive.take([name(HOUR, 9)])
    archive.merge_next(LATER, is_stopping=never)
    assert [path.name for path in (log / "damaged").iterdir()] == [name(HOUR, 9)]
    assert jobs_of(files(log)) == jobs


def test_taking_twice_or_what_is_not_there_changes_nothing(log: Path) -> None:
    archive, jobs = filled(log)
    assert archive.take([name(HOUR), "no such.parquet"]) == 0
    assert jobs_of(files(log)) == jobs


def test_what_is_not_merged_can_be_given_back(log: Path) -> None:
    archive, jobs = filled(log)
    assert archive.give_back([name(HOUR), "no such.parquet"]) == [name(HOUR)]
    assert [path.name for path in (log / "hot").iterdir()] == [name(HOUR)]
    assert jobs_of(files(log)) == jobs


def test_what_an_earlier_versions_archive_holds_is_taken_in(log: Path) -> None:
    """Spark's own archiving repeated the log's whole path below archive/."""
    old = log / "archive" / "var" / "lib" / "headway" / "hot"
    old.mkdir(parents=True)
    put(log, HOUR)
    (log / "hot" / name(HOUR)).rename(old / name(HOUR))
    Archive(log).recover()
    assert [str(path.relative_to(log)) for path in files(log)] == [f"archive/1763758800-000/{name(HOUR)}"]
    assert not (log / "archive" / "var").exists()


# --- retention -------------------------------------------------------------------------------------------------------


def test_hours_past_their_time_go_and_no_others(log: Path) -> None:
    archive = Archive(log, retention=Retention(kept_s=10 * HOUR_S))
    for hour in range(4):
        archive.take([put(log, HOUR + hour * HOUR_S)])
    archive.merge_next(LATER, is_stopping=never)
    archive.expire(HOUR + 12.5 * HOUR_S)  # the first ended 11.5 hours ago, the second 10.5
    assert jobs_of(files(log)).keys() == {f"{HOUR + hour * HOUR_S:.0f}-1-{n}" for hour in (2, 3) for n in (0, 1)}


def test_past_its_bound_the_oldest_hours_go_but_never_the_last_three(log: Path, caplog) -> None:
    archive = Archive(log, retention=Retention(bytes_max=1))
    for hour in range(5):
        archive.take([put(log, HOUR + hour * HOUR_S)])
    with caplog.at_level("INFO"):
        archive.expire(HOUR + 5 * HOUR_S)
    left = [f"17637{58800 + hour * 3600}-000" for hour in (2, 3, 4)]
    assert sorted(path.name for path in (log / "archive").iterdir()) == left
    assert "archive deleted hour=2025-11-21T21:00Z" in caplog.text
    assert ARCHIVE_KEPT_MIN_S == 3 * HOUR_S


def test_the_archive_gives_way_while_the_disk_is_all_but_full(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, _ = filled(log, hours=2, each=1)
    monkeypatch.setattr(module, "ARCHIVE_FREE_BYTES_MIN", 1 << 60)
    archive.expire(HOUR + 100 * HOUR_S)
    assert files(log) == ()


def aside(log: Path, *hours: int) -> Path:
    """Three bytes that nothing can read, put aside in each of these hours after ``HOUR``."""
    folder = log / "damaged"
    folder.mkdir()
    for hour in hours:
        (folder / name(HOUR + hour * HOUR_S)).write_text("no!")
    return folder


def test_what_was_put_aside_goes_when_the_archive_of_its_time_does(log: Path) -> None:
    folder = aside(log, 0, 1, 2)
    Archive(log, retention=Retention(kept_s=10 * HOUR_S)).expire_damaged(HOUR + 11.5 * HOUR_S)
    assert [path.name for path in folder.iterdir()] == [name(HOUR + 2 * HOUR_S)]


def test_of_what_was_put_aside_the_oldest_goes_past_its_bound(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = aside(log, 0, 1, 2)
    monkeypatch.setattr(module, "ARCHIVE_DAMAGED_BYTES_MAX", 5)
    Archive(log).expire_damaged(HOUR + 3 * HOUR_S)
    assert [path.name for path in folder.iterdir()] == [name(HOUR + 2 * HOUR_S)]


def test_what_was_put_aside_gives_way_while_the_disk_is_all_but_full(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = aside(log, 0)
    monkeypatch.setattr(module, "ARCHIVE_FREE_BYTES_MIN", 1 << 60)
    Archive(log).expire_damaged(HOUR + HOUR_S)
    assert list(folder.iterdir()) == []


# --- reading ---------------------------------------------------------------------------------------------------------


def test_only_files_that_may_hold_an_event_of_the_time_are_listed(log: Path) -> None:
    archive, _ = filled(log, hours=3, each=2)
    put(log, HOUR + 3 * HOUR_S)
    archive.merge_next(LATER, is_stopping=never)

    def listed(from_s: float, until_s: float) -> list[str]:
        return [path.name for path in files(log, from_s=from_s, until_s=until_s)]

    second = [name(HOUR + HOUR_S), name(HOUR + HOUR_S + 60)]
    assert listed(HOUR + HOUR_S + 2, HOUR + HOUR_S + 3) == [second[1]]
    # An event may be written ten minutes and more after it happened, and is never written before.
    assert listed(HOUR + HOUR_S - 600, HOUR + HOUR_S - 599) == ["1763758800-000.parquet", *second]
    assert listed(HOUR + 3 * HOUR_S + 0.5, HOUR + 9 * HOUR_S) == [name(HOUR + 3 * HOUR_S)]
    assert listed(HOUR - 7_200, HOUR - 3_600) == []


def test_a_log_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert files(tmp_path / "none") == ()


def test_what_is_held_stays_while_it_is_merged_and_deleted(log: Path) -> None:
    archive, jobs = filled(log)
    put(log, HOUR + 500)
    jobs += jobs_of((log / "hot" / name(HOUR + 500),))
    with held(log) as paths:
        archive.take([name(HOUR + 500)])
        archive.merge_next(LATER, is_stopping=never)
        archive.expire(HOUR + 1e9)
        drop_left_holds(log)
        assert files(log) == ()
        assert jobs_of(paths) == jobs
    assert list((log / "held").iterdir()) == []


def test_a_killed_holders_links_are_dropped(log: Path) -> None:
    filled(log)
    left = log / "held" / "of-the-dead"
    left.mkdir(parents=True)
    os.link(files(log)[0], left / "x.parquet")
    drop_left_holds(log)
    assert list((log / "held").iterdir()) == []


def test_what_moves_while_it_is_listed_is_held_all_the_same(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, jobs = filled(log)
    put(log, HOUR + 500)
    jobs += jobs_of((log / "hot" / name(HOUR + 500),))
    real, moved = os.link, []

    def link(source: Path, target: Path) -> None:
        if not moved:
            moved.append(archive.take([name(HOUR + 500)]))
            archive.merge_next(LATER, is_stopping=never)
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with held(log) as paths:
        assert jobs_of(paths) == jobs
    assert moved == [1]


def test_an_archive_has_one_keeper(log: Path) -> None:
    again = pytest.raises(Misconfigured, match="another pipeline reads the event log")
    with Archive(log).kept(), again, Archive(log).kept():
        pass
    with Archive(log).kept():
        pass


def test_a_merged_file_and_its_name_are_on_the_disk_before_what_it_is_made_of_goes(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power leaves neither."""
    archive, _ = filled(log)
    disk = Disk(monkeypatch)
    removed: list[list[str]] = []
    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", lambda *given, **more: (removed.append(disk.take()), rmtree(*given, **more)))
    assert archive.merge_next(LATER, is_stopping=never)
    (before,) = removed
    draft, name, folder = before
    assert draft.endswith(".draft")
    assert draft.startswith("flush .")
    assert name.startswith("name ")
    assert name.endswith(".parquet")
    assert folder == "flush archive"
