"""Counting what is under way, by whom it is for."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Key = TypeVar("Key")


@contextmanager
def one_more(held: Counter[Key], key: Key) -> Iterator[None]:
    """Count one more of ``key`` until the end of the block; of a key with none, nothing is kept."""
    held[key] += 1
    try:
        yield
    finally:
        held[key] -= 1
        if not held[key]:
            del held[key]
