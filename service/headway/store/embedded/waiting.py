"""Waiting for what another process does, with a bound."""

import time
from collections.abc import Callable

from headway.errors import Unavailable

POLL_S = 0.01  # a server is ready about 30 ms after its start


class Deadline:
    """The moment after which the caller would rather have an error than wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at_s = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._at_s - time.monotonic())

    def sees(self, condition: Callable[[], bool]) -> bool:
        """Whether ``condition`` came true in time. It is asked at least once."""
        while not condition():
            if not self.left_s:
                return False
            time.sleep(min(POLL_S, self.left_s))
        return True

    def needs(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Return once ``condition`` is true; too late, raise ``Unavailable`` with the sentence ``otherwise``."""
        if not self.sees(condition):
            raise Unavailable(f"{otherwise} (waited {self.seconds:g} s)")
