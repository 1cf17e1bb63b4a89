"""What a job does and writes of itself; the standard library is enough, for it runs in any environment."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("RUNS_FOLDER", "."))
LOG, HOLD = "runs.jsonl", "hold"
PAUSE_S = 0.005

Step = tuple[str, float]
"""How a run ends, and after how many seconds."""


def run(job_id: str, plan: list[Step], *, attempt: int | None = None) -> str:
    """One run of a job, which ends as ``plan`` has it for this run or, of more runs, for the last. Returns how.

    No run ends while there is a file ``hold``.
    """
    began_s = time.time()
    _write(id=job_id, what="start", at_s=began_s, attempt=attempt)
    mine = [line for line in lines(FOLDER) if line["id"] == job_id and line["what"] == "start"]
    ending, seconds = plan[min(len(mine), len(plan)) - 1]
    while time.time() < began_s + seconds or (FOLDER / HOLD).exists():
        time.sleep(PAUSE_S)
    _write(id=job_id, what=ending, at_s=time.time(), attempt=attempt)
    if ending == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return ending


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was written, in its order."""
    log = folder / LOG
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _write(**values: Any) -> None:
    line = json.dumps({**values, "pid": os.getpid(), "parent": os.getppid()}).encode() + b"\n"
    log = os.open(FOLDER / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line)
    os.close(log)
