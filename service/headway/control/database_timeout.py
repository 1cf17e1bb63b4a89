"""Waiting for Postgres with a bound. One that hangs breaks no connection: whoever asks would wait for ever."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from headway.errors import Unavailable

DATABASE_ANSWERS_WITHIN_S = 8.0  # ten thousand queues are read in a second
POLL_S = 0.5

Answer = TypeVar("Answer")


class DatabaseTimeout:
    """How long Postgres has kept those waiting who share it, as they take turns to read."""

    def __init__(self, *, within_s: float = DATABASE_ANSWERS_WITHIN_S) -> None:
        self._within_s = within_s
        self._since_s: dict[object, float] = {}
        """Since when each of those who read waits."""
        self._left: set[asyncio.Task[Any]] = set()

    @contextmanager
    def reading(self) -> Iterator[Callable[[], None]]:
        """Until the block ends, Postgres is waited for. Call what is given when a part of what is read has come."""
        who, clock = object(), asyncio.get_running_loop().time

        def goes_on() -> None:
            self._since_s[who] = clock()

        goes_on()
        try:
            yield goes_on
        finally:
            del self._since_s[who]

    async def of(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """What ``work`` comes to. Where Postgres hangs it is left to itself: to be cancelled, it would wait as well.

        Raises:
            Unavailable: whoever reads has waited for too long, be it ``work`` itself or somebody before it.
        """
        task = asyncio.ensure_future(work)
        self._left.add(task)
        task.add_done_callback(self._ended)
        while not (await asyncio.wait({task}, timeout=POLL_S))[0]:
            now_s = asyncio.get_running_loop().time()
            waited_s = now_s - min(self._since_s.values(), default=now_s)
            if waited_s > self._within_s:
                raise Unavailable(f"Postgres has not answered for {waited_s:.0f} s: it hangs, or is overloaded")
        return task.result()

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()  # raised to whoever still waited; nobody else asks
