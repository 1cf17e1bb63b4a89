"""Who did what can be read, searched and exported: by administrators and auditors, and by nobody else."""

import json
from pathlib import Path

import psycopg
import pytest

from headway.__main__ import main
from security.planes import TOKEN, Plane, serving

pytestmark = pytest.mark.e2e

FORGED = "x\n2026-01-01 admin signed in\x1b[2J\x9b\u202e"


@pytest.fixture(scope="module")
def recorded(shared_plane: Plane) -> Plane:
    """A plane at which something was done, and something was tried."""
    plane = shared_plane
    with plane.client() as admin, plane.client("wrong") as stranger:
        profile = {"queues": ["redis/mail"], "template": "rq"}
        assert admin.put("/v1/profiles/mail", json=profile, headers={"If-None-Match": "*"}).status_code == 201
        assert stranger.get("/v1/profiles").status_code == 401
        with plane.client(plane.token("viewer", "v")) as viewer:
            assert viewer.delete("/v1/profiles/mail").status_code == 403
    with psycopg.connect(plane.database_url, autocommit=True) as connection:
        # As an earlier version wrote it, and as a name inside a profile still may be.
        connection.execute(
            "insert into audit_log (actor, action, subject, before) values (%s, 'profile changed', %s, %s)",
            [f"token {FORGED}", "profile 100%", json.dumps({FORGED: [FORGED]})],
        )
    return plane


def test_it_is_read_a_page_at_a_time_and_by_time_actor_and_action(recorded: Plane) -> None:
    with recorded.client() as admin:
        page = admin.get("/v1/audit").json()
        acts, page_by_page = page["acts"], []
        assert page["next"] is None
        cursor = None
        while True:
            page = admin.get("/v1/audit", params={"limit": 1, **({"before": cursor} if cursor else {})}).json()
            page_by_page += page["acts"]
            if (cursor := page["next"]) is None:
                break
        assert page_by_page == acts
        assert [each["at_s"] for each in acts] == sorted((each["at_s"] for each in acts), reverse=True)
        assert {(each["actor"], each["action"]) for each in acts} >= {
            ("HEADWAY_TOKEN", "profile created"),
            ("address 127.0.0.1", "sign-in failed"),
            ("token v", "call refused"),
        }

        def found(**query: object) -> list[str]:
            return [each["action"] for each in admin.get("/v1/audit", params=query).json()["acts"]]

        assert found(actor="token v") == ["call refused"]
        assert found(action="sign-in *") == ["sign-in failed"]
        assert sorted(found(address="127.0.*")) == sorted(
            each["action"] for each in acts if each["action"] != "profile changed"
        ), "from where each was done is known, but of an earlier version's line"
        assert found(address="10.*") == []
        assert found(subject="profile 100%") == ["profile changed"]
        assert found(subject="profile 1__%") == [], "what SQL would read as anything is itself"
        assert found(actor="address *", action="profile created") == []
        oldest_s = acts[-1]["at_s"]
        assert len(found(from_s=oldest_s)) == len(acts)
        assert found(until_s=oldest_s) == []
        assert found(from_s=4e9) == []
        for wrong in ({"before": "yesterday"}, {"from_s": 1e300}, {"from_s": "nan"}, {"limit": 0}, {"actor": "a\0"}):
            assert admin.get("/v1/audit", params=wrong).status_code == 422, wrong


def test_only_administrators_and_auditors_read_it(recorded: Plane) -> None:
    for role in ("viewer", "operator", "ingest"):
        with recorded.client(recorded.token(role, f"my {role}")) as caller:
            for path in ("/v1/audit", "/v1/audit/export"):
                assert caller.get(path).status_code == 403, (role, path)
    with recorded.client(recorded.token("auditor", "siem")) as auditor:
        assert auditor.get("/v1/audit").status_code == 200
        assert auditor.get("/v1/profiles").status_code == 403, "and that is all that an auditor may"
        assert auditor.delete("/v1/profiles/mail").status_code == 403
    with recorded.client(None) as nobody:
        assert nobody.get("/v1/audit/export").status_code == 401


def test_it_is_exported_whole_a_line_of_json_each(migrated_url: str, tmp_path: Path) -> None:
    """At a control plane of its own: so many lines would hide those of others."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute(
            "insert into audit_log (actor, action, subject, acted_at) select 'token t', 'profile changed', "
            "'profile ' || n, now() - make_interval(secs => n % 7) from generate_series(1, 2500) n"
        )
    with serving(migrated_url, tmp_path) as plane, plane.client() as admin:
        answer = admin.get("/v1/audit/export", params={"actor": "token t"})
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        acts = [json.loads(line) for line in answer.text.splitlines()]
        assert len({each["subject"] for each in acts}) == len(acts) == 2500
        assert admin.get("/v1/audit/export", params={"from_s": 1e300}).status_code == 422


def test_no_name_forges_a_line_of_it(
    recorded: Plane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorded.client() as admin:
        for path in ("/v1/audit", "/v1/audit/export"):
            assert all(line.isprintable() for line in admin.get(path).text.splitlines())
    monkeypatch.setenv("HEADWAY_URL", recorded.http)
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)
    assert main(["audit"]) == 0
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.splitlines())
    assert "sign-in failed" in shown
    assert "\\x1b[2J" in shown
    assert main(["audit", "--json", "--all", "--actor", "token x*"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isascii()
    assert json.loads(line)["action"] == "profile changed"
    assert main(["audit", "--since", "1h", "--limit", "1", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["audit", "--until", "2020-01-01"]) == 0
    assert "nothing of that is in the audit log" in capsys.readouterr().out
    assert main(["audit", "--since", "yesterday"]) == 2
    assert "--since='yesterday' is no moment" in capsys.readouterr().err
