"""A template's file of variables stays on its host: an agent reads it, and says nothing of what is in it.

Agent and control plane are real processes. The file is right at first, and then wrong in every way.
"""

import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from headway.local import procfs
from security.planes import Plane, serving
from support.agent_host import Host
from support.fake_control import FakeControl
from support.waiting import eventually

pytestmark = pytest.mark.e2e

SECRET, NAME = "s3cret-of-this-test-alone", "MY_APPS_PASSWORD"
HOST_FILE = """
[templates.sleep]
argv = ["sleep", "600"]
ready_after_s = 0.0
drain_timeout_s = 5
environment_file = "mail.env"
"""
WITHIN_S = 120.0
PATHS = (
    *("/metrics", "/v1/profiles/mail", "/v1/pools", "/v1/queues"),
    *("/v1/hosts", "/v1/hosts/wanted", "/v1/workers", "/v1/cuts", "/v1/decisions", "/v1/audit", "/v1/alerts"),
    *("/v1/health", "/v1/system"),
)
WRONG = {
    "environment_file_invalid": f"{NAME}={SECRET}\n{SECRET}\n",
    "environment_file_unsafe": f"{NAME}={SECRET}\n",
    "environment_file_missing": None,
}


def variables(host: Host, text: str | None, *, mode: int = 0o600) -> None:
    """Have the file hold this, or be gone."""
    path = host.host_file.parent / "mail.env"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
        path.chmod(mode)


def stored(url: str) -> str:
    """Every row of the database, as text."""
    with psycopg.connect(url) as conn:
        names = conn.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        found = [conn.execute(SQL("select each::text from {} as each").format(Identifier(name))) for (name,) in names]
        return "\n".join(row for rows in found for (row,) in rows.fetchall())


def said_of(host: Host, plane: Plane) -> str:
    """All that leaves the agent: its log and files, and what the control plane answers, logs and keeps."""
    files = [path for path in host.state_dir.rglob("*") if path.is_file()]
    kept = "".join(path.read_bytes().decode(errors="replace") for path in files)
    with plane.client() as client:
        answers = [client.get(path) for path in PATHS]
    assert [answer.url.path for answer in answers if not answer.is_success] == []
    said = "".join(answer.text for answer in answers)
    return host.logged() + kept + said + stored(plane.database_url) + "\n".join(plane.said)


def workers(plane: Plane) -> list[dict[str, Any]]:
    """By the API."""
    with plane.client() as client:
        found: list[dict[str, Any]] = client.get("/v1/workers").json()["workers"]
        return found


def test_nothing_of_the_file_leaves_the_agent(migrated_url: str, tmp_path: Path) -> None:
    with serving(migrated_url, tmp_path) as plane:
        host = Host(tmp_path, FakeControl(), int(plane.grpc.rpartition(":")[2]), HOST_FILE)
        try:
            with plane.client() as client:
                body = {"queues": ["redis/mail"], "template": "sleep", "workers_min": 1, "workers_max": 1}
                assert client.put("/v1/profiles/mail", json=body).is_success
            variables(host, f"{NAME}={SECRET}\n")
            join = tmp_path / "join"
            join.write_text(plane.token("join", "host"))
            join.chmod(0o600)
            host.agent(HEADWAY_JOIN_TOKEN_FILE=str(join))
            pid = eventually(
                lambda: next((each["pid"] for each in workers(plane) if each["state"] == "running"), None),
                within_s=WITHIN_S,
            )
            assert procfs.environment(pid)[NAME] == SECRET
            for code, text in WRONG.items():
                variables(host, text, mode=0o644 if code == "environment_file_unsafe" else 0o600)
                if code == next(iter(WRONG)):
                    os.kill(pid, signal.SIGKILL)
                eventually(
                    lambda code=code: [each["start_failure"] for each in workers(plane)] == [code], within_s=WITHIN_S
                )
            said = said_of(host, plane)
        finally:
            host.clear()
    assert "environment_file" in said
    for hidden in (SECRET, NAME):
        assert hidden not in said
