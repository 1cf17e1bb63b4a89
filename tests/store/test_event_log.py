"""The event log on a real disk: names, durability's order, locks and leftovers."""

import fcntl
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from headway.errors import Overloaded, Unavailable
from headway.scaling.model.event_row import EventRow
from headway.store.events.event_files import SCHEMA
from headway.store.events.event_log import EventLog
from support.flushed import Disk

MARKER = uuid4()


def row(sequence: int = 1, **values: object) -> EventRow:
    given = {"queue": "redis/mail", "kind": "enqueued", "at_s": 99.5, "received_at_s": 100.0, "job_id": "a"}
    return EventRow(**{**given, "producer": "app", "sequence": sequence, **values})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    EventLog(tmp_path / "events").create(MARKER)
    return tmp_path / "events"


def opened(root: Path, **options: int) -> EventLog:
    log = EventLog(root, **options)
    log.open(MARKER)
    return log


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".parquet")


def test_a_log_that_is_only_named_touches_no_disk(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events")
    assert log.read_marker() is None
    assert log.is_unused
    assert not (tmp_path / "events").exists()


def test_a_published_file_has_exactly_the_columns_of_the_log(root: Path) -> None:
    log = opened(root)
    name = log.new_name(100.0)
    says = {"reserved_jobs": 2, "oldest_age_max_s": 0.5, "reports_arrivals": False, "reports_ends": True}
    says |= {"waiting_min_jobs": 1, "in_flight_min_jobs": 4}
    sample = row(2, kind="sample", job_id=None, waiting_jobs=3, oldest_age_s=0.0, **says)
    of_event = [1, "redis/mail", "enqueued", "a", None, 99.5, 100.0, None, 98.0, None, None, None, None, 3]
    of_sample = [1, "redis/mail", "sample", None, None, 99.5, 100.0, None, None, 3, None, None, 0.0, None]
    size_bytes = log.write_tmp(name, [row(started_at_s=98.0, attempt=3), sample])
    assert names(root / "hot") == []
    assert (root / "tmp" / name).stat().st_size == size_bytes
    log.publish(name)
    assert (names(root / "hot"), names(root / "tmp")) == ([name], [])
    table = pq.read_table(root / "hot" / name)
    assert table.schema.equals(SCHEMA)
    assert [list(each.values()) for each in table.to_pylist()] == [
        [*of_event, None, None, None, None, None, None, None, "app", 1],
        [*of_sample, 2, 0.5, False, None, True, 1, 4, "app", 2],
    ]
    assert table.column_names == [
        "schema_version",
        "queue",
        "kind",
        "job_id",
        "job_class",
        "at_s",
        "received_at_s",
        "enqueued_at_s",
        "started_at_s",
        "waiting_jobs",
        "in_flight_jobs",
        "delayed_jobs",
        "oldest_age_s",
        "attempt",
        "reserved_jobs",
        "oldest_age_max_s",
        "reports_arrivals",
        "reports_starts",
        "reports_ends",
        "waiting_min_jobs",
        "in_flight_min_jobs",
        "producer",
        "sequence",
    ]  # fmt: skip


def test_names_sort_by_time_and_hold_nothing_that_spark_refuses(root: Path) -> None:
    log, other = opened(root), opened(root)
    made = [log.new_name(9.0), other.new_name(10.0), log.new_name(1_700_000_000.123), other.new_name(1_700_000_001.0)]
    assert all(earlier < later for earlier, later in pairwise(made))
    assert len({log.new_name(5.0) for _ in range(3)}) == 3
    assert not {":", "_", "."} & set("".join(name.removesuffix(".parquet") for name in made))


def test_only_its_owner_can_read_it(root: Path) -> None:
    log = opened(root)
    log.write_tmp("1-a-1.parquet", [row()])
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in root.iterdir()} == {
        "hot": "0o700", "archive": "0o700", "tmp": "0o700", "marker": "0o600",
    }  # fmt: skip
    assert (root / "tmp" / "1-a-1.parquet").stat().st_mode & 0o077 == 0


def test_another_log_or_none_is_not_opened(root: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no marker, this database's log is marked"):
        EventLog(tmp_path / "unmounted").open(MARKER)
    assert not (tmp_path / "unmounted").exists()
    with pytest.raises(Unavailable, match=f"is marked {MARKER}, this database's log is marked"):
        EventLog(root).open(uuid4())
    (root / "marker").write_text("nonsense")
    with pytest.raises(Unavailable, match=r"marker at .* cannot be read"):
        EventLog(root).open(MARKER)


def test_nothing_is_written_once_the_folder_is_no_longer_the_log(root: Path) -> None:
    log = opened(root)
    (root / "marker").unlink()  # as if it had been unmounted
    with pytest.raises(Unavailable, match="telemetry is refused until then"):
        log.write_tmp(log.new_name(1.0), [row()])
    assert names(root / "tmp") == []


def test_a_log_is_made_once(root: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be made"):
        EventLog(root).create(uuid4())
    assert EventLog(root).read_marker() == MARKER


def test_a_disk_that_is_all_but_full_takes_nothing_more(root: Path) -> None:
    log = opened(root, free_bytes_min=1 << 60)
    with pytest.raises(Overloaded, match="make room there"):
        log.write_tmp(log.new_name(1.0), [row()])
    assert names(root / "tmp") == []


def test_publishing_and_discarding_twice_changes_nothing(root: Path) -> None:
    log = opened(root)
    one, two = log.new_name(1.0), log.new_name(2.0)
    for name in (one, two):
        log.write_tmp(name, [row()])
    for _ in range(2):
        log.publish(one)
        log.discard(two)
    assert (names(root / "hot"), names(root / "tmp")) == ([one], [])


def test_a_live_ingests_files_are_nobodys_leftovers(root: Path) -> None:
    log, other = opened(root), opened(root)
    name = log.new_name(1.0)
    log.write_tmp(name, [row()])
    assert other.leftovers() == []
    assert log.leftovers() == []
    log.close()
    assert other.leftovers() == [name]
    assert opened(root).leftovers() == [name]


def test_a_killed_ingests_files_are_leftovers_and_its_lock_file_goes(root: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from uuid import UUID;"
        "from headway.scaling.model.event_row import EventRow;"
        "from headway.store.events.event_log import EventLog;"
        "log = EventLog(Path(sys.argv[1])); log.open(UUID(sys.argv[2]));"
        "row = EventRow(queue='q', kind='enqueued', at_s=1.0, received_at_s=1.0, producer='p', sequence=1);"
        "log.write_tmp(log.new_name(5.0), [row]);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script, root, str(MARKER)], check=False).returncode == -9
    assert len(list((root / "tmp").glob("*.lock"))) == 1
    log = opened(root)
    assert log.leftovers() == names(root / "tmp")
    assert len(log.leftovers()) == 1  # also when asked again, the lock file gone
    assert [path.stem for path in (root / "tmp").glob("*.lock")] == [log.ingest]


def test_recovery_publishes_what_is_recorded_and_deletes_the_rest(root: Path) -> None:
    dead = opened(root)
    recorded, unrecorded, moved = (dead.new_name(float(second)) for second in (1, 2, 3))
    for name in (recorded, unrecorded, moved):
        dead.write_tmp(name, [row()])
    dead.publish(moved)
    dead.close()
    log = opened(root)
    left = log.leftovers()
    assert left == [recorded, unrecorded]
    for _ in range(2):  # a second one, or another ingest's at the same time, finds nothing to change
        assert log.recover([*left, moved], {recorded, moved}) == ([recorded, moved], [unrecorded])
        assert (names(root / "hot"), names(root / "tmp")) == ([recorded, moved], [])


def test_what_lay_for_long_is_new_to_the_stream_once_it_is_recovered(root: Path) -> None:
    """The stream passes over files that appear a week old."""
    log = opened(root)
    name = log.new_name(100.0)
    log.write_tmp(name, [row()])
    log.close()
    os.utime(root / "tmp" / name, (0.0, 0.0))
    opened(root).recover([name], {name})
    assert (root / "hot" / name).stat().st_mtime > (root / "marker").stat().st_mtime - 60.0


def test_a_lock_file_that_a_recovery_took_away_is_made_anew(root: Path, monkeypatch) -> None:
    """The gap between making and locking the file: whoever loses it there must not go on unprotected."""
    log, other, real = EventLog(root), opened(root), fcntl.flock
    raced: list[bool] = []

    def raced_flock(descriptor: int, operation: int) -> None:
        if not raced:
            raced.append(True)
            (root / "tmp" / f"{log.ingest}.lock").unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", raced_flock)
    log.open(MARKER)
    monkeypatch.undo()
    log.write_tmp(log.new_name(1.0), [row()])
    assert other.leftovers() == []


def test_what_is_answered_is_on_the_disk_by_then(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and its name before its batches are claimed, and the name in the stream's sight before the answer."""
    log = opened(root)
    name = log.new_name(100.0)
    disk = Disk(monkeypatch)
    log.write_tmp(name, [row()])
    assert disk.take() == [f"flush {name}", "flush tmp"]
    log.publish(name)
    assert disk.take() == [f"name {name}", "flush hot"]


def test_a_logs_name_is_on_the_disk_before_the_database_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    EventLog(tmp_path / "events").create(MARKER)
    assert disk.take() == ["flush marker", "flush events"]
