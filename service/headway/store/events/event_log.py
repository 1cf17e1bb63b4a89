"""The event log: immutable Parquet files in a folder, one row an event or a reading of a queue.

    <root>/marker       names the log; the database knows the same name
    <root>/tmp/         files being written, and one lock file for each ingest that lives
    <root>/hot/         what the stream reads; a file appears here whole, by a rename
    <root>/archive/     what compaction has moved out of the stream's sight

A file's name begins with when it was written, so that names sort by time, and carries the ingest that wrote it.
Everything here is synchronous and may wait for the disk: call it from a thread.
"""

import fcntl
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from headway.errors import Overloaded, Unavailable
from headway.local.files import sync_folder
from headway.local.locks import try_lock
from headway.scaling.model.event_row import EventRow

EVENT_LOG_FREE_BYTES_MIN = 256 * 1024 * 1024  # what Postgres on the same disk needs to go on working
SETTING = "HEADWAY_EVENT_LOG"


class Waiting(NamedTuple):
    """What is in ``hot/``: not read by the pipeline yet, or only just."""

    files: int = 0
    size_bytes: int = 0
    oldest_s: float | None = None
    """When the oldest was written, Unix seconds; None where none waits."""


class EventLog:
    """The log in one folder, as one ingest sees it. Touches the disk only when it is asked to."""

    def __init__(self, root: Path, *, free_bytes_min: int = EVENT_LOG_FREE_BYTES_MIN) -> None:
        self.root = root
        self.ingest = uuid4().hex[:12]
        """Names this ingest in its files, and is never used again."""
        self._hot, self._archive, self._tmp = root / "hot", root / "archive", root / "tmp"
        self._free_bytes_min = free_bytes_min
        self._marker: UUID | None = None
        self._lock_fd: int | None = None
        self._files = 0

    def read_marker(self) -> UUID | None:
        """The log's name. None: the folder has none, or there is no folder.

        Raises:
            Unavailable: what is there cannot be read.
        """
        try:
            return UUID((self.root / "marker").read_text().strip())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise Unavailable(f"the event log's marker at {self.root / 'marker'} cannot be read: {error}") from error

    @property
    def is_unused(self) -> bool:
        """Whether nothing was ever written into the folder."""
        return not any(entry for folder in (self._hot, self._archive, self._tmp) for entry in folder.rglob("*.parquet"))

    def create(self, marker: UUID) -> None:
        """Make the folder and give it its name.

        Raises:
            Unavailable: the disk refuses, or the folder has a name already.
        """
        try:
            for folder in (self.root, self._hot, self._archive, self._tmp):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(self.root / "marker", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{marker}\n")
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.root)
        except OSError as error:
            raise Unavailable(f"the event log cannot be made at {self.root}: {error}; {SETTING} names it") from error

    def open(self, marker: UUID) -> None:
        """Begin to write to the log named ``marker``. Until ``close``, no other ingest takes our files for leftovers.

        Raises:
            Unavailable: the folder is another log or none, or the disk refuses.
        """
        self._require(marker)
        with self._writing():
            for folder in (self._hot, self._archive, self._tmp):
                folder.mkdir(mode=0o700, exist_ok=True)
            if self._lock_fd is None:
                self._lock_fd = _hold(self._lock_path(self.ingest))
        self._marker = marker

    def close(self) -> None:
        """Stop writing. Files of ours still in ``tmp/`` become leftovers for the next recovery."""
        if self._lock_fd is not None:
            self._lock_path(self.ingest).unlink(missing_ok=True)
            os.close(self._lock_fd)
            self._lock_fd = None

    def new_name(self, now_s: float) -> str:
        """A file name no other file has or will have."""
        self._files += 1
        return f"{round(now_s * 1000):013d}-{self.ingest}-{self._files:06d}.parquet"

    def write_tmp(self, name: str, rows: Sequence[EventRow]) -> int:
        """Write ``rows`` to ``tmp/name`` and return its size in bytes once the disk has it.

        Raises:
            Overloaded: the disk is all but full.
            Unavailable: the log is not the one that was opened, or the disk refuses.
        """
        assert self._marker is not None, "written before it was opened"
        # Forty megabytes that a control plane without telemetry never needs.
        from headway.store.events.event_files import write_rows

        self._require(self._marker)
        with self._writing():
            free_bytes = shutil.disk_usage(self._tmp).free
            if free_bytes < self._free_bytes_min:
                raise Overloaded(
                    f"the disk of the event log at {self.root} has {free_bytes >> 20} MiB left and "
                    f"{self._free_bytes_min >> 20} are kept free: make room there"
                )
            descriptor = os.open(self._tmp / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                write_rows(rows, file)
                file.flush()
                os.fsync(file.fileno())
                size_bytes = file.tell()
            sync_folder(self._tmp)
        return size_bytes

    def publish(self, name: str) -> None:
        """Move ``tmp/name`` into ``hot/``. Does nothing when it is no longer in ``tmp/``: then it was moved already.

        Raises:
            Unavailable: the disk refuses.
        """
        with self._writing():
            with suppress(FileNotFoundError):
                (self._tmp / name).rename(self._hot / name)
            sync_folder(self._hot)

    def discard(self, name: str) -> None:
        """Delete ``tmp/name`` where it exists."""
        with self._writing():
            (self._tmp / name).unlink(missing_ok=True)

    def leftovers(self) -> list[str]:
        """The files in ``tmp/`` whose ingest is no more, oldest first."""
        try:
            entries = sorted(path.name for path in self._tmp.iterdir())
        except OSError as error:
            raise Unavailable(f"the event log at {self.root} cannot be read: {error}") from error
        files = [name for name in entries if name.endswith(".parquet") and name.count("-") == 2]
        locks = {name.removesuffix(".lock") for name in entries if name.endswith(".lock")}
        ingests = {_ingest_of(name) for name in files} | locks
        dead = {ingest for ingest in ingests if ingest != self.ingest and _bury(self._lock_path(ingest))}
        return [name for name in files if _ingest_of(name) in dead]

    def waiting(self) -> Waiting:
        """What waits for the pipeline. Nothing, where there is no folder to read."""
        files, size_bytes, oldest_s = 0, 0, None
        with suppress(OSError), os.scandir(self._hot) as entries:
            for entry in entries:
                if not entry.name.endswith(".parquet"):
                    continue
                with suppress(FileNotFoundError):  # read and moved meanwhile
                    found = entry.stat()
                    files, size_bytes = files + 1, size_bytes + found.st_size
                    oldest_s = min(found.st_mtime, oldest_s or found.st_mtime)
        return Waiting(files, size_bytes, oldest_s)

    def recover(self, names: Iterable[str], recorded: Collection[str]) -> tuple[list[str], list[str]]:
        """Finish what died: publish those of ``names`` that are ``recorded`` and delete the others.

        Harmless when repeated and when two ingests do it at once.

        Returns:
            The names published and the names deleted.
        """
        published, deleted = [], []
        for name in names:
            if name in recorded:
                # The stream passes over files that appear a week old.
                with suppress(FileNotFoundError):
                    os.utime(self._tmp / name)
                self.publish(name)
                published.append(name)
            else:
                self.discard(name)
                deleted.append(name)
        return published, deleted

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise ``Unavailable`` where the disk refuses."""
        try:
            yield
        except OSError as error:
            raise Unavailable(f"the event log at {self.root} cannot be written: {error}") from error

    def _require(self, marker: UUID) -> None:
        found = self.read_marker()
        if found == marker:
            return
        what = "has no marker" if found is None else f"is marked {found}"
        raise Unavailable(
            f"the event log at {self.root} {what}, this database's log is marked {marker}: "
            f"mount or restore the right folder, or correct {SETTING}; telemetry is refused until then"
        )

    def _lock_path(self, ingest: str) -> Path:
        return self._tmp / f"{ingest}.lock"


def _ingest_of(name: str) -> str:
    return name.split("-")[1]


def _hold(path: Path) -> int:
    """Hold the lock file at ``path``, which is made, until the descriptor returned is closed or the process dies."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Between the two calls above a recovery may have taken the file for a dead ingest's and removed it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)


def _bury(path: Path) -> bool:
    """Whether the ingest of the lock file at ``path`` is no more; its lock file is removed.

    An ingest's name is never used again, so who is dead stays dead and the lock need not be kept.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        if is_dead := try_lock(descriptor):
            path.unlink(missing_ok=True)
        return is_dead
    finally:
        os.close(descriptor)
