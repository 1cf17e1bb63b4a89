"""What may happen at anybody's will is logged now and then, with how often it happened meanwhile."""

import time
from collections.abc import Callable

EVERY_S = 60.0
KEYS_MAX = 1_000


class LogThrottle:
    """Says whether it is time for another line about a key, and how many were left out since the last."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[str, tuple[float, int]] = {}

    def due(self, key: str = "") -> int | None:
        """How many lines about ``key`` were left out since the last, if one is due now; else ``None``."""
        now_s = self._clock()
        at_s, left_out = self._last.get(key, (float("-inf"), 0))
        if now_s - at_s < EVERY_S:
            self._last[key] = (at_s, left_out + 1)
            return None
        if len(self._last) >= KEYS_MAX:
            self._last.clear()
        self._last[key] = (now_s, 0)
        return left_out
