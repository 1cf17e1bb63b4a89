"""Run a program for a bounded time, and end whatever it leaves running, also in sessions of its own.

    .venv/bin/python tools/bounded_run.py SECONDS PROGRAM [WORD ...]

The exit status is the program's, or 124 if it did not end in time, as of timeout(1).
"""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

import psutil

TIMED_OUT = 124
TERMINATED = 128 + signal.SIGTERM
GRACE_S = 5.0  # for each way to ask; servers that a program has let go end by themselves meanwhile
PR_SET_CHILD_SUBREAPER = 36
# Python takes the first as an exception, so that its blocks end what they began.
ASKED_BY = (None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def main(words: Sequence[str]) -> int:
    """Run it. Returns the exit status."""
    within_s, program = float(words[0]), words[1:]
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    status = TERMINATED
    process = subprocess.Popen(program, start_new_session=True)
    try:
        status = process.wait(within_s)
    except subprocess.TimeoutExpired:
        print(f"bounded_run: not ended after {within_s:g} s", file=sys.stderr)
        status = TIMED_OUT
    finally:
        had_ended = process.poll() is not None
        ended = end_descendants(ASKED_BY if had_ended else ASKED_BY[1:])
        if ended and had_ended:
            print(f"bounded_run: ended what was left running: {', '.join(ended)}", file=sys.stderr)
    return status if status >= 0 else 128 - status  # as a shell says that a signal ended it


def adopt_orphans() -> None:
    """Have processes whose parent ends become children of this one, where the kernel is Linux."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants(ways: Iterable[signal.Signals | None]) -> list[str]:
    """End what runs below this process, each way for ``GRACE_S``. Returns the names of what did not end by itself."""
    names: dict[int, str] = {}
    for way in ways:
        left = psutil.Process().children(recursive=True)
        for each in left:
            with suppress(psutil.NoSuchProcess):
                if way is not None and each.status() != psutil.STATUS_ZOMBIE:
                    names[each.pid] = each.name()
                    each.send_signal(way)
        psutil.wait_procs(left, timeout=GRACE_S)
    return sorted(names.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
