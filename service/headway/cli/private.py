"""What a role does so that other programs of its user learn no credential from it."""

import ctypes
import logging
import os
from collections.abc import Iterable

PR_SET_DUMPABLE = 4
CREDENTIALS = ("HEADWAY_TOKEN", "HEADWAY_JOIN_TOKEN", "HEADWAY_DATABASE_URL", "HEADWAY_BROKERS")

log = logging.getLogger(__name__)


def keep_private() -> None:
    """Let no process of this user read this one, and take credentials out of the environment.

    To be called once they have been read. The kernel shows the environment that a process began with for as long as it
    lives: only who may not read the process at all does not see it. Root does.
    What is started from here can be read as before.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "prctl") or libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        log.warning("this process cannot be made unreadable here: jobs of its user can read what it knows")
    for name in CREDENTIALS:
        os.environ.pop(name, None)


def warn_of_deprecated(names: Iterable[str]) -> None:
    """Say of credentials in the environment what to do instead."""
    for name in names:
        log.warning(
            "%s is read from the environment for one more version: write it to a file that only this user can read, "
            "and name that file in %s_FILE",
            name,
            name,
        )
