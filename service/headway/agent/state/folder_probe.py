"""Whether a folder takes what is written to it, tried before it must.

A try costs the disk a little, so that there is one only where something speaks for a refusal.
"""

import errno
import os
from contextlib import suppress

from headway.local.files import closing

PROBE = "writable.probe"
PROBE_BYTES = 4096
PROBE_ROOM_BYTES = 256 * 1024  # less is soon gone
ROOM_FILES = 16


def may_refuse(folder: int) -> bool:
    """Whether the open ``folder`` may take nothing more: it is nearly full, read only, or no longer this user's."""
    disk = os.fstatvfs(folder)
    free_blocks, free_files = (disk.f_bfree, disk.f_ffree) if os.geteuid() == 0 else (disk.f_bavail, disk.f_favail)
    is_full = free_blocks * disk.f_frsize < PROBE_ROOM_BYTES or (disk.f_files > 0 and free_files < ROOM_FILES)
    return is_full or bool(disk.f_flag & os.ST_RDONLY) or not os.access(".", os.W_OK | os.X_OK, dir_fd=folder)


def refusal(folder: int) -> int | None:
    """The errno with which the open ``folder`` refuses a small file; ``None``: it takes it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        os.unlink(PROBE, dir_fd=folder)  # of an agent that was killed at this
    try:
        with closing(os.open(PROBE, flags, 0o600, dir_fd=folder)) as probe:
            is_whole = os.write(probe, bytes(PROBE_BYTES)) == PROBE_BYTES
    except OSError as error:
        return error.errno or errno.EIO
    finally:
        with suppress(OSError):
            os.unlink(PROBE, dir_fd=folder)
    return None if is_whole else errno.ENOSPC
