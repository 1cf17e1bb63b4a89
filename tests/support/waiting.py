"""Waiting for what comes true by itself: in another process, in a thread, or in another task."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

WITHIN_S = 60.0  # on a machine that has much else to do
PAUSE_S, PAUSE_MAX_S = 0.01, 0.5
PAUSE_SHARE = 0.05  # of the time so far: what comes late is asked for seldom, and seen by so much later


def pause_s(since_s: float) -> float:
    """How long to pause before what is waited for since then, by the monotonic clock, is asked for again."""
    return min(max(PAUSE_S, PAUSE_SHARE * (time.monotonic() - since_s)), PAUSE_MAX_S)


def eventually(holds: Callable[[], Any], *, within_s: float = WITHIN_S) -> Any:
    """What ``holds`` returns once that is true."""
    since_s = time.monotonic()
    while not (found := holds()):
        assert time.monotonic() < since_s + within_s, "it did not come true in time"
        time.sleep(pause_s(since_s))
    return found


async def eventually_of(holds: Callable[[], Any], *, within_s: float = WITHIN_S) -> Any:
    """What ``holds`` returns, or what comes of it where that is awaited, once that is true."""
    since_s = time.monotonic()
    async with asyncio.timeout(within_s):
        while True:
            found = holds()
            found = await found if asyncio.iscoroutine(found) else found
            if found:
                return found
            await asyncio.sleep(pause_s(since_s))
