"""A token ends when it was said to, nobody is surprised by it, and who shows it then reads what to do."""

import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import psycopg
import pytest

from headway.__main__ import main
from headway.wire.v1 import telemetry_pb2
from headway.wire.v1.telemetry_pb2_grpc import TelemetryServiceStub
from security.planes import ANSWER_S, TOKEN, Plane, serving
from support.waiting import eventually

pytestmark = pytest.mark.e2e

DAY_S = 86_400.0


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path) -> Iterator[Plane]:
    with serving(migrated_url, tmp_path) as plane:
        yield plane


def moved(url: str, days: float) -> None:
    """Let the tokens be so many days older than they are."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "update credentials set created_at = created_at - make_interval(secs => %(s)s), "
            "expires_at = expires_at - make_interval(secs => %(s)s), "
            "changed = (select revision + 1 from credential_changes)",
            {"s": days * DAY_S},
        )
        connection.execute("update credential_changes set revision = revision + 1")


def states(plane: Plane) -> dict[str, str]:
    with plane.client() as admin:
        return {each["name"]: each["state"] for each in admin.get("/v1/tokens").json()["tokens"]}


def reported(plane: Plane) -> list[str]:
    with plane.client(None) as anybody:
        health = anybody.get("/v1/health").json()
    return [text for kind, text in zip(health["kinds"], health["reasons"], strict=True) if kind == "credentials"]


def test_a_token_warns_before_it_ends_and_is_refused_after_it(
    plane: Plane, migrated_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plane.token("viewer", "for ever")
    plane.token("join", "joiner", for_s=30 * DAY_S)
    plane.token("viewer", "short", for_s=3600.0)
    secret = plane.token("ingest", "collectors", for_s=30 * DAY_S)
    monkeypatch.setenv("HEADWAY_URL", plane.http)
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)

    def listed() -> tuple[str, str]:
        assert main(["token", "list"]) == 0
        said = capsys.readouterr()
        return said.out, said.err

    assert set(states(plane).values()) == {"valid"}
    assert reported(plane) == []
    assert listed()[1] == ""
    moved(migrated_url, 28)
    assert states(plane) == {"for ever": "valid", "joiner": "expires_soon", "collectors": "expires_soon"}
    out, warned = listed()
    assert re.search(r"4[78]\.\d h: expires soon", out)
    assert warned.startswith("warning: collectors: expired, or soon")
    assert reported(plane) == [], "two days before is no incident"
    moved(migrated_url, 1.5)
    (reason,) = reported(plane)
    assert re.match(r"1 token expires within a day, in 1[12](\.\d)? h: ", reason)
    assert "collectors" not in reason, "health is shown without a token"
    moved(migrated_url, 1)
    shown = (("authorization", f"Bearer {secret}"),)
    with plane.channel() as channel:
        send = TelemetryServiceStub(channel).Ingest
        with pytest.raises(grpc.RpcError) as refused:
            send(telemetry_pb2.IngestRequest(), metadata=shown, timeout=ANSWER_S)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    why = r"the token 'collectors' expired 12(\.\d)? h ago: an administrator makes another with `headway token create"
    assert re.search(why, refused.value.details())
    assert any("that was revoked or has expired" in each for each in reported(plane))
    assert states(plane)["collectors"] == "expired"
    assert re.search(r"expired 12\.\d h ago", listed()[0])


def test_who_shows_an_expired_token_at_the_command_line_reads_what_to_do(
    plane: Plane, migrated_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_URL", plane.http)
    monkeypatch.setenv("HEADWAY_TOKEN", plane.token("viewer", "mine", for_s=30 * DAY_S))
    assert main(["get", "profiles"]) == 0
    moved(migrated_url, 31)
    eventually(lambda: main(["get", "profiles"]) == 2)  # heard within a second
    said = capsys.readouterr().err
    assert re.search(
        r"does not take the token in HEADWAY_TOKEN_FILE or HEADWAY_TOKEN: the token 'mine' expired 24", said
    )
    assert "headway token create --role viewer" in said
