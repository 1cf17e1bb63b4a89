"""`headway up`: what it checks before it starts anything, and what it says at the end."""

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from headway.__main__ import main
from headway.agent.state.state_dir import StateFolder
from headway.cli.local import up
from headway.cli.local.data_dir import DataDir
from headway.cli.local.live_view import Terminal
from headway.cli.local.stack import Plan, address_lines
from headway.cli.profiles_file import load_profiles_file
from headway.local import procfs
from headway.settings import Address
from support.ports import free_port

PROFILES = """
brokers: {{redis: '{url}'}}
pools:
  mail: {{queues: [redis/mail], template: rq}}
"""
HOST = """
[templates.rq]
argv = ["/bin/sh", "-c", "sleep 60"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HEADWAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HEADWAY_HTTP_ADDRESS", f"127.0.0.1:{free_port()}")
    monkeypatch.setenv("HEADWAY_GRPC_ADDRESS", "127.0.0.1:0")
    return tmp_path


def write(folder: Path, *, profiles: str = PROFILES, host: str = HOST, url: str = "redis://127.0.0.1:1/0") -> None:
    (folder / "profiles.yaml").write_text(profiles.format(url=url))
    (folder / "host.toml").write_text(host)


def refused(capsys) -> str:
    assert main(["up", "--plain"]) == 2
    text = capsys.readouterr().err
    assert text.startswith("headway: ")
    assert len(text.splitlines()) == 1
    assert not (Path(".headway") / "postgres").exists(), "nothing was started"
    return text


def test_without_its_files_it_says_which_command_writes_them(folder, capsys):
    assert "profiles.yaml is not there: run `headway init` first" in refused(capsys)
    (folder / "profiles.yaml").write_text(PROFILES.format(url="redis://127.0.0.1:1/0"))
    assert "host.toml is not there: run `headway init` first" in refused(capsys)
    assert [path.name for path in folder.iterdir()] == ["profiles.yaml"], "as in the wrong folder"


def test_an_unknown_key_of_a_profile_is_named(folder, capsys):
    write(
        folder, profiles="brokers: {{redis: '{url}'}}\npools: {{mail: {{queues: [redis/a], template: rq, worker: 3}}}}"
    )
    assert "unknown key 'worker'" in refused(capsys)


def test_a_template_whose_program_does_not_exist_is_named(folder, capsys):
    write(folder, host='[templates.rq]\nargv = ["no-such-program"]')
    assert "program 'no-such-program' is not on PATH" in refused(capsys)


def test_mistakes_of_both_files_are_named_together(folder, capsys):
    write(
        folder,
        profiles="brokers: {{redis: '{url}'}}\npools: {{mail: {{queues: [redis/a], template: rq, worker: 3}}}}",
        host='[templates.rq]\nargv = ["/bin/sh"]\ndrain = 3',
    )
    text = refused(capsys)
    assert "profiles.yaml: profile 'mail': unknown key 'worker'" in text
    assert "host.toml" in text
    assert "'drain'" in text


def test_a_percentile_that_was_meant_as_a_share_is_warned_of_before_anything_is_started(folder, capsys):
    objective = "objective: {{percentile: 0.99}}"
    write(folder, profiles=PROFILES.replace("template: rq", f"template: rq, {objective}"))
    assert main(["up", "--plain"]) == 2  # for the broker
    asked = "the objective's percentile=0.99 asks 0.99 % of the jobs to start in time"
    assert f"warning: pool 'mail': {asked}; did you mean 99?" in capsys.readouterr().out


@pytest.mark.parametrize(("template", "question"), [("slow", ""), ("rqq", "; did you mean 'rq'?")])
def test_a_template_that_the_host_file_lacks_is_warned_of_before_anything_is_started(
    folder, capsys, template, question
):
    """Not refused: a host that joins may have it."""
    write(folder, profiles=PROFILES.replace("template: rq", f"template: {template}"))
    assert main(["up", "--plain"]) == 2  # for the broker
    lacks = f"no worker of pool 'mail' can start here: template {template!r} is not in host.toml"
    assert f"warning: {lacks}{question}\n" in capsys.readouterr().out


def test_a_pool_without_workers_of_headway_needs_no_template(folder, capsys):
    write(folder, profiles=PROFILES.replace("template: rq", "template: slow, mode: recommend"))
    assert main(["up", "--plain"]) == 2
    assert "warning" not in capsys.readouterr().out


def test_a_taken_port_is_named_with_what_to_change(folder, capsys, monkeypatch):
    write(folder)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("HEADWAY_GRPC_ADDRESS", f"127.0.0.1:{port}")
        text = refused(capsys)
    assert f"port {port} on 127.0.0.1 cannot be had" in text
    assert "--grpc-address" in text


def test_all_taken_ports_are_named_together(folder, capsys, monkeypatch):
    write(folder)
    with socket.create_server(("127.0.0.1", 0)) as http, socket.create_server(("127.0.0.1", 0)) as grpc:
        ports = [server.getsockname()[1] for server in (http, grpc)]
        monkeypatch.setenv("HEADWAY_HTTP_ADDRESS", f"127.0.0.1:{ports[0]}")
        monkeypatch.setenv("HEADWAY_GRPC_ADDRESS", f"127.0.0.1:{ports[1]}")
        text = refused(capsys)
    for port, flag in zip(ports, ("--http-address", "--grpc-address"), strict=True):
        assert f"port {port} on 127.0.0.1 cannot be had" in text
        assert f"choose another with {flag} 127.0.0.1:{port + 10}" in text


def test_a_broker_that_does_not_answer_and_a_missing_java_are_reported_together(folder, capsys, monkeypatch):
    write(folder)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("headway_spark.java._wheel_java", lambda: None)
    text = refused(capsys)
    assert "redis: broker redis://127.0.0.1:1/0 cannot be reached" in text
    assert "Spark needs Java 17 or later" in text


def test_no_broker_at_all_is_refused(folder, capsys):
    write(folder, profiles="pools: {{mail: {{queues: [redis/a], template: rq}}}}")
    assert "no broker is named" in refused(capsys)


def test_brokers_of_the_environment_take_the_place_of_the_files(folder, capsys, monkeypatch):
    write(folder)
    monkeypatch.setenv("HEADWAY_BROKERS", "redis=redis://127.0.0.1:2/0")
    text = refused(capsys)
    assert "127.0.0.1:2" in text
    assert "127.0.0.1:1/0" not in text


def test_a_listener_that_is_open_to_the_network_needs_a_token(folder, capsys, monkeypatch):
    write(folder)
    monkeypatch.setenv("HEADWAY_HTTP_ADDRESS", "0.0.0.0:0")
    assert "set HEADWAY_TOKEN" in refused(capsys)
    monkeypatch.setenv("HEADWAY_TOKEN", "s3cret")
    assert "HEADWAY_TOKEN can be guessed" in refused(capsys)
    monkeypatch.setenv("HEADWAY_TOKEN", secrets.token_hex(32))
    assert "set HEADWAY_TLS_CERT and HEADWAY_TLS_KEY" in refused(capsys)
    monkeypatch.setenv("HEADWAY_TLS", "somewhere")
    assert "HEADWAY_TLS='somewhere': expected here or elsewhere" in refused(capsys)
    monkeypatch.setenv("HEADWAY_TLS", "elsewhere")
    assert "HEADWAY_TLS" not in refused(capsys)  # what stands in the way now is the broker
    monkeypatch.delenv("HEADWAY_TLS")
    monkeypatch.setenv("HEADWAY_TLS_CERT", "server.crt")
    assert "HEADWAY_TLS_CERT and HEADWAY_TLS_KEY: one needs the other" in refused(capsys)
    monkeypatch.setenv("HEADWAY_TLS_KEY", "server.key")
    assert "needs HEADWAY_TLS_CA, too" in refused(capsys)


@pytest.mark.parametrize(
    ("http", "lines"),
    [
        (Address(host="127.0.0.1", port=8460), ["dashboard: http://127.0.0.1:8460"]),
        (
            Address(host="0.0.0.0", port=9460),
            [
                "dashboard: http://127.0.0.1:9460",
                "for `headway get`, `top` and the others, in their shell: export HEADWAY_URL=http://127.0.0.1:9460",
            ],
        ),
    ],
)
def test_at_another_port_it_says_what_the_other_commands_need(tmp_path, http, lines):
    plan = Plan(
        layout=DataDir(tmp_path),
        http=http,
        grpc=http,
        token=None,
        database_url=None,
        host_file="host.toml",
        stops_workers=False,
        agent_stop_within_s=1.0,
    )
    assert list(address_lines(plan)) == lines


def test_it_says_which_workers_go_on_and_how_to_end_them(tmp_path, capsys):
    layout = DataDir(tmp_path)
    folder = layout.state("agent")
    folder.mkdir(parents=True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    me = procfs.stat(os.getpid())
    rows = [
        {"pool": "mail", "pid": os.getpid(), "started_ticks": me.started_ticks},
        {"pool": "mail", "pid": os.getpid(), "started_ticks": me.started_ticks - 1},  # another process had this pid
        {"pool": "mail", "pid": ended.pid, "started_ticks": me.started_ticks},
        {"pool": "mail", "pid": 0, "started_ticks": 0},  # backs off
    ]
    StateFolder(folder).write("workers.json", {"workers": rows})
    up._print_workers(layout, Terminal(console=Console()))
    out = capsys.readouterr().out
    assert f"these workers go on: mail (process {os.getpid()})" in out
    assert f"headway agent stop-workers --state-dir {folder}" in out


def test_without_workers_it_says_nothing_of_them(tmp_path, capsys):
    up._print_workers(DataDir(tmp_path), Terminal(console=Console()))
    assert capsys.readouterr().out == ""


def test_queues_of_a_broker_that_no_pool_has_are_named(tmp_path):
    (tmp_path / "profiles.yaml").write_text(
        "brokers: {redis: redis://h/0}\nexclude: [redis/tmp-*]\npools: {mail: {queues: [redis/mail], template: rq}}\n"
    )
    file = load_profiles_file(tmp_path / "profiles.yaml")
    found = ["redis/mail", "redis/tmp-1", *(f"redis/q{number}" for number in range(7))]
    (line,) = up._unserved(found, file)
    named = "redis/q0, redis/q1, redis/q2, redis/q3, redis/q4 and 2 more"
    assert line == f"unserved, because no pool has them: {named}; add them to pools, or to exclude"
    assert list(up._unserved(["redis/mail"], file)) == []


def test_queues_that_a_pattern_matches_are_served(tmp_path):
    (tmp_path / "profiles.yaml").write_text("pools: {tenants: {queues: [redis/tenant-*], template: rq}}\n")
    file = load_profiles_file(tmp_path / "profiles.yaml")
    (line,) = up._unserved(["redis/tenant-1", "redis/mail"], file)
    assert line == "unserved, because no pool has them: redis/mail; add them to pools, or to exclude"
