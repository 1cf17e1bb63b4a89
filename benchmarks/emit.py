"""What reporting its jobs costs a program, while the control plane answers, is away, hangs, or answers 500.

    python benchmarks/emit.py [--seconds 10] [--jobs-per-s 500] [--modes answers away hangs fails]

A program of its own reports three events a job: enqueued, started, finished. Printed are the time that this adds to a
job, by how much its resident memory grows by the import and in all, and what became of the events: each must be taken,
kept, or counted as dropped. The goals are 20 µs at the mean and 0.2 ms at p99 a job, and 15 MB.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import machine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.http_control import HttpControl, serving

MODES = ("answers", "away", "hangs", "fails")
KINDS = ("enqueued", "started", "finished")
PROGRAM = Path(__file__).with_name("reporting_program.py")
HEADS = [
    "control plane",
    "jobs",
    "mean µs",
    "p99 µs",
    "most µs",
    "late",
    "import MB",
    "RSS MB",
    "events",
    "taken",
    "dropped",
]


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
        words = [sys.executable, str(PROGRAM), str(seconds), str(jobs_per_s)]
        environment = {**os.environ, "HEADWAY_URL": made.url}
        ended = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True, timeout=2 * seconds + 60)
        figures = json.loads(ended.stdout)
        taken = len(made.events)
    return [
        mode,
        f"{figures['jobs']:,}",
        *(f"{1e6 * figures[name]:.0f}" for name in ("mean_s", "p99_s", "most_s")),
        f"{figures['late']:,}",
        f"{figures['imported_mb']:.1f}",
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
    options = parser.parse_args()
    print(machine())
    print(" | ".join(HEADS))
    for mode in options.modes:
        print(" | ".join(measured(mode, seconds=options.seconds, jobs_per_s=options.jobs_per_s)), flush=True)


if __name__ == "__main__":
    main()
