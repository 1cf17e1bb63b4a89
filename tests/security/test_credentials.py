"""A job wants what the agent is let in by: from its environment, from messages, from the journal."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.agent.config.redaction import masked, shown
from headway.errors import Invalid
from headway.settings import AgentSettings, CollectSettings
from support.agent_host import Host, one_host
from support.credential_files import token_file
from support.fake_control import row
from support.waiting import eventually

PR_SET_DUMPABLE, NOBODY = 4, 65534
TOKEN = "t0ken-of-this-test"

# What its parent, the agent, began with.
HOST_FILE = """
[templates.curious]
argv = ["sh", "-c", '''
cat /proc/$PPID/environ > {place}/environ
cat /proc/$PPID/maps > {place}/maps
env > {place}/own.new
mv {place}/own.new {place}/own
exec sleep 600
''']
ready_after_s = 0.0
"""


# Root is let see everything. So the agent becomes another user, once it has read its program, and is as open to others
# of that user as one that was started so.
AS_ANY_USER = f"""
import ctypes, os, sys
import grpc._channel  # which is read when it is first used
try:
    from headway.cli.roles import agent
except ImportError:  # of the version that is attacked
    from headway.cli import agent
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
    ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 1, 0, 0, 0)
sys.exit(agent.main(sys.argv[1:]))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of the user that the agent runs as."""
    place = Path(tempfile.mkdtemp(prefix="headway-security-"))
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def host(home: Path) -> Iterator[Host]:
    with one_host(home, HOST_FILE.format(place=home)) as host:
        yield host
        for pid in host.control.pids():
            os.kill(pid, signal.SIGKILL)
        for agent in host._agents:
            agent.kill()
            agent.wait()
        if os.geteuid() == 0:  # what the folder is cleared by runs as root
            for path in (host.state_dir, host.state_dir / "workers"):
                os.chown(path, 0, 0)


@pytest.mark.e2e
def test_a_job_finds_the_agents_token_neither_in_its_environment_nor_in_the_agents(host: Host, home: Path) -> None:
    host.control.token = TOKEN
    host.control.assign(row(1, template="curious"))
    host.agent(program=("-c", AS_ANY_USER), HEADWAY_TOKEN_FILE=token_file(home, TOKEN))
    host.control.running(1)
    eventually((home / "own").exists)
    assert (home / "environ").read_bytes() == b"", "the agent's own environment was shown"
    assert (home / "maps").read_bytes() == b"", "and its memory could have been read"
    assert TOKEN not in (home / "own").read_text()
    assert TOKEN not in host.logged()
    assert host.logged().count("templates curious have no user of their own: their jobs can read this host's cred") == 1


def test_a_token_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    assert AgentSettings.from_env({"HEADWAY_TOKEN_FILE": str(file)}).token == "s3cret"
    with pytest.raises(Invalid, match="HEADWAY_TOKEN and HEADWAY_TOKEN_FILE exclude each other"):
        AgentSettings.from_env({"HEADWAY_TOKEN_FILE": str(file), "HEADWAY_TOKEN": "x"})
    file.write_text("\n")
    with pytest.raises(Invalid, match=r"HEADWAY_TOKEN_FILE=.*/token is empty"):
        AgentSettings.from_env({"HEADWAY_TOKEN_FILE": str(file)})
    file.unlink()
    with pytest.raises(Invalid, match=r"HEADWAY_TOKEN_FILE=.*/token cannot be read: No such file or directory"):
        AgentSettings.from_env({"HEADWAY_TOKEN_FILE": str(file)})


@pytest.mark.parametrize(
    "brokers",
    ["redis://:s3cret@broker/0", "a=redis://h/0,redis://u:s3cret@h/0", "u:s3cret@h=redis://h", "=redis://:s3cret@h"],
)
def test_a_broker_that_is_not_understood_is_not_repeated(brokers: str) -> None:
    with pytest.raises(Invalid) as refused:
        CollectSettings.from_env({"HEADWAY_BROKERS": brokers})
    assert "is not NAME=URL" in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["rq", "worker", "--url", "redis://:s3cret@h:6379/0", "mail"], "rq worker --url redis://***@h:6379/0 mail"),
        (["w", "amqp://user:s3@cret@h/v"], "w amqp://***@h/v"),
        (["w", "--password", "s3cret", "mail"], "w --password *** mail"),
        (["w", "--broker-password=s3cret", "-q"], "w --broker-password=*** -q"),
        (["env", "REDISCLI_AUTH=s3cret", "rq"], "env REDISCLI_AUTH=*** rq"),
        (["sh", "-c", "export API_KEY='s3 cret'; rq"], "sh -c export API_KEY=***; rq"),
        (["w", "postgres://h/db?password=s3cret&sslmode=on"], "w postgres://h/db?password=***&sslmode=on"),
        (["rq", "worker", "--name", "authors", "mail"], "rq worker --name authors mail"),
    ],
)
def test_what_may_be_a_password_is_masked_where_a_command_is_shown(argv: list[str], line: str) -> None:
    assert shown(argv) == line
    assert "s3cret" not in masked(line)


def test_the_journal_learns_no_password_by_the_check_before_each_start(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text('[templates.t]\nargv = ["sleep", "redis://:s3cret@h/0", "--token", "s3cret"]\n')
    printed = subprocess.run(
        [sys.executable, "-m", "headway", "agent", "check", "--offline", "--host-file", str(tmp_path / "host.toml"),
         "--state-dir", str(tmp_path / "state")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "s3cret" not in printed.stdout + printed.stderr
    assert "sleep redis://***@h/0 --token ***" in printed.stdout
    assert "templates t have no user of their own" in printed.stdout
