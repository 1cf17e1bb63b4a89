"""What Postgres sums up of templates and pools is what the core would count of every host."""

import json
from typing import Any

import psycopg
import pytest

from headway.scaling.allocation.rollout import progress_of
from headway.scaling.model import WorkerState
from headway.store.engine import create_engine, snapshot
from headway.store.hosts.hosts import load_hosts
from headway.store.hosts.template_counts import TemplateFacts, read_template_facts, reported_workers, restart_progress
from headway.store.pools import evaluation_io

LEASES = {"a": "1 hour", "b": "1 hour", "lost": "-1 second"}


@pytest.fixture
def database(migrated_url: str) -> Any:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for name, lease in LEASES.items():
            slots = {"a": 4, "b": 2, "lost": 1}[name]
            templates = json.dumps([{"name": "rq", "content_hash": "", "slots": slots}])
            connection.execute(
                "insert into hosts (host_id, name, templates, lease_ends_at) "
                f"values ('{name}', '{name}', '{templates}', now() + interval '{lease}')"
            )
            for pool in ("mail", "web"):
                for number, (state, generation) in enumerate((s, g) for s in WorkerState for g in (0, 1, 2)):
                    connection.execute(
                        "insert into workers "
                        "(worker_id, host_id, pool, template, pid, state, restart_generation, started_at) "
                        "values (%s, %s, %s, 'rq', 1, %s, %s, now())",
                        [f"{name}{pool}{number}", name, pool, state.value, generation],
                    )
        connection.execute(
            "insert into assignments "
            "(pool, host_id, template, base_workers, burst_workers, epoch, revision, is_exclusive) "
            "values ('mail', 'a', 'rq', 3, 4, 1, 1, true), ('mail', 'lost', 'rq', 9, 0, 1, 1, true), "
            "('web', 'a', 'rq', 9, 0, 1, 1, false)"
        )
        connection.execute("insert into template_start_ups values ('a', 'rq', 1.5, 1), ('lost', 'rq', 9.0, 1)")
    return migrated_url


async def test_the_worst_of_the_known_hosts_counts(database: str) -> None:
    engine = create_engine(database)
    async with snapshot(engine) as conn:
        assert await read_template_facts(conn, ["rq", "none"]) == {"rq": TemplateFacts(slots=2, start_up_s=1.5)}
        assert await read_template_facts(conn, []) == {}
    await engine.dispose()


async def test_progress_and_running_workers_are_what_the_core_counts(database: str) -> None:
    engine = create_engine(database)
    async with snapshot(engine) as conn:
        every, rows = await load_hosts(conn), await evaluation_io._assignments(conn)
        for pool in ("mail", "web", "none"):
            for generation in (0, 1, 2, 3):
                expected = progress_of(every, rows, pool, generation)
                assert await restart_progress(conn, pool, generation) == expected
            running = [
                each
                for host in every
                for each in host.workers
                if host.is_known and each.pool == pool and each.state is WorkerState.RUNNING
            ]
            assert (await reported_workers(conn, pool))[0] == len(running)
    await engine.dispose()
