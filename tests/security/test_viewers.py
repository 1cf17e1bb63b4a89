"""Streams of the overview: whoever may read must not keep others from reading."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from security.planes import Plane, serving
from support.waiting import eventually

VIEWERS_MAX = 200


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path) -> Iterator[Plane]:
    with serving(migrated_url, tmp_path) as plane:
        yield plane


def taken(stack: contextlib.ExitStack, client: httpx.Client) -> int:
    """How many streams this client gets, of as many as there are places and one more."""
    for count in range(VIEWERS_MAX + 1):
        answer = stack.enter_context(client.stream("GET", "/v1/events"))
        if answer.status_code != 200:
            assert answer.status_code == 429
            return count
        lines = stack.enter_context(contextlib.closing(answer.iter_lines()))  # a stream ends with who reads it
        assert next(lines).startswith("event: ")
    return VIEWERS_MAX + 1


def is_streamed(client: httpx.Client) -> bool:
    with client.stream("GET", "/v1/events") as answer:
        return answer.status_code == 200


def test_one_token_cannot_take_every_place(plane: Plane) -> None:
    """It took all 200: no dashboard opened any more, and nobody saw who had them."""
    greedy, other = plane.token("viewer", "greedy"), plane.token("viewer", "other")
    limits = httpx.Limits(max_connections=None)
    with plane.client(greedy, limits=limits) as client, contextlib.ExitStack() as streams:
        assert 0 < taken(streams, client) <= VIEWERS_MAX / 2
        with plane.client(other) as another:
            assert is_streamed(another)
        with plane.client() as admin:
            assert 'headway_refused_viewers_total{bound="token"} 1.0' in admin.get("/metrics").text
    with plane.client(greedy) as client:
        eventually(lambda: is_streamed(client), within_s=20)  # its places are free once its streams have ended there
