"""The folder through which workers of any user find the reporter and reach their agent.

    module/   the reporter, and nothing else: workers have it on PYTHONPATH
    pipes/    a named pipe per worker, which only its user can open

It is outside the state folder, which nobody but the agent's user may enter. All can read it, only the agent can change
it. It is of this boot: whatever holds it may empty itself at the next.
"""

import errno
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import headway
from headway.agent.state.state_dir import StateFolder
from headway.local.files import closing, write_whole

FILE = "reporting.json"
MODULE, PIPES = "module", "pipes"
REPORTER = "headway_celery_reporter"
REPORTER_FILE = f"{REPORTER}.py"
SOURCE = Path("workers", "celery_reporter", REPORTER_FILE)
_MODES = {MODULE: 0o555, PIPES: 0o755}
"""Python would write its byte code beside a module, were that folder open to it."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

log = logging.getLogger(__name__)


def reporter_source() -> bytes:
    """The reporter, as this installation has it. Raises ``OSError``."""
    return (Path(headway.__file__).parent / SOURCE).read_bytes()


class RunFolder:
    """The run folder of one agent. It is made when the first worker needs it."""

    def __init__(self, state: StateFolder, *, agent_id: str, environment: Mapping[str, str]) -> None:
        self._state = state
        # Not the id itself: it is a secret, and everybody can list where the folder is.
        self._name = f"headway-{hashlib.sha256(agent_id.encode()).hexdigest()[:16]}"
        self._environment = environment
        self.path: Path | None = None
        """Where it is; ``None``: not made, or not found."""

    @property
    def module(self) -> Path:
        """What workers have on PYTHONPATH."""
        assert self.path is not None, "made before"
        return self.path / MODULE

    def find(self) -> None:
        """Take the folder of the last agent, if it is there: its workers write there."""
        known = self._state.read(FILE) or {}
        path = known.get("folder")
        with suppress(ValueError):
            if isinstance(path, str) and _is_sound(Path(path)):
                self.path = Path(path)

    def make(self) -> Path:
        """The folder, made with all that belongs in it where anything is missing. Raises ``OSError``."""
        if self.path is None or not _is_sound(self.path):
            self.path = self._fresh()
            self._state.write(FILE, {"folder": str(self.path)}, is_durable=False)
        for name in (MODULE, PIPES):
            with suppress(FileExistsError):
                (self.path / name).mkdir()
                (self.path / name).chmod(_MODES[name])
        self._write_reporter(self.path / MODULE)
        return self.path

    def opened_pipes(self) -> AbstractContextManager[int]:
        """The folder of pipes, open until the end of a block. Raises ``OSError``."""
        if self.path is None:
            raise FileNotFoundError(errno.ENOENT, "there is no run folder")
        return closing(os.open(self.path / PIPES, _FOLDER))

    def clear(self) -> None:
        """Remove it, if it has no pipe any more."""
        if self.path is None:
            return
        with suppress(OSError):
            (self.path / PIPES).rmdir()
            (self.path / MODULE).chmod(0o755)
            shutil.rmtree(self.path)
            self.path = None

    def _fresh(self) -> Path:
        refused: OSError | None = None
        for root in _roots(self._environment):
            try:
                _check_above(root.stat(), root)
                path = self._named(root)
                path.chmod(0o755)
            except OSError as error:
                refused = refused or error
            else:
                return path
        raise refused or FileNotFoundError(errno.ENOENT, "there is no folder for it")

    def _named(self, root: Path) -> Path:
        path = root / self._name
        try:
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            _check(path)
        except OSError:
            # Somebody else has the name, where everybody may make folders.
            return Path(tempfile.mkdtemp(prefix=f"{self._name}-", dir=root))
        return path

    def _write_reporter(self, folder: Path) -> None:
        source = reporter_source()
        with suppress(OSError):
            if (folder / REPORTER_FILE).read_bytes() == source:
                return
        with closing(os.open(folder, _FOLDER)) as opened:
            try:
                os.fchmod(opened, 0o755)
                write_whole(REPORTER_FILE, source, is_durable=False, folder=opened, mode=0o644)
            finally:
                os.fchmod(opened, _MODES[MODULE])


def _roots(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where the folder may be, the best first: all of these end with the boot, or may be emptied then."""
    if os.geteuid() == 0:
        yield Path("/run")
    given = environment.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/"):
        yield Path(given)
    yield Path(tempfile.gettempdir())


def _is_sound(path: Path) -> bool:
    try:
        _check(path)
    except OSError:
        return False
    return True


def _check(path: Path) -> None:
    """Raise ``OSError`` unless it is a folder that only this process' user can change, or move."""
    with closing(os.open(path, _FOLDER)) as folder:
        own, above = os.fstat(folder), os.stat("..", dir_fd=folder)
    if own.st_uid != os.geteuid() or own.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "others can change it", str(path))
    _check_above(above, path)


def _check_above(above: os.stat_result, path: Path) -> None:
    """Raise ``OSError`` unless only this process' user and root can move what this user has there."""
    if above.st_uid not in {0, os.geteuid()} or (above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX):
        raise PermissionError(errno.EPERM, "others can move it", str(path))
