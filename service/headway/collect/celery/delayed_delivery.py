"""Celery's delayed delivery in RabbitMQ: a chain of queues in which messages expire, a level for each bit of a delay.

A message waits 2**N s in the queue of level N, and then in those of the lower bits that are set. So a message there has
at most 2**(N + 1) - 1 s left, and no queue says how much less.
"""

import re
from collections.abc import Mapping

from headway.scaling.model import DueJobs

_NAME = re.compile(r"celery_delayed_(\d{1,2})")


def delay_level(queue: str) -> int | None:
    """The level of ``queue``; ``None`` where it is none of the chain."""
    found = _NAME.fullmatch(queue)
    return None if found is None else int(found[1])


def due_by_levels(jobs: Mapping[int, int]) -> tuple[DueJobs, ...]:
    """How many of ``jobs``, by their level, are due at the latest within each time, up to that of the last job."""
    found: list[DueJobs] = []
    for level in range(max((level for level, count in jobs.items() if count), default=-1) + 1):
        so_far = found[-1].jobs if found else 0
        found.append(DueJobs(within_s=float(2 ** (level + 1) - 1), jobs=so_far + jobs.get(level, 0)))
    return tuple(found)
