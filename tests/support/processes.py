"""Processes of this machine as a test sees them: any of them may end between being found and being asked."""

from collections.abc import Iterable
from contextlib import suppress

import psutil

from headway.local import procfs


def runs(pid: int) -> bool:
    """Whether a process does, which a zombie does not."""
    known = procfs.stat(pid)
    return known is not None and not known.is_over


def javas_below(pid: int) -> list[psutil.Process]:
    """What runs Java among the children of a process and theirs. None if it is gone itself.

    What a Java calls is named as it is until it has become another program.
    """
    found: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        for each in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # a tool that a script has called, and that is done
                is_java = each.name() == "java" and each.ppid() not in [java.pid for java in found]
                found += [each] if is_java else []
    return found


def end(processes: Iterable[psutil.Process], *, within_s: float) -> None:
    """See them off: killed, where they did not end by themselves in time."""
    for each in psutil.wait_procs(list(processes), timeout=within_s)[1]:
        with suppress(psutil.NoSuchProcess):
            each.kill()
