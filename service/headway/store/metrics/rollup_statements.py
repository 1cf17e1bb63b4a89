"""The SQL of the rollups, for psycopg."""

from typing import LiteralString

from psycopg import sql

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

# Counts and sketches add up, the longest wait is the longest, and the newest sample stands for its span.
MERGE_MINUTE: LiteralString = """
with part as materialized (
    select * from queue_buckets where bucket_s >= %(from_s)s and bucket_s < %(until_s)s
        and (%(is_new)s or queue in (
            select queue from queue_buckets
            where revision > %(revision)s and bucket_s >= %(from_s)s and bucket_s < %(until_s)s
        ))
),
services as (
    select queue, jsonb_object_agg(index, jobs) as service_sketch from (
        select queue, each.key as index, sum(each.value::bigint)::bigint as jobs
        from part, jsonb_each_text(part.service_sketch) as each group by queue, each.key
    ) as counted group by queue
),
pickups as (
    select queue, jsonb_object_agg(index, jobs) as pickup_sketch from (
        select queue, each.key as index, sum(each.value::bigint)::bigint as jobs
        from part, jsonb_each_text(part.pickup_sketch) as each group by queue, each.key
    ) as counted group by queue
),
sums as (
    select queue, sum(arrived_jobs)::bigint as arrived_jobs, sum(started_jobs)::bigint as started_jobs,
        sum(finished_jobs)::bigint as finished_jobs, sum(failed_jobs)::bigint as failed_jobs,
        sum(retried_attempts)::bigint as retried_attempts, sum(retried_jobs)::bigint as retried_jobs,
        sum(revoked_jobs)::bigint as revoked_jobs, sum(service_sum_s) as service_sum_s,
        max(pickup_max_s) as pickup_max_s
    from part group by queue
),
newest as (
    select distinct on (queue) queue, sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s
    from part where sampled_at_s is not null order by queue, sampled_at_s desc
)
insert into rollup_minutes (queue, job_class, bucket_s, arrived_jobs, started_jobs, finished_jobs, failed_jobs,
    retried_attempts, retried_jobs, revoked_jobs, service_sum_s, pickup_max_s, service_sketch, pickup_sketch,
    sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s)
select queue, '', %(from_s)s, arrived_jobs, started_jobs, finished_jobs, failed_jobs,
    retried_attempts, retried_jobs, revoked_jobs, service_sum_s, pickup_max_s,
    coalesce(service_sketch, '{}'), coalesce(pickup_sketch, '{}'),
    sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s
from sums left join services using (queue) left join pickups using (queue) left join newest using (queue)
where arrived_jobs + started_jobs + finished_jobs + failed_jobs + retried_attempts + retried_jobs + revoked_jobs > 0
    or waiting_jobs > 0 or in_flight_jobs > 0 or delayed_jobs > 0
on conflict (queue, job_class, bucket_s) do update set
    arrived_jobs = excluded.arrived_jobs, started_jobs = excluded.started_jobs,
    finished_jobs = excluded.finished_jobs, failed_jobs = excluded.failed_jobs,
    retried_attempts = excluded.retried_attempts, retried_jobs = excluded.retried_jobs,
    revoked_jobs = excluded.revoked_jobs, service_sum_s = excluded.service_sum_s,
    pickup_max_s = excluded.pickup_max_s, service_sketch = excluded.service_sketch,
    pickup_sketch = excluded.pickup_sketch, sampled_at_s = excluded.sampled_at_s,
    waiting_jobs = excluded.waiting_jobs, in_flight_jobs = excluded.in_flight_jobs,
    delayed_jobs = excluded.delayed_jobs, oldest_age_s = excluded.oldest_age_s
"""
MERGE_HOUR: LiteralString = """
with part as materialized (
    select * from rollup_minutes where bucket_s >= %(from_s)s and bucket_s < %(until_s)s and queue = any(%(queues)s)
),
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
    select distinct on (queue, job_class) queue, job_class, sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs,
        oldest_age_s
    from part where sampled_at_s is not null order by queue, job_class, sampled_at_s desc
)
insert into rollup_hours (queue, job_class, bucket_s, arrived_jobs, started_jobs, finished_jobs, failed_jobs,
    retried_attempts, retried_jobs, revoked_jobs, service_sum_s, pickup_max_s, service_sketch, pickup_sketch,
    sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s)
select queue, job_class, %(from_s)s, arrived_jobs, started_jobs, finished_jobs, failed_jobs,
    retried_attempts, retried_jobs, revoked_jobs, service_sum_s, pickup_max_s,
    coalesce(service_sketch, '{}'), coalesce(pickup_sketch, '{}'),
    sampled_at_s, waiting_jobs, in_flight_jobs, delayed_jobs, oldest_age_s
from sums left join services using (queue, job_class) left join pickups using (queue, job_class)
    left join newest using (queue, job_class)
where arrived_jobs + started_jobs + finished_jobs + failed_jobs + retried_attempts + retried_jobs + revoked_jobs > 0
    or waiting_jobs > 0 or in_flight_jobs > 0 or delayed_jobs > 0
on conflict (queue, job_class, bucket_s) do update set
    arrived_jobs = excluded.arrived_jobs, started_jobs = excluded.started_jobs,
    finished_jobs = excluded.finished_jobs, failed_jobs = excluded.failed_jobs,
    retried_attempts = excluded.retried_attempts, retried_jobs = excluded.retried_jobs,
    revoked_jobs = excluded.revoked_jobs, service_sum_s = excluded.service_sum_s,
    pickup_max_s = excluded.pickup_max_s, service_sketch = excluded.service_sketch,
    pickup_sketch = excluded.pickup_sketch, sampled_at_s = excluded.sampled_at_s,
    waiting_jobs = excluded.waiting_jobs, in_flight_jobs = excluded.in_flight_jobs,
    delayed_jobs = excluded.delayed_jobs, oldest_age_s = excluded.oldest_age_s
"""

FORGET_BUCKETS: LiteralString = """
delete from queue_buckets where ctid = any(array(
    select ctid from queue_buckets where bucket_s < %(before_s)s
        and written_at < now() - make_interval(secs => %(rewritten_s)s) limit %(rows)s
))
"""
FORGET_MINUTES: LiteralString = """
delete from rollup_minutes where ctid = any(array(
    select ctid from rollup_minutes where bucket_s < %(before_s)s limit %(rows)s
))
"""
FORGET_HOURS: LiteralString = """
delete from rollup_hours where ctid = any(array(
    select ctid from rollup_hours where bucket_s < %(before_s)s limit %(rows)s
))
"""

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
