"""What was known of each worker when an agent last wrote it down: evidence for the agent that finds it gone."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headway.agent.model import Activity
from headway.agent.state.state_dir import StateFolder
from headway.scaling.model import RunningJob

FILE = "activity.json"


class LastActivity:
    """The file of the last evidence. It is written when the evidence has changed, and may be seconds old."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._written: Mapping[str, Any] = {}

    def read(self) -> dict[str, Activity]:
        """Worker id -> what was last known. What is not as ``keep`` writes it is left out."""
        found = {}
        for worker_id, row in (self._folder.read(FILE) or {}).items():
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                found[worker_id] = _from_json(row)
        return found

    def keep(self, activities: Mapping[str, Activity]) -> None:
        """Write down what is known now; workers of which nothing is known are left out."""
        rows = {
            worker_id: _to_json(activity) for worker_id, activity in activities.items() if activity.is_busy is not None
        }
        if rows == self._written:
            return
        with suppress(OSError):  # a disk that takes nothing: then nothing is known
            self._folder.write(FILE, rows, is_durable=False)
            self._written = rows


def _to_json(activity: Activity) -> dict[str, Any]:
    jobs = [[job.job_id, job.queue, job.job_class, job.attempt, job.started_at_s] for job in activity.running]
    return {"is_busy": activity.is_busy, "running": jobs}


def _from_json(row: Mapping[str, Any]) -> Activity:
    running = tuple(
        RunningJob(job_id=job_id, queue=queue, job_class=job_class, attempt=attempt, started_at_s=float(started_at_s))
        for job_id, queue, job_class, attempt, started_at_s in row["running"]
    )
    is_busy = row["is_busy"]
    return Activity(is_busy=is_busy if isinstance(is_busy, bool) else None, running=running)
