"""What earlier days or weeks brought at this time: predicted outside (``history``), believed or not here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.forecasts.arrival_forecast import Moment, Outlook, RecentRate, Span
from headway.scaling.forecasts.shortfalls import Shortfalls
from headway.scaling.view import copied

STOCK_RECALL_TIME_S = HOUR_S  # for which earlier days only add: that they fell short of nothing yet is no proof


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierDays:
    """How far the rate and earlier days fell short together; only since earlier days predict anything."""

    by_recall: Shortfalls = field(default_factory=Shortfalls)
    recalled_jobs: float | None = None
    recalled_mean_jobs: float = 0.0
    """What standing for recalled jobs costs on average."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "EarlierDays":
        """With the shortfalls in ``stored``."""
        jobs, mean_jobs = stored.get("recalled_jobs"), stored.get("recalled_mean_jobs", 0.0)
        return cls(by_recall=Shortfalls.of(stored.get("by_recall")), recalled_jobs=jobs, recalled_mean_jobs=mean_jobs)

    def after(self, span: Span | None, moment: Moment) -> "EarlierDays":
        """With the span, where something was predicted for it, and with what the past predicts now."""
        if span is None:
            return copied(self, recalled_jobs=moment.recalled_jobs)
        return EarlierDays(
            by_recall=span.counted(self.by_recall, span.rate_jobs, self.recalled_jobs),
            recalled_jobs=moment.recalled_jobs,
            recalled_mean_jobs=self.recalled_mean_jobs * span.kept + (self.recalled_jobs or 0.0) * (1 - span.kept),
        )

    def outlook(self, moment: Moment, recent: RecentRate) -> Outlook | None:
        """What is predicted, and how far that fell short so far.

        Weeks have been judged by a whole week before they come here. What is learned here is forgotten in a day, and
        what comes once a week would never pay.
        """
        if self.recalled_jobs is None:
            return None
        spare_jobs = recent.spare_of(self.by_recall.seen(0.0, jobs=0, span_s=recent.quiet_s))
        is_watched = self.by_recall.is_watched(STOCK_RECALL_TIME_S)
        is_believed = moment.is_by_weeks or _pays(spare_jobs + self.recalled_mean_jobs, recent)
        return Outlook(
            spare_jobs + self.recalled_jobs,
            may_raise=is_believed or not is_watched,
            may_lower=is_believed and is_watched,
        )


def _pays(standing_jobs: float, recent: RecentRate) -> bool:
    """Whether guarding by earlier days has asked for fewer pre-warmed workers than guarding without."""
    return standing_jobs < recent.spare_jobs
