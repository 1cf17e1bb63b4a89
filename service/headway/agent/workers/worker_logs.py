"""What workers print: one file a worker and what was cut off it, bounded, kept for a while after its end.

Files are opened by their names within the open folder and through no link, and only if they are what this module makes:
a regular file with one name. So whoever comes to write in the folder gains no other file by it.
"""

import ctypes
import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from headway.agent.config.templates import Log
from headway.local.files import closing

ENDED_KEPT = 50
COPY_BYTES = 1024 * 1024
READ_BYTES = 64 * 1024
LOG_PIECES_MAX = 16  # a poll: a worker that prints much while it starts is not taken for a late one
LOG_RESERVED_BYTES = 16 * 1024  # what a worker prints until it is ready, on a disk that is full by then
FALLOC_FL_KEEP_SIZE = 1
LOG_BLOCK_BYTES = 512  # what st_blocks counts, whatever the disk's blocks are
LAST_WORDS_BYTES = 4096
LAST_WORDS_CHARS = 200


class WorkerLogs:
    """The files of one agent's workers, in the folder that is open as ``folder``."""

    def __init__(self, folder: int) -> None:
        self._folder = folder

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._folder)

    def create(self, worker_id: str) -> int:
        """A new file, open for the worker to print to, with room for its first words. Raises ``OSError``."""
        opened = self._opened(_log(worker_id), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        _reserve(opened, LOG_RESERVED_BYTES)
        return opened

    def release(self, worker_id: str) -> None:
        """Give back what was reserved for a worker that has ended."""
        with suppress(OSError), closing(self._opened(_log(worker_id), os.O_WRONLY)) as opened:
            os.ftruncate(opened, os.fstat(opened).st_size)

    def tail(self, worker_id: str, pattern: str) -> "Tail":
        """What watches the worker's output for the pattern."""
        return Tail(partial(self._opened, _log(worker_id), os.O_RDONLY), pattern)

    def has(self, worker_id: str) -> bool:
        """Whether a worker of this id was ever about to be started, and what it printed is kept."""
        return self._state(_log(worker_id)) is not None

    def is_open_as(self, worker_id: str, found: os.stat_result) -> bool:
        """Whether what was ``found`` to be open somewhere is the worker's file itself, not one that is called so."""
        known = self._state(_log(worker_id))
        return known is not None and (known.st_dev, known.st_ino) == (found.st_dev, found.st_ino)

    def bound(self, running: Mapping[str, Log]) -> None:
        """Cut what has grown too long of the workers that run, by their ids."""
        for worker_id, kept in running.items():
            state = self._state(_log(worker_id))
            if state is not None and state.st_size > kept.bytes_max:
                self._cut(_log(worker_id), kept)

    def clear(self, running: frozenset[str]) -> None:
        """Remove what was printed by all but the last workers that ended."""
        logs: dict[str, list[str]] = {}
        for name in os.listdir(self._folder):  # noqa: PTH208 - the open folder
            if ".log" in name:
                logs.setdefault(name.partition(".")[0], []).append(name)
        ended = sorted(set(logs) - running, key=self._changed_at_s, reverse=True)
        for worker_id in ended[ENDED_KEPT:]:
            for name in logs[worker_id]:
                self._remove(name)

    def last_words(self, worker_id: str) -> str:
        """The last line the worker printed."""
        lines = [line.strip() for line in self.end(worker_id, LAST_WORDS_BYTES).splitlines() if line.strip()]
        return lines[-1][:LAST_WORDS_CHARS] if lines else ""

    def end(self, worker_id: str, size_bytes: int) -> str:
        """The last ``size_bytes`` that the worker printed; empty if there is no file of it."""
        try:
            with os.fdopen(self._opened(_log(worker_id), os.O_RDONLY), "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - size_bytes))
                return file.read(size_bytes).decode(errors="replace")
        except OSError:
            return ""

    def _opened(self, name: str, flags: int) -> int:
        """The file of this name, open. Raises ``OSError``, also where what is called so is nothing that was made here.

        Not blocking: a pipe in its place would hold up the agent.
        """
        opened = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=self._folder)
        if _is_made_here(os.fstat(opened)):
            return opened
        os.close(opened)
        raise OSError(errno.EINVAL, f"{name} is no regular file of one name")

    def _state(self, name: str) -> os.stat_result | None:
        try:
            found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return None
        return found if _is_made_here(found) else None

    def _changed_at_s(self, worker_id: str) -> float:
        state = self._state(_log(worker_id))
        return 0.0 if state is None else state.st_mtime

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._folder)

    def _cut(self, log: str, kept: Log) -> None:
        """Keep the end of ``log`` beside it and begin it anew. The worker appends, so it goes on at the beginning."""
        older = [f"{log}.{number}" for number in range(1, kept.files + 1)]
        with suppress(OSError):
            for name in os.listdir(self._folder):  # noqa: PTH208 - the open folder
                if name.startswith(f"{log}.") and name not in older[:-1]:
                    self._remove(name)
            for before, after in zip(reversed(older[:-1]), reversed(older), strict=False):
                if self._state(before) is not None:
                    os.replace(before, after, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            with os.fdopen(self._opened(log, os.O_RDWR), "r+b", buffering=0) as source:
                if older:
                    self._copy_end(source.fileno(), older[0], size_bytes=kept.bytes_max)
                source.truncate(0)

    def _copy_end(self, source: int, to: str, *, size_bytes: int) -> None:
        """Copy the last ``size_bytes`` by pieces: the agent stays small."""
        self._remove(to)
        with closing(self._opened(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL)) as copy:
            os.lseek(source, max(0, os.lseek(source, 0, os.SEEK_END) - size_bytes), os.SEEK_SET)
            while piece := os.read(source, COPY_BYTES):
                while piece:
                    piece = piece[os.write(copy, piece) :]


class Tail:
    """Watches a log for a pattern, line by line, from its beginning. ``opened`` opens it, or raises ``OSError``."""

    def __init__(self, opened: Callable[[], int], pattern: str) -> None:
        self._opened = opened
        self._pattern = re.compile(pattern)
        self._offset = 0
        self._line = b""
        self.may_have_missed = False
        """Whether there was a moment at which the disk took no more of what the worker prints."""

    def sees(self) -> bool:
        """Whether the pattern is in what was printed since the last poll. A line that is not yet whole counts too."""
        try:
            with os.fdopen(self._opened(), "rb") as file:
                self.may_have_missed = self.may_have_missed or _is_full(file.fileno())
                if file.seek(0, os.SEEK_END) < self._offset:
                    self._offset = 0  # cut meanwhile
                file.seek(self._offset)
                for _ in range(LOG_PIECES_MAX):
                    fresh = file.read(READ_BYTES)
                    if self._is_in(fresh):
                        return True
                    if len(fresh) < READ_BYTES:
                        break
        except OSError:
            pass
        return False

    def _is_in(self, fresh: bytes) -> bool:
        self._offset += len(fresh)
        *lines, self._line = (self._line + fresh)[-2 * READ_BYTES :].split(b"\n")
        return any(self._pattern.search(line.decode(errors="replace")) for line in (*lines, self._line))


def _log(worker_id: str) -> str:
    return f"{worker_id}.log"


def _reserve(opened: int, size_bytes: int) -> None:
    """Take room on the disk for what is to be appended; the file is as long as before. Not every disk can do that."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "fallocate"):
        libc.fallocate(opened, FALLOC_FL_KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size_bytes))


def _is_full(opened: int) -> bool:
    """Whether the disk takes nothing more of the file: nothing is left of what was reserved for it, nor else."""
    found = os.fstat(opened)
    if found.st_blocks * LOG_BLOCK_BYTES > found.st_size:
        return False
    disk = os.fstatvfs(opened)
    return (disk.f_bfree if os.geteuid() == 0 else disk.f_bavail) == 0


def _is_made_here(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
