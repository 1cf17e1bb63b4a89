"""What would happen too often happens now and then, and says how often it was left out meanwhile."""

import time
from collections.abc import Callable
from dataclasses import dataclass

THROTTLE_S = 60.0
KEYS_MAX = 1_000


@dataclass(slots=True)
class _Span:
    began_at_s: float
    times: int = 1
    left_out: int = 0


class Throttle:
    """Lets something happen a few ``times`` in every span of ``every_s`` seconds, for each key apart."""

    def __init__(
        self, every_s: float = THROTTLE_S, *, times: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._every_s = every_s
        self._times = times
        self._clock = clock
        self._spans: dict[str, _Span] = {}

    def due(self, key: str = "") -> int | None:
        """How often it was left out for ``key`` since the last time, if it is due now; else ``None``."""
        span = self._spans.get(key)
        if span is None or self._clock() - span.began_at_s >= self._every_s:
            self.restart(key)
            return 0 if span is None else span.left_out
        if span.times < self._times:
            span.times += 1
            return 0
        span.left_out += 1
        return None

    def restart(self, key: str = "") -> None:
        """Count as if it had just happened for ``key``."""
        if len(self._spans) >= KEYS_MAX:
            self._spans.clear()
        self._spans[key] = _Span(self._clock())
