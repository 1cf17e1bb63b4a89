"""A broker for whole installations: outside programs reach it by a port."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from headway.store.embedded import ensure_valkey
from support.ports import free_port


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """A Redis on a port of this machine."""
    server = ensure_valkey(tmp_path / "valkey")
    port = free_port()
    with redis.Redis.from_url(server.url) as client:
        client.config_set("bind", "127.0.0.1")
        client.config_set("port", port)
    yield f"redis://127.0.0.1:{port}/0"
    assert server.wait_stopped()
