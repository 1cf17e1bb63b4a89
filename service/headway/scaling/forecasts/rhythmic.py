"""When bursts come that keep a rhythm: workers are kept for them then, and not all the time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.scaling.forecasts.arrival_forecast import Moment, Outlook, RecentRate, Span
from headway.scaling.forecasts.rhythm_detection import expected, steady_per_s
from headway.scaling.forecasts.shortfalls import STOCK_BAND_TIME_S, Shortfalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythmic:
    """How far a rhythm that is believed, and the rate of all other jobs, fell short."""

    by_rhythm: Shortfalls = field(default_factory=Shortfalls)
    rhythmic_jobs: float | None = None
    """What comes by and beside the rhythm in the next span; ``None`` while none is believed."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Rhythmic":
        """With the shortfalls in ``stored``."""
        return cls(by_rhythm=Shortfalls.of(stored.get("by_rhythm")), rhythmic_jobs=stored.get("rhythmic_jobs"))

    def after(self, span: Span | None, moment: Moment) -> "Rhythmic":
        """With the span, where something was expected of it, and with what comes within a tick."""
        counted = self.by_rhythm if span is None else span.counted(self.by_rhythm, self.rhythmic_jobs)
        return Rhythmic(by_rhythm=counted, rhythmic_jobs=_jobs(moment, moment.tick_s))

    def outlook(self, moment: Moment, recent: RecentRate) -> Outlook | None:
        """What the rhythm brings, and how far it fell short so far.

        Standing for all of it all the time costs much; through the moments of a beat it costs next to nothing.
        """
        jobs = _jobs(moment, moment.ahead_s)
        if jobs is None or not self.by_rhythm.is_watched(STOCK_BAND_TIME_S):
            return None
        is_due = bool(expected(moment.periods, now_s=moment.now_s, ahead_s=moment.ahead_s, tick_s=moment.tick_s))
        enough_jobs = jobs + recent.spare_of(self.by_rhythm) - recent.ahead_jobs
        return Outlook(enough_jobs, may_raise=is_due, may_lower=True)


def _jobs(moment: Moment, ahead_s: float) -> float | None:
    """What rhythms bring within ``ahead_s``, and what comes beside them; ``None`` where none is believed."""
    ahead_jobs = expected(moment.periods, now_s=moment.now_s, ahead_s=ahead_s, tick_s=moment.tick_s)
    beside_per_s = steady_per_s(moment.periods, now_s=moment.now_s, tick_s=moment.tick_s)
    return None if ahead_jobs is None or beside_per_s is None else ahead_jobs + beside_per_s * ahead_s
