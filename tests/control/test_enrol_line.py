"""Hosts that are let in over a real Postgres, many at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from headway.control.agents.enrolment_writer import ENROLMENTS_TOGETHER_MAX, EnrolmentWriter
from headway.errors import Conflict, Unavailable
from headway.store.engine import Connection, Engine, transaction
from headway.store.hosts.hosts import Enrolment, enrol

HOSTS = [f"host-{n}" for n in range(ENROLMENTS_TOGETHER_MAX)]


@pytest.fixture
def line(engine: Engine) -> EnrolmentWriter[int]:
    return EnrolmentWriter[int](engine=engine)


def letting_in(name: str, *, error: Exception | None = None) -> Callable[[Connection], Awaitable[int]]:
    """What makes the host known, and then returns the number of its transaction or raises."""

    async def asked(conn: Connection) -> int:
        await enrol(conn, Enrolment(name=name, host_id="", boot_id="boot", agent_version="1"))
        if error is not None:
            raise error
        return int(await conn.scalar(text("select txid_current()")))

    return asked


async def names(engine: Engine) -> set[str]:
    async with transaction(engine) as conn:
        return set((await conn.execute(text("select name from hosts"))).scalars())


async def test_hosts_that_come_together_share_transactions(engine: Engine, line: EnrolmentWriter[int]) -> None:
    shared = await asyncio.gather(*(line.let_in(name, letting_in(name)) for name in HOSTS))
    assert await names(engine) == set(HOSTS)
    assert len(set(shared)) <= 2, "the first ones need not wait for the others"


async def test_who_is_refused_takes_nobodys_place_with_it(engine: Engine, line: EnrolmentWriter[int]) -> None:
    taken = Conflict("another machine has this name")
    asked = (line.let_in(name, letting_in(name, error=taken if name == "host-7" else None)) for name in HOSTS)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [answer for answer in answers if isinstance(answer, Exception)] == [taken]
    assert await names(engine) == set(HOSTS) - {"host-7"}


async def test_where_postgres_fails_all_receive_the_error_and_nobody_is_in(
    engine: Engine, line: EnrolmentWriter[int]
) -> None:
    away = Unavailable("Postgres did not do its part")
    asked = (line.let_in(name, letting_in(name, error=away if name == "host-9" else None)) for name in HOSTS)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert answers == [away] * len(HOSTS)
    assert await names(engine) == set()
