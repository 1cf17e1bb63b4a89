"""A real agent begins on a host that was off: its earlier assignment may hold no longer."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agent_host import Host, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with one_host(tmp_path) as host:
        yield host


def test_after_a_reboot_an_exclusive_pool_is_started_once_the_control_plane_has_said_so(host: Host) -> None:
    """Perhaps the host was forgotten while it was off, and another runs it."""
    agent = host.agent()
    host.control.assign(row(1), row(1, pool="ledger", is_exclusive=True))
    eventually(lambda: host.control.pids() and host.control.pids(pool="ledger"))
    eventually((host.state_dir / "contact.json").exists)
    pids = host.control.pids() | host.control.pids(pool="ledger")
    agent.kill()
    agent.wait()
    for pid in pids:
        os.killpg(pid, signal.SIGKILL)
        eventually(lambda pid=pid: not runs(pid))
    for name in ("contact.json", "workers.json"):
        written = host.state_dir / name
        written.write_text(json.dumps({**json.loads(written.read_text()), "boot_id": "of-the-boot-before"}))
    host.control.is_awake.clear()  # reports and polls are not answered
    host.agent()
    eventually(lambda: host.logged().count("started pool=mail") == 2)
    assert host.logged().count("started pool=ledger") == 1
    host.control.is_awake.set()
    eventually(lambda: host.logged().count("started pool=ledger") == 2)
