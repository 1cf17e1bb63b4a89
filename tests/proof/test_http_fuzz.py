"""The HTTP port against what Schemathesis draws from the API's description, with a token of each role."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from headway.store.access.credentials import Role
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from proof.conftest import Proof
from security.hosts import Host
from security.planes import TOKEN, Plane, serving
from security.schema_calls import Call, installed, statuses, tried

pytestmark = pytest.mark.proof

CASES_MIN = 1_000
EXAMPLES = 34  # of each of 37 operations at most: some have no more than a few
SERVES_S = 3_600.0
ROLES = [role for role in Role if role is not Role.JOIN]  # which the HTTP port does not know
SIGN_IN = ("POST", "/v1/session")  # with a token that is drawn, too
MAY_CHANGE = {Role.OPERATOR, Role.ADMIN}
ADMINS_ALONE = ("token ", "credential ")  # how acts begin that only an administrator may do


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("schemathesis"))


@pytest.fixture
def database(_database) -> Callable[[str], AbstractContextManager[str]]:
    """Makes a database, for a block."""
    return _database


@contextlib.contextmanager
def inhabited(url: str, folder: Path) -> Iterator[tuple[Plane, Host]]:
    """A control plane with a pool, a queue and a host, so that requests find something."""
    with serving(url, folder, ends_in_s=SERVES_S) as plane, plane.channel() as channel, plane.client() as client:
        host = Host(AgentServiceStub(channel), "alpha")
        profile = {"queues": ["rq/mail"], "template": "rq"}
        assert client.put("/v1/profiles/mail", json=profile).status_code == 201
        yield plane, host


def secret_of(role: Role, plane: Plane, host: Host) -> str:
    """What a caller of ``role`` shows."""
    if role is Role.ADMIN:
        return TOKEN  # an administrator may revoke its own token; the setting's stays
    return host.known.credential if role is Role.HOST else plane.token(role, "fuzz")


def acts_of(plane: Plane, actor: str) -> set[str]:
    """What the audit log has of ``actor`` beside refusals."""
    with plane.client() as client:
        answer = client.get("/v1/audit", params={"actor": actor, "limit": 1_000}).json()
    return {act["action"] for act in answer["acts"]} - {"call refused"}


@pytest.mark.parametrize("role", ROLES)
def test_http_fuzz(proof: Proof, database, program: Path, tmp_path: Path, role: Role) -> None:
    for seed in proof.seeds():
        folder = tmp_path / str(seed)
        folder.mkdir()
        with database("template0") as url, inhabited(url, folder) as (plane, host):
            token = secret_of(role, plane, host)
            actor = "host alpha" if role is Role.HOST else "token fuzz"
            before = acts_of(plane, actor)
            found, calls = tried(program, plane, token, folder, seed=seed, examples=EXAMPLES)
            assert not found, found
            assert_kept(role, calls, acts_of(plane, actor) - before)
            assert not [line for line in plane.said if "Traceback" in line]
        proof.record(seed, calls=len(calls), statuses=statuses(calls))


def assert_kept(role: Role, calls: list[Call], acts: set[str]) -> None:
    """Nothing failed for a defect, and nothing was allowed to ``role`` that the table of rights forbids."""
    assert len(calls) >= CASES_MIN, len(calls)
    assert not [call for call in calls if call.status >= 500]
    shown = [call for call in calls if (call.method, call.path) != SIGN_IN]
    assert 401 not in {call.status for call in shown}, "the token is no longer valid"
    assert not [call for call in calls if call.is_beyond(role)]
    assert not acts or role in MAY_CHANGE, acts
    assert role is Role.ADMIN or not [act for act in acts if act.startswith(ADMINS_ALONE)], acts
