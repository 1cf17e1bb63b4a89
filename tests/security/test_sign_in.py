"""Who signs in: tokens that can be guessed, guesses, hosts that take another name, and names that forge lines."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import grpc
import psycopg
import pytest

from headway.control.auth.failed_sign_ins import SIGN_INS_FREE_FAILURES, FailedSignIns, address_of
from headway.errors import Invalid, Overloaded
from headway.settings import ControlSettings
from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.hosts import Host
from security.planes import ANSWER_S, Plane, serving

pytestmark = pytest.mark.e2e


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path) -> Iterator[Plane]:
    with serving(migrated_url, tmp_path) as plane:
        yield plane


def audited(url: str, action: str) -> list[tuple[str, str]]:
    with psycopg.connect(url) as connection:
        return connection.execute("select actor, subject from audit_log where action = %s", [action]).fetchall()


@pytest.mark.parametrize("token", ["a", "password", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "12345678"])
def test_a_shared_token_that_can_be_guessed_is_refused(token: str) -> None:
    with pytest.raises(Invalid, match="HEADWAY_TOKEN can be guessed") as refused:
        ControlSettings.from_env({"HEADWAY_DATABASE_URL": "postgresql://h/d", "HEADWAY_TOKEN": token})
    assert f"{token} " not in str(refused.value)


def test_guesses_are_refused_ever_longer_logged_and_audited_and_who_is_known_goes_on(
    plane: Plane, migrated_url: str
) -> None:
    """1,134 guesses a second went on without a line anywhere."""
    with plane.client() as people, plane.client(None) as guesser:
        assert people.get("/v1/profiles").status_code == 200
        statuses = [
            guesser.get("/v1/profiles", headers={"Authorization": f"Bearer guess-{n}"}).status_code for n in range(60)
        ]
        assert statuses[:SIGN_INS_FREE_FAILURES] == [401] * SIGN_INS_FREE_FAILURES
        assert statuses.count(429) >= 40
        assert people.get("/v1/profiles").status_code == 200
        assert f"headway_failed_sign_ins_total {statuses.count(401)}.0" in people.get("/metrics").text
    with plane.channel() as channel:
        poll = channel.unary_unary("/headway.wire.v1.AgentService/Poll")
        with pytest.raises(grpc.RpcError) as refused:
            poll(b"", metadata=(("authorization", "Bearer guess"),), timeout=ANSWER_S)
    assert refused.value.code() in {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAUTHENTICATED}
    assert audited(migrated_url, "sign-in failed") == [("address 127.0.0.1", "GET /v1/profiles")]
    assert sum("sign-in failed address=127.0.0.1" in line for line in plane.said) == 1


def test_a_caller_does_not_write_its_own_address(plane: Plane, migrated_url: str) -> None:
    """From loopback each guess came from an address of its own: none was slowed, and the audit log had them all."""
    forged = {"X-Forwarded-For": "203.0.113.77", "Forwarded": "for=203.0.113.77", "X-Real-IP": "203.0.113.77"}
    with plane.client() as admin, plane.client(None) as guesser:
        assert admin.get("/v1/profiles").status_code == 200  # whoever has signed in goes on
        statuses = [
            guesser.get(
                "/v1/profiles",
                headers={**forged, "X-Forwarded-For": f"203.0.113.{n}", "Authorization": f"Bearer guess-{n}"},
            ).status_code
            for n in range(SIGN_INS_FREE_FAILURES + 10)
        ]
        assert statuses[-1] == 429
        made = admin.post("/v1/tokens", json={"role": "viewer", "name": "made"}, headers=forged)
        assert made.status_code == 201
        audit = admin.get("/v1/audit").text
    assert "127.0.0.1" in audit
    assert "203.0.113." not in audit
    assert audited(migrated_url, "sign-in failed") == [("address 127.0.0.1", "GET /v1/profiles")]


async def test_an_address_is_refused_longer_with_each_guess_and_free_again_after_a_while() -> None:
    now_s = 0.0
    attempts = FailedSignIns(engine=None, clock=lambda: now_s)
    attempts.succeeded("a", "good")
    for _ in range(SIGN_INS_FREE_FAILURES + 3):
        await attempts.failure("a", "GET /")
    now_s = 3.9
    attempts.require_patience("a", "good")
    attempts.require_patience("b", "other")
    with pytest.raises(Overloaded, match="try again in"):
        attempts.require_patience("a", "other")
    now_s = 4.1
    attempts.require_patience("a", "other")
    for _ in range(50):
        await attempts.failure("a", "GET /")
    now_s += 60.0
    attempts.require_patience("a", "other")
    now_s += 200.0
    await attempts.failure("a", "GET /")
    attempts.require_patience("a", "other")


def test_one_machine_has_many_addresses_of_ipv6() -> None:
    assert address_of("2001:db8::1") == address_of("2001:db8::ffff:1") != address_of("2001:db8:0:1::1")
    assert address_of("::ffff:192.0.2.1") == address_of("192.0.2.1") != address_of("::ffff:192.0.2.2")


def test_a_host_that_takes_another_name_is_audited(shared_plane: Plane) -> None:
    with shared_plane.channel() as channel:
        stub = AgentServiceStub(channel)
        host = Host(stub, "payments")
        host.report()
        stub.Enrol(
            agent_pb2.EnrolRequest(
                host_name="build", host_id=host.known.host_id, boot_id="boot-payments", agent_id="payments"
            ),
            metadata=(("authorization", f"Bearer {host.known.credential}"),),
            timeout=ANSWER_S,
        )
    assert audited(shared_plane.database_url, "host renamed") == [("host payments", "host build")]


def test_a_name_forges_no_line_of_the_log_and_none_of_the_audit_log(shared_plane: Plane) -> None:
    plane = shared_plane
    forged = "x\r2026-01-01T00:00:00.000Z INFO headway signed in as admin\x1b[2J"
    with plane.client() as people:
        recorded = {"queue": forged, "at_s": 1.8e9, "waiting_jobs": 1}
        batch = {"producer": "p", "sequence": 1, "sent_at_s": 1.8e9, "samples": [recorded]}
        assert people.post("/v1/telemetry", json=batch).status_code == 200
        assert people.delete(f"/v1/queues/{quote(forged, safe='')}").status_code == 204
        path = "/v1/a%0a2026-01-01T00:00:00.000Z%20INFO%20forged"
        assert people.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    (line,) = [subject for _, subject in audited(plane.database_url, "queue forgotten")]
    assert line.isprintable()
    assert "\\r2026" in line
    assert not [line for line in plane.said if line.startswith("2026-01-01")]
    assert all(line.isprintable() for line in plane.said)
