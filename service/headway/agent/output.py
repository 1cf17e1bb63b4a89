"""What workers print: one file a worker and what was cut off it, bounded, kept for a while after its end."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from headway.agent.templates import Log

ENDED_KEPT = 50
COPY_BYTES = 1024 * 1024
READ_BYTES = 64 * 1024
PIECES_MAX = 16  # a look: a worker that says much while it starts is not taken for a late one
LAST_WORDS_BYTES = 4096
LAST_WORDS_CHARS = 200


class Output:
    """The files of one agent's workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def log(self, worker_id: str) -> Path:
        """Where the worker prints to."""
        return self.folder / f"{worker_id}.log"

    def bound(self, running: Mapping[str, Log]) -> None:
        """Cut what has grown too long of the workers that run, by their ids."""
        for worker_id, kept in running.items():
            log = self.log(worker_id)
            if _size_bytes(log) > kept.bytes_max:
                _cut(log, kept)

    def clear(self, running: frozenset[str]) -> None:
        """Remove what was printed by all but the last workers that ended."""
        logs: dict[str, list[Path]] = {}
        for path in self.folder.glob("*.log*"):
            logs.setdefault(path.name.partition(".")[0], []).append(path)
        ended = sorted(set(logs) - running, key=lambda worker_id: _changed_at_s(self.log(worker_id)), reverse=True)
        for worker_id in ended[ENDED_KEPT:]:
            for path in logs[worker_id]:
                path.unlink(missing_ok=True)

    def last_words(self, worker_id: str) -> str:
        """The last line the worker printed."""
        try:
            with self.log(worker_id).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
                lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError:
            return ""
        return lines[-1][:LAST_WORDS_CHARS] if lines else ""


class Tail:
    """Watches a log for a pattern, line by line, from its beginning."""

    def __init__(self, path: Path, pattern: str) -> None:
        self._path = path
        self._pattern = re.compile(pattern)
        self._offset = 0
        self._line = b""

    def sees(self) -> bool:
        """Whether the pattern is in what was printed since the last look. A line that is not yet whole counts too."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._offset:
                    self._offset = 0  # cut meanwhile
                file.seek(self._offset)
                for _ in range(PIECES_MAX):
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


def _cut(log: Path, kept: Log) -> None:
    """Keep the end of ``log`` beside it and begin it anew. The worker appends, so it goes on at the beginning."""
    older = [log.with_suffix(f".log.{number}") for number in range(1, kept.files + 1)]
    with suppress(OSError):
        for path in log.parent.glob(f"{log.name}.*"):
            if path not in older[:-1]:
                path.unlink()
        for before, after in zip(reversed(older[:-1]), reversed(older), strict=False):
            if before.exists():
                before.replace(after)
        if older:
            _copy_end(log, older[0], size_bytes=kept.bytes_max)
        os.truncate(log, 0)


def _copy_end(log: Path, to: Path, *, size_bytes: int) -> None:
    """Copy the last ``size_bytes`` by pieces: the agent stays small."""
    with log.open("rb") as source, to.open("wb") as copy:
        source.seek(max(0, source.seek(0, os.SEEK_END) - size_bytes))
        while piece := source.read(COPY_BYTES):
            copy.write(piece)


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _changed_at_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
