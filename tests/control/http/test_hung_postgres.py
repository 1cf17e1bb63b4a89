"""Every view of an installation whose Postgres hangs answers, and names it."""

import asyncio

import httpx
import psycopg
import pytest

from headway.control.database_timeout import DatabaseTimeout
from headway.control.http.overview import overview_builder


async def test_who_comes_after_one_that_hangs_is_not_kept_either(migrated_url: str, api) -> None:
    """Somebody's lock stands for a server that hangs: no connection breaks, and no answer comes."""
    with psycopg.connect(migrated_url) as holder:
        holder.execute("lock table leader_epoch in access exclusive mode")
        app = api()
        app.state.context.overviews._patience = DatabaseTimeout(within_s=0.3)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = await asyncio.gather(*(client.get(path) for path in ("/v1/health", "/metrics", "/v1/pools")))
            for answer in answers:
                assert answer.status_code == 503
                assert answer.json()["detail"].startswith("Postgres has not answered for ")
            holder.rollback()
            app.state.context.overviews._patience = DatabaseTimeout()
            assert (await client.get("/v1/pools")).status_code == 200


async def test_health_waits_for_the_next_overview_only_where_the_last_one_is_old(
    migrated_url: str, api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read of health in five seconds took as long as an overview: 230 ms at 5,000 of them."""
    app = api()
    app.state.context.overviews._patience = DatabaseTimeout(within_s=3.0)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        assert (await client.get("/v1/health")).status_code == 200
        monkeypatch.setattr(overview_builder, "OVERVIEW_AILING_S", 0.0)  # the next one is due
        with psycopg.connect(migrated_url) as holder:
            holder.execute("lock table hosts in access exclusive mode")  # which only the overview reads
            assert (await client.get("/v1/health")).status_code == 200
            monkeypatch.setattr(overview_builder, "AILING_MAX_S", 0.0)
            assert (await client.get("/v1/health")).status_code == 503
            holder.rollback()
        app.state.context.overviews._patience = DatabaseTimeout()
        assert (await client.get("/v1/health")).status_code == 200
