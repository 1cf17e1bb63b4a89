"""Backups of a real embedded Postgres and its event log, and every way in which a restore must refuse."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from headway.__main__ import main
from headway.cli.local import backup_file, process_orphans, up
from headway.cli.local.backup_file import About
from headway.cli.local.data_dir import DataDir
from headway.errors import Misconfigured
from headway.scaling.model.event_row import EventRow
from headway.store import migrate
from headway.store.embedded import Server, dump, ensure_postgres
from headway.store.engine import create_engine, transaction
from headway.store.events.batches import BatchKey, claim_batches, record_file
from headway.store.events.event_log import EventLog
from headway.store.events.recovery import attach
from headway_spark.event_log.archive import Archive
from headway_spark.event_log.log_files import files
from headway_spark.stream.checkpoint import rebuilding
from support.flushed import Disk

pytestmark = [pytest.mark.e2e, pytest.mark.postgres]

HOUR_AGO_S = 3_600.0


class Installation:
    """What `headway up` keeps in a data folder, without the processes that it starts."""

    def __init__(self, folder: Path) -> None:
        self.layout = DataDir(folder / ".headway")
        self.layout.create()
        self.server: Server | None = None
        self._log: EventLog | None = None
        self._sequence = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        self.server = ensure_postgres(self.layout.postgres, is_durable=False)
        migrate.upgrade(self.server.url)
        try:
            yield
        finally:
            if self._log is not None:
                self._log.close()
                self._log = None
            assert self.server.wait_stopped(60)

    def ingest(self, job_id: str, *, at_s: float | None = None, dies: str = "") -> str:
        """One batch, as ingest takes it; an ingest may die before it records the file, or before it shows it."""
        return asyncio.run(self._ingest(job_id, at_s or time.time(), dies))

    async def _ingest(self, job_id: str, at_s: float, dies: str) -> str:
        assert self.server is not None
        engine = create_engine(self.server.url)
        self._sequence += 1
        if self._log is None:
            self._log = EventLog(self.layout.events, free_bytes_min=0)
            await attach(engine, self._log)
        name = self._log.new_name(at_s)
        row = EventRow(
            queue="redis/mail",
            kind="enqueued",
            at_s=at_s,
            received_at_s=at_s,
            producer="app",
            sequence=self._sequence,
            job_id=job_id,
        )
        size_bytes = self._log.write_tmp(name, [row])
        if dies != "unrecorded":
            async with transaction(engine) as connection:
                await claim_batches(connection, {BatchKey("app", self._sequence): name})
                await record_file(connection, file=name, ingest=self._log.ingest, rows=1, size_bytes=size_bytes)
        if not dies:
            self._log.publish(name)
        await engine.dispose()
        return name

    def jobs(self) -> list[str]:
        """Whose events count, as the pipeline reads them."""
        return sorted(job for path in files(self.layout.events) for job in pq.read_table(path)["job_id"].to_pylist())

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        assert self.server is not None
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def add_profile(self, pool: str) -> None:
        self.sql(f"insert into profiles (pool, body) values ('{pool}', '{{}}')")

    def pools(self) -> list[str]:
        return [pool for (pool,) in self.sql("select pool from profiles order by pool")]

    def run(self, *words: str) -> int:
        return main([*words, "--data-dir", str(self.layout.root)])


@pytest.fixture(scope="module")
def folder(data_folder: Path) -> Iterator[Path]:
    made = data_folder / "backups"
    made.mkdir(mode=0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def here(folder: Path) -> Installation:
    """An installation, and ``kept.tar``: its backup while it ran, after which more has happened."""
    here = Installation(folder / "here")
    with here.running():
        here.add_profile("before")
        here.ingest("merged", at_s=time.time() - 4 * HOUR_AGO_S)
        here.ingest("read", at_s=time.time() - HOUR_AGO_S)
        archive = Archive(here.layout.events)
        archive.take([path.name for path in files(here.layout.events)])
        assert archive.merge_next(time.time(), is_stopping=lambda: False)
        here.ingest("unread")
        here.ingest("recorded", dies="unpublished")
        here.ingest("unrecorded", dies="unrecorded")
        identity = here.layout.state("agent") / "identity.json"
        identity.parent.mkdir(mode=0o700)
        identity.write_text('{"agent_id": "a"}')
        assert here.run("backup", str(folder / "kept.tar")) == 0
        here.add_profile("since")
        here.ingest("since")
    return here


@pytest.fixture(scope="module")
def kept(here: Installation, folder: Path) -> Path:
    """The backup. Who wants it asks for it, and not for the folder: each process of a run makes its own."""
    return folder / "kept.tar"


def test_a_restored_backup_is_the_moment_it_was_made_at_on_another_machine(
    here: Installation, folder: Path, kept: Path
) -> None:
    """The database, the events whose batches it has claimed and no others, and who the host is."""
    other = Installation(folder / "other")
    assert other.run("restore", str(kept)) == 0
    with other.running():
        assert other.pools() == ["before"]
        assert other.jobs() == ["merged", "read", "recorded", "unread"]
        ((claimed,),) = other.sql("select count(*) from event_batches")
        assert claimed == 4
        other.ingest("goes on")  # the database knows this log by its marker
        assert "goes on" in other.jobs()
    assert (other.layout.state("agent") / "identity.json").read_text() == '{"agent_id": "a"}'
    assert rebuilding(other.layout.checkpoint).exists()
    assert [path.name for path in other.layout.root.glob("restore.new-*")] == []
    assert kept.stat().st_mode & 0o077 == 0


def test_what_was_there_before_is_moved_aside_and_the_agent_keeps_its_own(folder: Path, kept: Path, capfd: Any) -> None:
    there = Installation(folder / "there")
    identity = there.layout.state("agent") / "identity.json"
    identity.parent.mkdir(mode=0o700)
    identity.write_text('{"agent_id": "its own"}')
    there.layout.checkpoint.mkdir()
    with there.running():
        there.add_profile("its own")
        there.ingest("its own")
    backup = str(kept)
    assert there.run("restore", backup) == 2
    assert "holds an installation already: --replace moves" in capfd.readouterr().err
    assert there.run("restore", backup, "--replace") == 0
    (aside,) = there.layout.root.glob("before-*")
    assert f"what was there is in {aside}" in capfd.readouterr().out
    assert sorted(path.name for path in aside.iterdir()) == ["checkpoint", "events", "postgres"]
    assert not there.layout.checkpoint.exists()
    assert identity.read_text() == '{"agent_id": "its own"}'
    with there.running():
        assert there.pools() == ["before"]


def test_a_backup_of_one_that_is_stopped_is_the_same_and_leaves_it_stopped(here: Installation, folder: Path) -> None:
    assert here.run("backup", str(folder / "later.tar")) == 0
    later = Installation(folder / "later")
    assert later.run("restore", str(folder / "later.tar")) == 0
    with later.running():
        assert later.pools() == ["before", "since"]
        assert later.jobs() == ["merged", "read", "recorded", "since", "unread"]
    with here.running():  # which needs that nobody else is stopping it
        assert here.pools() == ["before", "since"]


def test_a_backup_is_of_one_moment_however_much_comes_meanwhile(folder: Path) -> None:
    """Events and claims come without end while it is made: the copy has the one exactly where it has the other."""
    busy, copy = Installation(folder / "busy"), Installation(folder / "copy")
    with busy.running():
        for number in range(5):
            busy.ingest(f"job-{number:04d}")
        backup = subprocess.Popen(
            [sys.executable, "-m", "headway", "backup", str(folder / "busy.tar"), "--data-dir", str(busy.layout.root)],
            stdout=subprocess.DEVNULL,
        )
        number = 5
        while backup.poll() is None:
            busy.ingest(f"job-{number:04d}")
            number += 1
        assert backup.returncode == 0
    assert copy.run("restore", str(folder / "busy.tar")) == 0
    with copy.running():
        claimed = [sequence for (sequence,) in copy.sql("select sequence from event_batches order by sequence")]
    assert copy.jobs() == [f"job-{sequence - 1:04d}" for sequence in claimed]
    assert 5 <= len(claimed) <= number


def test_what_comes_between_the_list_of_the_files_and_the_dump_is_in_neither(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dump is of the same moment: with the claim and without the file, the event would be lost for good."""
    busy, copy = Installation(folder / "between"), Installation(folder / "between-copy")
    save = dump.save

    def saved_late(*given: Any, **more: Any) -> None:
        busy.ingest("between")
        save(*given, **more)

    with busy.running():
        busy.ingest("before")
        monkeypatch.setattr(dump, "save", saved_late)
        assert busy.run("backup", str(folder / "between.tar")) == 0
    assert copy.run("restore", str(folder / "between.tar")) == 0
    with copy.running():
        assert copy.sql("select count(*) from event_batches") == [(1,)]
    assert copy.jobs() == ["before"]


def test_a_backup_never_takes_the_place_of_a_file(here: Installation, folder: Path, kept: Path, capfd: Any) -> None:
    before = kept.read_bytes()
    assert here.run("backup", str(kept)) == 2
    assert "is there already: name a new file" in capfd.readouterr().err
    assert kept.read_bytes() == before
    assert here.run("backup", str(folder / "no" / "such.tar")) == 2
    assert "cannot be written: No such file or directory" in capfd.readouterr().err


def test_a_folder_without_an_embedded_postgres_has_nothing_to_back_up(tmp_path: Path, capfd: Any) -> None:
    assert main(["backup", str(tmp_path / "a.tar"), "--data-dir", str(tmp_path / "none")]) == 2
    assert "holds no embedded Postgres: name the data folder" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


# --- what is no backup for this place ---------------------------------------------------------------------------------


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def with_members(path: Path, held: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, body in held.items():
            header = tarfile.TarInfo(name)
            header.size = len(body)
            tar.addfile(header, BytesIO(body))


def about(**changes: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        held = members(path)
        held["about.json"] = json.dumps({**json.loads(held["about.json"]), **changes}).encode()
        with_members(path, held)

    return change


def cut_to(part: float) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])


def without_end(path: Path) -> None:
    held = members(path)
    del held["contents.json"]
    with_members(path, held)


def flipped(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[body.index(b"PGDMP") + 100] ^= 1
    path.write_bytes(body)


def holding(name: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        held = members(path)
        with_members(path, {**dict(list(held.items())[:1]), name: b"x", **held})

    return change


def sparse(path: Path) -> None:
    """A file of 8 GB, all of it holes, in a few bytes: as GNU tar writes such."""
    held = members(path)
    first, rest = dict(list(held.items())[:1]), dict(list(held.items())[1:])
    header = bytearray(tarfile.TarInfo("database.dump").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    header[483:495] = b"%011o\0" % (8 * 10**9 // 2)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with_members(path, first)
    begin = path.read_bytes().rstrip(b"\0")
    begin += b"\0" * (-len(begin) % 512)
    with_members(path, rest)
    path.write_bytes(begin + bytes(header) + path.read_bytes())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (sparse, "holds 'database.dump', which no backup does"),
        (about(postgres="x"), "is damaged: about.json is not as it was written"),
        (about(postgres=None), "is damaged: about.json is not as it was written"),
        (about(revision=[]), "is damaged: about.json is not as it was written"),
        (about(taken_at_s="x"), "is damaged: about.json is not as it was written"),
        (about(taken_at_s=1e300), "is damaged: about.json is not as it was written"),
        (about(headway="1\x1b[2J"), "is damaged: about.json is not as it was written"),
        (about(format=2, headway="9.1.0"), "is of format 2, and this Headway reads 1: restore it with Headway 9.1.0"),
        (about(revision="9999"), "is newer than this one"),
        (about(revision="0042"), "(tables 0042), and this Headway upgrades from 0043 on: restore it with an earlier"),
        (about(postgres="99"), "Postgres 99), which is newer than this one (Postgres 18)"),
        (cut_to(0.0), "is no backup that `headway backup` wrote"),
        (cut_to(0.001), "is cut short or damaged"),
        (cut_to(0.5), "is cut short"),
        (cut_to(0.95), "is cut short"),
        (without_end, "is cut short: its end is missing"),
        (flipped, "is damaged: its contents are not as they were written"),
        (lambda path: path.write_text("select 1;\n" * 100), "is no backup that `headway backup` wrote"),
        (holding("../../etc/passwd"), "holds '../../etc/passwd', which no backup does"),
        (holding("events/hot/../marker"), "which no backup does"),
    ],
)
def test_what_does_not_fit_or_is_not_whole_changes_nothing(
    here: Installation, kept: Path, tmp_path: Path, capfd: Any, change: Callable[[Path], None], said: str
) -> None:
    shutil.copy(kept, tmp_path / "changed.tar")
    change(tmp_path / "changed.tar")
    root = tmp_path / "data"
    assert main(["restore", str(tmp_path / "changed.tar"), "--data-dir", str(root)]) == 2
    printed = capfd.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
    assert sorted(path.name for path in root.iterdir()) == ["logs", "parent.lock"]


@pytest.mark.parametrize("name", ["none.tar", "."])
def test_a_backup_that_is_no_file_is_refused(tmp_path: Path, capfd: Any, name: str) -> None:
    assert main(["restore", str(tmp_path / name), "--data-dir", str(tmp_path / "data")]) == 2
    assert "is not there: name a file that `headway backup` wrote" in capfd.readouterr().err
    assert not (tmp_path / "data").exists()


def test_nothing_is_restored_under_an_installation_that_runs(here: Installation, kept: Path, capfd: Any) -> None:
    with process_orphans.only_parent(here.layout):
        assert here.run("restore", str(kept), "--replace") == 2
    assert "uses the data folder" in capfd.readouterr().err
    assert (here.layout.postgres / "pgdata").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_restores_nothing_that_its_user_could_not_use_then(here: Installation, tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "data").mkdir()
    os.chown(tmp_path / "data", 65534, 65534)
    (tmp_path / "a.tar").touch()
    assert main(["restore", str(tmp_path / "a.tar"), "--data-dir", str(tmp_path / "data")]) == 2
    assert "belongs to uid 65534, and `headway up` runs as that: restore as that user" in capfd.readouterr().err


def test_nothing_is_moved_away_from_under_a_postgres_that_runs(here: Installation, kept: Path, capfd: Any) -> None:
    """As of a backup that is being made, or of somebody who reads it."""
    with here.running():
        assert here.run("restore", str(kept), "--replace") == 2
        assert "is in use" in capfd.readouterr().err
        assert here.pools() == ["before", "since"]


class Killed(BaseException):
    """Nothing catches it."""


@pytest.mark.parametrize("moves", range(5))
def test_a_restore_that_is_killed_midway_is_noticed_and_done_again(
    folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """`up` would begin with an empty database where the old one is gone and the new one not there yet."""
    there = Installation(folder / f"killed-{moves}")
    there.layout.postgres.mkdir()
    there.layout.events.mkdir()
    rename, left = Path.rename, moves

    def killed(path: Path, to: Path) -> Path:
        nonlocal left
        if there.layout.restoring.exists():
            left -= 1
            if left < 0:
                raise Killed
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(Killed):
        there.run("restore", str(kept), "--replace")
    monkeypatch.undo()
    with pytest.raises(Misconfigured, match="was broken off: run it again with --replace"):
        up._require_whole(there.layout)
    assert there.run("restore", str(kept), "--replace") == 0
    up._require_whole(there.layout)
    with there.running():
        assert there.pools() == ["before"]
        assert there.jobs() == ["merged", "read", "recorded", "unread"]


def test_what_a_killed_restore_has_unpacked_is_cleared_away(folder: Path, kept: Path) -> None:
    there = Installation(folder / "unpacked")
    half = there.layout.root / "restore.new-abc"
    server = ensure_postgres(half / "postgres", is_durable=False)
    server.release()  # as by a kill; it is still stopping
    assert there.run("restore", str(kept)) == 0
    assert not half.exists()


def test_a_backup_has_its_name_once_it_is_whole_and_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = About(headway="1", revision="1", postgres="18", taken_at_s=0.0)
    disk = Disk(monkeypatch)
    with backup_file.written(tmp_path / "a.tar", about):
        pass
    assert disk.take() == [f"flush .a.tar.{os.getpid()}.part", "name a.tar"]
    with pytest.raises(Killed), backup_file.written(tmp_path / "b.tar", about):
        raise Killed
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]
