"""A Postgres that hangs: nobody waits for it for ever, and it is named."""

import asyncio

import httpx
import psycopg
import pytest

from headway.control.http.patience import Patience
from headway.errors import Unavailable


async def test_what_is_answered_is_passed_on_and_so_is_what_is_refused() -> None:
    async def answers() -> int:
        with patience.reading():
            return 7

    async def refuses() -> int:
        raise Unavailable("away")

    patience = Patience(within_s=0.1)
    assert await patience.of(answers()) == 7
    with pytest.raises(Unavailable, match="away"):
        await patience.of(refuses())


async def test_slow_work_that_does_not_wait_for_postgres_is_waited_for() -> None:
    async def computes() -> int:
        await asyncio.sleep(0.8)
        return 7

    assert await Patience(within_s=0.0).of(computes()) == 7


async def test_who_comes_after_one_that_hangs_is_not_kept_either(migrated_url: str, door) -> None:
    """Somebody's lock stands for a server that hangs: no connection breaks, and no answer comes."""
    with psycopg.connect(migrated_url) as holder:
        holder.execute("lock table leader_epoch in access exclusive mode")
        app = door()
        app.state.door.overviews._patience = Patience(within_s=0.3)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = await asyncio.gather(*(client.get(path) for path in ("/v1/health", "/metrics", "/v1/pools")))
            for answer in answers:
                assert answer.status_code == 503
                assert answer.json()["detail"].startswith("Postgres has not answered for ")
            holder.rollback()
            assert (await client.get("/v1/pools")).status_code == 200
