"""The GPUs of this host by their numbers, and which a worker has to itself."""

import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"[0-9]{1,4}")


def free(count: int, taken: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Of the numbers below ``count`` those that no worker has, the lowest first."""
    held = {number for each in taken for number in each}
    return tuple(number for number in range(count) if number not in held)


def text(numbers: Sequence[int]) -> str:
    """The numbers as CUDA reads them."""
    return ",".join(map(str, numbers))


def numbers(text: str) -> tuple[int, ...]:
    """What ``text`` wrote; of anything else none."""
    words = text.split(",")
    return tuple(map(int, words)) if all(_NUMBER.fullmatch(word) for word in words) else ()
