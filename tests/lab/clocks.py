"""A boot clock of its own for a program, in a time namespace, where the kernel has them.

The lab's boots are before the lab itself, as those of real hosts are before their workers. What an agent does whose
boot is after its workers' start is in ``tests/agent/test_boot_clocks.py``.
"""

import os
import subprocess
from functools import cache

from headway.local import procfs

LEFT_OF_BOOT_S = 10.0


def ahead(seconds: float) -> list[str]:
    """What is written before a command line so that its boot clock is so far ahead of ours, and its children's."""
    return ["unshare", "--time", "--boottime", f"{procfs.ahead_of_boot_s() + seconds:.0f}"]


def unshared(seconds: float) -> list[str]:
    """The same for a program of the lab; its boot stays ``LEFT_OF_BOOT_S`` before the start of this process.

    This process starts all that the lab consists of: so far goes a clock back, and no further. On a machine that was
    booted a moment ago it does not go back.
    """
    known = procfs.stat(os.getpid())
    assert known is not None
    return ahead(max(seconds, -max(known.started_at_s - LEFT_OF_BOOT_S, 0.0)))


@cache
def can_skew_boot() -> bool:
    """Whether this machine lets us."""
    try:
        return subprocess.run([*ahead(1.0), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
