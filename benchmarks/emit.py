"""What reporting its jobs costs a program, while the control plane answers, is away, hangs, or answers 500.

    python benchmarks/emit.py [--seconds 10] [--jobs-per-s 500] [--modes answers away hangs fails]

A program of its own reports three events a job: enqueued, started, finished. Printed are the time that this adds to a
job, by how much its resident memory grows from the import on, and what became of the events: each must be taken, kept,
or counted as dropped. The goals are 20 µs at the mean and 0.2 ms at p99 a job, and 15 MB.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.http_control import HttpControl, serving

MODES = ("answers", "away", "hangs", "fails")
KINDS = ("enqueued", "started", "finished")
LATE_S = 0.1  # a job that reporting held up for as long
HEADS = ["control plane", "jobs", "mean µs", "p99 µs", "most µs", "late", "RSS MB", "events", "taken", "dropped"]


def program(seconds: float, jobs_per_s: float) -> None:
    """The program that reports; prints its figures as JSON. A job begins when it is due, however long others took."""
    before = psutil.Process().memory_info().rss
    from headway.emit.emitter import Emitter

    emitter = Emitter.from_environment()
    took_s: list[float] = []
    began_s = time.monotonic()
    while time.monotonic() - began_s < seconds:
        due_s = began_s + len(took_s) / jobs_per_s
        time.sleep(max(0.0, due_s - time.monotonic()))
        job_id, at_s = f"6f1c0a52-7b0e-4f2f-9d0b-{len(took_s):012d}", time.time()
        reported_s = time.perf_counter()
        emitter.report("enqueued", "shop/mail", job_id, attempt=1, job_class="shop.mail.send")
        emitter.report("started", "shop/mail", job_id, enqueued_at_s=at_s, attempt=1, job_class="shop.mail.send")
        emitter.report("finished", "shop/mail", job_id, started_at_s=at_s, attempt=1, job_class="shop.mail.send")
        took_s.append(time.perf_counter() - reported_s)
    grown = psutil.Process().memory_info().rss - before
    emitter.close()
    took_s.sort()
    figures = {
        "jobs": len(took_s),
        "mean_s": sum(took_s) / len(took_s),
        "p99_s": took_s[int(0.99 * len(took_s))],
        "most_s": took_s[-1],
        "late": sum(each_s > LATE_S for each_s in took_s),
        "grown_mb": grown / 1e6,
        "dropped": emitter.dropped_events,
    }
    print(json.dumps(figures), flush=True)
    os._exit(0)  # the control plane that hangs is not waited for


@contextmanager
def control(mode: str) -> Iterator[HttpControl]:
    """A control plane that behaves so."""
    made = HttpControl()
    if mode == "away":
        made.url = "http://127.0.0.1:1"
        yield made
        return
    with serving(made):
        if mode == "hangs":
            made.goes_on.clear()
        elif mode == "fails":
            made.status = 500
        yield made


def measured(mode: str, *, seconds: float, jobs_per_s: float) -> list[str]:
    with control(mode) as made:
        words = [sys.executable, __file__, "--program", "--seconds", str(seconds), "--jobs-per-s", str(jobs_per_s)]
        environment = {**os.environ, "HEADWAY_URL": made.url}
        ended = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True, timeout=2 * seconds + 60)
        figures = json.loads(ended.stdout)
        taken = len(made.events)
    return [
        mode,
        f"{figures['jobs']:,}",
        *(f"{1e6 * figures[name]:.0f}" for name in ("mean_s", "p99_s", "most_s")),
        f"{figures['late']:,}",
        f"{figures['grown_mb']:.1f}",
        f"{len(KINDS) * figures['jobs']:,}",
        f"{taken:,}",
        f"{figures['dropped']:,}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each way in which the control plane behaves")
    parser.add_argument("--jobs-per-s", type=float, default=500.0)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, help="how the control plane behaves")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        program(options.seconds, options.jobs_per_s)
    print(f"{os.cpu_count()} processors, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    print(" | ".join(HEADS))
    for mode in options.modes:
        print(" | ".join(measured(mode, seconds=options.seconds, jobs_per_s=options.jobs_per_s)), flush=True)


if __name__ == "__main__":
    main()
