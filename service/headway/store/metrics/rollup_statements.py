"""The SQL of buckets and their rollups, for psycopg.

``{values}`` are the columns that a bucket and a rollup have beside those of their key, and ``{replaced}`` sets each of
them to the new one. They come from the table, quoted, so that a new column is written in one place. The statements for
minutes and hours are one: the rows of a queue are those of the job class ``''``.
"""

from typing import LiteralString

from psycopg import sql

from headway.store.tables import rollup_minutes

VALUES = tuple(each.name for each in rollup_minutes.columns if not each.primary_key)
"""The columns of a bucket and of a rollup beside those of its key."""

_VALUES = sql.SQL(", ").join(map(sql.Identifier, VALUES))
_REPLACED = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in VALUES)

TRY_LOCK: LiteralString = "select pg_try_advisory_lock(%(lock)s)"
UNLOCK: LiteralString = "select pg_advisory_unlock(%(lock)s)"

PROGRESS: LiteralString = "select revision, minutes_until_s, hours_until_s from rollup_progress"
SAVE_PROGRESS: LiteralString = """
update rollup_progress set revision = %(revision)s, minutes_until_s = %(minutes_until_s)s,
    hours_until_s = %(hours_until_s)s
"""
TOTALS_UNTIL: LiteralString = "select totals_until_s from rollup_progress"

NEWEST: LiteralString = """
select least(max(bucket_s), extract(epoch from now()) + 60), max(revision) from queue_buckets
"""
CHANGED_MINUTES: LiteralString = """
select distinct floor(bucket_s / 60) * 60 from queue_buckets
where bucket_s < %(until_s)s and (revision > %(revision)s or bucket_s >= %(from_s)s) order by 1
"""
WHOLE_HOURS: LiteralString = """
select distinct floor(bucket_s / 3600) * 3600 from rollup_minutes
where bucket_s >= %(from_s)s and bucket_s < %(until_s)s order by 1
"""
QUEUES_OF_HOUR: LiteralString = """
select distinct queue from rollup_minutes where bucket_s >= %(from_s)s and bucket_s < %(until_s)s order by 1
"""

# Made once a connection: a table a batch would bloat the catalogue. It has the target's types and none of its rules.
ARRIVED: LiteralString = """
create temporary table if not exists arrived on commit delete rows as
select ''::text as job_class, queue_buckets.* from queue_buckets with no data
"""
COPY_ARRIVED = sql.SQL("copy arrived (queue, job_class, bucket_s, {values}) from stdin").format(values=_VALUES)
UPSERT_BUCKETS = sql.SQL(
    """
    insert into queue_buckets (queue, bucket_s, {values}, revision)
    select queue, bucket_s, {values}, %(revision)s from arrived where job_class = ''
    on conflict (queue, bucket_s) do update set {replaced}, revision = excluded.revision, written_at = now()
    """
).format(values=_VALUES, replaced=_REPLACED)
UPSERT_CLASSES = sql.SQL(
    """
    insert into rollup_minutes (queue, job_class, bucket_s, {values})
    select queue, job_class, bucket_s, {values} from arrived where job_class <> ''
    on conflict (queue, job_class, bucket_s) do update set {replaced}
    """
).format(values=_VALUES, replaced=_REPLACED)

# Counts and sketches add up, the longest wait is the longest, and the newest sample stands for its span.
_MERGE = sql.SQL(
    """
    with part as materialized ({part}),
    services as (
        select queue, job_class, jsonb_object_agg(index, jobs) as service_sketch from (
            select queue, job_class, each.key as index, sum(each.value::bigint)::bigint as jobs
            from part, jsonb_each_text(part.service_sketch) as each group by queue, job_class, each.key
        ) as counted group by queue, job_class
    ),
    pickups as (
        select queue, job_class, jsonb_object_agg(index, jobs) as pickup_sketch from (
            select queue, job_class, each.key as index, sum(each.value::bigint)::bigint as jobs
            from part, jsonb_each_text(part.pickup_sketch) as each group by queue, job_class, each.key
        ) as counted group by queue, job_class
    ),
    sums as (
        select queue, job_class, sum(arrived_jobs)::bigint as arrived_jobs, sum(started_jobs)::bigint as started_jobs,
            sum(finished_jobs)::bigint as finished_jobs, sum(failed_jobs)::bigint as failed_jobs,
            sum(retried_attempts)::bigint as retried_attempts, sum(retried_jobs)::bigint as retried_jobs,
            sum(revoked_jobs)::bigint as revoked_jobs, sum(service_sum_s) as service_sum_s,
            max(pickup_max_s) as pickup_max_s
        from part group by queue, job_class
    ),
    newest as (
        select distinct on (queue, job_class) queue, job_class, sampled_at_s, waiting_jobs, in_flight_jobs,
            delayed_jobs, oldest_age_s
        from part where sampled_at_s is not null order by queue, job_class, sampled_at_s desc
    ),
    merged as (
        select queue, job_class, arrived_jobs, started_jobs, finished_jobs, failed_jobs, retried_attempts,
            retried_jobs, revoked_jobs, service_sum_s, pickup_max_s,
            coalesce(service_sketch, '{{}}') as service_sketch, coalesce(pickup_sketch, '{{}}') as pickup_sketch,
            sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s
        from sums left join services using (queue, job_class) left join pickups using (queue, job_class)
            left join newest using (queue, job_class)
    )
    insert into {rollup} (queue, job_class, bucket_s, {values})
    select queue, job_class, %(from_s)s, {values} from merged
    where arrived_jobs + started_jobs + finished_jobs + failed_jobs + retried_attempts + retried_jobs + revoked_jobs > 0
        or waiting_jobs > 0 or in_flight_jobs > 0 or delayed_jobs > 0
    on conflict (queue, job_class, bucket_s) do update set {replaced}
    """
)
_NEW_BUCKETS = sql.SQL(
    """
    select queue, '' as job_class, {values} from queue_buckets
    where bucket_s >= %(from_s)s and bucket_s < %(until_s)s
        and (%(is_new)s or queue in (
            select queue from queue_buckets
            where revision > %(revision)s and bucket_s >= %(from_s)s and bucket_s < %(until_s)s
        ))
    """
).format(values=_VALUES)
_MINUTES_OF_HOUR = sql.SQL(
    """
    select queue, job_class, {values} from rollup_minutes
    where bucket_s >= %(from_s)s and bucket_s < %(until_s)s and queue = any(%(queues)s)
    """
).format(values=_VALUES)
MERGE_MINUTE = _MERGE.format(
    rollup=sql.Identifier("rollup_minutes"), part=_NEW_BUCKETS, values=_VALUES, replaced=_REPLACED
)
MERGE_HOUR = _MERGE.format(
    rollup=sql.Identifier("rollup_hours"), part=_MINUTES_OF_HOUR, values=_VALUES, replaced=_REPLACED
)

FORGET_BUCKETS = sql.SQL(
    """
    delete from queue_buckets where ctid = any(array(
        select ctid from queue_buckets where bucket_s < %(before_s)s
            and written_at < now() - make_interval(secs => %(rewritten_s)s) limit %(rows)s
    ))
    """
)
_FORGET_ROLLUPS = sql.SQL(
    """
    delete from {table} where ctid = any(array(
        select ctid from {table} where bucket_s < %(before_s)s limit %(rows)s
    ))
    """
)
FORGET_MINUTES = _FORGET_ROLLUPS.format(table=sql.Identifier("rollup_minutes"))
FORGET_HOURS = _FORGET_ROLLUPS.format(table=sql.Identifier("rollup_hours"))

STORED_AT_LEVEL = sql.SQL(
    """
    with edges as (select max(bucket_s) as newest_s, min(bucket_s) as oldest_s, count(*) as rows from {table}),
    recent as (
        select queue, count(*) as rows from {table}
        where bucket_s > (select newest_s from edges) - %(recent_s)s group by queue
    )
    select edges.rows, pg_total_relation_size(%(table)s), coalesce(sum(recent.rows), 0), count(recent.queue),
        least(newest_s - oldest_s + %(span_s)s, %(recent_s)s)
    from edges left join recent on true group by edges.rows, newest_s, oldest_s
    """
)
