"""The how-to for agents, typed as it is printed: real environment, real agent, real workers.

Folders are other ones, the control plane is one that the test speaks for, and in systemd's place stands a program of a
few lines that reads the unit; where there is a systemd, its own tool checks the unit as well.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from install.conftest import UV, Environment
from support.fake_control import FakeControl, row, serving
from support.processes import runs
from support.tree import ROOT
from support.waiting import eventually

pytestmark = [pytest.mark.install, pytest.mark.timeout(1000)]

PAGE = (ROOT / "docs/how-to/install-an-agent.md").read_text()
# Does for one unit what the page asks of systemd. KillMode=process: only the agent is signalled.
SYSTEMCTL = """#!{python}
import os, shlex, signal, subprocess, sys, time
from pathlib import Path

root, words = Path({root!r}), sys.argv[1:]
pid_file, unit = root / "pid", root / "systemd/headway-agent.service"
with (root / "called").open("a") as called:
    print(*words, file=called)

def lines(key):
    text = unit.read_text().replace("/var/lib/headway-agent", str(root / "state"))
    return [shlex.split(line.partition("=")[2]) for line in text.splitlines() if line.startswith(key + "=")]

def start():
    assert "KillMode=process" in unit.read_text()
    for argv in lines("ExecStartPre"):
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    log = (root / "journal").open("ab")
    given = (root / "etc/agent.env").read_text().splitlines()
    environment = {{**os.environ, **dict(line.split("=", 1) for line in given)}}
    (argv,) = lines("ExecStart")
    agent = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True, env=environment)
    pid_file.write_text(str(agent.pid))

def stop():
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGTERM)
    try:
        while Path(f"/proc/{{pid}}/stat").read_text().split()[2] != "Z":
            time.sleep(0.01)
    except OSError:  # it is gone
        return

if words[0] == "reload":
    (argv,) = lines("ExecReload")
    subprocess.run([word.replace("$MAINPID", pid_file.read_text()) for word in argv], check=True)
elif words[0] in ("restart", "disable"):
    stop()
if words[0] in ("restart", "enable"):
    start()
"""
WORKER = """#!{python}
import signal, sys, time
print("worker", *sys.argv[1:], "ready.", flush=True)
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
while not told:
    time.sleep(0.02)
"""


def block(holding: str) -> str:
    """The one example of the page that holds these words."""
    (found,) = (each for each in re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL) if holding in each)
    return found


class Machine:
    """A host on which the page is typed."""

    def __init__(self, root: Path, environment: Environment, wheel: Path, port: int) -> None:
        self.root = root
        self.host_file = root / "etc/host.toml"
        self._places = {
            "python3 -m venv /opt/headway": "true",
            "/opt/headway/bin/pip install --upgrade --force-reinstall --no-deps ./headway-0.1.0-py3-none-any.whl": (
                f"{UV} --quiet pip install --python {environment.folder} --reinstall --no-deps {wheel}"
            ),
            "/opt/headway": str(environment.folder),
            "/etc/headway": str(root / "etc"),
            "/etc/systemd/system": str(root / "systemd"),
            "/var/lib/headway-agent": str(root / "state"),
            "10.0.0.5:8461": f"127.0.0.1:{port}",
            "--user deploy": "--user root",
        }
        for name in ("bin", "systemd"):
            (root / name).mkdir()
        self._program("systemctl", SYSTEMCTL.format(python=sys.executable, root=str(root)))
        self._program("celery", WORKER.format(python=sys.executable))

    def _program(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def type(self, text: str) -> str:
        """Type it into a shell. Returns what it says."""
        for place, ours in self._places.items():
            text = text.replace(place, ours)
        plain = {"HOME": str(self.root), "LANG": "C.UTF-8", "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-eu", "-c", text],
            cwd=self.root,
            env=plain,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def logged(self) -> str:
        return (self.root / "journal").read_text()

    def clear(self) -> None:
        """End what a failed test has left."""
        if (self.root / "pid").exists():
            pid = int((self.root / "pid").read_text())
            if runs(pid):
                os.kill(pid, signal.SIGKILL)
        if (self.root / "state").exists():
            self.type("/opt/headway/bin/headway agent stop-workers --state-dir /var/lib/headway-agent || true")


@pytest.fixture
def control() -> Iterator[tuple[FakeControl, int]]:
    control = FakeControl()
    with serving(control) as port:
        yield control, port


@pytest.fixture
def machine(
    installed: Callable[..., Environment], wheel: Path, control: tuple[FakeControl, int], tmp_path: Path
) -> Iterator[Machine]:
    machine = Machine(tmp_path, installed(), wheel, control[1])
    yield machine
    machine.clear()


def test_the_page_installs_changes_upgrades_and_removes_an_agent_and_no_worker_minds(
    machine: Machine, control: tuple[FakeControl, int]
) -> None:
    plane = control[0]
    # Install.
    assert "pip install ./headway-0.1.0-py3-none-any.whl" in block(
        "python3 -m venv"
    )  # the environment has it, from the wheel
    assert "wrote host.toml with templates: celery" in machine.type(block("agent init"))
    output = machine.type(block("agent check --host-file /etc/headway/host.toml --control"))
    assert f"{machine.root}/bin/celery" in output
    assert "answers" in output
    machine.type(block("/etc/headway/mail.env"))
    assert (machine.root / "etc/mail.env").stat().st_mode & 0o777 == 0o600
    machine.type(block("agent unit"))
    plane.assign(row(2, template="celery"))
    first = plane.running(2)
    # Change.
    text = machine.host_file.read_text()
    machine.host_file.write_text(text.replace('"QUEUE"', '"mail"'))
    assert "jobs at once" in machine.type(block("systemctl reload"))
    second = eventually(
        lambda: (now := plane.pids()) and len(now) == 2 == len(plane.workers()) and not now & first and now,
        within_s=200.0,
    )
    assert not any(runs(pid) for pid in first)
    # Upgrade.
    reports = len(plane.reports)
    machine.type(block("systemctl restart"))
    eventually(lambda: len(plane.reports) > reports + 1 and plane.running(2) == second)
    assert "took over workers=2 of an earlier agent" in machine.logged()
    # Remove.
    assert "no worker runs any more" in machine.type(block("stop-workers"))
    assert not any(runs(pid) for pid in second)
    assert "forcing" not in machine.logged()
    assert not (machine.root / "systemd/headway-agent.service").exists()
    assert (machine.root / "called").read_text().splitlines() == [
        "daemon-reload",
        "enable --now headway-agent",
        "reload headway-agent",
        "restart headway-agent",
        "disable --now headway-agent",
        "daemon-reload",
    ]


def test_every_example_of_the_page_is_typed_by_these_tests() -> None:
    typed = ("python3 -m venv", "agent init", "--control 10.0.0.5:8461\n```", "agent unit", "systemctl reload")
    typed += ("systemctl restart", "stop-workers", "/etc/headway/mail.env")
    assert len(re.findall("```bash\n", PAGE)) == len(typed)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemds_own_tool_has_nothing_to_say_against_the_unit(
    installed: Callable[..., Environment], tmp_path: Path
) -> None:
    environment = installed()
    unit = tmp_path / "headway-agent.service"
    unit.write_text(environment.headway("agent", "unit", "--user", "root", "--host-file", "/etc/host.toml").stdout)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    assert [line for line in done.stderr.splitlines() if "headway-agent" in line] == []
