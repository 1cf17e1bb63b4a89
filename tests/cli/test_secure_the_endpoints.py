"""Every command of the page on secure endpoints, typed as it is printed: keys, tokens, a control plane, a host."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from support.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/secure-the-endpoints.md").read_text()
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
STAYS = {"headway control": "serving http=", "headway agent": "enrolled host=web-1"}


def _script(folder: Path, servers: dict[str, str]) -> str:
    """The blocks in their order. What stays runs in a shell of its own, and the next waits until it says so."""
    lines = ["set -euo pipefail"]
    for block in BLOCKS:
        for old, new in {**servers, "/etc/headway": str(folder), "/var/lib": str(folder)}.items():
            block = block.replace(old, new)
        stays = next((words for words in STAYS if f"\n{words}" in f"\n{block}"), None)
        if stays is None:
            lines.append(block)
            continue
        log = folder / f"{stays.replace(' ', '-')}.log"
        began = re.sub(rf"^({stays}.*)$", rf"exec \1 > {log} 2>&1", block, flags=re.MULTILINE)
        lines.append(f"(\n{began}) &\necho $! >> {folder}/pids")
        lines.append(f"timeout 180 bash -c 'until grep -q \"{STAYS[stays]}\" {log}; do sleep 0.05; done'")
    return "\n".join(lines)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "host.toml").write_text("[templates.sleep]\nargv = ['sleep', '600']\nready_after_s = 0\n")
    yield tmp_path
    pids = tmp_path / "pids"
    for pid in map(int, pids.read_text().split() if pids.exists() else ()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


@pytest.mark.skipif(not (shutil.which("openssl") and shutil.which("curl")), reason="the page uses openssl and curl")
def test_every_command_of_the_page_does_what_it_says(folder: Path, database_url: str) -> None:
    http, grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
    servers = {"10.0.0.5:8460": http, "10.0.0.5:8461": grpc, "10.0.0.5": "127.0.0.1"}
    programs = folder / "bin"
    programs.mkdir()
    (programs / "headway").write_text(f'#!/bin/sh\nexec {sys.executable} -m headway "$@"\n')
    (programs / "headway").chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
    done = subprocess.run(
        ["bash", "-c", _script(folder, servers)],
        cwd=folder,
        env={
            **clean,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HEADWAY_DATABASE_URL": database_url,
            "HEADWAY_EVENT_LOG": str(folder / "events"),
            "no_proxy": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    logs = "".join(log.read_text() for log in folder.glob("*.log"))
    assert done.returncode == 0, done.stderr + logs
    assert re.search(r"web-1 at \S+: blocked; its workers keep running", done.stdout)
    for name, prefix in (("ci-token", "hwt_"), ("join-token", "hwj_"), ("join-token-2", "hwj_")):
        file = folder / name
        assert (file.read_text()[:4], file.stat().st_mode & 0o777) == (prefix, 0o600)
        assert file.read_text().strip() not in logs
    with psycopg.connect(database_url) as connection:
        acts = connection.execute(
            "select actor, action, subject from audit_log where action <> 'sign-in failed' order by acted_at"
        ).fetchall()
    joined = next(actor for actor, action, _ in acts if action == "host joined")
    allowing = acts[acts.index((joined, "host joined", "host web-1")) + 1][2]
    assert acts == [
        ("HEADWAY_TOKEN", "token created", "token ci"),
        ("HEADWAY_TOKEN", "token created", "token collectors"),
        ("HEADWAY_TOKEN", "token revoked", "token ci"),
        ("HEADWAY_TOKEN", "token created", "token collectors-2"),
        ("HEADWAY_TOKEN", "token revoked", "token collectors"),
        ("HEADWAY_TOKEN", "token created", joined.replace("join token", "token")),
        (joined, "host joined", "host web-1"),
        ("HEADWAY_TOKEN", "token created", allowing),
        ("HEADWAY_TOKEN", "credential rotated", "host web-1"),
        ("HEADWAY_TOKEN", "credential revoked", "host web-1"),
        ("HEADWAY_TOKEN", "token created", acts[-1][2]),
    ]


def test_every_role_of_the_table_is_one_that_a_token_can_have() -> None:
    from headway.cli.operator.token import Role

    named = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert named == [role.value for role in Role]
