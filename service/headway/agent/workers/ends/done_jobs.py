"""When workers last ended a job: what a crash loop does in spite of everything."""

from collections.abc import Iterable
from dataclasses import dataclass

from headway.agent.model import Activity
from headway.agent.reporting.report_lines import JobReport, ReportKind
from headway.agent.workers.worker_record import Record

DONE_KEPT_S = 600.0  # of workers that are gone: longer than the longest pause of a crash loop

Kind = tuple[str, str]


@dataclass(slots=True)
class _Worker:
    """A worker, how many jobs it has ended by somebody's count, and when it last ended one."""

    kind: Kind
    started_at_s: float
    ended_jobs: int = 0
    last_s: float | None = None


class DoneJobs:
    """The last end of a job by worker, as the worker reports it or its broker counts it."""

    def __init__(self) -> None:
        self._workers: dict[str, _Worker] = {}

    def last_s(self, kind: Kind, *, started_after_s: float) -> float | None:
        """When a worker of the kind that was started after that time last ended a job; ``None``: none has, as far as is
        known.
        """
        found = (
            each.last_s
            for each in self._workers.values()
            if each.kind == kind and each.started_at_s > started_after_s and each.last_s is not None
        )
        return max(found, default=None)

    def note_start(self, record: Record) -> None:
        """Take note of a worker that was started."""
        self._workers[record.worker_id] = _Worker(kind=record.kind, started_at_s=record.life.started_at_s)

    def note_reports(self, worker_id: str, reports: Iterable[JobReport], *, now_s: float) -> None:
        """Take note of what a worker has reported. A job that its worker's end has cut was not done."""
        worker = self._workers.get(worker_id)
        if worker is not None and any(each.kind is ReportKind.ENDED and not each.is_cut for each in reports):
            worker.last_s = now_s

    def note_counts(self, workers: Iterable[tuple[Record, Activity]], *, now_s: float) -> None:
        """Take note of how many jobs the present workers have ended, where somebody counts them."""
        present = set()
        for record, activity in workers:
            present.add(record.worker_id)
            if record.worker_id not in self._workers:  # an agent before has started it
                self.note_start(record)
            worker = self._workers[record.worker_id]
            if activity.ended_jobs is not None and activity.ended_jobs > worker.ended_jobs:
                worker.ended_jobs, worker.last_s = activity.ended_jobs, now_s
        self._workers = {
            worker_id: each
            for worker_id, each in self._workers.items()
            if worker_id in present or now_s - (each.last_s or each.started_at_s) <= DONE_KEPT_S
        }
