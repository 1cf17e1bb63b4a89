"""`headway token` and `headway host` against a real control plane's HTTP API."""

from pathlib import Path

import psycopg
import pytest

from headway.__main__ import main
from support.served import TOKEN, Served


def test_a_token_is_made_used_listed_and_revoked(
    served: Served,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert main(["token", "create", "--role", "viewer", "--name", "ci", "--for", "90d"]) == 0
    made = capsys.readouterr()
    secret = made.out.strip()
    assert (secret[:4], made.out.count("\n")) == ("hwt_", 1)  # alone, to be piped into a file
    assert "made ci" in made.err
    assert main(["token", "list"]) == 0
    listed = capsys.readouterr().out
    assert ("ci" in listed, "viewer" in listed, secret in listed) == (True, True, False)
    monkeypatch.setenv("HEADWAY_TOKEN", secret)
    assert main(["get", "queues"]) == 0
    assert main(["token", "revoke", "ci"]) == 2
    assert "that takes the role admin, and its role is viewer" in capsys.readouterr().err
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)
    assert main(["token", "revoke", "ci"]) == 0
    monkeypatch.setenv("HEADWAY_TOKEN", secret)
    assert main(["get", "queues"]) == 2
    assert "does not take the token in HEADWAY_TOKEN" in capsys.readouterr().err


def test_a_join_token_is_made_with_an_hour_and_one_use(
    served: Served,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["token", "create", "--join", "--host", "web-1", "--uses", "2"]) == 0
    assert capsys.readouterr().out.startswith("hwj_")
    assert main(["token", "list"]) == 0
    listed = capsys.readouterr().out
    assert "2 × web-1" in listed
    assert "60 min" in listed


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["token", "create"], "say what it is for"),
        (["token", "create", "--join", "--role", "admin"], "say what it is for"),
        (["token", "create", "--role", "admin"], "say who holds it"),
        (["token", "create", "--join", "--for", "soon"], "--for='soon' is no duration above 0"),
        (["token", "revoke", "nobody"], "no token 'nobody'"),
        (["host", "rotate", "nobody"], "no host 'nobody'"),
        (["host", "revoke", "nobody"], "no host 'nobody'"),
    ],
)
def test_a_mistake_is_one_sentence(
    served: Served,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    says: str,
) -> None:
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_a_hosts_credential_is_replaced_and_revoked(
    served: Served,
    capsys: pytest.CaptureFixture[str],
    migrated_url: str,
    tmp_path: Path,
) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into hosts (host_id, name) values ('h', 'web-1')")
        connection.execute(
            "insert into credentials (sha256, role, name, host_id, created_by, used_at) "
            "values ('x', 'host', '', 'h', 'test', now())"
        )
        assert main(["host", "rotate", "web-1"]) == 0
        assert main(["host", "revoke", "web-1"]) == 0
        assert "headway token create --join --host web-1" in capsys.readouterr().out
        acts = connection.execute("select action, subject from audit_log order by acted_at").fetchall()
        assert acts == [("credential rotated", "host web-1"), ("credential revoked", "host web-1")]
