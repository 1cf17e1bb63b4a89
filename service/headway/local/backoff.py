"""How long to wait before what has failed is tried again."""

from dataclasses import dataclass

BACKOFF_DOUBLINGS_MAX = 30  # any longest pause is reached by then, and a float is not yet too small for it


@dataclass(frozen=True, slots=True)
class DoublingPause:
    """From ``shortest_s`` after the first failure, twice as long after each one that follows, up to ``longest_s``."""

    shortest_s: float
    longest_s: float

    def after_s(self, failures: int) -> float:
        """The pause after so many failures in a row, at least one."""
        return min(self.longest_s, self.shortest_s * 2.0 ** min(failures - 1, BACKOFF_DOUBLINGS_MAX))
