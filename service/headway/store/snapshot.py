"""One moment of a database, for a copy of it: which files of the event log count then, and what other sessions see."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

import psycopg

from headway.errors import Unavailable

SNAPSHOT_UNSURE_S = 600.0  # a file is recorded within the time that a claim may wait for Postgres after it was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What is so at that moment, while the block that it was opened for lasts."""

    name: str
    """For other sessions to see the same."""
    revision: str
    """Of the tables."""
    taken_at_s: float
    """Unix seconds by Postgres's clock."""
    recent_files: frozenset[str]
    """The event log's files that were recorded within the last ``2 * SNAPSHOT_UNSURE_S``."""

    def counts(self, file: str, *, written_at_s: float) -> bool:
        """Whether the event log's file counts: its batches are claimed. An old one does, or would be gone by now."""
        return written_at_s < self.taken_at_s - SNAPSHOT_UNSURE_S or file in self.recent_files


@contextmanager
def snapshot(database_url: str) -> Iterator[Snapshot]:
    """The database as it is now, for as long as the block lasts.

    Raises:
        Unavailable: it does not answer, or has no tables of Headway yet.
    """
    try:
        with psycopg.connect(database_url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield _taken(connection)
    except psycopg.errors.UndefinedTable as error:
        raise Unavailable("the database has no tables of Headway yet: there is nothing to keep") from error
    except psycopg.OperationalError as error:
        raise Unavailable(f"the database does not answer: {str(error).splitlines()[0]}") from error


_EXPORT: LiteralString = """
select pg_export_snapshot(), (select version_num from alembic_version), extract(epoch from now())::float8
"""
_RECENT_FILES: LiteralString = """
select file from event_files where recorded_at > now() - make_interval(secs => %(recent_s)s)
"""


def _taken(connection: psycopg.Connection) -> Snapshot:
    ((name, revision, taken_at_s),) = connection.execute(_EXPORT).fetchall()
    files = connection.execute(_RECENT_FILES, {"recent_s": 2 * SNAPSHOT_UNSURE_S})
    return Snapshot(
        name=name, revision=revision, taken_at_s=taken_at_s, recent_files=frozenset(file for (file,) in files)
    )
