"""Keys that a database has once, whatever the prefix of a connection: RQ and rq-scheduler write these very keys."""

from collections.abc import Sequence
from typing import Any

from headway.collect.prepared_commands import prepared
from headway.scaling.model import Suspension

SUSPENDED = "rq:suspended"
OF_RQ_SCHEDULER = "rq:scheduler:scheduled_jobs"
"""Where the package rq-scheduler keeps the jobs of all queues until they are due. It is not read."""


class SharedKeys:
    """Whether these keys exist, as of the last poll."""

    def __init__(self, *, is_cluster: bool) -> None:
        # In a cluster, other nodes have the keys, as they have no hash tag: whether they are there is not known.
        self.commands = () if is_cluster else tuple(prepared("EXISTS", key) for key in (SUSPENDED, OF_RQ_SCHEDULER))
        self.suspension: Suspension | None = None
        """Whether ``rq suspend`` keeps every worker of the connection from taking jobs."""
        self.has_rq_scheduler = False
        """Whether rq-scheduler delays jobs, or may: where the login may not read its key."""

    def take(self, replies: Sequence[Any]) -> None:
        """Take the replies to ``commands``."""
        if replies:
            suspended, scheduler = replies
            self.suspension = _suspension(suspended)
            self.has_rq_scheduler = scheduler != 0

    def delayed_jobs(self, jobs: int) -> int | None:
        """How many jobs of a queue are delayed, if RQ itself delays so many; ``None``: not known."""
        return None if self.has_rq_scheduler else jobs


def _suspension(exists: Any) -> Suspension | None:
    """What the reply says; ``None`` where the login may not read the key, which is none of the queues' own."""
    if isinstance(exists, Exception):
        return None
    return Suspension.LIBRARY if exists else Suspension.NONE
