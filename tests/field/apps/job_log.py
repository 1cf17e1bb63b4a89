"""The application's own log, which is the truth: a line per event, as JSON.

Each process of a worker bears the worker's id in its environment, also behind a shell.
"""

import json
import os
import time


def work(job_id: str, seconds: float) -> None:
    """A job that waits for something else, without taking a processor."""
    note("start", job_id)
    time.sleep(seconds)
    note("end", job_id)


def note(kind: str, job_id: str = "") -> None:
    """Append one event."""
    worker_id = os.environ.get("HEADWAY_WORKER_ID", "")
    row = {"at_s": time.time(), "kind": kind, "worker_id": worker_id, "pid": os.getpid(), "job_id": job_id}
    # One write to a file that is open for appending: lines of many processes do not mix.
    file = os.open(os.environ["JOB_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(row) + "\n").encode())
    finally:
        os.close(file)
