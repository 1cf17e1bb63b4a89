"""What comes on top of as many jobs as are there: what is there already will not come once more.

Where one job at a time comes, a second worker waits for nobody while the first is at work.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.scaling.arithmetic import ROUNDING
from headway.scaling.forecasts.arrival_forecast import Moment, Outlook, RecentRate, Span
from headway.scaling.forecasts.shortfalls import STOCK_BAND_TIME_S, Shortfalls
from headway.scaling.view import copied

BANDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """How far the rate fell short by how many jobs were there."""

    by_use: tuple[Shortfalls, ...] = ()
    """In bands of ``_band``. Each fades when it is seen again, so that a span costs the work of one."""
    used_jobs: int | None = None
    """How many were there at the last evaluation; ``None``: not known."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "InUse":
        """With the bands in ``stored``."""
        return cls(by_use=tuple(map(Shortfalls.of, stored.get("by_use", ()))), used_jobs=stored.get("used_jobs"))

    def after(self, span: Span | None, moment: Moment) -> "InUse":
        """With the span counted in the band in which it began, and with the jobs that are there."""
        if span is None or self.used_jobs is None:
            return copied(self, used_jobs=moment.used_jobs)
        band = _band(self.used_jobs)
        found = [*self.by_use, *[Shortfalls()] * (band + 1 - len(self.by_use))]
        found[band] = span.counted(found[band], span.rate_jobs)
        return InUse(by_use=tuple(found), used_jobs=moment.used_jobs)

    def outlook(self, moment: Moment, recent: RecentRate) -> Outlook | None:  # noqa: ARG002 - of the interface
        """The spare that is enough with as many jobs as there are.

        The jobs that are there and those to be ready for together never fall as jobs rise. Below 0 where less came than
        the recent rate makes expect.
        """
        if self.used_jobs is None or not self.by_use:
            return None
        own_band = _band(self.used_jobs)
        most_jobs, least_above_jobs = 0.0, math.inf
        for band in range(max(own_band + 1, len(self.by_use))):
            more_jobs = self._jobs_on_top(band, recent)
            if more_jobs is None:
                continue
            if band < own_band:
                most_jobs = max(most_jobs, _upto(band) + more_jobs)
            elif band == own_band:
                least_above_jobs = self.used_jobs + more_jobs
                break
            else:
                least_above_jobs = min(least_above_jobs, _upto(band - 1) + 1 + more_jobs)
        # With as many as there are it was not watched for long: no more than where more were there.
        enough_jobs = max(most_jobs, least_above_jobs) - self.used_jobs - recent.ahead_jobs
        return Outlook(enough_jobs, may_raise=False, may_lower=True)

    def _jobs_on_top(self, band: int, recent: RecentRate) -> float | None:
        """The jobs to be ready for beside those of a band; ``None`` where the band has not been watched for long.

        Jobs come whole: the half that is expected and the half that is spare are one.
        """
        if band >= len(self.by_use) or not self.by_use[band].is_watched(STOCK_BAND_TIME_S):
            return None
        return math.floor(recent.ahead_jobs + math.ceil(recent.spare_of(self.by_use[band])) + ROUNDING)


def _band(jobs: int) -> int:
    """None, one, two, three or four, five to eight and so on; from ``_upto`` of the last on, all are one."""
    return min(BANDS - 1, (jobs - 1).bit_length() + 1) if jobs else 0


def _upto(band: int) -> int:
    """The most jobs of a band that is not the last."""
    return 1 << band >> 1
