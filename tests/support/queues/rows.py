"""The libraries whose queues are read: a row each."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import redis

from support.environments import python_with
from support.queues.celery_scene import CeleryScene
from support.queues.rq_scene import RqScene
from support.queues.scene import Scene

OURS = Path(sys.executable)


def _rq3(url: str, folder: Path, seed: int) -> RqScene:
    return RqScene(url, folder, seed, python=python_with("rq==3.0.0", "redis==8.1.0"), ours=OURS)


ROWS: Mapping[str, Callable[[str, Path, int], Scene]] = {
    "celery-redis": CeleryScene,
    "rq-2": partial(RqScene, python=OURS, ours=OURS),
    "rq-3": _rq3,
}
"""Name -> a scene at the broker of a URL, in a folder, by a seed."""


@contextmanager
def played(row: str, url: str, folder: Path, seed: int, *, moves: int) -> Iterator[Scene]:
    """The scene of a row at the end of a story, at a broker that is emptied first."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
    scene = ROWS[row](url, folder, seed)
    try:
        scene.play(moves)
        yield scene
    finally:
        scene.close()
