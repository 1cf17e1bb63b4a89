"""What reporting its jobs costs a program, and a Celery worker, whatever becomes of the reports.

    python benchmarks/emit.py [--seconds 10] [--jobs-per-s 500] [--modes answers away hangs fails]
        [--pipes read hung gone full] [--workers none read hung gone full]

A program of its own reports three events a job: enqueued, started, finished, while the control plane answers, is away,
hangs, or answers 500. Printed are the time that this adds to a job, by how much its resident memory grows by the import
and in all, and what became of the events: each must be taken, kept, or counted as dropped. The goals are 20 µs at the
mean and 0.2 ms at p99 a job, and 15 MB.

A Celery worker reports its jobs to its agent by `headway_celery_reporter`: received, begun, ended, and a beat. The
agent reads the pipe, hangs, has gone and removed it, or the pipe is full from the beginning. The goals are 20 µs at the
mean and 0.2 ms at p99 a job, 10 MB, 50 ms at the start, and no job late, failed or lost. `TMPDIR=/dev/shm` has the pipe
in memory, as agents have it in `/run` and `XDG_RUNTIME_DIR`: on a disk, each line also changes the times of its file.

With `--workers`, a real worker with four processes takes as many jobs from a Valkey, `none` without the reporter.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from bench import machine
from celery import Celery

from headway.agent.reporting.reading_wait import READS_GAP_S, wait_reading
from headway.agent.reporting.report_pipe import READ_BYTES_MAX
from headway.agent.system.wake_pipe import WakePipe
from headway.store.embedded import ensure_valkey

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
PIPES = ("read", "hung", "gone", "full")
WORKERS = ("none", *PIPES)
REPORTER = Path(__file__).parents[1] / "service" / "headway" / "workers" / "celery_reporter"
TASKS_PROGRAM = Path(__file__).with_name("reported_tasks_program.py")
PIPE_HEADS = [
    "pipe",
    "jobs",
    "mean µs",
    "back to back µs",
    "p99 µs",
    "most µs",
    "late",
    "start ms",
    "RSS MB",
    "lost lines",
]
WORKER_HEADS = ["worker's pipe", "sent", "ended", "late", "begun lines", "ended lines", "load"]
READY_WITHIN_S = ENDED_WITHIN_S = 120.0
READ_WITHIN_S = 60.0


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


class Pipe:
    """A pipe of an agent that behaves so, and what it has read."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.path, self.mode, self.data = folder / "reporter.pipe", mode, bytearray()
        os.mkfifo(self.path)
        self._file = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        if mode == "full":
            with suppress(BlockingIOError):
                while True:
                    os.write(self._file, bytes(4096))

    def watch(self) -> None:
        """The worker has opened it."""
        if self.mode == "gone":
            self.path.unlink()
            os.close(self._file)
        elif self.mode == "read":
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        wakes = WakePipe()
        while True:
            wait_reading(wakes, self, READ_WITHIN_S)  # as the agent does: few of the worker's lines wake it

    def watchable(self) -> frozenset[int]:
        return frozenset({self._file})

    def read(self, fds: Collection[int]) -> bool:
        for file in fds:
            self.data += os.read(file, READ_BYTES_MAX)
        return True


def reporting_cost(mode: str, *, seconds: float, jobs_per_s: float) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder:
        pipe = Pipe(Path(folder), mode)
        environment = {**os.environ, "HEADWAY_REPORTER_PIPE": str(pipe.path), "PYTHONPATH": str(REPORTER)}
        words = [sys.executable, "-W", "ignore", str(TASKS_PROGRAM), str(seconds), str(jobs_per_s)]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            program.stdout.readline()  # it has opened the pipe
            pipe.watch()
            figures = json.loads(program.stdout.readline())
    return [
        mode,
        f"{figures['jobs']:,}",
        *(f"{1e6 * figures[name]:.0f}" for name in ("mean_s", "hot_s", "p99_s", "most_s")),
        f"{figures['late']:,}",
        f"{1e3 * figures['start_up_s']:.0f}",
        f"{figures['grown_mb']:.1f}",
        f"{figures['lost']:,}",
    ]


def worker_run(mode: str, *, seconds: float, jobs_per_s: float) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        server = ensure_valkey(folder / "valkey")
        socket = server.url.removeprefix("unix://").partition("?")[0]
        pipe = Pipe(folder, mode)
        environment = {
            **os.environ,
            "BROKER": f"redis+socket://{socket}",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(REPORTER)]),
            "HEADWAY_REPORTER_PIPE": str(pipe.path),
        }
        words = ["--app=reported_shop", "worker", "--pool=prefork", "--concurrency=4", "--loglevel=INFO"]
        if mode != "none":
            words.append("--include=headway_celery_reporter")
        log = folder / "worker.log"
        with log.open("w") as output:
            worker = subprocess.Popen(
                [sys.executable, "-m", "celery", *words],
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            wait_until(lambda: " ready." in log.read_text(), READY_WITHIN_S)
            pipe.watch()
            sent, ended, late = flood(socket, jobs=int(seconds * jobs_per_s), jobs_per_s=jobs_per_s)
            time.sleep(2 * READS_GAP_S)
            lines = [f"{pipe.data.count(kind):,}" for kind in (b'"t":"begun"', b'"t":"ended"')]
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            server.wait_stopped()
    return [mode, f"{sent:,}", f"{ended:,}", f"{late:,}", *lines, f"{os.getloadavg()[0]:.1f}"]


def flood(socket: str, *, jobs: int, jobs_per_s: float) -> tuple[int, int, int]:
    """How many jobs were sent, ended, and began more than a second late."""
    app = Celery("shop", broker=f"redis+socket://{socket}")
    counts = redis.Redis(unix_socket_path=socket, db=1)
    began_s = time.monotonic()
    with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
        for number in range(jobs):
            time.sleep(max(0.0, began_s + number / jobs_per_s - time.monotonic()))
            app.send_task("shop.mail.send", (time.time(),), producer=producer)
    with suppress(TimeoutError):  # the figures say it
        wait_until(lambda: int(counts.get("ended") or 0) >= jobs, ENDED_WITHIN_S)
    return jobs, int(counts.get("ended") or 0), int(counts.get("late") or 0)


def wait_until(holds: Callable[[], bool], within_s: float) -> None:
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            raise TimeoutError
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each way in which the others behave")
    parser.add_argument("--jobs-per-s", type=float, default=500.0)
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES, help="how the control plane behaves")
    parser.add_argument("--pipes", nargs="*", choices=PIPES, default=PIPES, help="how the agent behaves")
    parser.add_argument("--workers", nargs="*", choices=WORKERS, default=(), help="how it behaves beside a real worker")
    options = parser.parse_args()
    print(machine())
    for heads, modes, measure in (
        (HEADS, options.modes, measured),
        (PIPE_HEADS, options.pipes, reporting_cost),
        (WORKER_HEADS, options.workers, worker_run),
    ):
        if modes:
            print(" | ".join(heads))
        for mode in modes:
            figures = measure(mode, seconds=options.seconds, jobs_per_s=options.jobs_per_s)
            print(" | ".join(figures), flush=True)


if __name__ == "__main__":
    main()
