"""Seasons of queues: what they are learned from, and how they are stored.

The process that rolls up counts learns seasons from them, a queue a day, whenever its turn comes. `headway seasons
train` does it for all queues at once, on Spark.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import text

from headway.errors import Invalid, Unavailable
from headway.scaling.arithmetic import DAY_S, HOUR_S, MINUTE_S
from headway.scaling.history.weekly import SEASONS_VERSION, WEEKS_MIN, ArrivalCounts, Season, trained
from headway.scaling.history.weekly_codec import season_from_mapping, season_to_mapping
from headway.store import migrate
from headway.store.engine import Connection, connect_parameters, first_line
from headway.zones import zone_of

ROLLUPS = "rollups"
"""What a season was learned from: the counts by minute and hour in this database."""
WEEK_S = 7 * DAY_S
SEASONS_TURN_S = 2.0  # of the minute between two turns: some 30 queues, or 40,000 in a day
SEASONS_TURN_QUEUES = 100  # are asked for in a turn

SyncConnection = psycopg.Connection

# The first row of a queue is found in the key's index. Whole weeks of minutes are kept of one that is older than that.
_DUE: LiteralString = """
select queue from profile_queues
left join queue_seasons using (queue)
cross join lateral (
    select min(bucket_s) as first_s from rollup_hours where queue = profile_queues.queue and job_class = ''
) as known
where known.first_s <= %(first_s)s
    and (trained_at is null or trained_at < now() - interval '1 day' or version <> %(version)s
        or time_zone <> %(time_zone)s)
order by trained_at nulls first
limit %(limit)s
"""

_COUNTED: LiteralString = """
select asked.queue, least(by_hour.first_s, by_minute.first_s), by_hour.starts, by_hour.jobs, by_minute.starts,
    by_minute.jobs
from unnest(%(queues)s::text[]) as asked(queue)
cross join lateral (
    select min(bucket_s) as first_s, array_agg(bucket_s) filter (where bucket_s < %(minutes_from_s)s) as starts,
        array_agg(greatest(arrived_jobs - retried_jobs, 0)) filter (where bucket_s < %(minutes_from_s)s) as jobs
    from rollup_hours where queue = asked.queue and job_class = ''
) as by_hour
cross join lateral (
    select min(bucket_s) as first_s, array_agg(bucket_s) as starts,
        array_agg(greatest(arrived_jobs - retried_jobs, 0)) as jobs
    from rollup_minutes where queue = asked.queue and job_class = ''
        and bucket_s >= %(minutes_from_s)s and bucket_s < %(until_s)s
) as by_minute
"""

_WRITE: LiteralString = """
insert into queue_seasons (queue, version, time_zone, body, source, from_s, until_s)
values (%(queue)s, %(version)s, %(time_zone)s, %(body)s, %(source)s, %(from_s)s, %(until_s)s)
on conflict (queue) do update set version = excluded.version, time_zone = excluded.time_zone, body = excluded.body,
    source = excluded.source, from_s = excluded.from_s, until_s = excluded.until_s, trained_at = now()
"""

_READ = text(
    """
    select queue, version, time_zone, body, source, from_s, until_s, trained_at
    from queue_seasons where queue = any(cast(:queues as text[]))
    """
)
_READ_ALL: LiteralString = """
select queue, version, time_zone, body, source, from_s, until_s, trained_at from queue_seasons order by queue
"""
_SERVED: LiteralString = "select queue from profile_queues order by queue"
_COUNTED_UNTIL: LiteralString = "select minutes_until_s from rollup_progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A season and what it was learned from."""

    queue: str
    season: Season
    source: str
    from_s: float
    until_s: float
    trained_at: datetime | None = None
    """``None`` until it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What was read: what can be used, and why the rest cannot."""

    seasons: Mapping[str, Trained]
    unfit: Mapping[str, str]
    """Queue -> why its row is not used."""


@contextmanager
def connected(database_url: str) -> Iterator[SyncConnection]:
    """A connection that commits by itself, to a database with this version's tables.

    Raises:
        Misconfigured: it has not.
        Unavailable: Postgres cannot be reached, or was lost.
    """
    migrate.check(database_url)
    try:
        with psycopg.connect(**connect_parameters(database_url), autocommit=True) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise Unavailable(f"Postgres did not do its part, try again: {first_line(error)}") from error


async def read_seasons(conn: Connection, *, queues: Collection[str]) -> Stored:
    """The seasons of ``queues``, as far as there are any."""
    rows = await conn.execute(_READ, {"queues": list(queues)})
    return _stored(rows.mappings())


def all_seasons(connection: SyncConnection) -> Stored:
    """The seasons of every queue."""
    return _stored(connection.cursor(row_factory=dict_row).execute(_READ_ALL))


def write_seasons(connection: SyncConnection, found: Iterable[Trained]) -> None:
    """Store each of ``found`` in the place of what was known of its queue; all of them or none."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(
            _WRITE,
            [
                {
                    "queue": each.queue,
                    "version": SEASONS_VERSION,
                    "time_zone": str(each.season.zone),
                    "body": Jsonb(season_to_mapping(each.season)),
                    "source": each.source,
                    "from_s": each.from_s,
                    "until_s": each.until_s,
                }
                for each in found
            ],
        )


def served_queues(connection: SyncConnection) -> list[str]:
    """The queues that profiles name."""
    return [queue for (queue,) in connection.execute(_SERVED)]


def counted_until_s(connection: SyncConnection) -> float:
    """How far counts are rolled up by the minute."""
    ((until_s,),) = connection.execute(_COUNTED_UNTIL).fetchall()
    return float(until_s)


def counted(connection: SyncConnection, *, queues: Collection[str], until_s: float) -> dict[str, ArrivalCounts]:
    """What is known of ``queues`` up to ``until_s``; one that was never seen is left out."""
    # As far back as minutes are kept, or would be if it had been seen.
    minutes_from_s = (until_s - WEEKS_MIN * WEEK_S) // HOUR_S * HOUR_S
    asked = {"queues": list(queues), "minutes_from_s": minutes_from_s, "until_s": until_s}
    found = {}
    for queue, first_s, hours, jobs_by_hour, minutes, jobs_by_minute in connection.execute(_COUNTED, asked):
        if first_s is not None:
            known_s = max(minutes_from_s, first_s)
            found[queue] = ArrivalCounts(
                since=round(known_s / MINUTE_S),
                until=round(until_s / MINUTE_S),
                minutes=_by_number(minutes, jobs_by_minute, span_s=MINUTE_S),
                hours_since=round(first_s // HOUR_S),
                hours=_by_number(hours, jobs_by_hour, span_s=HOUR_S),
            )
    return found


def train_due(connection: SyncConnection, zone: tzinfo, *, is_stopping: Callable[[], bool]) -> int:
    """Learn the seasons of queues of profiles whose turn has come, for a moment. Returns how many.

    ``connection`` commits by itself. A queue of which two weeks are not known yet waits until they are.
    """
    until_s = counted_until_s(connection)
    first_s = until_s // HOUR_S * HOUR_S - WEEKS_MIN * WEEK_S
    asked = {"first_s": first_s, "version": SEASONS_VERSION, "time_zone": str(zone), "limit": SEASONS_TURN_QUEUES}
    done, ends_s = 0, time.monotonic() + SEASONS_TURN_S
    for (queue,) in connection.execute(_DUE, asked).fetchall():
        if is_stopping() or time.monotonic() > ends_s:
            break
        known = counted(connection, queues=[queue], until_s=until_s)
        write_seasons(connection, learned(known, zone, source=ROLLUPS))
        done += 1
    return done


def learned(known: Mapping[str, ArrivalCounts], zone: tzinfo, *, source: str) -> list[Trained]:
    """The seasons of the queues in ``known``; one of which too little is known is left out."""
    return [
        Trained(queue=queue, season=season, source=source, from_s=counts.known_from_s, until_s=counts.known_until_s)
        for queue, counts in known.items()
        if (season := trained(counts, zone=zone)) is not None
    ]


def _stored(rows: Iterable[Mapping[Any, Any]]) -> Stored:
    seasons: dict[str, Trained] = {}
    unfit: dict[str, str] = {}
    for row in rows:
        queue = row["queue"]
        if row["version"] != SEASONS_VERSION:
            unfit[queue] = f"it is of version {row['version']}, and this program reads version {SEASONS_VERSION}"
            continue
        try:
            season = season_from_mapping(row["body"], zone_of(row["time_zone"]))
        except Invalid as error:
            unfit[queue] = str(error)
            continue
        seasons[queue] = Trained(
            queue=queue,
            season=season,
            source=row["source"],
            from_s=row["from_s"],
            until_s=row["until_s"],
            trained_at=row["trained_at"],
        )
    return Stored(seasons=seasons, unfit=unfit)


def _by_number(starts: Any, jobs: Any, *, span_s: float) -> dict[int, int]:
    """Number of the span -> arrivals, where there were any."""
    rows = zip(starts or (), jobs or (), strict=True)
    return {round(start_s / span_s): int(arrived) for start_s, arrived in rows if arrived}
