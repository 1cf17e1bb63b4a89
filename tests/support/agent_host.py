"""A host on which real agents run, one after the other, and the control plane they report to."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.attacked import PYTHON
from support.fake_control import FakeControl, serving
from support.workers import Stage

HOST_FILE = f"""
[host]
labels = {{ zone = "a" }}

[templates.sleep]
argv = ["sleep", "600"]
ready_after_s = 0.0
drain_timeout_s = 5

[templates.crash]
argv = ["sh", "-c", "echo no broker; exit 3"]

[templates.burst]
argv = ["sh", "-c", "exit 0"]

[templates.stubborn]
argv = ["{sys.executable}", "-c", '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
''']
ready_pattern = "ready"
drain_timeout_s = 0.5
"""


class Host:
    """A host on which one agent after the other runs, and the control plane it talks to."""

    def __init__(self, root: Path, control: FakeControl, port: int, host_file: str = HOST_FILE) -> None:
        self.control = control
        self.port = port
        self.state_dir = root / "state"
        self.host_file = root / "host.toml"
        self.host_file.write_text(host_file)
        self.log = root / "agent.log"
        self._agents: list[subprocess.Popen[bytes]] = []

    def agent(self, *words: str, program: Sequence[str] = ("-m", "headway"), **env: str) -> subprocess.Popen[bytes]:
        """Start an agent."""
        with self.log.open("ab") as output:
            started = subprocess.Popen(
                [PYTHON, *program, "agent", *words],
                stderr=output,
                stdout=output,
                start_new_session=True,
                env={
                    **os.environ,
                    "HEADWAY_CONTROL": f"127.0.0.1:{self.port}",
                    "HEADWAY_HOST_FILE": str(self.host_file),
                    "HEADWAY_STATE_DIR": str(self.state_dir),
                    **env,
                },
            )
        self._agents.append(started)
        return started

    def logged(self) -> str:
        return self.log.read_text()

    def clear(self) -> None:
        for agent in self._agents:
            agent.kill()
            agent.wait()
        self._agents.clear()
        if self.state_dir.exists():
            Stage(self.state_dir).clear()


@contextmanager
def one_host(root: Path, host_file: str = HOST_FILE) -> Iterator[Host]:
    """A host with this host file, whose agents and workers end with the block."""
    control = FakeControl()
    with serving(control) as port:
        host = Host(root, control, port, host_file)
        try:
            yield host
        finally:
            host.clear()


def ended(agent: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
    agent.send_signal(number)
    return agent.wait(60)
