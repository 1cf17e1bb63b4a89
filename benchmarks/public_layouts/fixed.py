"""The waits of a fixed number of slots: calculated, with no start-up and no time between two jobs."""

import heapq
from collections import deque
from collections.abc import Mapping, Sequence

from headway.simulate.replay import RecordedJob


def fixed_waits_s(
    jobs: Mapping[str, Sequence[RecordedJob]], slots: Sequence[Sequence[str]]
) -> dict[str, tuple[float, ...]]:
    """How long each job waits, in seconds, by queue, if ``slots`` are always there.

    Args:
        jobs: Queue -> its jobs, ordered by arrival.
        slots: For each slot, the queues from which it takes, in strict order.
    """
    arrivals = deque(sorted((job.at_s, queue, job.service_s) for queue, each in jobs.items() for job in each))
    waiting: dict[str, deque[tuple[float, float]]] = {queue: deque() for queue in jobs}
    waits_s: dict[str, list[float]] = {queue: [] for queue in jobs}
    idle = set(range(len(slots)))
    busy: list[tuple[float, int]] = []
    while arrivals or busy:
        now_s = min(times[0][0] for times in (arrivals, busy) if times)
        while arrivals and arrivals[0][0] <= now_s:
            at_s, queue, service_s = arrivals.popleft()
            waiting[queue].append((at_s, service_s))
        while busy and busy[0][0] <= now_s:
            idle.add(heapq.heappop(busy)[1])
        for slot in sorted(idle):
            queue = next((each for each in slots[slot] if waiting[each]), "")
            if queue:
                at_s, service_s = waiting[queue].popleft()
                waits_s[queue].append(now_s - at_s)
                idle.remove(slot)
                heapq.heappush(busy, (now_s + service_s, slot))
    return {queue: tuple(each) for queue, each in waits_s.items()}
