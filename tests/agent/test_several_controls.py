"""A real agent that knows two control planes, one of which hangs: stopped as a whole, its network included."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.agent_host import Host
from support.fake_control import FakeControl, row, serving
from support.processes import runs
from support.waiting import eventually

# A report is due every 15 s, and an answer is waited for for 10 s, twice.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CONTROL = """
import time
from support.fake_control import FakeControl, row, serving
control = FakeControl()
control.assign(row(2))
with serving(control) as port:
    print(port, flush=True)
    time.sleep(600)
"""


@contextmanager
def another_process() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A control plane in a process of its own, and its port."""
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", CONTROL],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": tests},
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def test_of_two_control_planes_one_hangs_and_the_agent_goes_on_with_the_other(tmp_path: Path) -> None:
    control = FakeControl()
    with serving(control) as port:
        pass  # free from now on, and known
    with another_process() as (first, first_port):
        host = Host(tmp_path, control, first_port)
        try:
            host.agent(HEADWAY_CONTROL=f"127.0.0.1:{port},127.0.0.1:{first_port}")
            eventually(lambda: host.logged().count("started pool=mail") == 2)
            assert f"talking with the control plane at 127.0.0.1:{first_port}" in host.logged()
            control.assign(row(2))
            with serving(control, port=port):
                first.send_signal(signal.SIGSTOP)
                before = eventually(lambda: len(control.pids()) == 2 and control.pids(), within_s=200.0)
                assert f"talking with the control plane at 127.0.0.1:{port}" in host.logged()
                control.assign(row(3))
                assert before < control.running(3)
            assert all(map(runs, before))
            assert host.logged().count("started pool=mail") == 3
        finally:
            host.clear()
