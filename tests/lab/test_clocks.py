"""A lab's boot clocks are ones that the kernel can give."""

import time

from lab.clocks import unshared


def test_a_clock_goes_back_no_further_than_to_the_boot() -> None:
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert -up_s < float(unshared(-1e9)[-1]) <= 0.0
    assert unshared(50.0)[-1] == "50"
