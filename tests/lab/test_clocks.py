"""A lab's boot clocks are ones that real hosts can have."""

import os
import subprocess
import sys

import pytest

from headway.local import procfs
from lab.clocks import LEFT_OF_BOOT_S, ahead, can_skew_boot, unshared

LARGEST_BACK = "from lab.clocks import unshared; print(unshared(-1e9)[-1])"


def test_a_clock_goes_back_no_further_than_to_a_boot_before_the_lab() -> None:
    started_at_s = procfs.stat(os.getpid()).started_at_s
    back_s = procfs.ahead_of_boot_s() - float(unshared(-1e9)[-1])
    assert 0.0 <= back_s <= max(0.0, started_at_s - LEFT_OF_BOOT_S + 1.0)
    assert float(unshared(50.0)[-1]) == procfs.ahead_of_boot_s() + 50.0


@pytest.mark.skipif(not can_skew_boot(), reason="this machine has no time namespaces")
@pytest.mark.parametrize(
    ("booted_s", "back_s"),
    [
        (2, range(1)),  # no clock before the lab's own start is left
        (12, range(1, 12)),  # the boot is near
    ],
)
def test_a_boot_that_is_near_stays_before_the_lab(booted_s: int, back_s: range) -> None:
    """The lab is a program of its own here, on a machine that was booted so many seconds ago."""
    offset = -int(procfs.since_boot_s() - booted_s)
    words = [*ahead(offset), sys.executable, "-c", LARGEST_BACK]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True
    )
    assert procfs.ahead_of_boot_s() + offset - int(done.stdout) in back_s, done.stderr
