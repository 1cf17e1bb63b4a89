"""TLS at both servers with certificates of the command's own making, and mTLS at the agents'."""

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.__main__ import main
from headway.agent.controlplane.client import ControlClient, HostUpdate, Proof
from headway.agent.model import Identity
from headway.cli.api_client import Api
from headway.cli.tls import http_context
from headway.control.agents.agent_service import AgentService
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.auth.authenticator import Authenticator
from headway.control.auth.certificates import Certificates
from headway.control.auth.pki import LEAF_DAYS, make_client, make_server, read_ca, write_pair
from headway.control.http.app import App
from headway.control.http.http_server import HttpServer
from headway.control.http.middleware import RequestGuard
from headway.control.rpc.agent_servicer import AgentServicer
from headway.control.rpc.grpc_server import RpcServer, serve
from headway.environment import ClientTls
from headway.errors import Forbidden, HeadwayError, Misconfigured, Unavailable
from headway.local import procfs
from headway.scaling.model import HostCapacity
from headway.settings import Address
from headway.store.access.credentials import Role
from headway.store.access.tokens import TokenWanted, create_token
from headway.store.engine import create_engine, transaction
from headway.store.overview import read_hosts
from headway.wire.channel import Tls, read_tls
from support.credential_files import token_file

LOOPBACK = Address(host="127.0.0.1", port=0)


@dataclass(frozen=True)
class Keys:
    """A folder that `headway keys` has filled."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def served(self, *, asks_clients: bool = False) -> Certificates:
        client_ca = self.ca if asks_clients else None
        return Certificates(self.folder / "server.crt", self.folder / "server.key", client_ca=client_ca)

    def tls(self, client: str | None = None) -> Tls:
        shown = self.folder / "clients"
        return read_tls(
            self.ca,
            certificate=shown / f"{client}.crt" if client else None,
            key=shown / f"{client}.key" if client else None,
        )

    def remake_server(self, *names: str, days: int = 825, ca: "Keys | None" = None) -> None:
        signer = (ca or self).folder
        pair = make_server(read_ca(signer / "ca.crt", signer / "ca.key"), names, days=days)
        write_pair(pair, certificate=self.folder / "server.crt", key=self.folder / "server.key", is_replacing=True)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    folder = tmp_path / "keys"
    for words in (["init"], ["server", "control.example"], ["client", "a"], ["client", "b"]):
        assert main(["keys", *words, "--folder", str(folder)]) == 0
    return Keys(folder)


@pytest.fixture
def others(tmp_path: Path) -> Keys:
    """Of another installation."""
    folder = tmp_path / "others"
    for words in (["init"], ["server", "control.example"], ["client", "a"]):
        assert main(["keys", *words, "--folder", str(folder)]) == 0
    return Keys(folder)


@asynccontextmanager
async def serving(certificates: Certificates) -> AsyncIterator[RpcServer]:
    """The gRPC server without a database: a call that gets through is refused, which takes a handshake."""
    server = await serve([], address=LOOPBACK, token="t", certificates=certificates)
    try:
        yield server
    finally:
        await server.stop(0)


async def called(address: str, tls: Tls | None) -> HeadwayError:
    """What comes of a call that no server without a service can answer well."""
    client = ControlClient(address, token="t", clock=procfs.since_boot_s, tls=lambda: tls)
    try:
        await asyncio.to_thread(
            lambda: client.enrol(host_name="a", host_id="", boot_id="b", agent_id="a", proof=Proof())
        )
    except HeadwayError as error:
        return error
    finally:
        client.close()
    raise AssertionError("there is no service that could answer")


GOT_THROUGH = "UNIMPLEMENTED"


# --- handshakes ------------------------------------------------------------------------------------------------------


async def test_an_agent_that_trusts_the_ca_gets_through(keys: Keys) -> None:
    async with serving(keys.served()) as server:
        for host in ("127.0.0.1", "localhost"):
            assert GOT_THROUGH in str(await called(f"{host}:{server.port}", keys.tls()))


async def test_a_server_of_another_ca_is_rejected_with_one_sentence(keys: Keys, others: Keys) -> None:
    async with serving(others.served()) as server:
        error = await called(f"127.0.0.1:{server.port}", keys.tls())
    assert isinstance(error, Unavailable)
    assert "shows a certificate that is not trusted here" in str(error)
    assert "\n" not in str(error)


async def test_a_server_whose_certificate_has_expired_is_rejected(keys: Keys) -> None:
    keys.remake_server("127.0.0.1", days=-1)
    async with serving(keys.served()) as server:
        error = await called(f"127.0.0.1:{server.port}", keys.tls())
    assert "shows a certificate that has expired: make another one there" in str(error)


async def test_a_server_of_another_name_is_rejected_with_one_sentence(keys: Keys) -> None:
    server = await serve([], address=Address(host="0.0.0.0", port=0), token="t", certificates=keys.served())
    error = await called(f"127.0.0.2:{server.port}", keys.tls())
    await server.stop(0)
    assert isinstance(error, Unavailable)
    assert "shows a certificate that is not for this name" in str(error)


async def test_a_server_without_tls_is_rejected_with_one_sentence(keys: Keys) -> None:
    server = await serve([], address=LOOPBACK, token="t")
    error = await called(f"127.0.0.1:{server.port}", keys.tls())
    await server.stop(0)
    assert "does not speak TLS" in str(error)


async def test_where_certificates_are_asked_for_none_another_cas_and_an_expired_one_are_refused(
    keys: Keys, others: Keys
) -> None:
    ca = read_ca(keys.ca, keys.folder / "ca.key")
    old = make_client(ca, "a", days=-1)
    async with serving(keys.served(asks_clients=True)) as server:
        address = f"127.0.0.1:{server.port}"
        assert GOT_THROUGH in str(await called(address, keys.tls("a")))
        for refused in (
            keys.tls(),
            replace(others.tls("a"), ca=keys.tls().ca),
            Tls(ca=keys.tls().ca, certificate=old.certificate, key=old.key),
        ):
            error = await called(address, refused)
            assert isinstance(error, Unavailable)
            assert GOT_THROUGH not in str(error)


async def test_a_renewed_certificate_is_taken_up_without_a_restart(keys: Keys, others: Keys) -> None:
    """By both servers; one that does not fit is not."""
    certificates = keys.served()
    async with serving(certificates) as server:
        address = f"127.0.0.1:{server.port}"
        assert GOT_THROUGH in str(await called(address, keys.tls()))
        keys.remake_server("control.example", ca=others)
        assert "not trusted here" in str(await called(address, keys.tls()))
        assert GOT_THROUGH in str(await called(address, others.tls()))
        (keys.folder / "server.key").write_bytes((keys.folder / "ca.key").read_bytes())  # half of a copy
        assert GOT_THROUGH in str(await called(address, others.tls()))
        keys.remake_server("control.example")
        assert GOT_THROUGH in str(await called(address, keys.tls()))


async def test_an_agent_that_does_not_trust_the_control_plane_logs_so_and_sends_it_nothing(
    keys: Keys, others: Keys, tmp_path: Path
) -> None:
    """A whole agent: the handshake fails before its join token is on the way."""
    (tmp_path / "host.toml").write_text("[templates.sleep]\nargv = ['sleep', '600']\nready_after_s = 0\n")
    log = tmp_path / "agent.log"
    async with serving(others.served()) as server:
        with log.open("wb") as output:
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "headway", "agent", "--control", f"127.0.0.1:{server.port}"),
                *("--host-file", str(tmp_path / "host.toml"), "--state-dir", str(tmp_path / "state")),
                stderr=output,
                env={
                    **os.environ,
                    "HEADWAY_JOIN_TOKEN_FILE": token_file(tmp_path, "hwj_secret"),
                    "HEADWAY_TLS_CA": str(keys.ca),
                },
            )
        try:
            async with asyncio.timeout(30.0):
                while "shows a certificate that is not trusted here" not in log.read_text():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            agent.terminate()
            await agent.wait()
    assert "HEADWAY_TLS_CA must name the CA that signed it; workers run on as they are" in log.read_text()
    assert "ssl_transport_security" not in log.read_text()  # gRPC's own word on each try
    assert "hwj_secret" not in log.read_text()


# --- the HTTP door ---------------------------------------------------------------------------------------------------


async def test_the_http_server_speaks_tls_and_reloads_a_renewed_certificate(keys: Keys, others: Keys) -> None:
    app = App()
    app.add_api_route("/v1/health", _healthy)
    app.close = _nothing  # type: ignore[method-assign]
    certificates = keys.served()
    server = HttpServer(app, address=LOOPBACK, tls=certificates.context)
    await server.start()
    url = f"https://127.0.0.1:{server.port}"

    def get(trusting: Keys | None) -> dict[str, Any]:
        tls = None if trusting is None else ClientTls(ca=trusting.ca, certificate=None, key=None)
        with Api(url, None, tls=tls) as api:
            return api.get("/v1/health")

    assert await asyncio.to_thread(get, keys) == {}
    for trusting in (others, None):
        with pytest.raises(Misconfigured, match="HEADWAY_TLS_CA must name the CA"):
            await asyncio.to_thread(get, trusting)
    keys.remake_server("control.example", ca=others)
    certificates.refresh()
    assert await asyncio.to_thread(get, others) == {}
    with (
        pytest.raises(Unavailable, match="a control plane with TLS wants https://"),
        Api(url[:4] + url[5:], None) as api,
    ):
        await asyncio.to_thread(api.get, "/v1/health")
    keys.remake_server("control.example", days=-1)
    certificates.refresh()
    with pytest.raises(Misconfigured, match="shows a certificate that has expired: make another one there"):
        await asyncio.to_thread(get, keys)
    await server.stop()


async def test_a_browser_must_use_tls_only_where_the_server_itself_speaks_it(keys: Keys) -> None:
    """Behind a proxy, what a browser may use is the proxy's to say; and a client cannot make the server say it."""
    for certificates in (keys.served(), None):
        app = App()
        app.add_api_route("/v1/health", _healthy)
        app.close = _nothing  # type: ignore[method-assign]
        app.add_middleware(RequestGuard, callers=Authenticator(token="t"), bound_host="127.0.0.1")
        server = HttpServer(app, address=LOOPBACK, tls=certificates.context if certificates else None)
        await server.start()
        url = f"http{'s' if certificates else ''}://127.0.0.1:{server.port}"
        trusted = http_context(ClientTls(ca=keys.ca, certificate=None, key=None))
        async with httpx.AsyncClient(base_url=url, verify=trusted, headers={"X-Forwarded-Proto": "https"}) as client:
            found = [
                (await client.get(path)).headers.get("Strict-Transport-Security")
                for path in ("/v1/health", "/v1/profiles")
            ]
        assert found == ["max-age=31536000" if certificates else None] * 2
        await server.stop()


@pytest.mark.parametrize(
    ("days", "said"), [(-1, ["has expired, and no client takes it"]), (13, ["expires: "]), (15, [])]
)
def test_the_log_names_a_certificate_that_has_expired_or_soon_will(
    keys: Keys, caplog: pytest.LogCaptureFixture, days: int, said: list[str]
) -> None:
    keys.remake_server("control.example", days=days)
    keys.served()
    assert len(caplog.messages) == len(said)
    assert all(f"the certificate {keys.folder / 'server.crt'} {each}" in caplog.text for each in said)


async def test_an_agent_that_calls_the_http_server_learns_that_it_is_the_wrong_one() -> None:
    app = App()
    app.close = _nothing  # type: ignore[method-assign]
    server = HttpServer(app, address=LOOPBACK)
    await server.start()
    error = await called(f"127.0.0.1:{server.port}", None)
    await server.stop()
    assert isinstance(error, Unavailable)
    assert f"127.0.0.1:{server.port} is not a gRPC endpoint: HEADWAY_CONTROL must name" in str(error)


async def _healthy() -> dict[str, str]:
    return {}


async def _nothing() -> None:
    return None


def test_old_versions_of_tls_are_not_spoken(keys: Keys) -> None:
    assert keys.served().context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_files_that_do_not_fit_are_one_sentence(keys: Keys, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"HEADWAY_TLS_CERT=.* cannot be used"):
        Certificates(keys.folder / "server.crt", keys.folder / "ca.key")
    with pytest.raises(Misconfigured, match="No such file"):
        Certificates(tmp_path / "nowhere.crt", keys.folder / "server.key")
    with pytest.raises(Misconfigured, match=r"HEADWAY_TLS_CA=.* cannot be read: No such file"):
        read_tls(tmp_path / "nowhere.crt")
    with pytest.raises(Misconfigured, match="cannot be used"):
        http_context(ClientTls(ca=tmp_path / "nowhere.crt", certificate=None, key=None))


# --- a host's certificate is for that host ---------------------------------------------------------------------------


async def test_a_hosts_certificate_must_have_the_name_of_the_host_that_it_speaks_for(
    keys: Keys, migrated_url: str
) -> None:
    engine = create_engine(migrated_url)
    reports, callers = AgentService(engine=engine), Authenticator(token="shared", engine=engine)
    server = await serve(
        [AgentServicer(reports, HostAuthorization(engine=engine, callers=callers))],
        address=LOOPBACK,
        token="shared",
        callers=callers,
        certificates=keys.served(asks_clients=True),
    )
    a, b = (
        ControlClient(f"127.0.0.1:{server.port}", token=None, clock=procfs.since_boot_s, tls=partial(keys.tls, name))
        for name in ("a", "b")
    )

    async def token() -> str:
        async with transaction(engine) as conn:
            wanted = TokenWanted(name=os.urandom(4).hex(), role=Role.JOIN, uses=9)
            return (await create_token(conn, wanted, actor="test"))[1]

    join = await token()
    with pytest.raises(Forbidden, match="its certificate is another host's"):
        await asyncio.to_thread(lambda: b.enrol(host_name="a", host_id="", boot_id="b", proof=Proof(join_token=join)))
    given = await asyncio.to_thread(
        lambda: a.enrol(host_name="a", host_id="", boot_id="a", proof=Proof(join_token=join))
    )
    identity = Identity(agent_id="", cluster_id=given.cluster_id, host_id=given.host_id, credential=given.credential)
    await held(a, identity)
    news = HostUpdate(capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1), templates=(), workers=(), labels={})
    await asyncio.to_thread(
        lambda: a.report(news, identity=identity, host_name="a", boot_id="a", sequence=1, epoch_seen=0)
    )
    async with transaction(engine) as conn:
        (row,) = await read_hosts(conn)
    assert row.certificate_left_s == pytest.approx(LEAF_DAYS * 86_400.0, abs=3_600.0)
    with pytest.raises(Forbidden, match="its certificate is another host's"):
        await asyncio.wait_for(polled(b, identity), 60)  # the credential was stolen, the key was not
    # A host that gets another name needs another certificate, and that one serves at once.
    renamed = Proof(shown=identity.credential)
    await asyncio.to_thread(lambda: b.enrol(host_name="b", host_id=identity.host_id, boot_id="a", proof=renamed))
    await held(b, identity)
    for client in (a, b):
        client.close()
    await server.stop(0)
    await engine.dispose()


async def held(client: ControlClient, identity: Identity) -> None:
    """A poll that is not refused: it is held, as there are no orders."""
    poll = asyncio.create_task(polled(client, identity))
    done, _ = await asyncio.wait({poll}, timeout=1.0)
    if done:
        poll.result()


async def polled(client: ControlClient, identity: Identity) -> None:
    await asyncio.to_thread(lambda: client.poll(identity, epoch=0, revision=0))


# --- the command -----------------------------------------------------------------------------------------------------


def test_files_are_their_owners_and_not_replaced_unasked(keys: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    files = [file for file in keys.folder.rglob("*") if file.is_file()]
    assert len(files) == 8
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert {folder.stat().st_mode & 0o777 for folder in (keys.folder, keys.folder / "clients")} == {0o700}
    before = {file: file.read_bytes() for file in files}
    capsys.readouterr()
    for words in (["init"], ["server", "x"], ["client", "a"]):
        assert main(["keys", *words, "--folder", str(keys.folder)]) == 2
        assert "would be overwritten: add --force" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in files} == before
    assert main(["keys", "client", "a", "--folder", str(keys.folder), "--force"]) == 0
    printed = capsys.readouterr().out
    assert "HEADWAY_TLS_CLIENT_CA=" in printed
    assert (keys.folder / "clients/a.crt").read_bytes() != before[keys.folder / "clients/a.crt"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["server", "x"], "run `headway keys init` first"),
        (["client", "../x"], "is no name of a host"),
        (["client", "x" * 65], "1 to 64 characters"),
        (["init", "--days", "0"], "--days 0: expected at least 1"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    folder = tmp_path / "k"
    if says.startswith("1 to"):
        assert main(["keys", "init", "--folder", str(folder)]) == 0
    assert main(["keys", *words, "--folder", str(folder)]) == 2
    assert says in capsys.readouterr().err


async def test_certificates_that_are_renewed_on_disk_are_used_for_the_next_connection(keys: Keys, others: Keys) -> None:
    """No agent has to be started anew because its CA or its certificate was replaced."""
    shown = [others.tls(), keys.tls()]
    async with serving(keys.served()) as server:
        client = ControlClient(
            f"127.0.0.1:{server.port}",
            token="t",
            clock=procfs.since_boot_s,
            tls=lambda: shown.pop(0) if len(shown) > 1 else shown[0],
        )
        said = []
        for _ in range(2):
            with pytest.raises(HeadwayError) as error:
                await asyncio.to_thread(lambda: client.enrol(host_name="a", host_id="", boot_id="b"))
            said.append(str(error.value))
        client.close()
    assert "shows a certificate that is not trusted here" in said[0]
    assert GOT_THROUGH in said[1]
