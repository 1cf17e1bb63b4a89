"""Who reports the jobs of which queue, what was reported of them in the last minutes, and who polls which broker."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import text

from headway.store.engine import Connection

REPORTS_KEPT_S = 660.0  # an event comes up to 600 s late; more than that, so that clocks may differ
SOURCES_SHOWN_S = 86_400.0  # a source that was silent for longer is not shown
REPORTED_FOR_S = 8 * 86_400.0  # for so long, silence after events means that none came: some jobs come once a week
KINDS = ("arrivals", "starts", "ends")
"""What a source may report of a queue, as events."""
COLLECTORS_LISTED_S = 86_400.0
COLLECTORS_LISTED_MAX = 1_000
COLLECTOR_SILENT_S = 8.0  # one sends each 5 s while it can read its broker
_LOCK = 4_640_022  # the first of two numbers; the second is the connection's


class JobReport(NamedTuple):
    """The keys of job events that one source reported at once."""

    number: int
    connection: str
    source: str
    keys: bytes
    age_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCollector:
    """A collector and a connection that it reads, or read within ``COLLECTORS_LISTED_S``."""

    connection: str
    producer: str
    seen_age_s: float
    began_age_s: float
    """Since it began, without a break of ``COLLECTOR_SILENT_S``."""

    @property
    def is_silent(self) -> bool:
        """Whether it no longer polls."""
        return self.seen_age_s > COLLECTOR_SILENT_S


_LOCK_CONNECTIONS = text("select pg_advisory_xact_lock(:lock, number) from unnest(cast(:numbers as int[])) as number")


async def lock_connections(conn: Connection, numbers: Iterable[int]) -> None:
    """Let no other transaction record what is reported of the connections with these ``numbers``, until the commit."""
    ordered = sorted(set(numbers))  # two ingests meet in the same order: no deadlock
    await conn.execute(_LOCK_CONNECTIONS, {"lock": _LOCK, "numbers": ordered})


_READ_REPORTS = text(
    """
    select number, connection, source, keys,
        cast(extract(epoch from now() - recorded_at) as double precision) as age_s
    from unnest(cast(:connections as text[]), cast(:after as bigint[])) as known(connection, after)
    join job_reports using (connection)
    where number > coalesce(after, 0) and (after is null or ingest <> :ingest)
        and recorded_at > now() - make_interval(secs => :kept_s) order by number
    """
)


async def read_reports(conn: Connection, after: Mapping[str, int | None], *, ingest: str) -> list[JobReport]:
    """What was reported of these connections in the last ``REPORTS_KEPT_S``, in the order in which it was recorded.

    Args:
        conn: Inside a transaction that has locked the connections.
        after: By connection, the newest report that is known; then what others than ``ingest`` have recorded since.
            ``None``: everything, of every ingest.
        ingest: Who asks.
    """
    rows = await conn.execute(
        _READ_REPORTS,
        {
            "connections": list(after),
            "after": list(after.values()),
            "ingest": ingest,
            "kept_s": REPORTS_KEPT_S,
        },
    )
    return [JobReport(row.number, row.connection, row.source, bytes(row.keys), row.age_s) for row in rows]


_SAVE_REPORTS = text(
    """
    insert into job_reports (connection, source, keys, ingest) select *, :ingest
    from unnest(cast(:connections as text[]), cast(:sources as text[]), cast(:keys as bytea[]))
    returning connection, number
    """
)


async def save_reports(conn: Connection, reports: Mapping[tuple[str, str], bytes], *, ingest: str) -> dict[str, int]:
    """Record keys by connection and source. Returns the newest number of each connection."""
    rows = await conn.execute(
        _SAVE_REPORTS,
        {
            "connections": [connection for connection, _ in reports],
            "sources": [source for _, source in reports],
            "keys": list(reports.values()),
            "ingest": ingest,
        },
    )
    newest: dict[str, int] = {}
    for row in rows:
        newest[row.connection] = max(row.number, newest.get(row.connection, 0))
    return newest


_TOUCH_SOURCES = text(
    """
    insert into event_sources as known (queue, source, arrivals_at, starts_at, ends_at)
    select queue, source, case when arrivals then now() end, case when starts then now() end,
        case when ends then now() end
    from unnest(cast(:queues as text[]), cast(:sources as text[]), cast(:arrivals as boolean[]),
        cast(:starts as boolean[]), cast(:ends as boolean[])
    ) as seen(queue, source, arrivals, starts, ends)
    on conflict (queue, source) do update set
        arrivals_at = coalesce(excluded.arrivals_at, known.arrivals_at),
        starts_at = coalesce(excluded.starts_at, known.starts_at),
        ends_at = coalesce(excluded.ends_at, known.ends_at)
    """
)


async def touch_sources(conn: Connection, seen: Sequence[tuple[str, str, str]]) -> None:
    """Note that each ``(queue, source, what)`` is reported now; ``what``: ``arrivals``, ``starts`` or ``ends``."""
    merged: dict[tuple[str, str], set[str]] = {}
    for queue, source, what in seen:
        merged.setdefault((queue, source), set()).add(what)
    ordered = sorted(merged)
    if not ordered:
        return
    await conn.execute(
        _TOUCH_SOURCES,
        {
            "queues": [queue for queue, _ in ordered],
            "sources": [source for _, source in ordered],
            **{name: [name in merged[key] for key in ordered] for name in KINDS},
        },
    )


class EventSource(NamedTuple):
    """Who reports the job events of a queue, and for how long it has not; ``None``: not of that kind, for a day."""

    queue: str
    source: str
    """The producer of a collector; empty: all other programs."""
    arrivals_age_s: float | None
    starts_age_s: float | None
    ends_age_s: float | None


_READ_SOURCES = text(
    """
    select queue, source,
        cast(extract(epoch from now() - case when arrivals_at > since then arrivals_at end) as double precision),
        cast(extract(epoch from now() - case when starts_at > since then starts_at end) as double precision),
        cast(extract(epoch from now() - case when ends_at > since then ends_at end) as double precision)
    from event_sources, (select now() - make_interval(secs => :shown_s) as since) as day
    where greatest(arrivals_at, starts_at, ends_at) > since order by queue, source
    """
)


async def read_sources(conn: Connection) -> dict[str, list[EventSource]]:
    """Who reports the job events of each queue."""
    rows = await conn.execute(_READ_SOURCES, {"shown_s": SOURCES_SHOWN_S})
    found: dict[str, list[EventSource]] = {}
    for row in rows:
        found.setdefault(row.queue, []).append(EventSource(*row))
    return found


_READ_REPORTED = text(
    """
    select distinct queue, what from event_sources, lateral (values
        ('arrivals', arrivals_at), ('starts', starts_at), ('ends', ends_at)) as each (what, at)
    where at > now() - make_interval(secs => :reported_s)
    """
)


async def read_reported(conn: Connection) -> set[tuple[str, str]]:
    """Queue and what of it, ``arrivals``, ``starts`` or ``ends``, was reported within ``REPORTED_FOR_S``."""
    rows = await conn.execute(_READ_REPORTED, {"reported_s": REPORTED_FOR_S})
    return {(row.queue, row.what) for row in rows}


_TOUCH_COLLECTORS = text(
    """
    insert into collectors as known (connection, producer)
    select * from unnest(cast(:connections as text[]), cast(:producers as text[]))
    on conflict (connection, producer) do update set seen_at = now(), began_at = case
        when known.seen_at < now() - make_interval(secs => :silent_s) then now() else known.began_at end
    """
)


async def touch_collectors(conn: Connection, seen: Iterable[tuple[str, str]]) -> None:
    """Note that each ``(connection, producer)`` polls. One that comes back after a silence begins anew."""
    ordered = sorted(set(seen))
    await conn.execute(
        _TOUCH_COLLECTORS,
        {
            "silent_s": COLLECTOR_SILENT_S,
            "connections": [connection for connection, _ in ordered],
            "producers": [producer for _, producer in ordered],
        },
    )


_TOUCH_POLLED = text(
    """
    insert into collectors as known (connection, producer)
    select each.connection, :producer from unnest(cast(:connections as text[])) as each (connection)
    where exists (select from profile_queues where split_part(queue, '/', 1) = each.connection)
    on conflict (connection, producer) do update set seen_at = now(), began_at = case
        when known.seen_at < now() - make_interval(secs => :silent_s) then now() else known.began_at end
    """
)


async def touch_polled(conn: Connection, connections: Iterable[str], *, producer: str) -> None:
    """Note that ``producer`` polls ``connections``, those of which a profile names a queue.

    No queue of them was found: the bound on queues does not bound their number, and profiles do.
    """
    await conn.execute(
        _TOUCH_POLLED,
        {"silent_s": COLLECTOR_SILENT_S, "connections": sorted(connections), "producer": producer},
    )


def shared_connections(polling: Iterable[SeenCollector]) -> set[str]:
    """The connections that several collectors poll.

    One that was replaced is taken for one that polls, until it has been silent for long enough.
    """
    settled = Counter(each.connection for each in polling if each.began_age_s > COLLECTOR_SILENT_S)
    return {connection for connection, collectors in settled.items() if collectors > 1}


_READ_COLLECTORS = text(
    """
    select connection, producer, cast(extract(epoch from now() - seen_at) as double precision) as seen_age_s,
        cast(extract(epoch from now() - began_at) as double precision) as began_age_s
    from collectors where seen_at > now() - make_interval(secs => :within_s)
        and (cast(:named as text[]) is null or connection = any(cast(:named as text[])))
    order by connection, began_at, producer limit :most
    """
)


async def read_collectors(
    conn: Connection,
    connections: Iterable[str] | None = None,
    *,
    within_s: float = COLLECTOR_SILENT_S,
    most: int | None = None,
) -> list[SeenCollector]:
    """The collectors that polled within ``within_s``, of these connections or of all, at most so many.

    The one of a connection that began first comes first.
    """
    named = None if connections is None else sorted(connections)
    rows = await conn.execute(_READ_COLLECTORS, {"named": named, "within_s": within_s, "most": most})
    return [SeenCollector(**each) for each in rows.mappings()]


async def list_collectors(conn: Connection) -> list[SeenCollector]:
    """The collectors of the last ``COLLECTORS_LISTED_S``, by connection and name; ``COLLECTORS_LISTED_MAX`` at most."""
    found = await read_collectors(conn, within_s=COLLECTORS_LISTED_S, most=COLLECTORS_LISTED_MAX)
    return sorted(found, key=lambda each: (each.connection, each.producer))
