"""The archive: files that the stream has read, by the hour, merged when the hour is over, deleted when they are old.

A file is in hot/ or in a part of the archive, moved by one rename. A part's merged file appears by one rename and voids
the part's folder, which is deleted afterwards. So whoever dies wherever, each event is in exactly one file that counts;
``log_files`` says which do. One archive has one keeper: the pipeline, which holds its lock.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headway.errors import Misconfigured
from headway.local.files import sync_folder
from headway.local.locks import only_process
from headway_spark.event_log.log_files import HOUR_S, folders, parquets, part_hour_s, written_s

ARCHIVE_MERGE_AFTER_S = 3_600.0  # a rebuild takes what is still open from files as they were written
ARCHIVE_PART_FILES_MAX = 20_000  # what one folder holds, and one merge takes
ARCHIVE_OPEN_HOURS_MAX = 100  # remembered; files come in the order of their hours, but for a few
ARCHIVE_GROUP_ROWS = 100_000  # rows in memory while merging: some 20 MB
ARCHIVE_KEPT_MIN_S = 3 * 3_600.0  # the 5 s rows of two hours can always be rebuilt
ARCHIVE_FREE_BYTES_MIN = 1 << 30  # the archive gives way long before ingest must refuse
ARCHIVE_DAMAGED_BYTES_MAX = 1 << 30  # what nothing can read is kept for people to inspect, not for ever

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of the archive stays. The last three hours always do."""

    kept_s: float = 14 * 24 * 3_600.0
    bytes_max: int = 20 << 30


class Archive:
    """The archive of the log in ``log_dir``. Does nothing by itself; everything may wait for the disk."""

    def __init__(self, log_dir: Path, *, retention: Retention = Retention()) -> None:
        self._hot, self._folder = log_dir / "hot", log_dir / "archive"
        self._log_dir = log_dir
        self._retention = retention
        self._open: dict[int, tuple[Path, int]] = {}
        """Hour -> the folder that its files go to, and how many it has."""
        self._unmergeable: set[str] = set()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Hold the archive against a second keeper, which would take files from under the first one's stream.

        Raises:
            Misconfigured: there is one, or the folder cannot be written.
        """
        with only_process(
            self._folder / ".lock",
            held_by=lambda _: Misconfigured(f"another pipeline reads the event log at {self._log_dir}: stop it"),
            unusable=lambda why: Misconfigured(f"the event log at {self._log_dir} cannot be written: {why}"),
        ):
            yield

    def recover(self) -> None:
        """Finish what a killed keeper left, and take in files where earlier versions put them."""
        for folder in (self._hot, self._folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for draft in self._folder.glob(".*.draft"):
            draft.unlink(missing_ok=True)
        for part in folders(self._folder):
            if self._merged(part).exists():
                shutil.rmtree(part, ignore_errors=True)
            elif part_hour_s(part.name) is None:
                self._adopt(part)

    def take(self, names: Iterable[str]) -> int:
        """Move those of ``names`` that are in hot/ out of the stream's sight. Returns how many moved."""
        moved = 0
        for name in names:
            path = self._hot / name
            with suppress(FileNotFoundError):
                path.rename(self._part(written_s(path)) / name)
                moved += 1
        return moved

    def give_back(self, names: Iterable[str]) -> list[str]:
        """Move those of ``names`` that were taken and not merged back into hot/. Returns those."""
        wanted, found = set(names), []
        for part in folders(self._folder):
            for path in parquets(part):
                if path.name in wanted:
                    path.rename(self._hot / path.name)
                    found.append(path.name)
        self._open.clear()
        return found

    def merge_next(self, now_s: float, *, is_stopping: Callable[[], bool]) -> bool:
        """Merge the oldest part whose hour has been over for an hour. Returns whether there was one."""
        for part in sorted(folders(self._folder)):
            hour_s = part_hour_s(part.name)
            if hour_s is None or part.name in self._unmergeable or self._merged(part).exists():
                continue
            if hour_s + HOUR_S + ARCHIVE_MERGE_AFTER_S > now_s:
                return False
            self._merge(part, is_stopping=is_stopping)
            return True
        return False

    def expire(self, now_s: float) -> None:
        """Delete whole hours: past their time, past the bound of size, or while the disk is all but full."""
        hours = self._hours()
        total_bytes = sum(size_bytes for _, size_bytes in hours.values())
        free_bytes = shutil.disk_usage(self._folder).free
        for hour_s, (paths, size_bytes) in sorted(hours.items()):
            age_s = now_s - hour_s - HOUR_S
            if age_s < ARCHIVE_KEPT_MIN_S:
                break
            too_many_bytes = total_bytes - self._retention.bytes_max
            if (why := self._why_expired(age_s=age_s, too_many_bytes=too_many_bytes, free_bytes=free_bytes)) is None:
                break
            for path in paths:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
            self._open.pop(int(hour_s), None)
            total_bytes, free_bytes = total_bytes - size_bytes, free_bytes + size_bytes
            hour = time.strftime("%Y-%m-%dT%H:00Z", time.gmtime(hour_s))
            log.info("archive deleted hour=%s bytes=%d because=%s", hour, size_bytes, why)

    def expire_damaged(self, now_s: float) -> None:
        """Delete what was quarantined, the oldest first: past the archive's time, its bound, or for want of disk."""
        aside = self._log_dir / "damaged"
        found = sorted(filter(Path.is_file, aside.iterdir()), key=written_s) if aside.is_dir() else []
        total_bytes = sum(map(_bytes, found))
        for path in found:
            age_s, free_bytes = now_s - written_s(path), shutil.disk_usage(aside).free
            too_many_bytes = total_bytes - ARCHIVE_DAMAGED_BYTES_MAX
            if (why := self._why_expired(age_s=age_s, too_many_bytes=too_many_bytes, free_bytes=free_bytes)) is None:
                break
            total_bytes -= _bytes(path)
            path.unlink(missing_ok=True)
            log.info("deleted a quarantined damaged file=%s because=%s", path.name, why)

    def _why_expired(self, *, age_s: float, too_many_bytes: int, free_bytes: int) -> str | None:
        if age_s > self._retention.kept_s:
            return "age"
        if too_many_bytes > 0:
            return "size"
        return "full_disk" if free_bytes < ARCHIVE_FREE_BYTES_MIN else None

    def _hours(self) -> dict[float, tuple[list[Path], int]]:
        """Hour -> what lies in the archive of it, and how many bytes that is."""
        hours: dict[float, tuple[list[Path], int]] = {}
        for path in self._folder.iterdir():
            hour_s = part_hour_s(path.name.removesuffix(".parquet"))
            if hour_s is not None:
                paths, size_bytes = hours.get(hour_s, ([], 0))
                hours[hour_s] = ([*paths, path], size_bytes + _bytes(path))
        return hours

    def _part(self, at_s: float) -> Path:
        """The folder for a file written at ``at_s``, made if need be: one that is not merged and not full."""
        hour = int(at_s // HOUR_S) * HOUR_S
        part, count = self._open.get(hour, (None, 0))
        if part is None or count >= ARCHIVE_PART_FILES_MAX or self._merged(part).exists():
            part, count = self._free_part(hour)
        if len(self._open) > ARCHIVE_OPEN_HOURS_MAX:
            self._open.clear()
        self._open[hour] = part, count + 1
        return part

    def _free_part(self, hour: int) -> tuple[Path, int]:
        for number in range(1_000):
            part = self._folder / f"{hour:010d}-{number:03d}"
            if self._merged(part).exists():
                continue
            part.mkdir(exist_ok=True, mode=0o700)
            count = len(parquets(part))
            if count < ARCHIVE_PART_FILES_MAX:
                return part, count
        raise OSError(f"the archive at {self._folder} has a thousand full parts of one hour, {hour}")

    def _merged(self, part: Path) -> Path:
        return part.with_name(f"{part.name}.parquet")

    def _adopt(self, folder: Path) -> None:
        """Take in what Spark's own archiving put below the log's own path."""
        for path in sorted(folder.rglob("*.parquet")):
            path.rename(self._part(written_s(path)) / path.name)
        shutil.rmtree(folder, ignore_errors=True)

    def _merge(self, part: Path, *, is_stopping: Callable[[], bool]) -> None:
        began_s = time.monotonic()
        draft = self._folder / f".{part.name}.draft"
        try:
            schemas = {path: schema for path in sorted(parquets(part)) if (schema := self._schema(path)) is not None}
            schema = _together(schemas.values())
            rows = _write(draft, schema, list(schemas), is_stopping=is_stopping) if schemas else 0
        except (pa.ArrowException, OSError) as error:
            # Nothing is lost: the files stay as they are, and are read as they are.
            self._unmergeable.add(part.name)
            log.warning("archive part left as it is part=%s: %s", part.name, str(error).splitlines()[0])
            draft.unlink(missing_ok=True)
            return
        if rows is None:
            draft.unlink(missing_ok=True)
            return
        if schemas:
            draft.rename(self._merged(part))
            sync_folder(self._folder)
        shutil.rmtree(part, ignore_errors=True)
        took_s = time.monotonic() - began_s
        log.info("archive merged part=%s files=%d rows=%d took=%.1fs", part.name, len(schemas), rows, took_s)

    def _schema(self, path: Path) -> pa.Schema | None:
        """The columns of a file; None of one that is no Parquet: the stream passed over it, and it is quarantined."""
        try:
            return pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            if getattr(error, "errno", None) is not None:
                raise  # the disk's fault, not the file's
            aside = self._log_dir / "damaged"
            aside.mkdir(exist_ok=True, mode=0o700)
            path.rename(aside / path.name)
            log.warning("quarantined, no readable file: %s: %s", aside / path.name, str(error).splitlines()[0])
            return None


def _together(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Every column of any of ``schemas``, each of which may lack it."""
    nullable = [pa.schema([field.with_nullable(nullable=True) for field in schema]) for schema in schemas]
    return pa.unify_schemas(nullable) if nullable else pa.schema([])


def _write(path: Path, schema: pa.Schema, sources: list[Path], *, is_stopping: Callable[[], bool]) -> int | None:
    """Write every row of ``sources`` to ``path``; return how many once the disk has them, None when stopped before."""
    waiting: list[pa.Table] = []
    rows = written = 0
    with path.open("wb") as file:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for number, source in enumerate(sources, start=1):
                if is_stopping():
                    return None
                with pq.ParquetFile(source) as part:  # a third of what `read_table` takes
                    waiting.append(_with_columns(part.read(use_threads=False), schema))
                rows += waiting[-1].num_rows
                if rows - written >= ARCHIVE_GROUP_ROWS or number == len(sources):
                    writer.write_table(pa.concat_tables(waiting))
                    written, waiting = rows, []
        file.flush()
        os.fsync(file.fileno())
    return rows


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.names == schema.names and table.schema.types == schema.types:
        return pa.Table.from_arrays(table.columns, schema=schema)
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _bytes(path: Path) -> int:
    with suppress(FileNotFoundError):
        if path.is_dir():
            return sum(each.stat().st_size for each in parquets(path))
        return path.stat().st_size
    return 0
