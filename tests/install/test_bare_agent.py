"""The agent as a worker host has it, from the wheel without an extra, with a whole control plane at the other end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from install.conftest import Environment
from support.ports import free_port
from support.tree import ROOT

pytestmark = [pytest.mark.install, pytest.mark.timeout(1000)]

PAGE = ROOT / "docs" / "reference" / "agent-modules.md"
BOUND_S = 150.0
HOST_FILE = """
[templates.sleep]
argv = ["sleep", "600"]
ready_after_s = 0.1
drain_timeout_s = 5
"""
PYTHONS_OWN = ("_", "sitecustomize", "cython_runtime")  # of extension modules and of virtual environments
# The command itself; what it has loaded by its end is written down.
AGENT = """
import json, sys
from headway.__main__ import main
status = main(["agent", "--stop-workers"])
with open(sys.argv[1], "w") as file:
    json.dump(sorted(sys.modules), file)
sys.exit(status)
"""


def until(holds: Callable[[], Any]) -> Any:
    until_s = time.monotonic() + BOUND_S
    while not (found := holds()):
        assert time.monotonic() < until_s, "it did not come true in time"
        time.sleep(0.05)
    return found


@contextmanager
def running(argv: list[str], log: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWAY_", "PYTHON"))}
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, env={**plain, **env}, cwd=log.parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def addresses(tmp_path: Path, migrated_url: str) -> Iterator[tuple[str, httpx.Client]]:
    """A control plane with all that belongs to it: where agents call, and a client of its HTTP API."""
    grpc_port, http_port = free_port(), free_port()
    with (
        running(
            [sys.executable, "-m", "headway", "control"],
            tmp_path / "control.log",
            HEADWAY_DATABASE_URL=migrated_url,
            HEADWAY_EVENT_LOG=str(tmp_path / "events"),
            HEADWAY_GRPC_ADDRESS=f"127.0.0.1:{grpc_port}",
            HEADWAY_HTTP_ADDRESS=f"127.0.0.1:{http_port}",
            PYTHONPATH=str(ROOT / "service"),
        ),
        httpx.Client(base_url=f"http://127.0.0.1:{http_port}", timeout=60) as client,
    ):

        def answers() -> bool:
            try:
                return client.get("/v1/health/live").is_success
            except httpx.TransportError:
                return False

        until(answers)
        yield f"127.0.0.1:{grpc_port}", client


def running_workers(client: httpx.Client) -> list[dict[str, Any]]:
    hosts = client.get("/v1/hosts").raise_for_status().json()["hosts"]
    return [worker for host in hosts for worker in host["workers"] if worker["state"] == "running"]


def documented() -> tuple[set[str], set[str]]:
    """The packages of others, and the parts of Headway, that the page names."""
    ours, others = set(), set()
    for name in re.findall(r"^\| `([\w.]+)` \|", PAGE.read_text(), flags=re.MULTILINE):
        (ours if name.startswith("headway") else others).add(name)
    return others, ours


def test_it_runs_a_worker_for_a_whole_control_plane_and_loads_no_more_than_is_documented(
    installed: Callable[..., Environment], addresses: tuple[str, httpx.Client], tmp_path: Path
) -> None:
    address, client = addresses
    (tmp_path / "host.toml").write_text(HOST_FILE)
    body = {"queues": ["redis/mail"], "template": "sleep", "workers_min": 2, "workers_max": 2}
    client.put("/v1/profiles/mail", json=body, headers={"If-None-Match": "*"}).raise_for_status()
    loaded = tmp_path / "modules.json"
    agent = [str(installed().folder / "bin" / "python"), "-c", AGENT, str(loaded)]
    with running(
        agent,
        tmp_path / "agent.log",
        HEADWAY_CONTROL=address,
        HEADWAY_HOST_FILE=str(tmp_path / "host.toml"),
        HEADWAY_STATE_DIR=str(tmp_path / "state"),
    ) as process:
        workers = until(lambda: len(found := running_workers(client)) == 2 and found)
        assert all(Path(f"/proc/{worker['pid']}/comm").read_text() == "sleep\n" for worker in workers)
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0, (tmp_path / "agent.log").read_text()

    names = set(json.loads(loaded.read_text()))
    others, ours = documented()
    parts = {name for name in names if name.startswith("headway.") and name != "headway.__main__"}
    assert {name for name in parts if not name.startswith(tuple(ours)) and not is_parent(name, ours)} == set()
    assert ours <= parts, "what is documented is loaded"
    packages = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"headway", "__main__"}
    assert {name for name in packages if not name.startswith(PYTHONS_OWN)} == others


def is_parent(name: str, parts: set[str]) -> bool:
    """Whether it is but the package of something that is documented."""
    return any(part.startswith(f"{name}.") for part in parts)
