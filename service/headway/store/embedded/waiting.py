"""Waiting for what another process does, with a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

from headway.errors import Unavailable

T = TypeVar("T")

WAITING_POLL_S = 0.01  # a server is ready about 30 ms after its start


class Deadline:
    """The moment after which the caller would rather have an error than wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at_s = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._at_s - time.monotonic())

    def sees(self, condition: Callable[[], T]) -> T:
        """What ``condition`` answered when it came true, or at last. It is asked at least once."""
        while not (answer := condition()) and self.left_s:
            time.sleep(min(WAITING_POLL_S, self.left_s))
        return answer

    def needs(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Return once ``condition`` is true; too late, raise ``Unavailable`` with the sentence ``otherwise``."""
        if not self.sees(condition):
            raise Unavailable(f"{otherwise} (waited {self.seconds:g} s)")
