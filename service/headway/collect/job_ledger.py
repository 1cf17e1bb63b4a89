"""The jobs of one connection, each reported once: for a source that reads one record a job, by when it moved. Pure."""

from collections.abc import Mapping
from typing import Any

from headway.collect.job_lifecycle import JobRecord, Sighting, progress, recent
from headway.collect.job_memory import JobMemory
from headway.connections import Connection, as_text
from headway.scaling.model import JobEvent

SLACK_S = 5.0  # transactions that commit late, and clocks that differ a little

Position = tuple[float, str]
"""A move among all moves: when it was, and of which job."""


class JobLedger:
    """What has been reported of each job, within bounds, and up to which move the records were read.

    No event is reported twice. An entry is missed where so many enter at once that several polls read them, and the job
    begins meanwhile.
    """

    def __init__(self, connection: Connection, state: Mapping[str, Any] | None) -> None:
        """Go on from ``state``, which ``to_state`` made; without one, nothing has been read."""
        self._connection = connection
        self._read_to: Position | None = None
        self._newest: Position = (0.0, "")
        """Behind everything that was ever read; what was read may be read once more."""
        self._is_behind = False
        self._polled_at_s: float | None = None
        self._queues: dict[str, JobMemory] = {}
        if state is not None:
            self._read_to = None if state["read_to"] is None else (state["read_to"][0], state["read_to"][1])
            self._newest = (state["newest"][0], state["newest"][1])
            self._is_behind = state["is_behind"]
            self._polled_at_s = state["polled_at_s"]
            self._queues = {queue: JobMemory.from_state(each) for queue, each in state["queues"].items()}

    @property
    def read_from(self) -> Position | None:
        """Behind which move to read; ``None``: never read, so that all jobs count that have not ended.

        Of the poll before, the last ``SLACK_S`` are read once more.
        """
        if self._read_to is None or self._is_behind:
            return self._read_to
        return (self._read_to[0] - SLACK_S, "")

    def take(self, queue: str, job_id: str, record: JobRecord, *, at_s: float) -> list[JobEvent]:
        """What is new of a job, in its order. It counts as reported from now on."""
        jobs = self._queues.setdefault(queue, JobMemory(begins_at_s=0.0))
        reported = jobs.reported(job_id)
        is_new = (record.enqueued_at_s, job_id) > self._newest
        if reported is None and jobs.is_old(record, is_new=is_new):
            return []
        sighting = Sighting(
            queue=self._connection.queue(queue),
            job_id=as_text(job_id),
            at_s=at_s,
            is_enqueued_reported=not is_new and jobs.is_entry_reported(record),
            polled_at_s=self._polled_at_s,
        )
        events, now = progress(reported, record, sighting)
        if now is not None:
            jobs.put(job_id, now, at_s=at_s, ended_at_s=record.ended_at_s)
        return recent(events, at_s=at_s)

    def close_poll(self, at_s: float, *, stopped_at: Position | None = None) -> None:
        """Note that every job that moved until ``at_s`` was taken, or those until ``stopped_at`` if there were more."""
        for jobs in self._queues.values():
            jobs.trim(ends_read_until_s=at_s)
        self._is_behind = stopped_at is not None
        self._read_to = stopped_at or (at_s, "")
        self._newest = max(self._newest, self._read_to)
        self._polled_at_s = at_s

    def to_state(self) -> dict[str, Any]:
        """What a new ledger goes on from; JSON can carry it."""
        return {
            "read_to": self._read_to,
            "newest": self._newest,
            "is_behind": self._is_behind,
            "polled_at_s": self._polled_at_s,
            "queues": {queue: jobs.to_state() for queue, jobs in self._queues.items()},
        }
