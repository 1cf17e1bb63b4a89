"""A Postgres that hangs: nobody waits for it for ever, and it is named."""

import asyncio

import psycopg
import pytest

from headway.control.auth.authenticator import Authenticator
from headway.control.database_timeout import DatabaseTimeout
from headway.errors import Unauthenticated, Unavailable
from headway.store.engine import Engine


async def test_what_is_answered_is_passed_on_and_so_is_what_is_refused() -> None:
    async def answers() -> int:
        with patience.reading():
            return 7

    async def refuses() -> int:
        raise Unavailable("away")

    patience = DatabaseTimeout(within_s=0.1)
    assert await patience.of(answers()) == 7
    with pytest.raises(Unavailable, match="away"):
        await patience.of(refuses())


async def test_slow_work_that_does_not_wait_for_postgres_is_waited_for() -> None:
    async def computes() -> int:
        await asyncio.sleep(0.8)
        return 7

    assert await DatabaseTimeout(within_s=0.0).of(computes()) == 7


async def test_who_shows_a_token_is_not_kept_either(engine: Engine, migrated_url: str) -> None:
    """What was received of credentials counts for a second; after that each call is looked up."""
    callers = Authenticator(token="shared", engine=engine)
    callers._patience = DatabaseTimeout(within_s=0.3)
    with psycopg.connect(migrated_url) as holder:
        holder.execute("lock table credentials in access exclusive mode")
        for _ in range(3):  # more than are looked up at once
            with pytest.raises(Unavailable, match="Postgres has not answered for"):
                await callers.who("hwt_whatever")
        holder.rollback()
        with pytest.raises(Unauthenticated):
            await callers.who("hwt_whatever")
