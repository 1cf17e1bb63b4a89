"""One parent a data folder, and what a parent that was killed has left behind.

A child whose parent is gone ends by itself: the pipe they share closes. The next parent waits for that, and ends those
that do not, by pid, create time and command line together: a pid alone may by now be somebody else's.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from headway.cli.local.data_dir import DataDir
from headway.cli.process.shutdown import Stopping
from headway.errors import Misconfigured, Refused
from headway.local.files import write_whole
from headway.local.locks import only_process, try_lock

TERM_END_S = 2.0
KILL_END_S = 5.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A child process as it was when it started: enough to know it again."""

    name: str
    pid: int
    created_at_s: float
    argv: tuple[str, ...]
    stop_within_s: float


@contextmanager
def only_parent(layout: DataDir) -> Iterator[None]:
    """Hold the data folder for the block.

    The folder itself is locked beside its file, which somebody may delete: what a parent that lives has started would
    be taken for what an earlier one has left.

    Raises:
        Refused: another parent holds it.
    """
    with (
        only_process(
            layout.lock,
            held_by=lambda pid: _used(layout, pid),
            unusable=lambda why: Misconfigured(f"data folder {layout.root} cannot be used: {why}; name another"),
            may_be_foreign=True,  # root serves a folder of another user as that user
        ),
        _locked_folder(layout),
    ):
        yield


@contextmanager
def _locked_folder(layout: DataDir) -> Iterator[None]:
    folder = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        is_free = True
        with suppress(OSError):  # NFS locks no folder: there the file alone counts
            is_free = try_lock(folder)
        if not is_free:
            raise _used(layout, _parent_of(_recorded(layout.children)))
        yield
    finally:
        os.close(folder)


def _used(layout: DataDir, pid: int | None) -> Refused:
    return Refused(
        f"another headway (process {pid or 'unknown'}) uses the data folder {layout.root}: "
        "end it first, or give this one a folder of its own with --data-dir"
    )


def _parent_of(started: list[Started]) -> int | None:
    """The process that has started these and lives; ``None``: none of them runs."""
    with suppress(psutil.Error):
        return next((psutil.Process(each.pid).ppid() for each in started if _is_running(each)), None)
    return None


def record(path: Path, started: list[Started]) -> None:
    """Write down what runs, whole or not at all."""
    write_whole(path, json.dumps([asdict(each) for each in started], indent=1), is_durable=False)


def clear(path: Path, *, stopping: Stopping, say: Callable[[str], None]) -> None:
    """Wait until nothing that an earlier parent recorded in ``path`` runs any more; end what does not go by itself.

    Raises:
        Refused: something cannot be ended.
        Stopped: this process was asked to end.
    """
    left = [each for each in _recorded(path) if _is_running(each)]
    if left:
        say(f"waiting for what an earlier run left: {_named(left)}")
    known: dict[Started, int] = {}
    began_s = time.monotonic()
    while left:
        for each in left:
            number = _signal_due(each, time.monotonic() - began_s)
            if number is not None and known.get(each) != number:
                known[each] = number
                say(f"ending what an earlier run left: {each.name} ({number.name})")
                _signal(each, number)
        stopping.wait(POLL_S)
        stopping.check()
        left = [each for each in left if _is_running(each)]
    path.unlink(missing_ok=True)


def _signal_due(started: Started, waited_s: float) -> signal.Signals | None:
    """What to send after so long: nothing while it may still end by itself, as it does when its pipe closes."""
    late_s = waited_s - started.stop_within_s
    if late_s < 0:
        return None
    if late_s < TERM_END_S:
        return signal.SIGTERM
    if late_s < TERM_END_S + KILL_END_S:
        return signal.SIGKILL
    raise Refused(f"{_named([started])} of an earlier run cannot be stopped: stop it manually, then start again")


def _recorded(path: Path) -> list[Started]:
    try:
        rows = json.loads(path.read_text())
        return [Started(**{**row, "argv": tuple(row["argv"])}) for row in rows]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return []  # written whole or not at all, so this is nobody's record: nothing to search for


def _is_running(started: Started) -> bool:
    try:
        process = psutil.Process(started.pid)
        return (
            abs(process.create_time() - started.created_at_s) < 0.05
            and process.status() != psutil.STATUS_ZOMBIE
            and tuple(process.cmdline()) == started.argv
        )
    except psutil.Error:
        return False


def _signal(started: Started, number: int) -> None:
    with suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(started.pid, number)  # its whole session, a JVM included; workers have sessions of their own
        else:
            os.kill(started.pid, number)


def _named(left: list[Started]) -> str:
    return ", ".join(f"{each.name} (process {each.pid})" for each in left)
