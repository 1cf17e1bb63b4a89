import os
import socket

import pytest

from headway.cli.local.ports import Endpoint, free_address, is_free, require_free
from headway.errors import Misconfigured
from headway.settings import Address


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Address(host="127.0.0.1", port=server.getsockname()[1])


def test_a_port_that_somebody_listens_on_is_refused_with_what_to_change(taken):
    with pytest.raises(Misconfigured) as raised:
        require_free(Endpoint(taken, "--http-address", "HEADWAY_HTTP_ADDRESS"))
    text = str(raised.value)
    assert f"port {taken.port} on 127.0.0.1 cannot be had (process {os.getpid()}, " in text
    assert f"choose another with --http-address 127.0.0.1:{taken.port + 10} or HEADWAY_HTTP_ADDRESS" in text


def test_a_taken_port_gives_way_to_a_free_one_of_the_same_host(taken):
    other = free_address(taken)
    assert other.host == taken.host
    assert other.port != taken.port
    assert is_free(other)


def test_a_free_port_stays(taken):
    free = free_address(taken)
    assert free_address(free) == free
    require_free(Endpoint(free, "--http-address", "HEADWAY_HTTP_ADDRESS"))


def test_port_0_becomes_a_port_that_others_can_use():
    assert free_address(Address(host="127.0.0.1", port=0)).port > 0
