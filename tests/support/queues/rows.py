"""The libraries whose queues are read: a row each."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from support.environments import python_with
from support.queues.celery_on_rabbitmq import CeleryOnRabbitmq
from support.queues.celery_on_redis import CeleryOnRedis
from support.queues.rq_scene import RqScene
from support.queues.scene import GRACE_S, SLACK_S, Scene
from support.rabbitmq import RabbitServer

OURS = Path(sys.executable)


@contextmanager
def _emptied(valkey_url: str, _: Path) -> Iterator[str]:
    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
    yield valkey_url


@contextmanager
def _rabbitmq(_: str, folder: Path) -> Iterator[RabbitServer]:
    server = RabbitServer(folder / "rabbitmq")
    try:
        server.start()
        yield server
    finally:
        server.close()


def _rq3(url: str, folder: Path, seed: int) -> RqScene:
    return RqScene(url, folder, seed, python=python_with("rq==3.0.0", "redis==8.1.0"), ours=OURS)


@dataclass(frozen=True, slots=True)
class Row:
    """A library on a broker."""

    scene: Callable[[Any, Path, int], Scene]
    """At a broker, in a folder, by a seed."""
    broker: Callable[[str, Path], AbstractContextManager[Any]] = _emptied
    """Of a Valkey that there is, or in a folder."""


ROWS: Mapping[str, Row] = {
    "celery-redis": Row(CeleryOnRedis),
    "celery-rabbitmq": Row(CeleryOnRabbitmq, _rabbitmq),
    "rq-2": Row(partial(RqScene, python=OURS, ours=OURS)),
    "rq-3": Row(_rq3),
}


@contextmanager
def played(
    row: str,
    valkey_url: str,
    folder: Path,
    seed: int,
    *,
    moves: int,
    grace_s: float = GRACE_S,
    slack_s: float = SLACK_S,
) -> Iterator[Scene]:
    """The scene of a row at the end of a story, at a broker that is empty at first."""
    with ROWS[row].broker(valkey_url, folder) as broker:
        scene = ROWS[row].scene(broker, folder, seed)
        scene.grace_s, scene.own.slack_s = grace_s, slack_s
        try:
            scene.play(moves)
            yield scene
        finally:
            scene.close()
