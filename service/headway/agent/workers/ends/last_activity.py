"""What was known of each worker when an agent last wrote it down: evidence for the agent that finds it gone."""

from collections.abc import Mapping
from typing import Any

from headway.agent.model import Activity
from headway.agent.state.rows_file import RowsFile
from headway.agent.state.state_dir import StateFolder
from headway.scaling.model import RunningJob

FILE = "activity.json"


def last_activity(folder: StateFolder) -> RowsFile[Activity]:
    """The file of the last evidence. Workers of which nothing is known have no place in it."""
    return RowsFile(folder, FILE, to_json=_to_json, from_json=_from_json)


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
