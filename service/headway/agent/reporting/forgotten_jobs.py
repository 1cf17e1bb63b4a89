"""Jobs that workers list as running although they have reported their end, for the agent that takes these workers over.

Up to Celery 5.5, the pool of processes forgets at the loss of its broker what it runs: the main process never learns of
the end, and lists the job until the worker ends. The end was reported once, to one agent.
"""

from collections.abc import Mapping
from typing import Any

from headway.agent.reporting.worker_report import Attempt, ReportedEnd
from headway.agent.state.rows_file import RowsFile
from headway.agent.state.state_dir import StateFolder

FILE = "forgotten.json"
FORGOTTEN_KEPT_MAX = 1_000  # of a worker

Ends = Mapping[Attempt, ReportedEnd]


def forgotten_jobs(folder: StateFolder) -> RowsFile[Ends]:
    """The file of these ends. Workers without any have no place in it."""
    return RowsFile(folder, FILE, to_json=_to_json, from_json=_from_json)


def _to_json(ends: Ends) -> list[list[Any]]:
    newest = list(ends.items())[-FORGOTTEN_KEPT_MAX:]
    return [[*attempt, end.started_at_s, end.at_s] for attempt, end in newest]


def _from_json(rows: Any) -> Ends:
    return {
        (str(job_id), None if attempt is None else int(attempt)): ReportedEnd(
            started_at_s=float(started_at_s), at_s=float(at_s)
        )
        for job_id, attempt, started_at_s, at_s in rows
    }
