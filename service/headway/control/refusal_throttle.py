"""How those who are refused are slowed: to refuse one of them takes a fifth of a processor at most, however many ask.

A refusal costs whoever asks for it next to nothing, and this process some work each time. Whoever waits for answers, as
a client does that has reached its connection's bound of calls, asks again only after the wait.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

PAUSES_PER_WORK = 4.0  # seconds of waiting for each that a refusal took
# What a refusal takes before and after the time that its port measures: to parse the request and to send the answer.
# Measured as processor time of a control plane that refuses a thousand a second.
UNMEASURED_S: Mapping[str, float] = {"http": 0.0004, "grpc": 0.0006}
REFUSAL_HELD_MAX_S = 2.0  # clients wait longer than that for an answer
# Answers that wait. Each takes some memory, and at the HTTP port a connection that makes room for no other: of 256,
# where there are 1,024 descriptors.
HELD_MAX: Mapping[str, int] = {"http": 100, "grpc": 2_000}
KNOWN_MAX = 10_000


class RefusalThrottle:
    """Holds refusals back, by whom they are for: a credential's name, or an address."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._free_at_s: dict[str, float] = {}
        self._held = Counter[str]()
        self.refusals: Counter[tuple[str, str]] = Counter()
        """How many there were, by port and status."""

    async def hold(self, who: str, *, took_s: float, port: str, status: str) -> None:
        """Return when ``who`` may be refused, which took ``took_s`` seconds until now as its ``port`` measures it.

        Those of one caller wait one after another. Beyond ``HELD_MAX`` of the port, nobody waits.
        """
        self.refusals[port, status] += 1
        now_s = self._clock()
        free_at_s = max(self._free_at_s.pop(who, now_s), now_s) + PAUSES_PER_WORK * (took_s + UNMEASURED_S[port])
        free_at_s = min(free_at_s, now_s + REFUSAL_HELD_MAX_S)
        if len(self._free_at_s) >= KNOWN_MAX:
            del self._free_at_s[next(iter(self._free_at_s))]  # whoever was not refused for the longest time
        self._free_at_s[who] = free_at_s
        if self._held[port] >= HELD_MAX[port]:
            return
        self._held[port] += 1
        try:
            await self._sleep(free_at_s - now_s)
        finally:
            self._held[port] -= 1
