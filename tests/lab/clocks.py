"""A boot clock of its own for a program of a lab, in a time namespace, where the kernel has them."""

import subprocess
from functools import cache


def unshared(seconds: float) -> list[str]:
    """What is written before a command line so that its boot clock is wrong by so much, and its children's."""
    return ["unshare", "--time", "--boottime", f"{seconds:.0f}"]


@cache
def can_skew_boot() -> bool:
    """Whether this machine lets us."""
    try:
        return subprocess.run([*unshared(1.0), "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
