"""Every view of an installation whose Postgres hangs answers, and names it."""

import asyncio

import httpx
import psycopg

from headway.control.database_timeout import DatabaseTimeout


async def test_who_comes_after_one_that_hangs_is_not_kept_either(migrated_url: str, door) -> None:
    """Somebody's lock stands for a server that hangs: no connection breaks, and no answer comes."""
    with psycopg.connect(migrated_url) as holder:
        holder.execute("lock table leader_epoch in access exclusive mode")
        app = door()
        app.state.context.overviews._patience = DatabaseTimeout(within_s=0.3)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = await asyncio.gather(*(client.get(path) for path in ("/v1/health", "/metrics", "/v1/pools")))
            for answer in answers:
                assert answer.status_code == 503
                assert answer.json()["detail"].startswith("Postgres has not answered for ")
            holder.rollback()
            assert (await client.get("/v1/pools")).status_code == 200
