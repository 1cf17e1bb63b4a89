"""A virtual host of a RabbitMQ, what an application does there, and the collector that reads it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import amqp

from headway.collect.rabbitmq.rabbitmq_source import RabbitmqSource
from headway.connections import Connection
from headway.scaling.model import QueueSample
from support.rabbitmq import RabbitServer

QUORUM = {"x-queue-type": "quorum"}


class Shop:
    """Publishes, takes and acknowledges by itself; ``source`` is polled by the tests."""

    def __init__(self, server: RabbitServer, vhost: str, channel: Any) -> None:
        self.server, self.vhost, self.channel = server, vhost, channel
        self.url = server.make_url(vhost)
        self.source = RabbitmqSource(self.connection(), None)

    def connection(self, **more: Any) -> Connection:
        given = {"name": "shop", "url": self.url, "management_url": self.server.management_url}
        return Connection(**given | more)

    def declare(self, queue: str, **more: Any) -> None:
        self.channel.queue_declare(queue, **{"durable": True, "auto_delete": False} | more)

    def publish(self, queue: str, count: int = 1, **properties: Any) -> None:
        for _ in range(count):
            self.channel.basic_publish_confirm(amqp.Message("x", **properties), routing_key=queue)

    def samples(self, at_s: float | None = None, *, source: RabbitmqSource | None = None) -> dict[str, QueueSample]:
        reading = (source or self.source).poll(time.time() if at_s is None else at_s)
        return {sample.queue.removeprefix("shop/"): sample for sample in reading.samples}

    def counts(self, *, source: RabbitmqSource | None = None) -> dict[str, tuple[int, int | None]]:
        """Queue -> waiting, in flight."""
        found = self.samples(source=source)
        return {name: (each.waiting_jobs, each.in_flight_jobs) for name, each in found.items()}


@contextmanager
def opened(server: RabbitServer, vhost: str) -> Iterator[Shop]:
    """A shop in a new virtual host, which is removed in the end."""
    server.make_vhost(vhost)
    application = server.connected(vhost)
    shop = Shop(server, vhost, application.channel())
    yield shop
    shop.source.close()
    application.collect()  # a test may have killed the server
    server.api("DELETE", f"vhosts/{vhost}")
