"""What has served its time goes, and nothing else, on a real Postgres."""

import psycopg
import pytest

from headway.store.engine import create_engine
from headway.store.retention import SERVED, forget_old

# Table -> how a row of a name is made, so old; what is young enough; what is not.
ROWS = {
    "event_batches": (
        "insert into event_batches (producer, sequence, claimed_at) values ('{name}', 1, now() - interval '{age}')",
        ("producer", "6 days", "8 days"),
    ),
    "event_files": (
        (
            "insert into event_files (file, ingest, rows, bytes, recorded_at) "
            "values ('{name}', 'i', 1, 1, now() - interval '{age}')"
        ),
        ("file", "29 days", "31 days"),
    ),
    "worker_activities": (
        (
            "insert into worker_activities (host_name, pid, is_busy, seen_at) "
            "values ('{name}', 1, true, now() - interval '{age}')"
        ),
        ("host_name", "50 minutes", "70 minutes"),
    ),
    "queue_samples": (
        (
            "insert into queue_samples (queue, sampled_at_s, waiting_jobs, received_at) "
            "values ('{name}', 1, 1, now() - interval '{age}')"
        ),
        ("queue", "23 hours", "25 hours"),
    ),
    "queues": (
        "insert into queues (queue, seen_at) values ('{name}', now() - interval '{age}')",
        ("queue", "23 hours", "25 hours"),
    ),
    "job_reports": (
        (
            "insert into job_reports (connection, source, ingest, keys, recorded_at) "
            "values ('{name}', 's', 'i', '', now() - interval '{age}')"
        ),
        ("connection", "650 seconds", "670 seconds"),
    ),
    "event_sources": (
        "insert into event_sources (queue, source, ends_at) values ('{name}', 's', now() - interval '{age}')",
        ("queue", "191 hours", "193 hours"),
    ),
    "listed_workers": (
        (
            "insert into listed_workers (queue, from_s, until_s, workers) "
            "select '{name}', 0, extract(epoch from now() - interval '{age}'), 1"
        ),
        ("queue", "13 days", "15 days"),
    ),
    "collectors": (
        "insert into collectors (connection, producer, seen_at) values ('{name}', 'p', now() - interval '{age}')",
        ("connection", "23 hours", "25 hours"),
    ),
    "released_assignments": (
        (
            "insert into hosts (host_id, name, boot_id) values ('{name}', '{name}', 'b'); "
            "insert into released_assignments (pool, host_id, released_at) "
            "values ('{name}', '{name}', now() - interval '{age}')"
        ),
        ("pool", "6 days", "8 days"),
    ),
    "pool_events": (
        (
            "insert into pool_events (receiver, pool, number, event, at_s, from_workers, to_workers, why) "
            "values ('{name}', 'p', 1, 'scaled', extract(epoch from now() - interval '{age}'), 0, 1, 'w')"
        ),
        ("receiver", "6 days", "8 days"),
    ),
    "job_cuts": (
        (
            "insert into job_cuts (host_id, cut_id, host, pool, template, worker_id, cause, is_certain, cut_at, "
            "recorded_at) values ('h', '{name}', 'h', 'p', 't', 'w', 'signal', true, now(), now() - interval '{age}')"
        ),
        ("cut_id", "29 days", "31 days"),
    ),
    "queue_counts": (
        (
            "insert into queue_counts (producer, queue, sequence, epoch, received_at_s) "
            "values ('{name}', 'q', 1, 'e', extract(epoch from now() - interval '{age}'))"
        ),
        ("producer", "6 days", "8 days"),
    ),
    "producers": (
        "insert into producers (producer, sent_by, seen_at) values ('{name}', 'app', now() - interval '{age}')",
        ("producer", "6 days", "8 days"),
    ),
    "queue_seasons": (
        (
            "insert into queue_seasons (queue, version, time_zone, body, source, from_s, until_s, trained_at) "
            "values ('{name}', 1, 'UTC', '{{}}', 's', 0, 1, now() - interval '{age}')"
        ),
        ("queue", "29 days", "31 days"),
    ),
    "queue_totals": (
        (
            "insert into queues (queue) select '{name}' where interval '{age}' < interval '1 day'; "
            "insert into queue_totals values ('{name}', 1, 1, 1, 0, 0, 1.0, '{{}}', '{{}}')"
        ),
        ("queue", "23 hours", "25 hours"),
    ),
    "pool_attainment": (
        (
            "insert into profiles (pool, body) values ('{name}', '{{}}'); "
            "insert into pool_attainment values ('{name}', extract(epoch from now() - interval '{age}'), 1, 0)"
        ),
        ("pool", "30 days", "32 days"),
    ),
    "alerts": (
        (
            "insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action) values "
            "('r', 'page', '{name}', '', '', 1, extract(epoch from now() - interval '{age}'), 's', 'a')"
        ),
        ("pool", "399 days", "401 days"),
    ),
    "silences": (
        "insert into silences values ('{name}', '{{}}', extract(epoch from now() - interval '{age}'), 'r', 'c')",
        ("name", "29 days", "31 days"),
    ),
    "audit_log": (
        (
            "insert into audit_log (actor, action, subject, acted_at) "
            "values ('{name}', 'call refused', 's', now() - interval '{age}')"
        ),
        ("actor", "89 days", "91 days"),
    ),
}


def test_every_table_that_is_cleared_is_tried_here() -> None:
    assert ROWS.keys() == SERVED.keys()


@pytest.mark.parametrize("table", ROWS)
async def test_what_has_served_is_forgotten_and_what_may_still_be_asked_for_is_not(
    migrated_url: str, table: str
) -> None:
    insert, (column, young, old) = ROWS[table]
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for name, age in (("young", young), ("old", old)):
            connection.execute(insert.format(name=name, age=age))
        engine = create_engine(migrated_url)
        assert await forget_old(engine, table) == 1
        await engine.dispose()
        assert connection.execute(f"select {column} from {table}").fetchall() == [("young",)]


async def test_a_queue_of_which_anything_came_in_the_last_day_stays(migrated_url: str) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for name in ("read", "reported", "gone"):
            connection.execute(ROWS["queues"][0].format(name=name, age="1000 days"))
        for name, age in (("read", "1 minute"), ("gone", "25 hours")):
            connection.execute(ROWS["queue_samples"][0].format(name=name, age=age))
        for name, age in (("reported", "2 hours"), ("gone", "26 hours")):
            connection.execute(
                "insert into rollup_hours (queue, job_class, bucket_s) "
                f"values ('{name}', '', extract(epoch from now() - interval '{age}'))"
            )
        engine = create_engine(migrated_url)
        for table in SERVED:
            await forget_old(engine, table)
        await engine.dispose()
        assert connection.execute("select queue from queues order by queue").fetchall() == [("read",), ("reported",)]


async def test_what_is_known_of_a_queue_that_a_profile_names_stays_and_so_does_what_people_changed(
    migrated_url: str,
) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into profiles (pool, body) values ('mail', '{}')")
        connection.execute("insert into profile_queues (queue, pool, rank) values ('old', 'mail', 0)")
        for table in ("queue_samples", "queue_seasons", "queue_totals"):
            connection.execute(ROWS[table][0].format(name="old", age="1000 days"))
        connection.execute(
            "insert into audit_log (actor, action, subject, acted_at) "
            "values ('a', 'profile updated', 's', now() - interval '1000 days')"
        )
        engine = create_engine(migrated_url)
        assert [await forget_old(engine, table) for table in SERVED] == [0] * len(SERVED)
        await engine.dispose()
