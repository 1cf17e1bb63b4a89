"""The RabbitMQ of a recipe: the page's own commands make its login, and the firehose shows what goes through it.

The firehose is RabbitMQ's own trace of a virtual host: a message for each message that is published or delivered there.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import amqp

from pages.recipes import PASSWORD
from support.rabbitmq import RabbitServer
from support.tree import ROOT
from support.waiting import eventually

PAGE = "docs/how-to/collect-rabbitmq.md"
VHOST = "shop"
QUORUM = {"x-queue-type": "quorum"}
DEPTHS = {"mail": 3, "report-daily": 2}  # a quorum queue is read by passive declares, too
FIREHOSE = "amq.rabbitmq.trace"
KINDS = ("queues", "exchanges", "bindings", "policies")


@contextmanager
def rabbitmq_broker(folder: Path) -> Iterator[str]:
    """A virtual host with a classic and a quorum queue; ``brokers.toml`` as the page has it. Yields a PATH.

    In the end, fails if the collector took, published, declared or bound anything, or never logged in.
    """
    server = RabbitServer(folder / "rabbitmq")
    try:
        server.start()
        server.make_vhost(VHOST)
        _write_table(server, folder)
        path = f"{server.write_tools(folder / 'tools')}:{os.environ['PATH']}"
        with server.channel(VHOST) as channel, server.channel(VHOST) as tracing:
            for queue, arguments in {"mail": {}, "report-daily": QUORUM}.items():
                channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
                _publish(channel, queue, DEPTHS[queue])
            traced = tracing.queue_declare("", exclusive=True).queue
            tracing.queue_bind(traced, exchange=FIREHOSE, routing_key="#")
            before = _definitions(server)
            server.ctl("trace_on", "--vhost", VHOST)
            yield path
            assert _definitions(server) == before
            assert re.search(r"user 'headway' authenticated and granted access to vhost 'shop'", server.log())
            _only_ours_is_traced(channel, tracing, traced)
    finally:
        server.close()


def _only_ours_is_traced(channel: Any, tracing: Any, traced: str) -> None:
    """Publish one message and take one: the firehose shows these two, so it works, and no other."""
    _publish(channel, "mail", 1)
    taken = channel.basic_get("mail", no_ack=True)
    assert not taken.delivery_info["redelivered"]
    seen: list[str] = []

    def both_came() -> bool:
        while (message := tracing.basic_get(traced, no_ack=True)) is not None:
            seen.append(message.delivery_info["routing_key"])
        return len(seen) >= 2

    eventually(both_came)
    assert sorted(seen) == ["deliver.mail", "publish."]


def _publish(channel: Any, queue: str, count: int) -> None:
    for _ in range(count):
        channel.basic_publish_confirm(amqp.Message("x"), routing_key=queue)


def _definitions(server: RabbitServer) -> object:
    """Names of what is declared and bound in the virtual host."""
    return [
        sorted(str(each.get("name", each.get("routing_key"))) for each in server.api("GET", f"{kind}/{VHOST}"))
        for kind in KINDS
    ]


def _write_table(server: RabbitServer, folder: Path) -> None:
    (folder / "password").write_text(PASSWORD)
    table, *_ = re.findall(r"```toml brokers\n(.*?)```", (ROOT / PAGE).read_text(), flags=re.DOTALL)
    for old, new in {
        "http://rabbit.internal:15672": server.management_url,
        "rabbit.internal:5672": f"127.0.0.1:{server.port}",
        "/etc/headway/shop-password": str(folder / "password"),
    }.items():
        assert old in table
        table = table.replace(old, new)
    (folder / "brokers.toml").write_text(table)
