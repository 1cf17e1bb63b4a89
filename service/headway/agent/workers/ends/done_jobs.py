"""When a worker of each kind last ended a job: what a crash loop does in spite of everything."""

from collections.abc import Iterable

from headway.agent.model import Activity
from headway.agent.reporting.report_lines import JobReport, ReportKind
from headway.agent.workers.worker_record import Record

Kind = tuple[str, str]


class DoneJobs:
    """The last end of a job by pool and template, as workers report it or their broker counts it."""

    def __init__(self) -> None:
        self._last_s: dict[Kind, float] = {}
        self._ended: dict[str, int] = {}
        """By worker id, how many jobs it had ended."""

    def last_s(self, kind: Kind) -> float | None:
        """When a worker of the kind last ended a job; ``None``: not since this agent began, as far as is known."""
        return self._last_s.get(kind)

    def note_reports(self, kind: Kind, reports: Iterable[JobReport], *, now_s: float) -> None:
        """Take note of what a worker of the kind has reported. A job that its worker's end has cut was not done."""
        if any(each.kind is ReportKind.ENDED and not each.is_cut for each in reports):
            self._last_s[kind] = now_s

    def note_counts(self, workers: Iterable[tuple[Record, Activity]], *, now_s: float) -> None:
        """Take note of how many jobs the present workers have ended, where somebody counts them."""
        counts = {}
        for record, activity in workers:
            if activity.ended_jobs is None:
                continue
            counts[record.worker_id] = activity.ended_jobs
            if activity.ended_jobs > self._ended.get(record.worker_id, 0):
                self._last_s[record.kind] = now_s
        self._ended = counts
