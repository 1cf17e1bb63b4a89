"""Real RQ for the tests: jobs, a worker in this process, and a collector's eye on the same broker."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
from rq import Queue, SimpleWorker
from rq.job import Job

from headway.collect.rq.rq_source import RqSource
from headway.collect.source import Reading
from headway.connections import Connection
from headway.scaling.model import EventKind, JobEvent

ENQUEUED, STARTED, FINISHED, FAILED, RETRIED = (
    EventKind.ENQUEUED,
    EventKind.STARTED,
    EventKind.FINISHED,
    EventKind.FAILED,
    EventKind.RETRIED,
)

while_running: list[Callable[[], object]] = []
"""What jobs call while they run; the worker is this process."""


def work(result: object = None) -> object:
    for call in while_running:
        call()
    return result


def fail() -> None:
    work()
    raise RuntimeError("as asked")


class Rq:
    """RQ on one broker."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis = redis.Redis.from_url(url)
        logging.getLogger("rq.worker").setLevel(logging.CRITICAL)

    def queue(self, name: str = "mail") -> Queue:
        return Queue(name, connection=self.redis)

    def run(self, *names: str, jobs: int | None = None) -> None:
        """Run what waits, in this process: what RQ's worker does between its birth and death, without its threads."""
        with self.worker(*names or ("mail",)) as run:
            run(jobs)

    @contextmanager
    def worker(self, *names: str) -> Iterator[Callable[[int | None], None]]:
        """A worker that lives for as long. It is called to run so many of the jobs that wait; ``None``: all."""
        queues = [self.queue(name) for name in names]
        worker = SimpleWorker(queues, connection=self.redis)

        def run(jobs: int | None) -> None:
            while jobs is None or (jobs := jobs - 1) >= 0:
                taken = Queue.dequeue_any(queues, None, connection=self.redis)
                if taken is None:
                    break
                worker.execute_job(*taken)

        worker.register_birth()
        yield run
        worker.register_death()

    def job(self, job_id: str) -> Job:
        return Job.fetch(job_id, connection=self.redis)


class Watch:
    """What a collector reports, poll after poll. ``always_restarts``: each poll is another process's."""

    def __init__(self, url: str, *, always_restarts: bool = False) -> None:
        self._always_restarts = always_restarts
        self._connection = Connection(name="redis", url=url)
        self.source = RqSource(self._connection, None)
        self.events: list[JobEvent] = []
        self.at_s = 0.0
        """When it polled last."""

    def poll_once(self, *, later_s: float = 0.0) -> Reading:
        """One poll, as if it were ``later_s`` later."""
        if self._always_restarts:
            self.restart()
        self.at_s = time.time() + later_s
        reading = self.source.poll(self.at_s)
        self.events += reading.events
        return reading

    def move(self, url: str) -> None:
        """Poll there from now on."""
        self._connection = Connection(name="redis", url=url)
        self.restart()

    def restart(self) -> None:
        cursor = json.loads(json.dumps(self.source.cursor()))
        first = cursor["looked_at_s"] is None
        self.source.close()
        self.source = RqSource(self._connection, None if first else cursor)

    def reported(self, job_id: str | None = None) -> list[EventKind]:
        """The kinds reported, of one job if one is given."""
        return [event.kind for event in self.events if job_id in (None, event.job_id)]

    def of(self, kind: EventKind) -> JobEvent:
        """The only event of a kind."""
        (event,) = [event for event in self.events if event.kind is kind]
        return event
