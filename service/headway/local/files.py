"""Files that are whole at any moment, and names that outlive a power cut."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(
    path: Path | str,
    content: str | bytes | Iterable[bytes],
    *,
    is_durable: bool = True,
    folder: int | None = None,
    mode: int = 0o600,
) -> None:
    """Replace the file in one step: who opens it finds all of the old or all of the new, in ``mode``.

    If it is to be durable, that holds after a power cut, too; which of the two it is then, ``sync_folder`` decides.
    Relative to the open ``folder``, where that is given. No link is followed. Raises ``OSError``.
    """
    fresh = f"{path}.new"
    with suppress(OSError):
        os.unlink(fresh, dir_fd=folder)  # of a run that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(fresh, flags, 0o600, dir_fd=folder)
    with os.fdopen(file, "wb") as writing:
        os.fchmod(file, mode)
        if isinstance(content, str):
            content = content.encode()
        writing.writelines([content] if isinstance(content, bytes) else content)
        writing.flush()
        if is_durable:
            os.fsync(file)
    os.replace(fresh, path, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def closing(opened: int) -> Iterator[int]:
    """The descriptor ``opened`` for the block, at whose end it is closed."""
    try:
        yield opened
    finally:
        os.close(opened)


def read_regular(path: Path, bytes_max: int) -> bytes:
    """The first bytes of a regular file. Others' folders may have a pipe in its place, or a device without end.

    Raises ``OSError``.
    """
    with closing(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)) as file:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "it is no regular file", str(path))
        with os.fdopen(file, "rb", closefd=False) as reading:
            return reading.read(bytes_max)


def sync_folder(path: Path) -> None:
    """Make the names in ``path`` outlive a power cut. Raises ``OSError``."""
    with closing(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
        os.fsync(folder)
