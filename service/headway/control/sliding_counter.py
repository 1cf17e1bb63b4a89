"""How often something has happened lately."""

from collections import deque
from collections.abc import Callable

COUNTER_MOMENTS_MAX = 1_000  # of each the time and how often; what is beyond counts for the last of them


class SlidingCounter:
    """Counts what happens, and forgets what is over."""

    def __init__(self, within_s: float, *, clock: Callable[[], float]) -> None:
        self._within_s = within_s
        self._clock = clock
        self._moments: deque[tuple[float, int]] = deque()

    def add(self, times: int = 1) -> None:
        """It has happened so often just now."""
        if not times:
            return
        if len(self._moments) >= COUNTER_MOMENTS_MAX:
            at_s, before = self._moments.pop()
            self._moments.append((at_s, before + times))
        else:
            self._moments.append((self._clock(), times))

    @property
    def count(self) -> int:
        """How often it has happened in the last ``within_s``."""
        while self._moments and self._moments[0][0] < self._clock() - self._within_s:
            self._moments.popleft()
        return sum(times for _, times in self._moments)
