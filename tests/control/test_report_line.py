"""Reports on their way to a real Postgres: whole ones, and those of which a few numbers are enough."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from headway.control.agents.report_writer import ReportWriter
from headway.errors import Invalid, NotFound
from headway.store.engine import Engine, transaction
from headway.store.hosts.hosts import Enrolment, enrol, load_hosts
from support.reports import beat_of, report

BOUND_S = 60.0


@pytest.fixture
def line(engine: Engine) -> ReportWriter:
    return ReportWriter(engine=engine)


async def enrolled(engine: Engine, name: str = "a") -> str:
    async with transaction(engine) as conn:
        return await enrol(conn, Enrolment(name=name, host_id="", boot_id="boot", agent_version="1"))


async def known(engine: Engine) -> Any:
    async with transaction(engine) as conn:
        (host,) = await load_hosts(conn)
        sequence = await conn.scalar(text("select report_sequence from hosts"))
    return host, sequence


async def test_what_is_reported_again_needs_no_whole_report(engine: Engine, line: ReportWriter) -> None:
    host_id = await enrolled(engine)
    first, again = report(host_id), report(host_id, 2, cpu_cores=3.0)
    assert not await line.beat(beat_of(first)), "nothing is known yet"
    assert await line.report(first, beat_of(first))
    async with transaction(engine) as conn:
        await conn.execute(text("update hosts set lease_ends_at = now() - interval '1 second'"))
    assert await line.beat(beat_of(again))
    host, sequence = await known(engine)
    assert (host.is_known, host.capacity.cpu_cores, sequence) == (True, 3.0, 2)
    assert [worker.worker_id for worker in host.workers] == ["w1"]


async def test_what_changed_needs_a_whole_report(engine: Engine, line: ReportWriter) -> None:
    host_id = await enrolled(engine)
    first, changed = report(host_id), report(host_id, 2, workers=())
    assert await line.report(first, beat_of(first))
    assert not await line.beat(beat_of(changed))
    assert not await line.beat(beat_of(report(host_id, 1))), "it is no newer"
    assert not await line.beat(beat_of(report(host_id, 2, boot_id="later")))


async def test_a_report_that_another_control_plane_took_meanwhile_is_noticed(
    engine: Engine, line: ReportWriter
) -> None:
    host_id, other = await enrolled(engine), ReportWriter(engine=engine)
    first, elsewhere, again = report(host_id), report(host_id, 2, workers=()), report(host_id, 3)
    assert await line.report(first, beat_of(first))
    assert await other.report(elsewhere, beat_of(elsewhere))
    assert not await line.beat(beat_of(again)), "it would leave the host without its worker"
    assert await line.report(again, beat_of(again))
    host, _ = await known(engine)
    assert [worker.worker_id for worker in host.workers] == ["w1"]


async def test_a_host_that_was_forgotten_is_asked_to_enrol(engine: Engine, line: ReportWriter) -> None:
    host_id = await enrolled(engine)
    first, again = report(host_id), report(host_id, 2)
    assert await line.report(first, beat_of(first))
    async with transaction(engine) as conn:
        await conn.execute(text("delete from hosts"))
    assert not await line.beat(beat_of(again))
    with pytest.raises(NotFound, match="enrol again"):
        await line.report(again, beat_of(again))


async def test_reports_wait_for_who_writes_to_their_hosts_and_hold_nobody_else_up(
    engine: Engine, line: ReportWriter
) -> None:
    one, two, three = [await enrolled(engine, name) for name in ("a", "b", "c")]
    async with asyncio.timeout(BOUND_S):
        async with transaction(engine) as tick:
            await tick.execute(text("update hosts set assignment_revision = 1 where host_id = :one"), {"one": one})
            alone = [asyncio.create_task(line.report(each, beat_of(each))) for each in (report(two), report(three))]
            await asyncio.gather(*alone)
            held = [asyncio.create_task(line.report(each, beat_of(each))) for each in (report(one), report(two, 2))]
            done, _ = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
            assert done == {held[1]}
        assert await held[0]


async def test_an_older_report_is_not_taken(engine: Engine, line: ReportWriter) -> None:
    host_id = await enrolled(engine)
    newer, older = report(host_id, 2), report(host_id, 1, workers=())
    assert await line.report(newer, beat_of(newer))
    assert not await line.report(older, beat_of(older))


async def test_what_postgres_does_not_take_from_one_host_silences_no_other(engine: Engine, line: ReportWriter) -> None:
    """Reports are written together: the one that spoils them is refused, and the others are taken."""
    names = ["a", "b", "c", "d", "e"]
    reports = {name: report(await enrolled(engine, name), workers=()) for name in names}
    spoilt = report(await enrolled(engine, "spoilt"), labels={"zone": "\0"})
    async with asyncio.timeout(BOUND_S):
        first = asyncio.create_task(
            line.report(reports["a"], beat_of(reports["a"]))
        )  # the others wait, and go together
        await asyncio.sleep(0)
        reported = [*(reports[name] for name in ("b", "c")), spoilt, *(reports[name] for name in ("d", "e"))]
        outcomes = await asyncio.gather(
            *(line.report(each, beat_of(each)) for each in reported), return_exceptions=True
        )
        assert await first
    assert [outcome for outcome in outcomes if outcome is not True] == [outcomes[2]]
    assert isinstance(outcomes[2], Invalid)
    assert "cannot be written" in str(outcomes[2])
