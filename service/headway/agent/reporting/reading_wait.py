"""How the agent's main thread waits: what workers report meanwhile is read, and ends the wait for nobody."""

import time
from collections.abc import Callable

from headway.agent.reporting.reporters import Reporters
from headway.agent.system.wake_pipe import WakePipe

READS_GAP_S = 0.1  # from one reading to the next: at 500 jobs/s, 40 KB of the 64 that a pipe holds


def wait_reading(
    wakes: WakePipe, reporters: Reporters, seconds: float, *, fds: Callable[[], frozenset[int]] = frozenset
) -> None:
    """Return after ``seconds``, or when something else happens than that a worker reports.

    However much workers write, their pipes are read once in ``READS_GAP_S``.
    """
    ends_s = time.monotonic() + seconds
    reads_from_s = float("-inf")
    while True:
        now_s = time.monotonic()
        is_watching = now_s >= reads_from_s
        reported = reporters.watchable() if is_watching else frozenset()
        readable = wakes.wait((ends_s if is_watching else min(ends_s, reads_from_s)) - now_s, fds() | reported)
        if readable - reported or time.monotonic() >= ends_s:
            return
        if readable:
            reporters.read(readable)
            reads_from_s = time.monotonic() + READS_GAP_S
