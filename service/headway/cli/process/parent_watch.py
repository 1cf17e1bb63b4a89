"""A role that a parent started ends when the parent does, also by ``kill -9``: the pipe they share closes."""

import os
import threading
from collections.abc import Callable

PARENT_FD = "HEADWAY_PARENT_FD"


def watch(stop: Callable[[], None]) -> None:
    """Call ``stop`` from a thread once the parent is gone. Does nothing where no parent left its pipe."""
    number = os.environ.pop(PARENT_FD, "")  # taken out, so that what this process starts does not watch it as well
    if not number:
        return
    fd = int(number)
    os.set_inheritable(fd, False)  # noqa: FBT003 - the only spelling the standard library has

    def wait() -> None:
        # The parent never writes: reading returns only when its end is closed.
        while os.read(fd, 1):
            pass
        stop()

    threading.Thread(target=wait, name="parent", daemon=True).start()
