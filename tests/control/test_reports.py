"""What agents ask, on a real Postgres; polls that are held and what ends their wait."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from control.polls import BOUND_S, enrolled, having, held
from headway.control.agents.agent_service import AgentService, AppliedAssignment
from headway.errors import NotFound, Unauthenticated
from headway.scaling.model import HostCapacity
from headway.store.engine import WAKE, Engine, listen, transaction
from headway.store.hosts.host_assignments import HostAssignments
from headway.store.hosts.host_reports import HostReport
from headway.store.hosts.hosts import load_hosts
from support.reports import beat_of

OTHER = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def reports(engine: Engine) -> AgentService:
    return AgentService(engine=engine)


async def assign(engine: Engine, host_id: str, base_workers: int, *, epoch: int = 1) -> None:
    async with transaction(engine) as connection:
        await connection.execute(
            text(
                "insert into assignments values ('mail', :host_id, 'rq', :base, 0, 0, :epoch, 1) "
                "on conflict (pool, host_id) do update set base_workers = :base"
            ),
            {"host_id": host_id, "base": base_workers, "epoch": epoch},
        )
        await connection.execute(
            text(
                "update hosts set assignment_epoch = :epoch, assignment_revision = assignment_revision + 1 "
                "where host_id = :host_id"
            ),
            {"host_id": host_id, "epoch": epoch},
        )
        await connection.execute(text("select pg_notify('headway_assignments', :host_id)"), {"host_id": host_id})


def target(standing: HostAssignments) -> int:
    return sum(row.base_workers for row in standing.assignments)


async def test_something_newer_is_answered_at_once(engine: Engine, reports: AgentService) -> None:
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    standing = await reports.poll(await having(reports, host_id), wait_s=60.0)
    assert (standing.epoch, standing.revision, target(standing)) == (1, 1, 3)


async def test_a_poll_is_held_until_its_host_changes(engine: Engine, reports: AgentService) -> None:
    one, two = await enrolled(reports, "a"), await enrolled(reports, "b")
    polls = {host: asyncio.create_task(reports.poll(await having(reports, host), wait_s=60.0)) for host in (one, two)}
    await held(reports, one)
    await held(reports, two)
    await assign(engine, one, 3)
    reports.host_changed(one)
    assert target(await asyncio.wait_for(polls[one], BOUND_S)) == 3
    assert not polls[two].done()
    polls[two].cancel()


async def test_a_notification_of_postgres_ends_the_wait(
    engine: Engine, reports: AgentService, migrated_url: str
) -> None:
    async def listen_for_changes() -> None:
        async for _, payload in listen(migrated_url, ["headway_assignments"]):
            reports.host_changed(payload)

    host_id = await enrolled(reports)
    listening = asyncio.create_task(listen_for_changes())
    poll = asyncio.create_task(reports.poll(await having(reports, host_id), wait_s=60.0))
    await held(reports, host_id)
    await assign(engine, host_id, 2)
    assert target(await asyncio.wait_for(poll, BOUND_S)) == 2
    listening.cancel()


async def test_after_a_broken_listener_every_poll_reads_again(engine: Engine, reports: AgentService) -> None:
    """Notifications that were sent meanwhile are lost."""
    hosts = [await enrolled(reports, name) for name in ("a", "b")]
    polls = [asyncio.create_task(reports.poll(await having(reports, host), wait_s=60.0)) for host in hosts]
    for host in hosts:
        await held(reports, host)
        await assign(engine, host, 4)
    reports.host_changed(WAKE)
    assert [target(await asyncio.wait_for(poll, BOUND_S)) for poll in polls] == [4, 4]


async def test_a_change_wakes_every_poll_of_the_host(engine: Engine, reports: AgentService) -> None:
    """An agent that was restarted polls beside the call of its predecessor, which nobody reads any more."""
    host_id = await enrolled(reports)
    polls = [asyncio.create_task(reports.poll(await having(reports, host_id), wait_s=60.0)) for _ in range(3)]
    await held(reports, host_id, polls=3)
    await assign(engine, host_id, 1)
    reports.host_changed(host_id)
    assert [target(each) for each in await asyncio.wait_for(asyncio.gather(*polls), BOUND_S)] == [1, 1, 1]


async def test_a_host_that_is_cut_off_before_its_poll_is_held_does_not_wait(reports: AgentService) -> None:
    host_id = await enrolled(reports)

    async def revoked() -> None:
        raise Unauthenticated("was revoked")

    poll = reports.poll(await having(reports, host_id), wait_s=240.0, recheck=revoked)
    with pytest.raises(Unauthenticated):
        await asyncio.wait_for(poll, BOUND_S)


async def test_a_poll_whose_wait_is_over_gets_the_same_revision(engine: Engine, reports: AgentService) -> None:
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    standing = await reports.poll(await having(reports, host_id, epoch=1, revision=1), wait_s=0.01)
    assert (standing.epoch, standing.revision, target(standing)) == (1, 1, 3)


async def test_a_host_that_is_ahead_of_a_restored_database_is_held_and_not_sent_back(
    engine: Engine, reports: AgentService
) -> None:
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3, epoch=4)
    poll = asyncio.create_task(reports.poll(await having(reports, host_id, epoch=9, revision=50), wait_s=60.0))
    await held(reports, host_id)
    await assign(engine, host_id, 2, epoch=10)  # the leader took an epoch above the one the host had seen
    reports.host_changed(host_id)
    assert target(await asyncio.wait_for(poll, BOUND_S)) == 2


async def test_a_host_whose_revision_a_restored_database_does_not_know_keeps_what_it_runs_until_that_is_decided(
    engine: Engine, reports: AgentService
) -> None:
    """Of the same epoch: what the copy has for it may by now run elsewhere."""
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    poll = asyncio.create_task(reports.poll(await having(reports, host_id, epoch=1, revision=5), wait_s=60.0))
    await held(reports, host_id)
    await assign(engine, host_id, 2, epoch=2)
    reports.host_changed(host_id)
    assert target(await asyncio.wait_for(poll, BOUND_S)) == 2


async def test_a_host_of_another_cluster_learns_so_at_once_and_leaves_no_trace(
    engine: Engine, reports: AgentService
) -> None:
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    foreign = AppliedAssignment(cluster_id="another", host_id=host_id, epoch=7, revision=7)
    assert await reports.poll(foreign, wait_s=60.0) == HostAssignments(epoch=0, revision=0)
    await answered(reports, report(host_id, epoch_seen=99), cluster_id="another")
    async with transaction(engine) as connection:
        assert (await connection.execute(text("select max(epoch_seen) from hosts"))).scalar_one() == 0


def report(host_id: str, **values: Any) -> HostReport:
    return HostReport(
        **{
            "host_id": host_id,
            "boot_id": "boot",
            "sequence": 1,
            "epoch_seen": 0,
            "received_at_s": 0.0,
            "capacity": HostCapacity(cpu_cores=2.0, memory_bytes=4_000),
            **values,
        }
    )


async def answered(reports: AgentService, report: HostReport, *, cluster_id: str | None = None) -> float:
    cluster_id = await reports.cluster_id() if cluster_id is None else cluster_id
    return await reports.report(beat_of(report), lambda: report, cluster_id=cluster_id)


async def test_a_report_makes_the_host_known_and_says_for_how_long(engine: Engine, reports: AgentService) -> None:
    host_id = await enrolled(reports)
    assert await answered(reports, report(host_id)) == 45.0
    async with transaction(engine) as connection:
        (host,) = await load_hosts(connection)
    assert (host.is_known, host.capacity.cpu_cores) == (True, 2.0)


async def test_an_unknown_host_is_asked_to_enrol(reports: AgentService) -> None:
    with pytest.raises(NotFound, match="must enrol again"):
        await reports.poll(await having(reports, "nobody"), wait_s=60.0)
    with pytest.raises(NotFound, match="must enrol again"):
        await answered(reports, report("nobody"))
    assert reports._held == {}


async def test_hundreds_of_held_polls_wake_and_leave_nothing_behind(
    engine: Engine, reports: AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than there are connections: they queue for one, and none is refused."""
    monkeypatch.setattr("headway.control.agents.agent_service.AGENT_POLLS_PER_HOST_MAX", 300)
    host_id = await enrolled(reports)
    asked = await having(reports, host_id)
    polls = [asyncio.create_task(reports.poll(asked, wait_s=60.0)) for _ in range(300)]
    await held(reports, host_id, polls=300)
    await assign(engine, host_id, 1)
    reports.host_changed(WAKE)
    assert {target(each) for each in await asyncio.wait_for(asyncio.gather(*polls), 60.0)} == {1}
    assert reports._held == {}


async def test_an_agent_that_hangs_up_leaves_nothing_behind(reports: AgentService) -> None:
    host_id = await enrolled(reports)
    poll = asyncio.create_task(reports.poll(await having(reports, host_id), wait_s=60.0))
    await held(reports, host_id)
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    assert reports._held == {}


@pytest.fixture
def read(reports: AgentService, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts whose orders were read from Postgres, in order."""
    found: list[str] = []
    answer = reports._standings._answer

    async def noted(asked: Any) -> Any:
        found.extend(asked)
        return await answer(asked)

    monkeypatch.setattr(reports._standings, "_answer", noted)
    return found


async def test_an_agent_that_returns_with_its_last_answer_is_held_without_a_query(
    engine: Engine, reports: AgentService, read: list[str]
) -> None:
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    await reports.poll(await having(reports, host_id), wait_s=60.0)
    assert read == [host_id]
    back = asyncio.create_task(reports.poll(await having(reports, host_id, epoch=1, revision=1), wait_s=60.0))
    await held(reports, host_id)
    assert read == [host_id]
    await assign(engine, host_id, 4)
    reports.host_changed(f"other,{host_id},another")  # several are told at once
    assert target(await asyncio.wait_for(back, BOUND_S)) == 4


@pytest.mark.parametrize("answered", [WAKE, "the host"])
async def test_what_was_known_is_not_believed_after_a_change(
    answered: str, engine: Engine, reports: AgentService, read: list[str]
) -> None:
    """Also where no poll was held when it arrived."""
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    await reports.poll(await having(reports, host_id), wait_s=60.0)
    await assign(engine, host_id, 4)
    reports.host_changed(host_id if answered == "the host" else answered)
    standing = await reports.poll(await having(reports, host_id, epoch=1, revision=1), wait_s=60.0)
    assert target(standing) == 4
    assert read == [host_id, host_id]


async def test_a_change_that_arrives_during_the_query_is_not_lost(
    engine: Engine, reports: AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    answer = reports._standings._answer

    async def overtaken(asked: Any) -> Any:
        found = await answer(asked)
        monkeypatch.setattr(reports._standings, "_answer", answer)
        await assign(engine, host_id, 4)
        reports.host_changed(host_id)
        return found

    monkeypatch.setattr(reports._standings, "_answer", overtaken)
    await reports.poll(await having(reports, host_id), wait_s=60.0)
    standing = await reports.poll(await having(reports, host_id, epoch=1, revision=1), wait_s=60.0)
    assert target(standing) == 4


async def test_the_first_wait_after_a_change_is_short_for_a_broker_may_begin_to_report(
    engine: Engine, reports: AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.control.agents.agent_service.AGENT_HINTED_WAIT_S", 0.05)
    host_id = await enrolled(reports)
    await assign(engine, host_id, 3)
    await reports.poll(await having(reports, host_id), wait_s=60.0)
    asked = await having(reports, host_id, epoch=1, revision=1)
    assert target(await asyncio.wait_for(reports.poll(asked, wait_s=60.0), BOUND_S)) == 3
    again = asyncio.create_task(reports.poll(asked, wait_s=60.0))
    done, _ = await asyncio.wait([again], timeout=0.3)
    assert not done, "nothing was told of its workers"
    again.cancel()


async def test_after_the_connection_broke_another_cluster_may_answer(reports: AgentService, engine: Engine) -> None:
    """At the same address a database of another installation was put in the place of the lost one."""
    host_id = await enrolled(reports)
    asked = await having(reports, host_id)
    async with transaction(engine) as connection:
        await connection.execute(text("update cluster set cluster_id = :other"), {"other": OTHER})
    assert await reports.cluster_id() == asked.cluster_id, "asked once, and not with each answer"
    reports.host_changed(WAKE)
    assert await asyncio.gather(*(reports.cluster_id() for _ in range(3))) == [OTHER] * 3
    assert await reports.poll(asked, wait_s=BOUND_S) == HostAssignments(epoch=0, revision=0), "nobody's here"
