"""The contents of a report: rehearsals, and the work that was offered over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.simulate.engine.results import Result
from headway.simulate.workloads.jobs import Jobs

ROW_SPANS = 300  # about one for every three pixel columns of a plot
ROW_SPAN_MIN_S = 30.0  # shorter ones would show chance, not load


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One rehearsal: a workload under a strategy."""

    workload: str
    strategy: str
    result: Result
    percentile: float = 99.0
    """Of the jobs are to start within the result's objective."""
    risk: float | None = None
    """The risk knob's place, where it was swept."""
    is_drawn: bool = True
    """Whether it is plotted over time."""

    @property
    def label(self) -> str:
        """The strategy and, where it was swept, the knob's place."""
        return self.strategy if self.risk is None else f"{self.strategy}, risk {self.risk:g}"

    @property
    def is_kept(self) -> bool:
        """Whether the objective was met."""
        return self.result.attainment_percent >= self.percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The work that arrives, as workers that it would keep busy, span by span."""

    workload: str
    points: tuple[tuple[float, float], ...]
    """The beginning of each span, in seconds from the start, and workers."""


def offered_load(workload: str, jobs: Jobs, *, slots: int = 1) -> Offered:
    """What ``jobs`` bring over time: the service seconds that arrive in each span over its length."""
    last_s = jobs.at_s[-1] if len(jobs) else 0.0
    span_s = max(ROW_SPAN_MIN_S, last_s / ROW_SPANS)
    sums_s = [0.0] * (int(last_s / span_s) + 1)
    for at_s, service_s in zip(jobs.at_s, jobs.service_s, strict=True):
        sums_s[int(at_s / span_s)] += service_s
    points = tuple((index * span_s, sum_s / span_s / slots) for index, sum_s in enumerate(sums_s))
    return Offered(workload=workload, points=points)


def workloads(rows: Sequence[Row]) -> tuple[str, ...]:
    """The workloads of ``rows``, each once, in their order."""
    return tuple(dict.fromkeys(row.workload for row in rows))
