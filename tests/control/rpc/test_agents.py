"""The agent's service over a real channel and a real Postgres, with the agent's own client and with a whole agent."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headway.agent.controlplane.client import ControlClient, HostUpdate
from headway.agent.model import Identity
from headway.agent.workers.ends.exit_log import Ended
from headway.control.agents.agent_service import AgentService
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.auth.authenticator import Authenticator
from headway.control.rpc.agent_servicer import AgentServicer
from headway.control.rpc.grpc_server import serve
from headway.errors import Conflict, NotFound, Refused, Unauthenticated, Unavailable
from headway.local import procfs
from headway.scaling.model import Host, HostCapacity, StartUp, Template, Worker, WorkerState
from headway.settings import Address
from headway.store.engine import Engine, listen, transaction
from headway.store.hosts.hosts import load_hosts
from support.credential_files import token_file
from support.engines import engine_to

TOKEN = "s3cret"
BOUND_S = 20.0
CAPACITY = HostCapacity(cpu_cores=2.0, memory_bytes=1_000)
TEMPLATE = Template(name="rq", content_hash="h", slots=3, cpu_cores=0.5, memory_bytes=100)


class Served:
    """A gRPC server over a database, and what a test does in the place of the leader."""

    def __init__(self, engine: Engine, reports: AgentService, port: int) -> None:
        self.engine = engine
        self.reports = reports
        self.address = f"127.0.0.1:{port}"

    def client(self, token: str | None = TOKEN) -> ControlClient:
        return ControlClient(self.address, token=token, clock=procfs.since_boot_s)

    async def hosts(self) -> tuple[Host, ...]:
        async with transaction(self.engine) as connection:
            return await load_hosts(connection)

    async def assign(self, base_workers: int, *, template: str = "rq") -> None:
        async with transaction(self.engine) as connection:
            await connection.execute(
                text(
                    "insert into assignments select 'mail', host_id, :template, :base, 0, 0, 1, 1 from hosts "
                    "on conflict (pool, host_id) do update set base_workers = :base"
                ),
                {"base": base_workers, "template": template},
            )
            await connection.execute(
                text("update hosts set assignment_epoch = 1, assignment_revision = assignment_revision + 1")
            )
            await connection.execute(text("select pg_notify('headway_assignments', host_id) from hosts"))


@pytest.fixture
async def served(migrated_url: str) -> AsyncIterator[Served]:
    engine = engine_to(migrated_url)
    reports = AgentService(engine=engine)

    async def listen_for_changes() -> None:
        async for _, payload in listen(migrated_url, ["headway_assignments"]):
            reports.host_changed(payload)

    listening = asyncio.create_task(listen_for_changes())
    callers = Authenticator(token=TOKEN, engine=engine)
    servicer = AgentServicer(reports, HostAuthorization(engine=engine, callers=callers))
    address = Address(host="127.0.0.1", port=0)
    server = await serve([servicer], address=address, token=TOKEN, callers=callers)
    yield Served(engine, reports, server.port)
    await server.stop(0)
    listening.cancel()
    await engine.dispose()


def enrolled(client: ControlClient, name: str = "a", *, boot_id: str = "boot") -> Identity:
    given = client.enrol(host_name=name, host_id="", boot_id=boot_id)
    return Identity(agent_id="agent", cluster_id=given.cluster_id, host_id=given.host_id)


def report(client: ControlClient, identity: Identity, sequence: int = 1, **values: Any) -> str:
    news = HostUpdate(**{"capacity": CAPACITY, "templates": (TEMPLATE,), "workers": (), **values})
    return client.report(
        news, identity=identity, host_name="a", boot_id="boot", sequence=sequence, epoch_seen=4
    ).cluster_id


async def test_a_host_enrols_reports_and_learns_what_to_run(served: Served) -> None:
    client = served.client()
    identity = await asyncio.to_thread(enrolled, client)
    worker = Worker(
        worker_id="w1",
        pool="mail",
        template="rq",
        pid=7,
        state=WorkerState.RUNNING,
        started_at_s=procfs.since_boot_s() - 60.0,
        is_busy=True,
    )
    ended = Ended(worker=replace(worker, worker_id="w2"), exit_code=-9)
    expected = {
        "workers": (worker,),
        "ended": (ended,),
        "start_ups": (StartUp(template="rq", start_up_s=1.5, cpu_s=0.5),),
    }
    assert await asyncio.to_thread(lambda: report(client, identity, **expected)) == identity.cluster_id
    (host,) = await served.hosts()
    assert (host.host_id, host.name, host.is_known, host.capacity) == (identity.host_id, "a", True, CAPACITY)
    assert host.templates == (replace(TEMPLATE, start_up_s=1.5, start_up_p95_s=1.5, start_up_cpu_s=0.5),)
    assert [(each.worker_id, each.is_busy) for each in host.workers] == [("w1", True)]

    poll = asyncio.create_task(asyncio.to_thread(client.poll, identity, epoch=0, revision=0))
    async with served.engine.begin() as connection:
        await connection.execute(
            text(
                "insert into worker_activities (host_name, pid, is_busy, seen_at) "
                "values ('a', 7, true, now() - interval '2 seconds')"
            )
        )
    await served.assign(2)
    answer = await asyncio.wait_for(poll, BOUND_S)
    assert (answer.cluster_id, answer.epoch, answer.revision) == (identity.cluster_id, 1, 1)
    assert [(row.pool, row.template, row.base_workers) for row in answer.assignments] == [("mail", "rq", 2)]
    ((pid, is_busy, since_age_s, age_s),) = [
        (hint.pid, hint.is_busy, hint.since_age_s, hint.age_s) for hint in answer.hints
    ]
    assert (pid, is_busy, since_age_s) == (7, True, None)
    assert 2.0 <= age_s < BOUND_S
    client.close()


async def test_each_refusal_shows_the_agent_what_it_can_do(served: Served) -> None:
    client, stranger = served.client(), served.client(token=None)
    nobody = Identity(agent_id="agent", cluster_id=await served.reports.cluster_id(), host_id="nobody")

    def calls() -> None:
        with pytest.raises(Unauthenticated, match="HEADWAY_JOIN_TOKEN"):
            enrolled(stranger)
        with pytest.raises(NotFound, match="must enrol again"):
            report(client, nobody)
        with pytest.raises(NotFound, match="must enrol again"):
            client.poll(nobody, epoch=0, revision=0)
        with pytest.raises(Refused, match="host_name must be"):
            enrolled(client, "")
        with pytest.raises(Refused, match="host_name must be"):
            enrolled(client, "a\0b")
        identity = enrolled(client)
        with pytest.raises(Refused, match="host: cpu_cores=inf"):
            report(client, identity, capacity=replace(CAPACITY, cpu_cores=float("inf")))
        with pytest.raises(Refused, match="label 'zone'"):
            report(client, identity, labels={"zone": "\0"})
        report(client, identity)
        with pytest.raises(Conflict, match="another machine has this name"):
            enrolled(client, boot_id="another")

    await asyncio.to_thread(calls)
    for each in (client, stranger):
        each.close()


async def test_who_hangs_up_waits_no_longer(served: Served) -> None:
    client = served.client()
    identity = await asyncio.to_thread(enrolled, client)
    poll = asyncio.create_task(asyncio.to_thread(client.poll, identity, epoch=0, revision=0))
    await _until(lambda: served.reports._held)
    client.close()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(poll, BOUND_S)
    await _until(lambda: not served.reports._held)  # the server has noticed too


async def test_an_agent_runs_what_postgres_says(served: Served, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text("[templates.sleep]\nargv = ['sleep', '600']\nready_after_s = 0\n")
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headway", "agent", "--stop-workers", "--control", served.address),
        *("--host-file", str(tmp_path / "host.toml"), "--state-dir", str(tmp_path / "state"), "--host-name", "here"),
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "HEADWAY_TOKEN_FILE": token_file(tmp_path, TOKEN)},
    )

    async def workers(count: int) -> list[Worker]:
        while True:
            found = [each for host in await served.hosts() for each in host.workers]
            if len(found) == count and all(each.state is WorkerState.RUNNING for each in found):
                return found
            await asyncio.sleep(0.02)

    try:
        async with asyncio.timeout(60.0):
            while not [host for host in await served.hosts() if host.is_known]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await served.assign(3, template="sleep")
            three = await workers(3)
            await served.assign(1, template="sleep")
            (one,) = await workers(1)
            assert one.pid in {each.pid for each in three}
            agent.send_signal(signal.SIGTERM)
            assert await agent.wait() == 0
            assert await workers(0) == []
            assert procfs.stat(one.pid) is None or procfs.stat(one.pid).is_over
    finally:
        if agent.returncode is None:
            agent.kill()
            await agent.wait()


async def _until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
