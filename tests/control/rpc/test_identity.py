"""Who a host is to the control plane, over a real channel and a real Postgres, with the agent's own client."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text

from control.rpc.identities import SHARED, AgentEndpoint, as_dict, identity_of
from headway.agent.controlplane.client import ControlClient, HostUpdate, Proof
from headway.agent.model import Identity
from headway.control.agents.agent_service import AgentService
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.auth import authenticator as module
from headway.control.auth.authenticator import LISTENER_PROVEN_S, LOCAL, Authenticator, Caller
from headway.control.auth.authenticator import SHARED as SHARED_CALLER
from headway.control.rpc.agent_servicer import AgentServicer
from headway.control.rpc.call_permissions import RIGHTS, may_call
from headway.control.rpc.grpc_server import serve
from headway.emit.client import TelemetryClient
from headway.errors import Conflict, Forbidden, NotFound, Unauthenticated
from headway.scaling.model import HostCapacity, TelemetryBatch
from headway.settings import Address
from headway.store.access.credentials import Role, digest, forget_ended, revoke_host, rotate
from headway.store.access.tokens import TokenWanted, create_token, revoke_token
from headway.store.engine import transaction
from headway.wire.v1 import agent_pb2, telemetry_pb2, telemetry_pb2_grpc
from support.engines import engine_to
from support.waiting import eventually_of as eventually

BOUND_S = 60.0


@pytest.fixture
async def served(migrated_url: str) -> AsyncIterator[AgentEndpoint]:
    engine = engine_to(migrated_url)
    reports = AgentService(engine=engine)
    callers = Authenticator(token=SHARED, engine=engine, on_cut_off=reports.host_changed)
    servicer = AgentServicer(reports, HostAuthorization(engine=engine, callers=callers))
    server = await serve([servicer], address=Address(host="127.0.0.1", port=0), token=SHARED, callers=callers)
    watching = asyncio.create_task(callers.watch())
    served = AgentEndpoint(engine, callers, server.port)
    yield served
    served.close()
    watching.cancel()
    await server.stop(0)
    await engine.dispose()


# --- join tokens -----------------------------------------------------------------------------------------------------


async def test_a_join_token_gives_a_host_a_credential_of_its_own_once(served: AgentEndpoint) -> None:
    token = await served.join_token()
    client = served.client()
    given = await served.enrol(client, Proof(join_token=token))
    assert given.credential.startswith("hwh_")
    assert len(given.credential) >= 4 + 43  # 256 bits in base 64
    await served.report(client, identity_of(given))
    with pytest.raises(Unauthenticated, match="the join token has been used"):
        await served.enrol(client, Proof(join_token=token), "b")
    (row,) = await served.rows("select sha256, created_by from credentials where role = 'host'")
    assert row.sha256 == digest(given.credential)  # and the secret itself is nowhere
    assert row.created_by.startswith("join token join-")
    assert [row.action for row in await served.rows("select action from audit_log order by acted_at")] == [
        "token created",
        "host joined",
    ]


async def test_who_let_a_host_in_and_from_where_it_came_is_in_the_audit_log(served: AgentEndpoint) -> None:
    """Hosts that HEADWAY_TOKEN let in left no line there, and no line said where from."""
    await served.enrol(served.client(SHARED), Proof(), "a")
    await served.enrol(served.client(), Proof(join_token=await served.join_token(name="t")), "b")
    query = "select actor, subject, after->>'address' from audit_log where action = 'host joined' order by acted_at"
    assert [tuple(row) for row in await served.rows(query)] == [
        ("HEADWAY_TOKEN", "host a", "127.0.0.1"),
        ("join token t", "host b", "127.0.0.1"),
    ]


@pytest.mark.parametrize("kind", ["unknown", "expired", "revoked", "of a person"])
async def test_a_join_token_that_does_not_serve_lets_nobody_in(served: AgentEndpoint, kind: str) -> None:
    token = "hwj_never"
    if kind != "unknown":
        token = await served.join_token(name="t")
    if kind == "expired":
        await _execute(served, "update credentials set expires_at = now() - interval '1 s'")
    if kind == "revoked":
        await served.act(revoke_token, "t")
    if kind == "of a person":
        async with transaction(served.engine) as conn:
            _, token = await create_token(conn, TokenWanted(name="ci", role=Role.ADMIN), actor="test")
    with pytest.raises(Unauthenticated, match="not known, has expired or was revoked"):
        await served.enrol(served.client(), Proof(join_token=token))
    assert await served.rows("select * from hosts") == []


async def test_a_join_token_for_one_host_lets_no_other_in(served: AgentEndpoint) -> None:
    token = await served.join_token(host_name="b")
    with pytest.raises(Forbidden, match="is for host 'b', not for host 'a'"):
        await served.enrol(served.client(), Proof(join_token=token), "a")
    await served.enrol(served.client(), Proof(join_token=token), "b")


async def test_of_two_hosts_that_come_with_the_last_use_at_once_one_gets_in(served: AgentEndpoint) -> None:
    token = await served.join_token(uses=2)
    names = [f"h{number}" for number in range(6)]
    tries = [served.enrol(served.client(), Proof(join_token=token), name) for name in names]
    given = await asyncio.gather(*tries, return_exceptions=True)
    assert sorted(type(each).__name__ for each in given) == ["Enrolled"] * 2 + ["Unauthenticated"] * 4


async def test_an_answer_that_never_arrived_can_be_asked_for_again_by_the_same_agent(served: AgentEndpoint) -> None:
    """The agent was killed between the answer and the disc: its token must not be spent for nothing."""
    token, client = await served.join_token(), served.client()
    lost = await served.enrol(client, Proof(join_token=token))
    with pytest.raises(Unauthenticated, match="has been used"):  # a stranger who has the token has not the agent's id
        await served.enrol(client, Proof(join_token=token), "a", agent_id="stranger")
    again = await served.enrol(client, Proof(join_token=token))
    assert again.host_id == lost.host_id
    assert again.credential != lost.credential
    with pytest.raises(Unauthenticated):
        await served.report(client, identity_of(lost))  # what was lost is worth nothing
    await served.report(client, identity_of(again))
    with pytest.raises(Unauthenticated, match="has been used"):  # shown, so it has arrived
        await served.enrol(client, Proof(join_token=token))


async def test_a_reusable_join_token_takes_no_host_that_has_not_used_its_credential_yet(served: AgentEndpoint) -> None:
    """By the name, or by the id under another name, its holder became a host between its enrolment and first report."""
    token, client = await served.join_token(uses=9), served.client()
    given = await served.enrol(client, Proof(join_token=token))
    for name, host_id in (("a", ""), ("a", given.host_id), ("b", given.host_id)):
        with pytest.raises((Forbidden, Conflict), match="host 'a' has a credential of its own"):
            await served.enrol(client, Proof(join_token=token), name, agent_id="thief", host_id=host_id)
    assert [row.name for row in await served.rows("select name from hosts")] == ["a"]
    await served.report(client, identity_of(given))


async def test_the_agent_that_enrolled_may_use_a_reusable_join_token_again(served: AgentEndpoint) -> None:
    """Its answer was lost for longer than the ten minutes for which a use stays open."""
    token, client = await served.join_token(uses=2), served.client()
    await served.enrol(client, Proof(join_token=token))
    await _execute(served, "update credentials set created_at = now() - interval '11 minutes' where role = 'host'")
    await served.report(client, identity_of(await served.enrol(client, Proof(join_token=token))))


async def test_a_join_token_for_the_host_lets_in_another_agent_before_the_first_ones_first_report(
    served: AgentEndpoint,
) -> None:
    """The machine was lost between its enrolment and its first report, its state folder with it."""
    client = served.client()
    lost = await served.enrol(client, Proof(join_token=await served.join_token(uses=9)))
    token = await served.join_token(host_name="a")
    await served.report(client, identity_of(await served.enrol(client, Proof(join_token=token), agent_id="new")))
    with pytest.raises(Unauthenticated):
        await served.report(client, identity_of(lost))


async def test_what_the_shared_token_gave_is_its_agents_too(served: AgentEndpoint) -> None:
    given = await served.enrol(served.client(SHARED), Proof())
    with pytest.raises(Forbidden, match="host 'a' has a credential of its own"):
        await served.enrol(served.client(), Proof(join_token=await served.join_token(uses=9)), agent_id="thief")
    await served.report(served.client(), identity_of(given))


async def test_after_ten_minutes_nobody_can_ask_again(served: AgentEndpoint) -> None:
    token, client = await served.join_token(), served.client()
    await served.enrol(client, Proof(join_token=token))
    await _execute(served, "update credentials set created_at = now() - interval '11 minutes' where role = 'host'")
    with pytest.raises(Unauthenticated, match="has been used"):
        await served.enrol(client, Proof(join_token=token))


async def test_without_any_proof_nobody_gets_in(served: AgentEndpoint) -> None:
    with pytest.raises(Unauthenticated, match="headway token create --join"):
        await served.enrol(served.client(), Proof())


# --- one host cannot speak for another -------------------------------------------------------------------------------


async def test_a_host_speaks_for_itself_only(served: AgentEndpoint) -> None:
    a, b, client = await served.enrolled("a"), await served.enrolled("b"), served.client()
    with pytest.raises(Forbidden, match="its credential is another host's"):
        await served.report(client, a, host_id=b.host_id)
    stolen = Identity(**{**as_dict(a), "host_id": b.host_id})
    with pytest.raises(Forbidden, match="its credential is another host's"):
        await asyncio.to_thread(lambda: client.poll(stolen, epoch=0, revision=0))
    with pytest.raises(Forbidden, match="does not speak for host"):
        await served.enrol(client, Proof(shown=a.credential), "b", host_id=b.host_id)
    assert served.callers.refused["its credential is another host's"] == 2
    acts = await served.rows("select actor, subject, after from audit_log where action = 'call refused'")
    assert [(row.actor, row.subject) for row in acts] == [("host a", f"host {b.host_id}")]  # once a minute


async def test_a_host_that_has_a_credential_is_not_enrolled_without_it(served: AgentEndpoint) -> None:
    a = await served.enrolled("a")
    for proof in (Proof(shown=SHARED), Proof(join_token=await served.join_token())):
        with pytest.raises((Forbidden, Conflict)):
            await served.enrol(served.client(), proof, "a", host_id=a.host_id, agent_id="thief", boot_id="boot-a")
        with pytest.raises((Forbidden, Conflict)):
            await served.enrol(served.client(), proof, "a", agent_id="thief", boot_id="boot")
    with pytest.raises(Unauthenticated):
        await served.enrol(served.client(), Proof(), "a", host_id=a.host_id)
    await served.report(served.client(), a)  # whose it is goes on


async def test_a_join_token_for_a_new_host_does_not_make_its_holder_another_one(served: AgentEndpoint) -> None:
    """Ids of hosts are no secrets: every viewer reads them."""
    victim = await served.enrolled("a")
    token = await served.join_token(host_name="b")
    with pytest.raises(Forbidden, match="host 'a' has a credential of its own, and this call does not show it"):
        await served.enrol(served.client(), Proof(join_token=token), "b", host_id=victim.host_id)
    await served.report(served.client(), victim)
    assert [row.name for row in await served.rows("select name from hosts")] == ["a"]
    given = await served.enrol(served.client(), Proof(join_token=token), "b")
    assert given.host_id != victim.host_id


async def test_an_administrator_lets_a_reinstalled_host_in_anew(served: AgentEndpoint) -> None:
    lost = await served.enrolled("a")
    token = await served.join_token(host_name="a")
    given = await served.enrol(served.client(), Proof(join_token=token), "a", agent_id="new", boot_id="boot")
    assert given.host_id == lost.host_id
    await served.report(served.client(), identity_of(given))
    with pytest.raises(Unauthenticated):
        await eventually_refused(served, lost)


async def test_a_host_that_was_forgotten_comes_back_by_its_credential_under_another_id(served: AgentEndpoint) -> None:
    """What it runs is better seen than unseen; to keep a host out, its credential is revoked."""
    a = await served.enrolled("a")
    await _execute(served, "delete from hosts")
    with pytest.raises(NotFound):
        await served.report(served.client(), a)
    back = await served.enrol(served.client(), Proof(shown=a.credential), "a", host_id=a.host_id)
    assert (back.host_id != a.host_id, back.credential) == (True, "")
    now = Identity(**{**as_dict(a), "host_id": back.host_id})
    await served.report(served.client(), now)
    with pytest.raises(Forbidden, match="its credential is another host's"):
        await served.report(served.client(), a)


async def test_a_forgotten_host_does_not_become_the_one_that_has_its_name_now(served: AgentEndpoint) -> None:
    old = await served.enrolled("a")
    await _execute(served, "delete from hosts")
    await served.enrolled("a", agent_id="new")
    await _execute(served, "update hosts set lease_ends_at = null")
    with pytest.raises(Forbidden, match="has a credential of its own"):
        await served.enrol(served.client(), Proof(shown=old.credential), "a", host_id=old.host_id)


async def test_a_host_that_was_revoked_and_forgotten_needs_a_new_token(served: AgentEndpoint) -> None:
    a = await served.enrolled("a")
    await served.act(revoke_host, "a")
    await _execute(served, "delete from hosts")
    with pytest.raises(Unauthenticated):
        await served.enrol(served.client(), Proof(shown=a.credential), "a", host_id=a.host_id)
    await served.enrol(served.client(), Proof(join_token=await served.join_token()), "a")


# --- the shared token, for as long as an upgrade takes ---------------------------------------------------------------


async def test_a_host_of_before_gets_its_own_credential_with_the_shared_token(served: AgentEndpoint) -> None:
    """Its identity.json has an id and no credential."""
    client = served.client(SHARED)
    first = await served.enrol(client, Proof())
    old = Identity(agent_id="agent", cluster_id=first.cluster_id, host_id=first.host_id)
    await served.report(client, old)  # as an agent of the old version does, which does not know what it was given
    again = await served.enrol(client, Proof(), host_id=first.host_id)
    await served.report(client, old)
    await served.report(client, identity_of(again))  # the new version shows it, and from now on
    with pytest.raises(Forbidden, match="has a credential of its own, and the call does not show it"):
        await served.report(client, old)
    with pytest.raises(Forbidden, match="has a credential of its own"):
        await served.enrol(client, Proof(), host_id=first.host_id)


# --- rotation and revocation -----------------------------------------------------------------------------------------


async def test_a_rotated_credential_is_replaced_with_the_next_report_and_both_serve_until_then(
    served: AgentEndpoint,
) -> None:
    old, client = await served.enrolled("a"), served.client()
    assert (await served.report(client, old)).credential == ""
    await served.act(rotate, "a")
    fresh = await eventually(lambda: renewed(served, client, old))
    await served.report(client, old)  # the answer may have been lost
    newest = (await served.report(client, old)).credential
    assert newest != fresh
    with pytest.raises(Unauthenticated):  # only one is under way at a time
        await served.report(client, Identity(**{**as_dict(old), "credential": fresh}))
    now = Identity(**{**as_dict(old), "credential": newest})
    assert (await served.report(client, now)).credential == ""
    with pytest.raises(Unauthenticated, match="a newer one took its place"):
        await eventually_refused(served, old)


async def test_credentials_are_renewed_by_age(served: AgentEndpoint) -> None:
    old, client = await served.enrolled("a"), served.client()
    (row,) = await served.rows(
        "select extract(epoch from renew_at - now()) / 86400 as days from credentials where role = 'host'"
    )
    assert 27 - 0.01 <= row.days <= 30
    await _execute(served, "update credentials set renew_at = now() where role = 'host'")
    assert (await served.report(client, old)).credential == ""  # what is known is believed
    fresh = Authenticator(token=SHARED, engine=served.engine)
    assert (await fresh.who(old.credential)).wants_renewal


async def test_rotation_under_load_refuses_nobody(served: AgentEndpoint) -> None:
    """Reports and polls of many hosts while every credential is replaced again and again."""
    hosts = [await served.enrolled(f"h{number}") for number in range(4)]
    failures: list[BaseException] = []
    stop = threading.Event()

    def host_life(identity: Identity) -> int:
        client, renewals = served.client(), 0
        news = HostUpdate(capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1), templates=(), workers=())
        sequence = 0
        while not stop.is_set():
            sequence += 1
            try:
                received = client.report(
                    news, identity=identity, host_name="", boot_id="b", sequence=sequence, epoch_seen=0
                )
            except BaseException as error:  # noqa: BLE001 - told below
                failures.append(error)
                return renewals
            if received.credential:
                renewals += 1
                identity = Identity(**{**as_dict(identity), "credential": received.credential})
        return renewals

    lives = [asyncio.create_task(asyncio.to_thread(host_life, identity)) for identity in hosts]
    for _ in range(3):
        before = await _renewals(served)
        for number in range(4):
            await served.act(rotate, f"h{number}")
        async with asyncio.timeout(BOUND_S):
            while await _renewals(served) < before + 4 and not failures:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    stop.set()
    renewals = await asyncio.gather(*lives)
    assert failures == []
    assert min(renewals) >= 2


async def _renewals(served: AgentEndpoint) -> int:
    (row,) = await served.rows(
        "select count(*) as n from credentials where created_by = 'renewal' and used_at is not null"
    )
    return row.n


async def test_a_revoked_host_is_cut_off_at_once_also_while_its_poll_is_held(served: AgentEndpoint) -> None:
    a, client = await served.enrolled("a"), served.client()
    poll = asyncio.create_task(asyncio.to_thread(lambda: client.poll(a, epoch=0, revision=0)))
    await asyncio.sleep(0)
    await eventually(lambda: served.callers._kept)
    revoked_at_s = time.monotonic()
    await served.act(revoke_host, "a")
    with pytest.raises(Unauthenticated, match="was revoked"):
        await asyncio.wait_for(poll, BOUND_S)
    assert time.monotonic() - revoked_at_s < 10.0  # far below the 20 s that a poll is held
    with pytest.raises(Unauthenticated, match="was revoked"):
        await served.report(client, a)
    with pytest.raises(Forbidden):  # nor by the shared token
        await served.enrol(served.client(SHARED), Proof(), "a", host_id=a.host_id)


async def test_what_was_kept_is_not_believed_once_changes_are_not_received(
    served: AgentEndpoint, migrated_url: str
) -> None:
    now_s = [0.0]
    callers = Authenticator(token=SHARED, engine=served.engine, clock=lambda: now_s[0])
    a = await served.enrolled("a")
    await callers.refresh()
    assert (await callers.who(a.credential)).host_id == a.host_id
    await served.act(revoke_host, "a")
    now_s[0] = LISTENER_PROVEN_S
    assert (await callers.who(a.credential)).host_id == a.host_id  # the bound that the document gives
    now_s[0] = LISTENER_PROVEN_S + 0.001
    with pytest.raises(Unauthenticated, match="was revoked"):
        await callers.who(a.credential)
    await callers.refresh()
    with pytest.raises(Unauthenticated, match="was revoked"):
        await callers.who(a.credential)


async def test_after_an_older_database_was_restored_changes_are_received_again(served: AgentEndpoint) -> None:
    """Its revisions begin lower: asked for what came after the last one seen, it would return nothing for long."""
    a = await served.enrolled("a")
    for number in range(3):
        await served.join_token(name=f"t{number}")
        await served.act(revoke_token, f"t{number}")
    now_s = [0.0]
    callers = Authenticator(token=SHARED, engine=served.engine, clock=lambda: now_s[0])
    await callers.refresh()
    await _execute(served, "update credential_changes set revision = 0")
    await callers.refresh()
    await served.act(revoke_host, "a")
    await callers.refresh()
    with pytest.raises(Unauthenticated, match="was revoked"):
        await callers.who(a.credential)


async def test_changes_that_are_too_many_to_be_read_at_once_are_all_received(
    served: AgentEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of several rows may lie across the bound; and rows that changed may be gone when they are read."""
    monkeypatch.setattr(module, "AUTHENTICATOR_CHANGES_MAX", 4)
    hosts = [await served.enrolled(name) for name in "abc"]
    now_s = [0.0]
    callers = Authenticator(token=SHARED, engine=served.engine, clock=lambda: now_s[0])
    await callers.refresh()
    (before,) = await served.rows("select revision from credential_changes")
    for number, identity in enumerate(hosts, start=1):  # three rows a change
        await _execute(
            served,
            "insert into credentials (sha256, role, name, host_id, created_by) "
            f"select sha256 || number, role, name, host_id, 'test' from credentials, generate_series(1, 2) as number "
            f"where host_id = '{identity.host_id}'",
        )
        await _execute(
            served,
            f"update credentials set revoked_at = now(), changed = {before.revision + number} "
            f"where host_id = '{identity.host_id}'",
        )
    await _execute(served, f"update credential_changes set revision = {before.revision + 4}")
    received_at_s = []
    for now_s[0] in (1.0, 2.0, 3.0):
        await callers.refresh()
        received_at_s.append(callers._proven_at_s)
    assert received_at_s == [0.0, 0.0, 3.0]  # until all is read nothing that is kept is believed
    assert not {digest(identity.credential) for identity in hosts} & callers._kept.keys()
    assert callers._revision == before.revision + 4


async def test_known_callers_cost_the_database_nothing(served: AgentEndpoint) -> None:
    a = await served.enrolled("a")
    callers = Authenticator(token=SHARED, engine=served.engine)
    await callers.refresh()
    callers._engine = None  # whoever is looked up now is not known
    for _ in range(100):
        assert (await callers.who(a.credential)).name == "a"
    with pytest.raises(Unauthenticated):
        await callers.who("hwh_another")


# --- the table of rights ---------------------------------------------------------------------------------------------


def test_every_method_of_the_wire_says_who_may_call_it() -> None:
    services = [*agent_pb2.DESCRIPTOR.services_by_name.values(), *telemetry_pb2.DESCRIPTOR.services_by_name.values()]
    methods = {f"/{service.full_name}/{method.name}" for service in services for method in service.methods}
    assert methods == RIGHTS.keys()


@pytest.mark.parametrize(
    ("method", "may"),
    [
        ("AgentService/Enrol", {Role.HOST, Role.JOIN}),  # with a join token in the message nothing else is shown
        ("AgentService/Report", {Role.HOST}),
        ("AgentService/Poll", {Role.HOST}),
        ("TelemetryService/Ingest", {Role.INGEST, Role.ADMIN, Role.HOST}),
        ("AgentService/Later", set()),  # one that has no row yet
    ],
)
def test_every_role_may_make_the_calls_that_the_table_says_and_no_other(method: str, may: set[Role]) -> None:
    path = f"/headway.wire.v1.{method}"
    assert {role for role in Role if may_call(Caller(role=role, name="x"), path)} == may
    assert may_call(SHARED_CALLER, path) is bool(may)
    assert may_call(LOCAL, path)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.INGEST, Role.ADMIN])
async def test_a_token_of_a_person_speaks_for_no_host(served: AgentEndpoint, role: Role) -> None:
    async with transaction(served.engine) as conn:
        _, token = await create_token(conn, TokenWanted(name="ci", role=role), actor="test")
    a = await served.enrolled("a")
    with pytest.raises(Forbidden, match=f"its role is {role}"):
        await served.report(served.client(), Identity(**{**as_dict(a), "credential": token}))


@pytest.mark.parametrize(("role", "may"), [("ingest", True), ("admin", True), ("viewer", False), ("operator", False)])
async def test_telemetry_takes_an_ingest_token(served: AgentEndpoint, role: str, may: bool) -> None:
    class Takes(telemetry_pb2_grpc.TelemetryServiceServicer):
        def add_to(self, server: Any) -> None:
            telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(self, server)

        async def Ingest(self, request: Any, context: Any) -> telemetry_pb2.IngestResponse:  # noqa: N802
            return telemetry_pb2.IngestResponse(accepted_events=1)

    async with transaction(served.engine) as conn:
        _, token = await create_token(conn, TokenWanted(name="c", role=Role(role)), actor="test")
    address = Address(host="127.0.0.1", port=0)
    server = await serve([Takes()], address=address, token=SHARED, callers=served.callers)
    client = TelemetryClient(f"127.0.0.1:{server.port}", token=token)
    batch = TelemetryBatch(producer="p", sequence=1, sent_at_s=0.0)
    if may:
        assert (await asyncio.to_thread(client.send, batch)).accepted_events == 1
    else:
        with pytest.raises(Forbidden, match=f"its role is {role}"):
            await asyncio.to_thread(client.send, batch)
    client.close()
    await server.stop(0)


async def test_a_first_use_that_two_calls_make_at_once_ends_nothing_but_the_old(served: AgentEndpoint) -> None:
    old = await served.enrolled("a")
    await served.act(rotate, "a")
    fresh = await eventually(lambda: renewed(served, served.client(), old))
    now = Identity(**{**as_dict(old), "credential": fresh})
    await asyncio.gather(*(served.report(served.client(), now) for _ in range(6)))
    await served.report(served.client(), now)


async def test_what_ended_long_ago_is_forgotten_but_that_a_host_was_revoked_is_not(served: AgentEndpoint) -> None:
    await served.enrolled("a")
    await served.act(revoke_host, "a")
    await served.join_token(name="old")
    await _execute(served, "update credentials set revoked_at = now() - interval '8 days'")
    async with transaction(served.engine) as conn:
        await forget_ended(conn)
    assert [row.role for row in await served.rows("select role from credentials")] == ["host"]
    with pytest.raises(Forbidden):
        await served.enrol(served.client(), Proof(shown=SHARED), "a", boot_id="boot")


# --- waiting ---------------------------------------------------------------------------------------------------------


async def renewed(served: AgentEndpoint, client: ControlClient, identity: Identity) -> str:
    return (await served.report(client, identity)).credential


async def eventually_refused(served: AgentEndpoint, identity: Identity) -> None:
    """Report until that is refused; the refusal is raised."""
    client = served.client()
    async with asyncio.timeout(BOUND_S):
        while True:
            await served.report(client, identity)
            await asyncio.sleep(0.01)


async def _execute(served: AgentEndpoint, sql: str) -> None:
    async with transaction(served.engine) as conn:
        await conn.execute(text(sql))
