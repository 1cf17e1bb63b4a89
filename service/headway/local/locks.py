"""Locks on files. The kernel holds them as long as the file is open, and lets go of them when a process dies."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from headway.errors import HeadwayError
from headway.local.ownership import why_foreign


def try_lock(file: int, *, is_shared: bool = False) -> bool:
    """Take the lock on the open file, alone or with others who share it. Returns whether it could be had at once."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sign(lock: int) -> None:
    """Write into the locked file which process holds it."""
    with suppress(OSError):  # on a full disk its process can work; it is only not named to another one
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def holder_of(lock: int) -> int | None:
    """The process that signed the file last; ``None`` where that cannot be read."""
    text = os.pread(lock, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isdecimal() else None


@contextmanager
def only_process(
    lock: Path,
    *,
    held_by: Callable[[int | None], HeadwayError],
    unusable: Callable[[str], HeadwayError],
    may_be_foreign: bool = False,
) -> Iterator[None]:
    """Hold the file for the block; make it and its folder where they are not there.

    Raises what ``held_by`` makes of the process that holds it, or ``unusable`` of why it cannot be opened: its folder
    is another user's, too, unless it ``may_be_foreign``.
    """
    with ExitStack() as held:
        try:
            lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            why = None if may_be_foreign else why_foreign(lock.parent.stat())
            if why is not None:
                raise unusable(f"it {why}")
            # Through no link: its holder cuts the file off, and writes into it.
            file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            held.callback(os.close, file)
            is_free = try_lock(file)
        except OSError as error:
            raise unusable(error.strerror or str(error)) from error
        if not is_free:
            raise held_by(holder_of(file))
        sign(file)
        yield
