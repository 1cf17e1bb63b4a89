"""Whole agents as processes, and what becomes of their credentials: kills, upgrades, rotation, revocation."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from control.rpc.identities import SHARED, AgentEndpoint
from headway.agent.controlplane.client import ControlClient, Enrolled
from headway.agent.controlplane.isolation import Contact
from headway.agent.controlplane.session import ControlSession
from headway.agent.desired_state import DesiredState
from headway.agent.model import Identity
from headway.agent.state.state_dir import StateFolder
from headway.control.agents.agent_service import AgentService
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.auth.authenticator import Authenticator
from headway.control.rpc.agent_servicer import AgentServicer
from headway.control.rpc.grpc_server import serve
from headway.errors import Unavailable
from headway.settings import Address
from headway.store.access.credentials import digest, revoke_host, rotate
from headway.store.engine import create_engine, transaction
from support.credential_files import token_file
from support.waiting import eventually_of as eventually

pytestmark = pytest.mark.e2e

HOST_FILE = "[templates.sleep]\nargv = ['sleep', '600']\nready_after_s = 0\n"
NO_SETTINGS: Mapping[str, str] = {}


class Interrupted(AgentServicer):
    """Does its part of an enrolment, and then something happens before the answer is on its way."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.before_answer: Callable[[], None] = lambda: None

    async def Enrol(self, request: Any, context: Any) -> Any:  # noqa: N802
        answer = await super().Enrol(request, context)
        self.before_answer()
        return answer


class Site:
    """The agents' endpoint, and a host on which one agent after the other runs."""

    def __init__(self, served: AgentEndpoint, servicer: Interrupted, root: Path) -> None:
        self.endpoint = served
        self.servicer = servicer
        self.state_dir = root / "state"
        self.log = root / "agent.log"
        self.host_file = root / "host.toml"
        self.host_file.write_text(HOST_FILE)
        self._nudges = 0
        self._agents: list[asyncio.subprocess.Process] = []

    async def agent(self, settings: Mapping[str, str] = NO_SETTINGS, **tokens: str) -> asyncio.subprocess.Process:
        """Start an agent with these settings, and with a file for each of ``tokens``."""
        files = {f"{name}_FILE": token_file(self.log.parent, token, name=name) for name, token in tokens.items()}
        await self.execute("update hosts set reported_at = null")
        with self.log.open("ab") as output:
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "headway", "agent", "--control", self.endpoint.address, "--host-name", "a"),
                *("--host-file", str(self.host_file), "--state-dir", str(self.state_dir)),
                stderr=output,
                env={
                    **{key: value for key, value in os.environ.items() if not key.startswith("HEADWAY_")},
                    **settings,
                    **files,
                },
            )
        self._agents.append(agent)
        return agent

    def identity(self) -> dict[str, str]:
        return json.loads((self.state_dir / "identity.json").read_text())

    def nudge(self, agent: asyncio.subprocess.Process) -> None:
        """Make the agent report at once: its host has another label."""
        self._nudges += 1
        self.host_file.write_text(f"[host]\nlabels = {{nudge = '{self._nudges}'}}\n{HOST_FILE}")
        agent.send_signal(signal.SIGHUP)

    async def ended(self, agent: asyncio.subprocess.Process, number: int = signal.SIGTERM) -> None:
        agent.send_signal(number)
        await agent.wait()

    async def reporting(self) -> None:
        """Return once the newest agent has reported, with what it shows."""

        async def has_reported() -> Any:
            return await self.endpoint.rows("select 1 from hosts where reported_at is not null")

        await eventually(has_reported)

    async def refreshed(self) -> None:
        """Return once the control plane has received every change."""
        (row,) = await self.endpoint.rows("select revision from credential_changes")
        await eventually(lambda: self.endpoint.callers._revision == row.revision)

    async def execute(self, sql: str) -> None:
        async with transaction(self.endpoint.engine) as conn:
            await conn.execute(text(sql))

    async def clear(self) -> None:
        for agent in self._agents:
            if agent.returncode is None:
                await self.ended(agent, signal.SIGKILL)


@pytest.fixture
async def site(migrated_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    engine = create_engine(migrated_url)
    reports = AgentService(engine=engine)
    callers = Authenticator(token=SHARED, engine=engine, on_cut_off=reports.host_changed)
    servicer = Interrupted(reports, HostAuthorization(engine=engine, callers=callers))
    server = await serve([servicer], address=Address(host="127.0.0.1", port=0), token=SHARED, callers=callers)
    watching = asyncio.create_task(callers.watch())
    site = Site(AgentEndpoint(engine, callers, server.port), servicer, tmp_path)
    yield site
    await site.clear()
    watching.cancel()
    await server.stop(0)
    await engine.dispose()


async def test_an_agent_that_is_killed_before_it_could_write_its_credential_down_gets_in_all_the_same(
    site: Site,
) -> None:
    """The token was spent, and the answer died with the process."""
    token = await site.endpoint.join_token()
    killed = asyncio.Event()
    agent = await site.agent(HEADWAY_JOIN_TOKEN=token)

    def kill() -> None:
        agent.kill()
        killed.set()

    site.servicer.before_answer = kill
    await asyncio.wait_for(killed.wait(), 30)
    await agent.wait()
    site.servicer.before_answer = lambda: None
    assert site.identity()["credential"] == ""
    (spent,) = await site.endpoint.rows("select uses_left from credentials where role = 'join'")
    assert spent.uses_left == 0

    await site.agent(HEADWAY_JOIN_TOKEN=token)
    await eventually(lambda: site.identity()["credential"])
    await site.reporting()
    assert len(await site.endpoint.rows("select * from hosts")) == 1
    valid = await site.endpoint.rows("select sha256 from credentials where role = 'host' and used_at is not null")
    assert [row.sha256 for row in valid] == [digest(site.identity()["credential"])]
    assert stat.S_IMODE((site.state_dir / "identity.json").stat().st_mode) == 0o600


async def test_a_host_that_has_joined_needs_its_token_no_more(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "join-token"
    file.write_text(await site.endpoint.join_token() + "\n")
    first = await site.agent({"HEADWAY_JOIN_TOKEN_FILE": str(file)})
    await eventually(lambda: (site.state_dir / "identity.json").exists() and site.identity()["credential"])
    await site.reporting()
    before = site.identity()
    await site.ended(first, signal.SIGKILL)
    file.unlink()
    await site.agent({"HEADWAY_JOIN_TOKEN_FILE": str(file)})
    await site.reporting()
    assert site.identity() == before
    assert before["credential"] not in site.log.read_text()


async def test_an_agent_of_before_is_upgraded_by_its_shared_token_and_then_needs_it_no_more(site: Site) -> None:
    """Its identity.json is of a version that knew no credentials."""
    site.state_dir.mkdir(mode=0o700)
    async with transaction(site.endpoint.engine) as conn:
        await conn.execute(text("insert into hosts (host_id, name) values ('h-1', 'a')"))
        cluster_id = str((await conn.execute(text("select cluster_id from cluster"))).scalar_one())
    old = {"agent_id": "f" * 32, "cluster_id": cluster_id, "host_id": "h-1", "credential": ""}
    (site.state_dir / "identity.json").write_text(json.dumps(old))
    first = await site.agent(HEADWAY_TOKEN=SHARED)
    await eventually(lambda: site.identity()["credential"])
    await site.reporting()
    assert {key: site.identity()[key] for key in ("agent_id", "host_id")} == {"agent_id": "f" * 32, "host_id": "h-1"}
    await site.ended(first)
    await site.agent()  # HEADWAY_TOKEN was taken away from the host
    await site.reporting()


async def test_an_agent_takes_up_a_new_credential_while_it_runs(site: Site) -> None:
    agent = await site.agent(HEADWAY_JOIN_TOKEN=await site.endpoint.join_token())
    await eventually(lambda: (site.state_dir / "identity.json").exists() and site.identity()["credential"])
    await site.reporting()
    before = site.identity()
    await site.endpoint.act(rotate, "a")
    await site.refreshed()
    site.nudge(agent)
    await eventually(lambda: site.identity()["credential"] != before["credential"])
    assert site.identity()["former_credential"] == before["credential"]
    ended = f"select 1 from credentials where sha256 = '{digest(before['credential'])}' and expires_at <= now()"
    site.nudge(agent)
    await eventually(lambda: site.endpoint.rows(ended))
    assert "refuses" not in site.log.read_text()


@pytest.mark.timeout(600)  # it waits for a back-off of up to a minute, and must not be the last to begin
async def test_a_restored_database_knows_the_credential_of_before(site: Site) -> None:
    """The copy is older than the renewal: what was given since then is gone."""
    agent = await site.agent(HEADWAY_JOIN_TOKEN=await site.endpoint.join_token())
    await eventually(lambda: (site.state_dir / "identity.json").exists() and site.identity()["credential"])
    await site.reporting()
    before = site.identity()
    await site.endpoint.act(rotate, "a")
    await site.refreshed()
    site.nudge(agent)
    await eventually(lambda: site.identity()["credential"] != before["credential"])
    lost, kept = digest(site.identity()["credential"]), digest(before["credential"])
    await eventually(
        lambda: site.endpoint.rows(f"select 1 from credentials where sha256 = '{lost}' and used_at is not null")
    )
    await site.execute(f"delete from credentials where sha256 = '{lost}'")
    await site.execute(
        f"update credentials set expires_at = null, renew_at = now() + interval '1 day' where sha256 = '{kept}'"
    )
    site.endpoint.callers._kept.clear()
    site.nudge(agent)
    # First this: a report may be on its way that was let in by what is lost now.
    await eventually(lambda: site.identity()["credential"] == before["credential"])
    await site.execute("update hosts set reported_at = null")
    site.nudge(agent)
    await site.reporting()


async def test_a_revoked_host_says_so_and_its_workers_run_on(site: Site) -> None:
    agent = await site.agent(HEADWAY_JOIN_TOKEN=await site.endpoint.join_token(), HEADWAY_TOKEN=SHARED)
    await eventually(lambda: (site.state_dir / "identity.json").exists() and site.identity()["credential"])
    await site.reporting()
    await site.endpoint.act(revoke_host, "a")
    await eventually(
        lambda: "was revoked: let it in anew with `headway token create --join --host a`" in site.log.read_text()
    )
    assert agent.returncode is None
    (valid,) = await site.endpoint.rows(
        "select count(*) as n from credentials where role = 'host' and revoked_at is null and expires_at is null"
    )
    assert valid.n == 0  # neither its spent join token nor the shared one brought it back


def test_a_credential_that_cannot_be_written_down_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateFolder(tmp_path)

    def full(_identity: Identity) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "save_identity", full)
    client = ControlClient("127.0.0.1:1", token=None, clock=lambda: 0.0)
    monkeypatch.setattr(client, "enrol", lambda **_: Enrolled(cluster_id="c", host_id="h", credential="hwh_new"))
    link = ControlSession(
        client,
        folder,
        identity=Identity(agent_id="x"),
        host_name="a",
        orders=DesiredState(),
        contact=Contact(folder),
        wake=lambda: None,
        join_token="hwj_token",
    )
    with pytest.raises(Unavailable, match=r"identity\.json cannot be written"):
        link.membership.identity()
    assert link.membership.now == (Identity(agent_id="x"), False)
    client.close()
