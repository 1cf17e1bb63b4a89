"""The newest that was reported, in Postgres: samples of queues, counts of jobs, hints about workers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import text

from headway.scaling.metrics.newest_sample import LISTED_GAP_S
from headway.scaling.model import QueueSample, WorkerActivity
from headway.scaling.model.due_jobs import due_to_pairs
from headway.store.engine import Connection

# Where the count that was known ends with this reading, its span is kept. The rows are locked first: of two ingests
# each then sees what the other left.
_LISTED_BEFORE = text(
    """
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
        case when at_s - sampled_at_s <= :gap_s then at_s else sampled_at_s end, listed_workers
    from read join before using (queue)
    where listed_workers is not null and at_s > sampled_at_s
        and (workers is distinct from listed_workers or at_s - sampled_at_s > :gap_s)
    on conflict do nothing
    """
)


SUSPENSIONS = "headway_suspensions"
"""The channel on which a change of what keeps workers from taking jobs is announced."""
# A pool at zero has no consumers, and begins to have some with each worker that starts: that alone is no news.
_SUSPENSION_TURNS = text(
    """
    select pg_notify(:channel, '') where exists (
        select from unnest(cast(:queue as text[]), cast(:at_s as double precision[]), cast(:suspension as text[]))
            as read(queue, at_s, suspension)
        join queue_samples as known using (queue)
        where read.at_s >= known.sampled_at_s and read.suspension is distinct from known.suspension
            and (known.suspension <> 'none' or read.suspension = 'library'))
    """
)
_UPSERT_SAMPLES = text(
    """
    insert into queue_samples as known (
        queue, sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s, reserved_jobs, oldest_age_max_s,
        reports_arrivals, reports_starts, reports_ends, poll_interval_s, listed_workers, suspension, useful_workers,
        message_ttl_s, redelivery, waiting_min_jobs, in_flight_min_jobs, due, received_at, listed_since_s)
    select *, now(), case when listed_workers is not null then at_s end from unnest(
        cast(:queue as text[]), cast(:at_s as double precision[]), cast(:waiting_jobs as bigint[]),
        cast(:in_flight_jobs as bigint[]), cast(:delayed_jobs as bigint[]), cast(:oldest_age_s as double precision[]),
        cast(:reserved_jobs as bigint[]), cast(:oldest_age_max_s as double precision[]),
        cast(:reports_arrivals as boolean[]), cast(:reports_starts as boolean[]), cast(:reports_ends as boolean[]),
        cast(:poll_interval_s as double precision[]), cast(:listed_workers as bigint[]), cast(:suspension as text[]),
        cast(:useful_workers as bigint[]), cast(:message_ttl_s as double precision[]),
        cast(:redelivery as text[]),
        cast(:waiting_min_jobs as bigint[]), cast(:in_flight_min_jobs as bigint[]), cast(:due as jsonb[])
    ) as read(
        queue, at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s, reserved_jobs, oldest_age_max_s,
        reports_arrivals, reports_starts, reports_ends, poll_interval_s, listed_workers, suspension, useful_workers,
        message_ttl_s, redelivery, waiting_min_jobs, in_flight_min_jobs, due)
    on conflict (queue) do update set
        sampled_at_s = excluded.sampled_at_s, waiting_jobs = excluded.waiting_jobs,
        in_flight_jobs = excluded.in_flight_jobs, delayed_jobs = excluded.delayed_jobs,
        oldest_age_s = excluded.oldest_age_s, reserved_jobs = excluded.reserved_jobs,
        oldest_age_max_s = excluded.oldest_age_max_s, reports_arrivals = excluded.reports_arrivals,
        reports_starts = excluded.reports_starts, reports_ends = excluded.reports_ends,
        poll_interval_s = excluded.poll_interval_s, listed_workers = excluded.listed_workers,
        suspension = excluded.suspension, useful_workers = excluded.useful_workers,
        message_ttl_s = excluded.message_ttl_s, redelivery = excluded.redelivery,
        waiting_min_jobs = excluded.waiting_min_jobs, in_flight_min_jobs = excluded.in_flight_min_jobs,
        due = excluded.due, received_at = now(),
        listed_since_s = case
            when known.listed_workers = excluded.listed_workers
                and excluded.sampled_at_s - known.sampled_at_s <= :gap_s
            then known.listed_since_s else excluded.listed_since_s end
    where excluded.sampled_at_s >= known.sampled_at_s
    """
)


async def upsert_samples(connection: Connection, samples: Iterable[QueueSample]) -> None:
    """Keep the newest reading of each queue; an older one than is known changes nothing."""
    newest: dict[str, QueueSample] = {}
    for sample in samples:
        if sample.queue not in newest or sample.at_s >= newest[sample.queue].at_s:
            newest[sample.queue] = sample
    if not newest:
        return
    ordered = [newest[queue] for queue in sorted(newest)]
    given = {each.name: [_plain(getattr(sample, each.name)) for sample in ordered] for each in fields(QueueSample)}
    given["due"] = [json.dumps(due_to_pairs(sample.due)) for sample in ordered]
    listed = {name: given[name] for name in ("queue", "at_s", "listed_workers")}
    await connection.execute(_LISTED_BEFORE, {**listed, "gap_s": LISTED_GAP_S})
    if any(given["suspension"]):
        turns = {name: given[name] for name in ("queue", "at_s", "suspension")}
        await connection.execute(_SUSPENSION_TURNS, {**turns, "channel": SUSPENSIONS})
    await connection.execute(_UPSERT_SAMPLES, {**given, "gap_s": LISTED_GAP_S})


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


_LOCK_COUNTS = text(
    """
    select producer, queue, sequence, epoch, received_at_s, arrived_jobs, started_jobs, finished_jobs, failed_jobs
    from queue_counts
    where (producer, queue) in (select * from unnest(cast(:producers as text[]), cast(:queues as text[])))
    order by producer, queue for update
    """
)
_SAVE_COUNTS = text(
    """
    insert into queue_counts as known (
        producer, queue, sequence, epoch, received_at_s, arrived_jobs, started_jobs, finished_jobs, failed_jobs)
    select * from unnest(
        cast(:producer as text[]), cast(:queue as text[]), cast(:sequence as bigint[]), cast(:epoch as text[]),
        cast(:received_at_s as double precision[]), cast(:arrived_jobs as bigint[]), cast(:started_jobs as bigint[]),
        cast(:finished_jobs as bigint[]), cast(:failed_jobs as bigint[]))
    on conflict (producer, queue) do update set
        sequence = excluded.sequence, epoch = excluded.epoch, received_at_s = excluded.received_at_s,
        arrived_jobs = excluded.arrived_jobs, started_jobs = excluded.started_jobs,
        finished_jobs = excluded.finished_jobs, failed_jobs = excluded.failed_jobs
    where excluded.sequence > known.sequence
    """
)


async def lock_counts(connection: Connection, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], CountsTaken]:
    """The last reports by producer and queue, of those ``keys`` that have one, locked until the commit."""
    ordered = sorted(set(keys))
    if not ordered:
        return {}
    rows = await connection.execute(
        _LOCK_COUNTS,
        {"producers": [producer for producer, _ in ordered], "queues": [queue for _, queue in ordered]},
    )
    return {(row.producer, row.queue): CountsTaken(*row[2:]) for row in rows}


async def save_counts(connection: Connection, counts: Mapping[tuple[str, str], CountsTaken]) -> None:
    """Keep these as the last reports, by producer and queue; an older one than is known changes nothing."""
    if not counts:
        return
    ordered = sorted(counts)
    await connection.execute(
        _SAVE_COUNTS,
        {
            "producer": [producer for producer, _ in ordered],
            "queue": [queue for _, queue in ordered],
            **{name: [getattr(counts[key], name) for key in ordered] for name in CountsTaken._fields},
        },
    )


_UPSERT_ACTIVITIES = text(
    """
    insert into worker_activities (host_name, pid, is_busy, busy_since_s, ended_jobs, running_jobs, busy_queue, seen_at)
    select host, pid, is_busy, busy_since_s, ended_jobs, running_jobs, busy_queue,
        case when is_withdrawn then '-infinity' else now() end
    from unnest(
        cast(:host as text[]), cast(:pid as bigint[]), cast(:is_busy as boolean[]),
        cast(:busy_since_s as double precision[]), cast(:ended_jobs as bigint[]), cast(:running_jobs as bigint[]),
        cast(:busy_queue as text[]), cast(:is_withdrawn as boolean[])
    ) as said (host, pid, is_busy, busy_since_s, ended_jobs, running_jobs, busy_queue, is_withdrawn)
    on conflict (host_name, pid) do update set
        is_busy = excluded.is_busy, busy_since_s = excluded.busy_since_s, ended_jobs = excluded.ended_jobs,
        running_jobs = excluded.running_jobs, busy_queue = excluded.busy_queue, seen_at = excluded.seen_at
    """
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
        _UPSERT_ACTIVITIES,
        {
            name: [getattr(activity, name) for activity in ordered]
            for name in (
                "host",
                "pid",
                "is_busy",
                "busy_since_s",
                "ended_jobs",
                "running_jobs",
                "busy_queue",
                "is_withdrawn",
            )
        },
    )
