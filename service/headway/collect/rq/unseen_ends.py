"""Jobs that ended between two polls and left no record (``result_ttl=0``): as many as their workers count. Pure.

RQ deletes such a job in the transaction in which its worker counts it. So a job that waited and is gone has run where a
worker of its queue counts an end that no poll has seen, and was deleted where none does.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from headway.collect.rq.rq_workers import served_by, successes_of


class UnseenEnds:
    """Ends without a failure that workers have counted and no poll has seen, by the queues that the worker serves."""

    def __init__(self, counted: Mapping[str, int] | None) -> None:
        """Go on from ``counted``, which is what each worker had counted at the last poll; ``None``: there was none."""
        self.counted = counted
        """What each worker had counted at the last poll, by its key."""
        self._unseen: Counter[frozenset[str]] = Counter()

    def take(self, workers: Mapping[str, Sequence[str | None]]) -> None:
        """Add what ``workers``, by their keys, have counted since the last poll: a worker that is new, all of it."""
        before, now = self.counted, {key: successes_of(fields) for key, fields in workers.items()}
        self.counted = now
        if before is None:
            return
        for key, fields in workers.items():
            if since := now[key] - before.get(key, 0):
                self._unseen[served_by(fields)] += since if since > 0 else now[key]  # another one of the same name

    def explain(self, queue: str, jobs: int) -> int:
        """How many of ``jobs`` that ended in ``queue`` its workers have counted. They explain no other job."""
        explained = 0
        for served in self._unseen:
            if queue in served:
                found = min(jobs - explained, self._unseen[served])
                self._unseen[served] -= found
                explained += found
        return explained

    def forget(self) -> None:
        """Drop the ends that explain no job: of jobs that no poll has seen at all."""
        self._unseen.clear()
