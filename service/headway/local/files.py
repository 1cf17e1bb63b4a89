"""Files that are whole at any moment, and names that outlive a power cut."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(
    path: Path | str, content: str | bytes | Iterable[bytes], *, is_durable: bool = True, folder: int | None = None
) -> None:
    """Replace the file in one step: who opens it finds all of the old or all of the new. Its owner only may read it.

    If it is to be durable, that holds after a power cut, too; which of the two it is then, ``sync_folder`` decides.
    Relative to the open ``folder``, where that is given. No link is followed. Raises ``OSError``.
    """
    fresh = f"{path}.new"
    with suppress(OSError):
        os.unlink(fresh, dir_fd=folder)  # of a run that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(fresh, flags, 0o600, dir_fd=folder)
    with os.fdopen(file, "wb") as writing:
        if isinstance(content, str):
            content = content.encode()
        writing.writelines([content] if isinstance(content, bytes) else content)
        writing.flush()
        if is_durable:
            os.fsync(file)
    os.replace(fresh, path, src_dir_fd=folder, dst_dir_fd=folder)


def sync_folder(path: Path) -> None:
    """Make the names in ``path`` outlive a power cut. Raises ``OSError``."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
