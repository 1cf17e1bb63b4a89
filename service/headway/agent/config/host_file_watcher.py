"""``host.toml`` as it is read again when it changes. One with mistakes is logged and reported, and changes nothing."""

import logging
from pathlib import Path

from headway.agent.config.host_file import HostFile, load
from headway.errors import HeadwayError

log = logging.getLogger(__name__)


class WatchedFile:
    """The host file in force.

    Raises at the start as ``load`` does: nothing is in force yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = self._seen = _stat_of(path)
        self.now: HostFile = load(path)
        self.has_mistakes = False
        """Whether the newest content has, so that the one before is in force."""

    def is_changed(self, *, is_asked: bool = False) -> bool:
        """Whether another content is in force now than at the last call.

        A change is read once two polls have found the same file, so that a half-written one is not taken for whole.
        With ``is_asked`` the file is read at once, also if it is unchanged: a program or user that it names may exist
        by now.
        """
        before, self._seen = self._seen, _stat_of(self._path)
        is_settled = self._seen == before and self._seen != self._read
        return self._take() if is_asked or is_settled else False

    def _take(self) -> bool:
        self._read = self._seen
        try:
            found = load(self._path)
        except HeadwayError as error:
            log.error("the host file is kept as it was: %s", error)  # noqa: TRY400 - its trace adds nothing
            self.has_mistakes = True
            return False
        self.has_mistakes = False
        if found == self.now:
            log.info("read again, and nothing is new in file=%s", self._path)
            return False
        self.now = found
        log.info("read again file=%s templates=%s", self._path, ",".join(found.templates))
        return True


def _stat_of(path: Path) -> tuple[int, int, int] | None:
    """What changes when the file does; ``None`` where it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
