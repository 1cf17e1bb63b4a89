"""One row of the event log: the columns of its files, as ingest writes them and Spark reads them.

A column that a file lacks is unknown, and one that a reader does not know is not read: so a column may be added without
a new version. A new version says that who does not know it would read something wrong. See docs/decisions/0013.
"""

from dataclasses import dataclass
from typing import NewType

Version = NewType("Version", int)
"""The only column of 32 bits."""

SCHEMA_VERSION = Version(1)
"""The newest version of rows that is understood, with every older one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """A job event or, with ``kind`` "sample", a reading of a queue; ``None`` where a column says nothing of it."""

    schema_version: Version = SCHEMA_VERSION
    queue: str
    kind: str
    job_id: str | None = None
    job_class: str | None = None
    at_s: float
    received_at_s: float
    enqueued_at_s: float | None = None
    started_at_s: float | None = None
    waiting_jobs: int | None = None
    in_flight_jobs: int | None = None
    delayed_jobs: int | None = None
    oldest_age_s: float | None = None
    attempt: int | None = None
    reserved_jobs: int | None = None
    oldest_age_max_s: float | None = None
    reports_arrivals: bool | None = None
    reports_starts: bool | None = None
    reports_ends: bool | None = None
    waiting_min_jobs: int | None = None
    in_flight_min_jobs: int | None = None
    producer: str
    sequence: int
