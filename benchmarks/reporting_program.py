"""The program whose jobs `benchmarks/emit.py` has reported; prints its figures as JSON. It imports little of its own.

A job begins when it is due, however long others took.
"""

import os
import sys
import time
from array import array

LATE_S = 0.1  # a job that reporting held up for as long


def resident_bytes() -> int:
    """Of this process, now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - pathlib would count as this program's own
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def main(seconds: float, jobs_per_s: float) -> None:
    """Report for as long."""
    took_s = array("d", [0.0]) * int(seconds * jobs_per_s)  # in memory from the beginning, so that none of it counts
    before_bytes = resident_bytes()
    from headway.emit.emitter import Emitter

    emitter = Emitter.from_environment()
    imported_bytes = resident_bytes()
    began_s = time.monotonic()
    for number in range(len(took_s)):
        time.sleep(max(0.0, began_s + number / jobs_per_s - time.monotonic()))
        job_id, at_s = f"6f1c0a52-7b0e-4f2f-9d0b-{number:012d}", time.time()
        reported_s = time.perf_counter()
        emitter.report("enqueued", "shop/mail", job_id, attempt=1, job_class="shop.mail.send")
        emitter.report("started", "shop/mail", job_id, enqueued_at_s=at_s, attempt=1, job_class="shop.mail.send")
        emitter.report("finished", "shop/mail", job_id, started_at_s=at_s, attempt=1, job_class="shop.mail.send")
        took_s[number] = time.perf_counter() - reported_s
    grown_bytes = resident_bytes() - before_bytes
    emitter.close()
    took = sorted(took_s)
    figures = {
        "jobs": len(took),
        "mean_s": sum(took) / len(took),
        "p99_s": took[int(0.99 * len(took))],
        "most_s": took[-1],
        "late": sum(each_s > LATE_S for each_s in took),
        "imported_mb": (imported_bytes - before_bytes) / 1e6,
        "grown_mb": grown_bytes / 1e6,
        "dropped": emitter.dropped_events,
    }
    import json

    print(json.dumps(figures), flush=True)
    os._exit(0)  # the control plane that hangs is not waited for


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
