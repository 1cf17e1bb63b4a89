"""What people set of hosts, on a real Postgres; the audit log has it, and a lost host can be forgotten."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import func, select, text

from headway.errors import Conflict, NotFound
from headway.scaling.model import HostCapacity, HostState, Worker, WorkerState
from headway.store.engine import Connection, create_engine, transaction
from headway.store.hosts.host_lifecycle import forget_host, set_host_state
from headway.store.hosts.host_reports import HostReport
from headway.store.hosts.hosts import Enrolment, enrol, load_hosts
from headway.store.overview import read_hosts
from headway.store.tables import audit_log, workers
from store.reporting import record_report


@pytest.fixture
async def conn(migrated_url: str) -> AsyncIterator[Connection]:
    engine = create_engine(migrated_url)
    async with transaction(engine) as connection:
        yield connection
    await engine.dispose()


async def enrolled(conn: Connection, name: str = "a") -> str:
    """A host that just reported a worker. Returns its id."""
    host_id = await enrol(conn, Enrolment(name=name, host_id="", boot_id="boot", agent_version="1"))
    worker = Worker(
        worker_id=f"w-{name}", pool="mail", template="rq", pid=1, state=WorkerState.RUNNING, started_at_s=0.0
    )
    capacity = HostCapacity(cpu_cores=1.0, memory_bytes=1)
    report = HostReport(
        host_id=host_id,
        boot_id="boot",
        sequence=1,
        epoch_seen=0,
        received_at_s=1.0,
        capacity=capacity,
        workers=(worker,),
    )
    await record_report(conn, report)
    return host_id


async def put(conn: Connection, state: HostState, reason: str | None = "new disk") -> None:
    await set_host_state(conn, "a", state, reason=reason, actor="ada")


async def audited(conn: Connection) -> list[tuple[str, str, str, Any, Any]]:
    rows = await conn.execute(select(audit_log).order_by(audit_log.c.action))
    return [(row.actor, row.action, row.subject, row.before, row.after) for row in rows]


@pytest.mark.parametrize(
    ("state", "action"), [(HostState.CORDONED, "host cordoned"), (HostState.DRAINING, "host draining")]
)
async def test_who_set_what_and_why_is_kept_with_the_host_and_in_the_audit_log(
    conn: Connection, state: HostState, action: str
) -> None:
    await enrolled(conn)
    await put(conn, state)
    (row,) = await read_hosts(conn)
    assert (row.host.state, row.cordoned_by, row.cordon_reason) == (state, "ada", "new disk")
    assert row.cordoned_at_s is not None
    before, after = {"state": "serving", "reason": None}, {"state": state.value, "reason": "new disk"}
    assert await audited(conn) == [("ada", action, "host a", before, after)]


async def test_the_same_again_changes_nothing(conn: Connection) -> None:
    await enrolled(conn)
    await put(conn, HostState.CORDONED)
    await put(conn, HostState.CORDONED)
    assert len(await audited(conn)) == 1


async def test_a_host_that_serves_again_says_nothing_of_what_was(conn: Connection) -> None:
    await enrolled(conn)
    await put(conn, HostState.DRAINING)
    await put(conn, HostState.SERVING, None)
    (row,) = await read_hosts(conn)
    assert (row.host.state, row.cordoned_at_s, row.cordoned_by, row.cordon_reason) == (
        HostState.SERVING,
        None,
        None,
        None,
    )


async def test_what_is_set_outlives_reports_and_enrolling_again(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await put(conn, HostState.CORDONED)
    await enrolled(conn)
    await enrol(conn, Enrolment(name="a", host_id=host_id, boot_id="another", agent_version="2"))
    assert (await load_hosts(conn))[0].state is HostState.CORDONED


async def test_a_host_that_reports_cannot_be_forgotten(conn: Connection) -> None:
    await enrolled(conn)
    with pytest.raises(Conflict, match="still reports"):
        await forget_host(conn, "a", reason="burnt", actor="ada")


async def test_a_lost_host_is_forgotten_with_its_workers_and_enrols_anew(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await put(conn, HostState.CORDONED)
    await conn.execute(text("update hosts set lease_ends_at = now() - interval '1 second'"))
    await forget_host(conn, "a", reason="burnt", actor="ada")
    assert await load_hosts(conn) == ()
    assert (await conn.execute(select(func.count()).select_from(workers))).scalar_one() == 0
    assert (await audited(conn))[-1][1:3] == ("host forgotten", "host a")
    again = await enrol(conn, Enrolment(name="a", host_id=host_id, boot_id="boot", agent_version="1"))
    assert again != host_id
    (host,) = await load_hosts(conn)
    assert (host.state, host.is_undecided) == (HostState.SERVING, True)


async def test_a_host_that_nobody_knows_is_not_found(conn: Connection) -> None:
    with pytest.raises(NotFound, match="no host 'a'"):
        await put(conn, HostState.CORDONED)
    with pytest.raises(NotFound, match="no host 'a'"):
        await forget_host(conn, "a", reason="burnt", actor="ada")
