"""Counting what is under way, by whom it is for, and how much of it may be."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from headway.errors import Overloaded

Key = TypeVar("Key")


@contextmanager
def one_more(held: Counter[Key], key: Key, *, most: int | None = None, why: str = "") -> Iterator[None]:
    """Count one more of ``key`` until the end of the block; of a key with none, nothing is kept.

    Raises:
        Overloaded: there are ``most`` of ``key``, and ``why`` is what the refusal says.
    """
    if most is not None and held[key] >= most:
        raise Overloaded(why)
    held[key] += 1
    try:
        yield
    finally:
        held[key] -= 1
        if not held[key]:
            del held[key]
