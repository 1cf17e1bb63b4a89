"""A job that runs as another user forges the marks of a worker, and the agent that starts next runs as root.

The agent is a real process, the job a real worker of a template with ``user``. Each test is an attack: it says what the
job tries to gain.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headway.agent.state.state_dir import StateFolder
from headway.local import procfs
from support.agent_host import Host, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a job as another user"),
]

NOBODY = 65534
SECRET = b"root only: " + b"s" * 8192

HOST_FILE = """
[templates.mail]
argv = ["/bin/sleep", "600"]
working_directory = "/"
user = "nobody"
ready_after_s = 0.0
drain_timeout_s = 5

[templates.mail.log]
bytes_max = 4096
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter, and in it ``evil``, which is the job's own."""
    place = Path(tempfile.mkdtemp(prefix="headway-security-"))
    place.chmod(0o711)
    evil = place / "evil"
    evil.mkdir()
    os.chown(evil, NOBODY, NOBODY)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def host(place: Path) -> Iterator[Host]:
    """A host that runs one worker as nobody, whose agent is about to be restarted."""
    with one_host(place, HOST_FILE) as host:
        yield host


class Forger:
    """Processes of nobody that claim to be workers of an agent."""

    def __init__(self, host: Host) -> None:
        self._agent_id = StateFolder(host.state_dir).identity().agent_id
        self._processes: list[subprocess.Popen[bytes]] = []

    def forge(self, worker_id: str, *, started_as: str | None = None, **marks: str) -> subprocess.Popen[bytes]:
        """A process with such marks."""
        reported: Mapping[str, object] = {
            "template": "mail",
            "template_hash": "",
            "restart_generation": 0,
            "is_burst": False,
            "stop": {"stop_signal": 15, "drain_timeout_s": 5.0, "force_signal": 9},
        }
        environment = {
            "HEADWAY_AGENT_ID": self._agent_id,
            "HEADWAY_WORKER_ID": worker_id,
            "HEADWAY_POOL": "mail",
            "HEADWAY_STARTED_AS": json.dumps(reported) if started_as is None else started_as,
            **marks,
        }
        forged = subprocess.Popen(
            ["/bin/sleep", "600"], env=environment, user=NOBODY, group=NOBODY, start_new_session=True
        )
        eventually(lambda: Path(f"/proc/{forged.pid}/comm").read_text() == "sleep\n")
        self._processes.append(forged)
        return forged

    def clear(self) -> None:
        for each in self._processes:
            each.kill()
            each.wait()


@pytest.fixture
def forger(host: Host) -> Iterator[Forger]:
    """Forgers at work on a host whose agent has just been killed."""
    host.control.assign(row(1, template="mail"))
    first = host.agent()
    host.control.running(1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    forger = Forger(host)
    yield forger
    forger.clear()


def restarted(host: Host) -> None:
    """The next agent, which has measured and bounded logs at least twice by now, or has died of it."""
    host.control.reports.clear()
    agent = host.agent()
    eventually(lambda: agent.poll() is not None or len(host.control.reports) >= 1)
    # The bounds of logs are looked at every 5 s; the worker's own log is cut at the first such look after this.
    (own,) = (host.state_dir / "workers").glob("*.log")
    own.write_bytes(b"x" * 8192)
    eventually(lambda: agent.poll() is not None or own.stat().st_size == 0)
    assert agent.poll() is None, host.logged()[-3000:]


def test_a_forged_worker_id_leads_to_no_file_outside_of_the_agents_folder(
    host: Host, place: Path, forger: Forger
) -> None:
    """The job wants what only root may read, copied to where it can read that."""
    secret = place / "secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    (place / "evil" / "x.log").symlink_to(secret)
    forger.forge("../../evil/x")
    restarted(host)
    assert secret.read_bytes() == SECRET, "it was cut off"
    assert [each.name for each in (place / "evil").iterdir()] == ["x.log"], "it was copied"


def test_a_forged_worker_id_makes_no_file_where_only_root_may_write(host: Host, place: Path, forger: Forger) -> None:
    """The job wants a file of root's in a folder like ``/etc/cron.d``, by a link to that folder."""
    roots = place / "roots"
    roots.mkdir(mode=0o700)
    (roots / "app.log").write_bytes(SECRET)
    (place / "evil" / "link").symlink_to(roots)
    forger.forge("../../evil/link/app")
    restarted(host)
    assert {each.name: each.read_bytes() for each in roots.iterdir()} == {"app.log": SECRET}


NESTED = "[" * 100_000


@pytest.mark.parametrize(
    ("worker_id", "marks"),
    [
        ("../../evil/x", {"started_as": NESTED}),
        ("../../evil/x", {"HEADWAY_GPUS": "9" * 5000}),
        ("x" * 4096, {}),
        ("../../evil/x", {"started_as": json.dumps({"template": "mail", "template_hash": "", "restart_generation": 0,
                                                    "is_burst": False, "stop": {"drain_timeout_s": "long"}}),
                          "HEADWAY_POOL": "other"}),
    ],
    ids=["nested", "gpus", "long id", "stop"],
)  # fmt: skip
def test_malformed_marks_do_not_end_the_agent(
    host: Host, place: Path, forger: Forger, worker_id: str, marks: Mapping[str, str]
) -> None:
    """The job wants that nobody maintains this host any more."""
    (place / "evil" / "x.log").touch()
    forger.forge(worker_id, **marks)
    restarted(host)


def test_who_forges_a_worker_is_neither_taken_for_one_nor_signalled(host: Host, place: Path, forger: Forger) -> None:
    """The job wants its pool to be without workers: the forged ones hold their places."""
    (place / "evil" / "x.log").touch()
    forged = [forger.forge("../../evil/x", HEADWAY_POOL=pool) for pool in ("mail", "other")]
    restarted(host)
    assert host.control.running(1).isdisjoint({each.pid for each in forged})
    assert all(runs(each.pid) for each in forged)


def test_another_users_process_with_the_pid_and_the_start_of_a_worker_is_not_taken_for_it(
    host: Host, forger: Forger
) -> None:
    """A pid comes again, and within a tick of 10 ms with the same start. Its user is another one."""
    stranger = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    ledger = host.state_dir / "workers.json"
    body = json.loads(ledger.read_text())
    (record,) = body["workers"]
    known, other = record["pid"], procfs.stat(stranger.pid)
    assert other is not None
    record |= {"pid": other.pid, "started_ticks": other.started_ticks}
    ledger.write_text(json.dumps(body))
    try:
        host.control.reports.clear()
        host.agent()
        eventually(lambda: host.control.reports)
        assert f"no record of worker={record['worker_id']} pid={stranger.pid}" in host.logged()
        before = len(host.control.polls)
        host.control.assign()  # whatever runs is too much now
        eventually(lambda: len(host.control.polls) > before)
        eventually(lambda: len(host.control.reports) >= 2)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        os.kill(known, signal.SIGKILL)


def test_a_link_in_the_place_of_a_log_is_not_followed(host: Host, place: Path, forger: Forger) -> None:
    """Whoever has come to write in the folder of the logs gains no other file by that."""
    secret = place / "secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    (log,) = (host.state_dir / "workers").glob("*.log")
    log.unlink()
    log.symlink_to(secret)
    host.control.reports.clear()
    agent = host.agent()
    eventually(lambda: len(host.control.reports) >= 2 or agent.poll() is not None)
    assert secret.read_bytes() == SECRET
    assert not any(
        each.read_bytes().startswith(b"root") for each in log.parent.iterdir() if stat.S_ISREG(each.lstat().st_mode)
    )
