"""Celery on RabbitMQ: samples from the collector's source, beside what Celery itself answers."""

import time
from pathlib import Path

from headway.collect.celery.celery_on_rabbitmq import CeleryOnRabbitmq as Source
from headway.collect.source import Cursor
from headway.connections import Connection
from headway.scaling.model import QueueSample
from support.queues.celery_scene import CeleryScene
from support.rabbitmq import RabbitServer
from support.waiting import eventually


class CeleryOnRabbitmq(CeleryScene):
    """What a worker that died held is given back by the broker, as the connection ends."""

    published_s = 0.0

    def __init__(self, server: RabbitServer, folder: Path, seed: int) -> None:
        self._connection = Connection(
            name="shop", url=server.url, library="celery", management_url=server.management_url
        )
        super().__init__(server.url, folder, seed)
        eventually(self._is_declared)

    def opened(self, cursor: Cursor | None) -> Source:
        return Source(self._connection, cursor)

    def changes(self) -> tuple[int, int]:
        """How many jobs are in the queue, and how many runs have begun or ended."""
        return self.hand.ask("depth")[2], sum(1 + (run.ended_s is not None) for run in self.runs())

    def give_back(self) -> None:
        """The broker does."""

    def held_as_sampled(self, sample: QueueSample) -> tuple[int | None, ...]:
        return (sample.in_flight_min_jobs,)

    def held_as_inspected(self, own: dict[str, int]) -> tuple[int, ...]:
        """What is due later, workers hold as well."""
        return (own["reserved"] + own["scheduled"] + (own["active"] if self.is_late else 0),)

    def is_steady(self) -> bool:
        """Nothing is given back while its worker lives."""
        return True

    def compare(self) -> None:
        found = self.unchanged(self._beside)
        if found is None:
            self.own.moving += 1
            return
        sample, depth = found
        self.own.compared += 1
        self.own.compare("waiting", sample.waiting_jobs, depth)
        self.own.compare("delayed", sample.delayed_jobs, None)
        if depth:
            self.own.compare("age, of which RabbitMQ 3.10 knows nothing", sample.oldest_age_s, None)

    def _beside(self) -> tuple[QueueSample, int]:
        return self.polled(time.time()), self.hand.ask("depth")[2]

    def _is_declared(self) -> bool:
        """Whether the worker has declared its queue."""
        return bool(self.source.poll(time.time()).samples)
