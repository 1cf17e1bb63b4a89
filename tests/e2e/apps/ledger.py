"""What the jobs of every application here do: write a line as they begin, work a little, write a line as they end."""

import os
import time

TURN_S = 0.1


def work(job_id: str, seconds: float) -> None:
    """Take ``seconds``, and meanwhile the share of a core that ``CORE_SHARE`` names.

    Where a crowded machine gives it less for a while, it takes the rest later.
    """
    share, began_s, began_cpu_s = float(os.environ["CORE_SHARE"]), time.monotonic(), time.thread_time()
    until_s = began_s + seconds
    _note("start", job_id)
    while (left_s := until_s - time.monotonic()) > 0:
        enough_s = began_cpu_s + share * (time.monotonic() - began_s)
        while time.thread_time() < enough_s:
            pass
        time.sleep(min(TURN_S, left_s))
    _note("end", job_id)


def _note(kind: str, job_id: str) -> None:
    # One write to a file that is open for appending: lines of many processes do not mix.
    line = f"{kind} {job_id} {os.environ['HEADWAY_WORKER_ID']}\n"
    file = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
