"""Hosts whose connection has ended are seen long before their next report is due."""

import asyncio

import pytest

from control.polls import enrolled, having, held
from headway.control.agents.agent_service import AgentService
from headway.control.agents.disconnects import (
    DISCONNECT_CALLS_AGAIN_S,
    DISCONNECT_FORGOTTEN_S,
    DISCONNECT_POLLS_AGAIN_S,
    Disconnects,
)
from headway.scaling.model import HostCapacity
from headway.store.engine import Engine, snapshot, transaction
from headway.store.hosts.hang_ups import note_hung_up
from headway.store.hosts.host_reports import HostReport
from headway.store.overview import read_hosts
from support.reports import beat_of


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reports(engine: Engine, clock: Clock) -> AgentService:
    reports = AgentService(engine=engine)
    reports.hang_ups = Disconnects(engine=engine, clock=clock)
    return reports


async def hung_up_s(engine: Engine) -> list[float | None]:
    async with snapshot(engine) as conn:
        return [row.hung_up_s for row in await read_hosts(conn)]


async def reported(reports: AgentService, host_id: str, sequence: int) -> None:
    report = HostReport(
        host_id=host_id,
        boot_id="boot",
        sequence=sequence,
        epoch_seen=0,
        received_at_s=0.0,
        capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
    )
    await reports.report(beat_of(report), lambda: report, cluster_id=await reports.cluster_id())


async def polling(reports: AgentService, host_id: str) -> "asyncio.Task[object]":
    """A poll that is held."""
    poll = asyncio.ensure_future(reports.poll(await having(reports, host_id), wait_s=60.0))
    await held(reports, host_id)
    return poll


async def cut_off(poll: "asyncio.Task[object]") -> None:
    poll.cancel()
    await asyncio.wait([poll])


async def test_a_host_whose_poll_ended_with_its_connection_is_shown_until_it_reports(
    engine: Engine, reports: AgentService, clock: Clock
) -> None:
    host_id = await enrolled(reports)
    await reported(reports, host_id, 1)
    await cut_off(await polling(reports, host_id))
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None], "it may just begin anew"
    # By so much the end was later than the report, also for a clock that was not waited for.
    async with transaction(engine) as conn:
        await conn.exec_driver_sql("update hosts set reported_at = reported_at - interval '10 s'")
    clock.now_s += DISCONNECT_CALLS_AGAIN_S
    await reports.hang_ups.write()
    (ended_s,) = await hung_up_s(engine)
    assert ended_s is not None
    assert ended_s >= DISCONNECT_CALLS_AGAIN_S
    await reported(reports, host_id, 2)
    assert await hung_up_s(engine) == [None]


async def test_a_host_that_calls_again_is_not_shown(engine: Engine, reports: AgentService, clock: Clock) -> None:
    host_id = await enrolled(reports)
    await reported(reports, host_id, 1)
    async with transaction(engine) as conn:
        await conn.exec_driver_sql("update hosts set reported_at = reported_at - interval '10 s'")
    await cut_off(await polling(reports, host_id))
    again = await polling(reports, host_id)
    clock.now_s += DISCONNECT_FORGOTTEN_S
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None]

    await cut_off(again)
    clock.now_s += DISCONNECT_CALLS_AGAIN_S
    await reports.hang_ups.write()
    assert await hung_up_s(engine) != [None]
    late = await polling(reports, host_id)
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None], "called again, and reports only when its next one is due"
    await cut_off(late)


async def test_a_host_that_was_answered_and_does_not_poll_again_is_shown(
    engine: Engine, reports: AgentService, clock: Clock
) -> None:
    """Its agent was stopped before the answer reached it: no call is left that would end with the connection."""
    host_id = await enrolled(reports)
    await reported(reports, host_id, 1)
    async with transaction(engine) as conn:
        await conn.exec_driver_sql("update hosts set reported_at = reported_at - interval '10 s'")
    poll = await polling(reports, host_id)
    await reports.poll(await having(reports, host_id), wait_s=0.0)
    clock.now_s += DISCONNECT_FORGOTTEN_S
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None], "another poll is held"

    await cut_off(poll)
    await reports.poll(await having(reports, host_id), wait_s=0.0)
    clock.now_s += DISCONNECT_POLLS_AGAIN_S - 0.1
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None], "it may just be slow"
    clock.now_s += 0.1
    await reports.hang_ups.write()
    (silent_s,) = await hung_up_s(engine)
    assert silent_s is not None
    assert silent_s >= DISCONNECT_POLLS_AGAIN_S

    again = await polling(reports, host_id)
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None]
    await cut_off(again)


async def test_one_of_two_polls_that_ends_is_no_end_of_the_connection(
    engine: Engine, reports: AgentService, clock: Clock
) -> None:
    host_id = await enrolled(reports)
    await reported(reports, host_id, 1)
    first, second = await polling(reports, host_id), await polling(reports, host_id)
    await held(reports, host_id, 2)
    await cut_off(first)
    clock.now_s += DISCONNECT_CALLS_AGAIN_S
    await reports.hang_ups.write()
    assert await hung_up_s(engine) == [None]
    await cut_off(second)


async def test_a_row_that_somebody_else_writes_is_left_for_the_next_time(engine: Engine, reports: AgentService) -> None:
    host_id = await enrolled(reports)
    await reported(reports, host_id, 1)
    async with transaction(engine) as other, transaction(engine) as conn:
        await other.exec_driver_sql("update hosts set state = 'cordoned'")
        assert await note_hung_up(conn, {host_id: 2.0}) == frozenset()
    async with transaction(engine) as conn:
        assert await note_hung_up(conn, {host_id: 2.0, "nobody": 2.0}) == {host_id}
