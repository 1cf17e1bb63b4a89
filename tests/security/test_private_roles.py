"""What a role knows stays with it: unreadable for its user's other programs, in no environment that it hands on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli.local.data_dir import DataDir
from headway.cli.local.live_view import Terminal
from headway.cli.local.stack import Plan, Stack
from headway.cli.local.supervisor import Child, Supervisor
from headway.cli.process.shutdown import Stopping
from headway.connections import Connection
from headway.errors import Invalid
from headway.settings import Address, CollectSettings, ControlSettings, PipelineSettings, database_url_of
from support.credential_files import token_file
from support.ports import free_port

pytestmark = pytest.mark.e2e

URL, SECRET = "postgresql://headway:s3cret-1@127.0.0.1:1/headway", "s3cret-2-of-this-test-k7Qm2vX9tL4p"
BROKERS = "redis=redis://:s3cret-3@127.0.0.1:1/0"
CREDENTIALS = {"HEADWAY_TOKEN": SECRET, "HEADWAY_DATABASE_URL": URL, "HEADWAY_BROKERS": BROKERS}

# Each role as it is when what it is made for would begin.
WHERE_IT_BEGINS = {
    "control": "from headway.cli.roles import control_server as serving; serving.run = shown",
    "pipeline": "from headway.cli.roles import pipeline_run as streaming; streaming.run = shown",
    "collect": "from headway.cli.roles import collect; collect.state_folder = shown",
    "agent": "from headway.cli.roles import agent; agent._run = shown",
    "up": "from headway.cli.local import up; up._check_outside = lambda *_: (); up.Stack.start = shown",
    "demo": "from headway.cli.demo import demo; demo.Demo.start = shown",
}
SCRIPT = """
import ctypes, json, os, sys
from headway.__main__ import main
def shown(*_, **__):
    dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
    print(json.dumps([dumpable, [each for each in os.environ.values() if "s3cret" in each]]), file=sys.stderr)
    os._exit(0)
{where}
sys.exit(main({words}))
"""
FILES = {
    "profiles.yaml": "brokers: {redis: 'redis://127.0.0.1:1/0'}\npools: {mail: {queues: [redis/mail], template: rq}}\n",
    "host.toml": '[templates.rq]\nargv = ["/bin/sh", "-c", "sleep 60"]\n',
}


def started(role: str, folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """The role, ended where what it is made for would begin, or before."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    addresses = {name: f"127.0.0.1:{free_port()}" for name in ("HEADWAY_HTTP_ADDRESS", "HEADWAY_GRPC_ADDRESS")}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(where=WHERE_IT_BEGINS[role], words=[role, *words]), *words],
        env={**{k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")}, **addresses, **settings},
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def begun(role: str, folder: Path, *words: str, **settings: str) -> tuple[int, list[str], str]:
    """Whether others of its user may read the role, the credentials left in its environment, and what it said."""
    done = started(role, folder, *words, **settings)
    said = done.stdout + done.stderr
    printed = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert printed, said
    dumpable, left = json.loads(printed[-1])
    return dumpable, left, said


@pytest.mark.parametrize("role", list(WHERE_IT_BEGINS))
def test_every_role_is_unreadable_and_drops_its_credentials(role: str, tmp_path: Path) -> None:
    urls = {name: value for name, value in CREDENTIALS.items() if name != "HEADWAY_TOKEN"}
    dumpable, left, said = begun(role, tmp_path, **urls, HEADWAY_TOKEN_FILE=token_file(tmp_path, SECRET))
    assert (dumpable, left) == (0, [])
    assert "s3cret" not in said


@pytest.mark.parametrize("role", list(WHERE_IT_BEGINS))
def test_no_role_starts_with_a_token_that_the_kernel_shows(role: str, tmp_path: Path) -> None:
    tokens = {"HEADWAY_TOKEN": SECRET, "HEADWAY_JOIN_TOKEN": SECRET}
    done = started(role, tmp_path, HEADWAY_DATABASE_URL=URL, HEADWAY_BROKERS=BROKERS, **tokens)
    assert done.returncode == 2
    for name in tokens:
        assert f"{name} in the environment can be read by other programs: unset it" in done.stderr
        assert f"name that file in {name}_FILE" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr


@pytest.mark.parametrize("role", ["control", "pipeline", "collect", "up"])
def test_every_credential_comes_from_a_file(role: str, tmp_path: Path) -> None:
    files = {}
    for name, value in CREDENTIALS.items():
        (tmp_path / name).write_text(f"{value}\n")
        files[f"{name}_FILE"] = str(tmp_path / name)
    dumpable, left, said = begun(role, tmp_path, **files)
    assert (dumpable, left) == (0, [])
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("role", "words"),
    [("control", ["--database-url", URL]), ("pipeline", ["--database-url", URL]), ("collect", ["--broker", BROKERS])],
)
def test_a_password_among_the_words_of_a_command_is_logged_and_not_repeated(
    role: str, words: list[str], tmp_path: Path
) -> None:
    *_, said = begun(role, tmp_path, *words)
    assert "every user of this machine can read the password among the words of this command" in said
    assert "s3cret" not in said


def test_a_url_without_a_password_is_not_logged(tmp_path: Path) -> None:
    *_, said = begun("control", tmp_path, "--database-url", "postgresql://headway@127.0.0.1:1/headway")
    assert "every user of this machine" not in said


def test_files_of_credentials_are_read_and_their_faults_reported_by_name(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{URL}\n")
    given = {"HEADWAY_DATABASE_URL_FILE": str(file)}
    assert ControlSettings.from_env(given).database_url == PipelineSettings.from_env(given).database_url == URL
    assert database_url_of(given) == URL
    with pytest.raises(Invalid, match="HEADWAY_DATABASE_URL and HEADWAY_DATABASE_URL_FILE exclude each other"):
        ControlSettings.from_env({**given, "HEADWAY_DATABASE_URL": URL})
    file.write_text("redis=redis://:p@h/0,\nother=redis://h:2/0\n")
    connections = CollectSettings.from_env({"HEADWAY_BROKERS_FILE": str(file)}).connections
    assert {each.name: each.url for each in connections} == {"redis": "redis://:p@h/0", "other": "redis://h:2/0"}
    file.unlink()
    for kind, name in ((ControlSettings, "HEADWAY_DATABASE_URL_FILE"), (CollectSettings, "HEADWAY_BROKERS_FILE")):
        with pytest.raises(Invalid, match=f"{name}=.*secret cannot be read: No such file") as refused:
            kind.from_env({name: str(file)})
        assert len(refused.value.breaches) == 1


def test_what_up_starts_gets_no_credential_that_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_TOKEN", SECRET)
    monkeypatch.setenv("HEADWAY_DATABASE_URL_FILE", "read-by-the-parent")
    layout = DataDir(tmp_path)
    address = Address(host="127.0.0.1", port=1)
    plan = Plan(
        layout=layout, http=address, grpc=address, token=SECRET, database_url=URL, host_file="host.toml",
        stops_workers=False, agent_stop_within_s=1.0,
    )  # fmt: skip
    with Terminal(is_plain=True) as terminal:
        machine = Stack(plan, stopping=Stopping(), terminal=terminal)
        monkeypatch.setattr(machine.supervisor, "complete", lambda child: children.append(child))
        monkeypatch.setattr(machine.supervisor, "start", lambda child: children.append(child))
        monkeypatch.setattr(machine.supervisor, "wait_ready", lambda *_: None)
        children: list = []
        machine.start(
            brokers=[Connection(name="redis", url="redis://:s3cret-3@127.0.0.1:1/0")], apply_profiles=lambda: None
        )
        machine.supervisor.stop_children()
        machine.supervisor.stop_servers()
    has = {
        child.name: {name for name in child.env if name in {*CREDENTIALS, "HEADWAY_DATABASE_URL_FILE"}}
        for child in children
    }
    assert has == {
        "migrate": {"HEADWAY_DATABASE_URL"},
        "pipeline": {"HEADWAY_DATABASE_URL"},
        "control": {"HEADWAY_DATABASE_URL", "HEADWAY_TOKEN"},
        "collect": {"HEADWAY_BROKERS", "HEADWAY_TOKEN"},
        "agent": {"HEADWAY_TOKEN"},
    }


def test_what_up_starts_has_no_credential_in_the_environment_that_the_kernel_shows(tmp_path: Path) -> None:
    """For half a second, until the role had taken them out, each process of its user could read them there."""
    shown = tmp_path / "shown"
    code = (
        "import ctypes, json, os, pathlib, sys, time; "
        "from headway.cli.process import credential_handover as handed, process_privacy as private; "
        "seen = open('/proc/self/environ').read(); handed.take(); said = []; token = os.environ['HEADWAY_TOKEN']; "
        "dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0); private.keep_private(said.append); "
        f"pathlib.Path({str(shown)!r}).write_text(json.dumps([seen, token, dumpable, said])); time.sleep(60)"
    )
    layout = DataDir(tmp_path / "data")
    layout.create()
    supervisor = Supervisor(layout, stopping=Stopping(), say=lambda _: None)
    env = {**{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}, **CREDENTIALS}
    try:
        argv = (sys.executable, "-c", code)
        supervisor.start(Child(name="agent", argv=argv, env=env, is_ready=lambda _: shown.exists()))
        supervisor.wait_ready("agent")
        seen, token, dumpable, said = json.loads(shown.read_text())
    finally:
        supervisor.stop_children()
        supervisor.stop_servers()
    assert "s3cret" not in seen
    assert (token, dumpable, said) == (SECRET, 0, [])
