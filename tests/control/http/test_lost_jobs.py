"""Waiting jobs that leave their queue without a start: lost, expired, or started by workers that nobody reports."""

from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.mail_pool import mail, pool_of
from headway.control.http.overview.alerting import conditions_of
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.metrics.flush_detection import RAN_WITHIN_S, SHOWN_S, RecentWorkers
from headway.store.engine import Engine
from support.seed import Seed

AGENTS, COLLECTOR, EMITTERS = "agent-", "collect-1", ""


def flushed(seed: Seed, *, source: str) -> None:
    """Of 60 jobs that waited two started, and the others went. ``source`` reports starts."""
    mail(seed, at_s=NOW_S - 30)
    seed.pipeline()
    seed.event_source("redis/mail", source=source, starts_ago_s=60.0)
    seed.bucket("redis/mail", at_s=NOW_S - 24, waiting_jobs=60)
    seed.bucket("redis/mail", at_s=NOW_S - 19, waiting_jobs=0, arrived_jobs=1, pickups_s=[0.1, 0.1])
    seed.bucket("redis/mail", at_s=NOW_S - 4, waiting_jobs=0)


async def severities(engine: Engine) -> dict[str, str]:
    overviews = OverviewBuilder(engine=engine, clock=lambda: NOW_S)
    conditions = conditions_of(await overviews.of_pools())
    found = {key.kind or key.rule: each.severity for key, each in conditions.items()}
    return {kind: severity for kind, severity in found.items() if "lost" in kind}


@pytest.mark.parametrize(("source", "has_worker"), [(AGENTS, True), (AGENTS, False), (EMITTERS, False)])
async def test_waiting_jobs_that_a_flushed_broker_lost_are_reported(
    client: httpx.AsyncClient, seed: Seed, engine: Engine, source: str, *, has_worker: bool
) -> None:
    """Agents report which jobs expire, and where no worker ran none of them dropped a job."""
    flushed(seed, source=source)
    if not has_worker:
        seed.execute("delete from workers")
    pool = await pool_of(client)
    assert (pool["lost_jobs"], pool["perhaps_lost_jobs"]) == (58, 0)
    assert pool["causes"][0].startswith("58 waiting jobs left its queues without having been started: the broker was")
    assert [kind for kind in pool["health"]["kinds"] if "lost" in kind] == ["lost_jobs"]
    assert 'headway_pool_lost_jobs{pool="mail"} 58.0' in (await client.get("/metrics")).text
    assert await severities(engine) == {"jobs_lost": "page"}


@pytest.mark.parametrize("source", [EMITTERS, COLLECTOR])
async def test_jobs_that_may_have_expired_while_workers_ran_are_a_ticket_that_says_so(
    client: httpx.AsyncClient, seed: Seed, engine: Engine, source: str
) -> None:
    """Programs and collectors report starts, and no job that a worker drops because it expired."""
    flushed(seed, source=source)
    pool = await pool_of(client)
    assert (pool["lost_jobs"], pool["perhaps_lost_jobs"]) == (0, 58)
    assert "they expired or were revoked, or somebody deleted them, or the broker was flushed" in pool["causes"][0]
    assert pool["health"]["kinds"] == ["perhaps_lost_jobs"]
    assert 'headway_pool_perhaps_lost_jobs{pool="mail"} 58.0' in (await client.get("/metrics")).text
    assert await severities(engine) == {"jobs_lost": "ticket"}


@pytest.mark.parametrize(
    ("message_ttl_s", "lost_jobs"),
    [
        (None, 58),
        (60.0, 58),  # the queue was empty 11 s before the jobs went: none had waited for a minute
        (10.0, 0),
    ],
)
async def test_jobs_that_the_broker_drops_as_configured_are_no_incident(
    client: httpx.AsyncClient, seed: Seed, engine: Engine, message_ttl_s: float | None, lost_jobs: int
) -> None:
    """A queue with a message TTL. A purge of jobs that are too young to have expired is one all the same."""
    flushed(seed, source=AGENTS)
    seed.sample("redis/mail", at_s=NOW_S - 4, message_ttl_s=message_ttl_s)
    pool = await pool_of(client)
    assert (pool["lost_jobs"], pool["perhaps_lost_jobs"]) == (lost_jobs, 0)
    assert [kind for kind in pool["health"]["kinds"] if "lost" in kind] == ["lost_jobs"] * bool(lost_jobs)
    assert await severities(engine) == ({"jobs_lost": "page"} if lost_jobs else {})


def test_workers_that_left_may_have_dropped_what_is_still_shown() -> None:
    recent = RecentWorkers()
    recent.take(["mail"], now_s=0.0)
    recent.take([], now_s=SHOWN_S)
    assert "mail" in recent
    recent.take([], now_s=RAN_WITHIN_S + 1.0)
    assert "mail" not in recent


async def test_jobs_that_workers_reported_as_revoked_are_not_lost(client: httpx.AsyncClient, seed: Seed) -> None:
    """Celery's tasks with `expires` of which a worker that comes back drops 1,200 within seconds."""
    mail(seed, at_s=NOW_S - 30)
    seed.pipeline()
    seed.event_source("redis/mail", source=AGENTS, starts_ago_s=60.0)
    seed.bucket("redis/mail", at_s=NOW_S - 24, waiting_jobs=1200, revoked_jobs=700)
    seed.bucket("redis/mail", at_s=NOW_S - 19, waiting_jobs=0, revoked_jobs=480)
    pool = await pool_of(client)
    assert (pool["lost_jobs"], pool["perhaps_lost_jobs"], pool["health"]["kinds"]) == (0, 0, [])


@pytest.mark.parametrize("reported", ["nothing", "arrivals"])
async def test_no_job_is_called_lost_where_nobody_reports_starts(
    client: httpx.AsyncClient, seed: Seed, reported: str
) -> None:
    """A queue of which a broker knows the depth alone, empty at last: its workers have started what waited."""
    values: dict[str, Any] = {"pickups_s": [], "finished_jobs": 0, "arrived_jobs": 60 if reported == "arrivals" else 0}
    mail(seed, at_s=NOW_S - 30, **values)
    if reported == "arrivals":
        seed.event_source("redis/mail", arrivals_ago_s=20.0)
    seed.pipeline()
    seed.bucket("redis/mail", at_s=NOW_S - 24, waiting_jobs=60)
    seed.bucket("redis/mail", at_s=NOW_S - 19, waiting_jobs=0, oldest_age_s=0.0)
    pool = await pool_of(client)
    assert (pool["lost_jobs"], pool["perhaps_lost_jobs"], pool["health"]["kinds"]) == (0, 0, [])
