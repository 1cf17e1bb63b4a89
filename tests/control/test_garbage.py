"""How often the control plane searches for cycles, and what it does with memory that was freed."""

import gc
import sys

import psutil
import pytest

from headway.control.gc_tuning import THRESHOLDS, collect_rarely, give_back, unsearched


def test_cycles_are_searched_less_often_and_still_found() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        collect_rarely()
        assert gc.get_threshold() == THRESHOLDS
        assert gc.isenabled()
        assert all(threshold > 0 for threshold in THRESHOLDS)  # 0 would turn it off
    finally:
        gc.set_threshold(*before)  # what is frozen stays so: most of it are the tests


def test_what_replaces_many_values_is_not_searched_and_what_comes_after_is() -> None:
    kept: list[list[object]] = [[] for _ in range(2_000)]
    searches: list[str] = []

    @unsearched()
    def replace() -> None:
        kept[:] = [[] for _ in range(2_000)]
        raise ValueError("also where it fails")

    def searched(phase: str, _: dict[str, int]) -> None:
        searches.append(phase)

    before = gc.get_threshold()
    gc.set_threshold(1_000, 10, 10)
    gc.collect()
    gc.callbacks.append(searched)
    try:
        for _ in range(3):
            with pytest.raises(ValueError, match="also where it fails"):
                replace()
        assert searches == []
        kept += [[] for _ in range(2_000)]
        assert searches != []
        gc.disable()
        with unsearched():
            pass
        assert not gc.isenabled(), "somebody else's decision"
    finally:
        gc.callbacks.remove(searched)
        gc.set_threshold(*before)
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems' C libraries keep no memory this way")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    taken = [bytes(1_500) for _ in range(40_000)]  # 60 MB in pieces, as calls take it
    last = taken[-1]  # holds the end of the heap, so that nothing before it is given back by itself
    taken.clear()
    kept_bytes = psutil.Process().memory_info().rss
    give_back()
    assert psutil.Process().memory_info().rss < kept_bytes - 40_000_000
    assert len(last) == 1_500
