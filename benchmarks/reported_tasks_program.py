"""The Celery worker whose jobs `benchmarks/emit.py` has reported through a pipe; prints its figures as JSON.

It is a real worker without a pool and a broker: its jobs are Celery's own requests. What counts is the time that
Celery's three signals of a job take with the reporter, less what they take without. A job begins when it is due, also
if others took long. The reporter's thread beats beside them.
"""

import json
import os
import sys
import time
from array import array
from collections.abc import Iterable, Iterator

from celery import Celery, signals
from celery.worker.request import Request
from kombu.message import Message

HOT_JOBS = 2000  # without a pause, so that processor caches have what reporting needs
BARE_S = 3.0  # of jobs without the reporter, to compare with
LATE_S = 0.1  # a job that reporting held up for as long
JOB_SIGNALS = (signals.task_received, signals.task_prerun, signals.task_postrun)


def resident_bytes() -> int:
    """Of this process, now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - pathlib would count as this program's own
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


app = Celery("shop", broker="memory://")


@app.task(name="shop.mail.send", lazy=False)  # a worker's signals carry the task itself, and no proxy of it
def send() -> None:
    """Do nothing."""


class Consumer:
    """What of a consumer the reporter reads."""

    task_consumer = None
    connection = None
    hub = None


def request_of(number: int) -> Request:
    """A request as Celery makes one of a message."""
    headers = {"id": f"6f1c0a52-7b0e-4f2f-9d0b-{number:012d}", "task": send.name, "retries": 0}
    route = {"exchange": "", "routing_key": "celery", "redelivered": False}
    body = json.dumps([[], {}, {}])
    message = Message(
        body, headers=headers, delivery_info=route, content_type="application/json", content_encoding="utf-8"
    )
    return Request(message, app=app, task=send)


def signalled_s(request: Request) -> float:
    """How long the three signals of a job take."""
    send.push_request(**request.request_dict, is_eager=False)
    about = {"sender": send, "task_id": request.id, "task": send, "args": (), "kwargs": {}}
    began_s = time.perf_counter()
    signals.task_received.send(sender=None, request=request)
    signals.task_prerun.send(**about)
    signals.task_postrun.send(**about, retval=None, state="SUCCESS")
    took_s = time.perf_counter() - began_s
    send.pop_request()
    return took_s


def paced(seconds: float, jobs_per_s: float) -> Iterator[float]:
    """How long the signals of each job take, of so many jobs that begin when they are due."""
    began_s = time.monotonic()
    for number in range(int(seconds * jobs_per_s)):
        time.sleep(max(0.0, began_s + number / jobs_per_s - time.monotonic()))
        yield signalled_s(request_of(number))


def mean_s(durations_s: Iterable[float]) -> float:
    each = tuple(durations_s)
    return sum(each) / len(each)


def main(seconds: float, jobs_per_s: float) -> None:
    """Report for as long."""
    took_s = array("d", [0.0]) * int(seconds * jobs_per_s)  # in memory from the beginning, so that none of it counts
    for number in range(HOT_JOBS):
        signalled_s(request_of(number))
    bare_s = mean_s(paced(BARE_S, jobs_per_s))
    bare_hot_s = mean_s(signalled_s(request_of(number)) for number in range(HOT_JOBS))
    worker = app.Worker(pool="solo", concurrency=1, quiet=True)
    worker.consumer = Consumer()
    before_bytes, began_s = resident_bytes(), time.perf_counter()
    import headway_celery_reporter

    signals.worker_init.send(sender=worker)
    signals.worker_ready.send(sender=None)
    start_up_s = time.perf_counter() - began_s
    assert all(signal.receivers for signal in JOB_SIGNALS)
    print("ready", flush=True)
    for number, signalled in enumerate(paced(seconds, jobs_per_s)):
        took_s[number] = signalled - bare_s
    lost_lines = headway_celery_reporter._pipe.lost_lines  # noqa: SLF001 - it has no public name for programs
    hot_s = mean_s(signalled_s(request_of(number)) for number in range(HOT_JOBS)) - bare_hot_s
    took = sorted(took_s)
    figures = {
        "jobs": len(took),
        "mean_s": sum(took) / len(took),
        "hot_s": hot_s,
        "p99_s": took[int(0.99 * len(took))],
        "most_s": took[-1],
        "late": sum(each_s > LATE_S for each_s in took),
        "start_up_s": start_up_s,
        "grown_mb": (resident_bytes() - before_bytes) / 1e6,
        "lost": lost_lines,
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
