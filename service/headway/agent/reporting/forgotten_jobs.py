"""Jobs that workers list as running although they have reported their end, for the agent that takes these workers over.

Up to Celery 5.5, the pool of processes forgets at the loss of its broker what it runs: the main process never learns of
the end, and lists the job until the worker ends. The end was reported once, to one agent.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headway.agent.reporting.worker_report import Attempt, ReportedEnd
from headway.agent.state.state_dir import StateFolder

FILE = "forgotten.json"
FORGOTTEN_KEPT_MAX = 1_000  # of a worker

Ends = Mapping[Attempt, ReportedEnd]


class ForgottenJobs:
    """The file of these ends. It is written when they have changed, and may be seconds old."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._written: Mapping[str, Any] = {}

    def read(self) -> dict[str, dict[Attempt, ReportedEnd]]:
        """Worker id -> the reported ends. What is not as ``keep`` writes it is left out."""
        found: dict[str, dict[Attempt, ReportedEnd]] = {}
        for worker_id, rows in (self._folder.read(FILE) or {}).items():
            with suppress(ValueError, TypeError):
                found[worker_id] = {
                    (str(job_id), None if attempt is None else int(attempt)): ReportedEnd(
                        started_at_s=float(started_at_s), at_s=float(at_s)
                    )
                    for job_id, attempt, started_at_s, at_s in rows
                }
        return found

    def keep(self, forgotten: Mapping[str, Ends]) -> None:
        """Write down the ends by worker id; a worker without any is left out."""
        rows = {worker_id: _rows(ends) for worker_id, ends in forgotten.items() if ends}
        if rows == self._written:
            return
        with suppress(OSError):  # a disk that takes nothing: the next agent believes what the worker lists
            self._folder.write(FILE, rows, is_durable=False)
            self._written = rows


def _rows(ends: Ends) -> list[list[Any]]:
    newest = list(ends.items())[-FORGOTTEN_KEPT_MAX:]
    return [[*attempt, end.started_at_s, end.at_s] for attempt, end in newest]
