"""How often the control plane looks for cycles."""

import gc

from headway.control.garbage import THRESHOLDS, collect_rarely


def test_cycles_are_looked_for_less_often_and_still_found() -> None:
    before = gc.get_threshold()
    try:
        collect_rarely()
        assert gc.get_threshold() == THRESHOLDS
        assert gc.isenabled()
        assert all(threshold > 0 for threshold in THRESHOLDS)  # 0 would turn it off
    finally:
        gc.set_threshold(*before)
