"""Waiting for what comes true by itself: in another process, in a thread, or in another task."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

WITHIN_S = 60.0  # on a machine that has much else to do
PAUSE_S = 0.01


def eventually(holds: Callable[[], Any], *, within_s: float = WITHIN_S) -> Any:
    """What ``holds`` returns once that is true."""
    until_s = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < until_s, "it did not come true in time"
        time.sleep(PAUSE_S)
    return found


async def eventually_of(holds: Callable[[], Any], *, within_s: float = WITHIN_S) -> Any:
    """What ``holds`` returns, or what comes of it where that is awaited, once that is true."""
    async with asyncio.timeout(within_s):
        while True:
            found = holds()
            found = await found if asyncio.iscoroutine(found) else found
            if found:
                return found
            await asyncio.sleep(PAUSE_S)
