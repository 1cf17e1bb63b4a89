"""A boot clock of its own for a program of a lab, in a time namespace, where the kernel has them."""

import subprocess
import time
from functools import cache

LEFT_OF_BOOT_S = 10.0


def unshared(seconds: float) -> list[str]:
    """What is written before a command line so that its boot clock is wrong by so much, and its children's.

    A clock goes back as far as this machine has been up, and no further: the kernel has no time before the boot.
    """
    back_s = max(time.clock_gettime(time.CLOCK_BOOTTIME) - LEFT_OF_BOOT_S, 0.0)
    return ["unshare", "--time", "--boottime", f"{max(seconds, -back_s):.0f}"]


@cache
def can_skew_boot() -> bool:
    """Whether this machine lets us."""
    try:
        return subprocess.run([*unshared(1.0), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
