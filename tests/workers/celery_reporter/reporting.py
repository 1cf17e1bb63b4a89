"""A real Celery worker that reports, and what its pipe has brought."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from celery import Celery

from support.tree import SERVICE
from support.waiting import eventually

FOLDER = SERVICE / "workers" / "celery_reporter"
LINE_BYTES_MAX = 4096
SHOP = Path(__file__).with_name("reported_shop.py")
Line = dict[str, Any]
POOLS = {
    "prefork": ("--pool=prefork", "--concurrency=2"),
    "threads": ("--pool=threads", "--concurrency=2"),
    "solo": ("--pool=solo",),
    "gevent": ("--pool=gevent", "--concurrency=2"),
    "eventlet": ("--pool=eventlet", "--concurrency=2"),
}
FINISHED = ["received", "begun", "finished"]


class ReportingWorker:
    """A worker of ``reported_shop``, started as an agent starts it."""

    def __init__(self, folder: Path, broker: str, *words: str, environment: dict[str, str] | None = None) -> None:
        self.pipe = folder / "reporter.pipe"
        os.mkfifo(self.pipe)
        self._file = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)  # as the agent holds it
        self._rest = b""
        self._lines: list[Line] = []
        self.app = Celery("shop", broker=broker)
        self.log = folder / "worker.log"
        paths = os.pathsep.join([str(SHOP.parent), str(FOLDER)])
        variables = {"PYTHONPATH": paths, "BROKER": broker, "HEADWAY_REPORTER_PIPE": str(self.pipe), "LOG": str(folder)}
        argv = [
            "celery",
            "--app=reported_shop",
            "worker",
            "--include=headway_celery_reporter",
            "--loglevel=INFO",
            *words,
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *argv],
                env={**os.environ, **variables, **(environment or {})},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def send(
        self, name: str, *args: object, job_id: str | None = None, queue: str | None = "celery", **options: Any
    ) -> None:
        self.app.send_task(name, args, task_id=job_id or name, queue=queue, **options)

    @property
    def lines(self) -> list[Line]:
        """All that has come so far."""
        with suppress(BlockingIOError):
            while True:
                self._rest += os.read(self._file, 1 << 16)
        *whole, self._rest = self._rest.split(b"\n")
        assert all(len(line) < LINE_BYTES_MAX for line in whole)
        self._lines += [json.loads(line) for line in whole]
        return self._lines

    @property
    def beats(self) -> list[Line]:
        """The whole beats, of as many parts as they came in."""
        parts: dict[int, list[Line]] = {}
        for line in self.lines:
            if line["t"] == "beat":
                parts.setdefault(line["n"], []).append(line)
        return [
            {**some[0], **{key: [item for part in some for item in part[key]] for key in ("running", "queues")}}
            for some in parts.values()
            if len(some) == some[0]["parts"]
        ]

    def events(self, job_id: str) -> list[Line]:
        return [line for line in self.lines if line["t"] != "beat" and line["id"] == job_id]

    def life(self, job_id: str) -> list[str]:
        """What became of a job, attempt by attempt: the next may be received before a child has reported its retry."""
        events = sorted(self.events(job_id), key=lambda line: (line["attempt"], line["at_s"]))
        return [line.get("outcome", line["t"]) for line in events]

    def next_beat(self) -> Line:
        """A beat that began after this call."""
        number = max((beat["n"] for beat in self.beats), default=0)
        eventually(lambda: self.process.poll() is not None or any(beat["n"] > number for beat in self.beats))
        assert self.process.poll() is None, self.log.read_text()
        return next(beat for beat in self.beats if beat["n"] > number)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        os.close(self._file)
        sys.stderr.write(self.log.read_text()[-4000:])  # where a test has failed, it says why


@contextmanager
def reporting(
    folder: Path, broker: str, words: Sequence[str], environment: dict[str, str] | None = None
) -> Iterator[ReportingWorker]:
    """A worker that is ready."""
    worker = ReportingWorker(folder, broker, *words, environment=environment)
    try:
        worker.next_beat()
        yield worker
    finally:
        worker.close()


def unreported(worker: ReportingWorker) -> list[tuple[int, str]]:
    """Number of a beat, and the id of a job that is not in it, began before it, and reported its end after it."""
    lines = list(worker.lines)
    last_parts = {line["n"]: place for place, line in enumerate(lines) if line["t"] == "beat"}
    runs = [(line, _end_of(lines, place)) for place, line in enumerate(lines) if line["t"] == "begun"]
    return [
        (beat["n"], begun["id"])
        for beat in worker.beats
        for begun, end in runs
        if begun["at_s"] < beat["at_s"]
        and last_parts[beat["n"]] < end
        and begun["id"] not in {job[0] for job in beat["running"]}
    ]


def _end_of(lines: list[Line], begun: int) -> int:
    """The place of the line that ends a job, after that of all lines if there is none."""
    job_id = lines[begun]["id"]
    ends = (
        place for place in range(begun, len(lines)) if lines[place]["t"] == "ended" and lines[place]["id"] == job_id
    )
    return next(ends, len(lines))
