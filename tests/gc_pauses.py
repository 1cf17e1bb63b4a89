"""Python's cyclic garbage collector rests while tests are collected, and leaves what they are made of alone.

Six thousand tests are 840,000 objects, and all live to the end: to search them again and again takes more than a
quarter of the time of collecting, in each process of a run. While they run it searches as seldom as in a control plane:
by Python's thresholds it took a twelfth of their processor time.
"""

import gc
from collections.abc import Generator

import pytest

from headway.control.gc_tuning import THRESHOLDS


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()
