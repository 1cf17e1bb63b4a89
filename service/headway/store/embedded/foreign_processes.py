"""Processes that are not children of this one, found by the folder they work in."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from headway.store.embedded.waiting import Deadline

FOREIGN_GRACE_S = 3.0  # what lost its guardian or its postmaster has its signal, and usually leaves in milliseconds


def working_in(home: Path) -> tuple[int, ...]:
    """The pids whose working folder is ``home``, as it is for a server and for each of its backends."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # gone meanwhile, or somebody else's
                if (entry / "cwd").readlink() == home:
                    pids.append(int(entry.name))
    return tuple(pids)


def end_leftovers(home: Path, stop_signal: int, deadline: Deadline) -> None:
    """Return once no process works in ``home``, at the latest by killing it.

    Only called where no guardian lives: what is found has lost its guardian or its postmaster, and is leaving.
    """
    for number in (None, stop_signal, signal.SIGQUIT, signal.SIGKILL):
        if number is not None:
            for pid in working_in(home):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        if Deadline(min(FOREIGN_GRACE_S, deadline.left_s)).sees(lambda: not working_in(home)):
            return
    deadline.needs(lambda: not working_in(home), f"processes that do not end still use {home}: {working_in(home)}")
