"""Python's cyclic garbage collector rests while tests are collected, and leaves what they are made of alone.

Six thousand tests are 840,000 objects, and all live to the end: to search them again and again takes more than a
quarter of the time of collecting, in each process of a run.
"""

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
