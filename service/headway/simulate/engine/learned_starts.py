"""What the control plane knows of how long workers take to start, learned from one start after the other."""

from collections import deque
from math import exp
from random import Random
from statistics import NormalDist

from headway.scaling.metrics.behaviour import RECENT_MAX, WEIGHT, Spread, mean_s, parameters, spread_of


class LearnedStarts:
    """The mean, in which the newest counts most, and the 95th percentile of the newest; ``None`` while unknown."""

    def __init__(self, known: Spread | None = None, *, of_late_s: float | None = None, draws: Random) -> None:
        """``known`` are the starts before, and ``of_late_s`` their mean, where it was measured."""
        self.mean_s = mean_s(known) if of_late_s is None and known is not None else of_late_s
        self.p95_s = None if known is None else known.p95_s
        self._recent_s = deque(_observed_s(known, draws), maxlen=RECENT_MAX)

    def add(self, took_s: float) -> None:
        """Learn from one start."""
        before_s = took_s if self.mean_s is None else self.mean_s
        self.mean_s = before_s + WEIGHT * (took_s - before_s)
        self._recent_s.append(took_s)
        found = spread_of(self._recent_s)
        assert found is not None
        self.p95_s = found.p95_s


def _observed_s(known: Spread | None, draws: Random) -> list[float]:
    """Start-ups that are spread like ``known``, as many, in no order."""
    if known is None:
        return []
    count = min(known.count, RECENT_MAX)
    if known.p50_s == known.p95_s:
        return [known.p50_s] * count
    lognormal = NormalDist(*parameters(known))
    found = [exp(lognormal.inv_cdf((rank + 0.5) / count)) for rank in range(count)]
    draws.shuffle(found)
    return found
