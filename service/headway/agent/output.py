"""What workers print: one file a worker, bounded, kept for a while after its end."""

import os
import re
from contextlib import suppress
from pathlib import Path

BYTES_MAX = 10 * 1024 * 1024
BYTES_KEPT = 1024 * 1024
ENDED_KEPT = 50
READ_BYTES = 64 * 1024
LAST_WORDS_BYTES = 4096
LAST_WORDS_CHARS = 200


class Output:
    """The files of one agent's workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def log(self, worker_id: str) -> Path:
        """Where the worker prints to."""
        return self.folder / f"{worker_id}.log"

    def bound(self, running: set[str]) -> None:
        """Cut what has grown too long, and remove what was printed by all but the last workers that ended."""
        logs = {path: _stat(path) for path in self.folder.glob("*.log*")}
        ended = [path for path in logs if path.name.partition(".")[0] not in running]
        for path in sorted(ended, key=lambda path: logs[path].st_mtime, reverse=True)[ENDED_KEPT:]:
            path.unlink(missing_ok=True)
        for path, known in logs.items():
            if known.st_size > BYTES_MAX and path.suffix == ".log":
                _cut(path)

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
                file.seek(self._offset)
                fresh = file.read(READ_BYTES)
        except OSError:
            return False
        self._offset += len(fresh)
        *lines, self._line = (self._line + fresh)[-2 * READ_BYTES :].split(b"\n")
        return any(self._pattern.search(line.decode(errors="replace")) for line in (*lines, self._line))


def _cut(path: Path) -> None:
    """Keep the end of the log beside it and begin it anew. The worker appends, so it goes on at the beginning."""
    with suppress(OSError):
        with path.open("rb") as file:
            file.seek(-BYTES_KEPT, os.SEEK_END)
            path.with_suffix(".log.1").write_bytes(file.read())
        os.truncate(path, 0)


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError:
        return os.stat_result((0,) * 10)
