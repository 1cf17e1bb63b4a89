"""Collectors at work, as the command runs them, and everything that they sent with when it came."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.collect.collector_loop import Collectors
from headway.collect.libraries import Libraries
from headway.connections import Connection
from headway.emit.outbox_folder import state_folder
from headway.scaling.model import JobEvent, QueueSample, TelemetryBatch, WorkerActivity
from support.waiting import eventually


class Collected:
    """What a control plane took. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self.samples: dict[str, list[tuple[QueueSample, float]]] = defaultdict(list)
        self.events: list[JobEvent] = []
        self.activities: list[WorkerActivity] = []

    def send(self, batch: TelemetryBatch) -> None:
        for sample in batch.samples:
            self.samples[sample.queue].append((sample, time.monotonic()))
        self.events += batch.events
        self.activities += batch.activities

    def comes_to(self, queue: str, waiting_jobs: int) -> QueueSample:
        """The sample of ``queue`` in which so many wait, once it is the last one."""
        eventually(lambda: (of_queue := self.samples[queue]) and of_queue[-1][0].waiting_jobs == waiting_jobs)
        return self.samples[queue][-1][0]

    def since(self, queue: str, since_s: float) -> tuple[QueueSample, float] | None:
        """The first sample of ``queue`` since then."""
        return next((each for each in list(self.samples[queue]) if each[1] > since_s), None)


@contextmanager
def collecting(
    connections: Iterable[Connection], folder: Path, collected: Collected | None = None
) -> Iterator[Collected]:
    """Collectors of ``connections`` whose state is in ``folder``. They send to ``collected``, else to a new one."""
    collected = collected or Collected()
    with state_folder(folder) as state:
        collectors = Collectors(connections, libraries=Libraries(), folder=state, send=collected.send)
        collectors.start()
        try:
            yield collected
        finally:
            collectors.ask_to_stop()
            collectors.wait_stopped(60.0)
