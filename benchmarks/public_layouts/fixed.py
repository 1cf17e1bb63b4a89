"""The waits of a fixed number of slots: calculated, with no start-up and no time between two jobs."""

import heapq
from collections import deque
from collections.abc import Mapping, Sequence

from headway.simulate.replay import RecordedJob

ADDED_MAX = 200


def enough_slots(
    jobs: Mapping[str, Sequence[RecordedJob]],
    slots: Sequence[Sequence[str]],
    targets: Mapping[str, tuple[float, float]],
) -> Sequence[Sequence[str]]:
    """``slots`` and, where an objective is missed, as many more as keep all of them.

    A further slot is a copy of the one that takes earliest from a queue that misses its objective.

    Args:
        jobs: Queue -> its jobs, ordered by arrival.
        slots: For each slot, the queues from which it takes, in strict order.
        targets: Queue -> seconds, and the fraction of its jobs that are to start within them.
    """
    for _ in range(ADDED_MAX):
        waits_s = fixed_waits_s(jobs, slots)
        late = [queue for queue in jobs if not _is_kept(waits_s[queue], *targets[queue])]
        if not late:
            return slots
        serving = (slot for slot in slots if late[0] in slot)
        slots = (*slots, min(serving, key=lambda slot: slot.index(late[0])))
    raise ValueError(f"{ADDED_MAX} more slots do not keep the objectives")


def _is_kept(waits_s: Sequence[float], target_s: float, fraction: float) -> bool:
    return sum(wait_s <= target_s for wait_s in waits_s) >= fraction * len(waits_s)


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
