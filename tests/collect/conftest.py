import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from collect import rabbit_shop, rq_jobs
from collect.rabbit_shop import Shop
from collect.rq_jobs import Rq, Watch
from support.rabbitmq import RabbitServer

_vhosts = itertools.count(1)


@pytest.fixture(scope="session")
def rabbitmq(data_folder: Path) -> Iterator[RabbitServer]:
    """A RabbitMQ 3.10 with its management API; a test that kills it makes its own."""
    server = RabbitServer(data_folder / "rabbitmq")
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def shop(rabbitmq: RabbitServer) -> Iterator[Shop]:
    """A virtual host of the test's own."""
    with rabbit_shop.opened(rabbitmq, f"shop-{next(_vhosts)}") as shop:
        yield shop


@pytest.fixture
def rq(valkey_url: str) -> Rq:
    return Rq(valkey_url)


@pytest.fixture(params=[False, True], ids=["one process", "a restart before each look"])
def watch(request: pytest.FixtureRequest, valkey_url: str) -> Watch:
    """A collector that has polled an empty broker once."""
    watch = Watch(valkey_url, always_restarts=request.param)
    watch.poll_once()
    return watch


@pytest.fixture(autouse=True)
def _nothing_while_running():
    yield
    rq_jobs.while_running.clear()
