"""The newest that was reported, in Postgres: samples of queues, counts of jobs, hints about workers."""

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import text

from headway.scaling.metrics.newest_sample import LISTED_GAP_S
from headway.scaling.model import QueueSample, WorkerActivity
from headway.scaling.model.due_jobs import due_to_pairs
from headway.store.engine import Connection

_KEYED = {"queue": "text", "at_s": "double precision"}
_SAMPLED = {
    "waiting_jobs": "bigint",
    "in_flight_jobs": "bigint",
    "delayed_jobs": "bigint",
    "oldest_age_s": "double precision",
    "reserved_jobs": "bigint",
    "oldest_age_max_s": "double precision",
    "reports_arrivals": "boolean",
    "reports_starts": "boolean",
    "reports_ends": "boolean",
    "poll_interval_s": "double precision",
    "listed_workers": "bigint",
    "suspension": "text",
    "useful_workers": "bigint",
    "message_ttl_s": "double precision",
    "waiting_min_jobs": "bigint",
    "in_flight_min_jobs": "bigint",
    "due": "jsonb",
}
"""What a sample says of its queue, and the type of each column."""


# Where the count that was known ends with this reading, its span is kept. The rows are locked first: of two ingests
# each then sees what the other left.
_LISTED_BEFORE = f"""
    with read as (
        select queue, at_s, workers from unnest(
            cast(:queue as text[]), cast(:at_s as double precision[]), cast(:listed_workers as bigint[])
        ) as read(queue, at_s, workers)
    ),
    before as (
        select queue, sampled_at_s, listed_workers, listed_since_s from queue_samples
        where queue = any(cast(:queue as text[])) order by queue for update
    )
    insert into listed_workers (queue, from_s, until_s, workers)
    select queue, listed_since_s,
        case when at_s - sampled_at_s <= {LISTED_GAP_S} then at_s else sampled_at_s end, listed_workers
    from read join before using (queue)
    where listed_workers is not null and at_s > sampled_at_s
        and (workers is distinct from listed_workers or at_s - sampled_at_s > {LISTED_GAP_S})
    on conflict do nothing
"""  # noqa: S608 - a number of ours


SUSPENSIONS = "headway_suspensions"
"""The channel on which a change of what keeps workers from taking jobs is announced."""
# A pool at zero has no consumers, and begins to have some with each worker that starts: that alone is no news.
_SUSPENSION_TURNS = f"""
    select pg_notify('{SUSPENSIONS}', '') where exists (
        select from unnest(cast(:queue as text[]), cast(:at_s as double precision[]), cast(:suspension as text[]))
            as read(queue, at_s, suspension)
        join queue_samples as known using (queue)
        where read.at_s >= known.sampled_at_s and read.suspension is distinct from known.suspension
            and (known.suspension <> 'none' or read.suspension = 'library'))
"""  # noqa: S608 - a name of ours


async def upsert_samples(connection: Connection, samples: Iterable[QueueSample]) -> None:
    """Keep the newest reading of each queue; an older one than is known changes nothing."""
    newest: dict[str, QueueSample] = {}
    for sample in samples:
        if sample.queue not in newest or sample.at_s >= newest[sample.queue].at_s:
            newest[sample.queue] = sample
    if not newest:
        return
    ordered = [newest[queue] for queue in sorted(newest)]
    columns = {"queue": "queue", "at_s": "sampled_at_s"} | {name: name for name in _SAMPLED}
    casts = ", ".join(f"cast(:{name} as {kind}[])" for name, kind in {**_KEYED, **_SAMPLED}.items())
    news = ", ".join(f"{name} = excluded.{name}" for name in ("sampled_at_s", *_SAMPLED))
    given = {name: [_plain(getattr(sample, name)) for sample in ordered] for name in columns}
    given["due"] = [json.dumps(due_to_pairs(sample.due)) for sample in ordered]
    listed = {name: given[name] for name in ("queue", "at_s", "listed_workers")}
    await connection.execute(text(_LISTED_BEFORE), listed)
    if any(given["suspension"]):
        turns = {name: given[name] for name in ("queue", "at_s", "suspension")}
        await connection.execute(text(_SUSPENSION_TURNS), turns)
    await connection.execute(
        text(
            f"insert into queue_samples as known ({', '.join(columns.values())}, received_at, listed_since_s) "  # noqa: S608 - our own
            "select *, now(), case when listed_workers is not null then at_s end "
            f"from unnest({casts}) as given({', '.join(columns)}) "
            f"on conflict (queue) do update set {news}, received_at = now(), listed_since_s = "
            "case when known.listed_workers = excluded.listed_workers "
            f"and excluded.sampled_at_s - known.sampled_at_s <= {LISTED_GAP_S} "
            "then known.listed_since_s else excluded.listed_since_s end "
            "where excluded.sampled_at_s >= known.sampled_at_s"
        ),
        given,
    )


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


class CountsTaken(NamedTuple):
    """The last report of a producer's counters of a queue that was taken."""

    sequence: int
    epoch: str
    received_at_s: float
    arrived_jobs: int | None
    started_jobs: int | None
    finished_jobs: int | None
    failed_jobs: int | None


async def lock_counts(connection: Connection, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], CountsTaken]:
    """The last reports by producer and queue, of those ``keys`` that have one, locked until the commit."""
    ordered = sorted(set(keys))
    if not ordered:
        return {}
    names = ", ".join(CountsTaken._fields)
    rows = await connection.execute(
        text(
            f"select producer, queue, {names} from queue_counts "  # noqa: S608 - names of our own
            "where (producer, queue) in (select * from unnest(cast(:producers as text[]), cast(:queues as text[]))) "
            "order by producer, queue for update"
        ),
        {"producers": [producer for producer, _ in ordered], "queues": [queue for _, queue in ordered]},
    )
    return {(row.producer, row.queue): CountsTaken(*row[2:]) for row in rows}


async def save_counts(connection: Connection, counts: Mapping[tuple[str, str], CountsTaken]) -> None:
    """Keep these as the last reports, by producer and queue; an older one than is known changes nothing."""
    if not counts:
        return
    types = dict.fromkeys(CountsTaken._fields, "bigint") | {"epoch": "text", "received_at_s": "double precision"}
    casts = ", ".join(
        f"cast(:{name} as {kind}[])" for name, kind in ({"producer": "text", "queue": "text"} | types).items()
    )
    news = ", ".join(f"{name} = excluded.{name}" for name in types)
    ordered = sorted(counts)
    await connection.execute(
        text(
            f"insert into queue_counts as known (producer, queue, {', '.join(types)}) "  # noqa: S608 - our own
            f"select * from unnest({casts}) on conflict (producer, queue) do update set {news} "
            "where excluded.sequence > known.sequence"
        ),
        {
            "producer": [producer for producer, _ in ordered],
            "queue": [queue for _, queue in ordered],
            **{name: [getattr(counts[key], name) for key in ordered] for name in types},
        },
    )


async def upsert_activities(connection: Connection, activities: Iterable[WorkerActivity]) -> None:
    """Keep the broker's last hint about each worker process; of two about the same one the later counts.

    One that is withdrawn is older than any that counts.
    """
    last = {(activity.host, activity.pid): activity for activity in activities}
    if not last:
        return
    ordered = [last[key] for key in sorted(last)]
    await connection.execute(
        text(
            "insert into worker_activities (host_name, pid, is_busy, busy_since_s, ended_jobs, running_jobs, seen_at) "
            "select host, pid, is_busy, busy_since_s, ended_jobs, running_jobs, "
            "case when is_withdrawn then '-infinity' else now() end "
            "from unnest(cast(:host as text[]), cast(:pid as bigint[]), cast(:is_busy as boolean[]), "
            "cast(:busy_since_s as double precision[]), cast(:ended_jobs as bigint[]), "
            "cast(:running_jobs as bigint[]), cast(:is_withdrawn as boolean[])) "
            "as said (host, pid, is_busy, busy_since_s, ended_jobs, running_jobs, is_withdrawn) "
            "on conflict (host_name, pid) do update set is_busy = excluded.is_busy, "
            "busy_since_s = excluded.busy_since_s, ended_jobs = excluded.ended_jobs, "
            "running_jobs = excluded.running_jobs, seen_at = excluded.seen_at"
        ),
        {
            name: [getattr(activity, name) for activity in ordered]
            for name in ("host", "pid", "is_busy", "busy_since_s", "ended_jobs", "running_jobs", "is_withdrawn")
        },
    )
