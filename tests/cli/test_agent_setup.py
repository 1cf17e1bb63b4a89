"""`headway agent init | check | unit`, as they are typed."""

import configparser
import getpass
import os
import shlex
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from headway.__main__ import main

HOST_FILE = """
[host]
reserve_cpu_cores = 0.5
reserve_memory = "100MB"

[templates.mail]
argv = ["sh", "-c", "true"]
slots = 4
ready_pattern = "ready"
stop_signal = "INT"
drain_timeout_s = 90
resources = { cpu_cores = 0.25, memory_bytes = "50MB" }
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def control() -> Iterator[str]:
    """A gRPC server that is up."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_check_names_each_of_several_control_planes_and_one_that_answers_will_do(
    control: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.cli.roles.agent_setup.ANSWER_BOUND_S", 4.0)
    Path("host.toml").write_text(HOST_FILE)
    assert main(["agent", "check", "--control", f"127.0.0.1:1, {control},127.0.0.1:1"]) == 0
    printed = [line.split()[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("control plane")]
    assert printed == [["127.0.0.1:1", "does", "not", "answer"], [control, "answers"]]
    assert main(["agent", "check", "--control", f"{control},nowhere"]) == 2
    assert "HEADWAY_CONTROL='nowhere': expected HOST:PORT, as in 127.0.0.1:8461" in capsys.readouterr().err


def test_init_writes_what_check_reads(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert main(["agent", "init", "rq"]) == 0
    assert "wrote host.toml with templates: rq" in capsys.readouterr().out
    assert main(["agent", "check", "--offline"]) == 0
    printed = capsys.readouterr().out
    assert "rq worker --worker-class headway.workers.rq.DrainingWorker QUEUE" in printed
    assert str(Path(sys.executable).with_name("rq")) in printed


def test_init_replaces_nothing_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.toml").write_text("mine")
    assert main(["agent", "init", "celery"]) == 2
    assert "host.toml would be overwritten: add --force" in capsys.readouterr().err
    assert Path("host.toml").read_text() == "mine"
    assert main(["agent", "init", "celery", "--print"]) == 0
    assert "[templates.celery]" in capsys.readouterr().out
    assert Path("host.toml").read_text() == "mine"
    assert main(["agent", "init", "celery", "--force"]) == 0
    assert "[templates.celery]" in Path("host.toml").read_text()


def test_check_shows_what_would_run_and_who_answers(control: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.toml").write_text(HOST_FILE)
    assert main(["agent", "check", "--control", control, "--state-dir", "state"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for said in (
        "runs sh -c true",
        "jobs at once 4",
        "ready when its output shows 'ready', within 60 s",
        "stopped by SIGINT, and by SIGKILL after 90 s",
        "needs 0.25 cores, 50 MB",
        "with 0.5 cores and 100 MB kept back",
        "/state, new",
        f"control plane {control} answers",
    ):
        assert said in printed
    assert not Path("state").exists(), "a look leaves nothing behind"


def test_check_shows_who_workers_run_as_and_when_they_are_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.toml").write_text(
        f"""
        [host]
        gpus = 4
        [templates.train]
        argv = ["sh"]
        user = "{getpass.getuser()}"
        isolation_drain_after_s = 30
        drain_timeout_s = 120
        resources = {{ cpu_cores = 0, memory_bytes = 0, gpus = 2 }}
        recycle = {{ after_s = 3600, jobs = 500, memory_bytes = "300MB" }}
        """
    )
    assert main(["agent", "check", "--offline"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for said in (
        "needs 0 cores, 0 B, 2 GPUs: 2 fit when nothing else runs",
        f"runs as {getpass.getuser()}",
        "replaced after 3600 s or 500 jobs or 300 MB",
        "drained when partitioned from the control plane for 30 s",
    ):
        assert said in printed


def test_check_names_a_file_of_variables_and_what_keeps_its_workers_from_starting_but_nothing_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = '[templates.{0}]\nargv = ["sh", "$(HEADWAY_WORKER_NUM)"]\nenvironment_file = "{0}.env"\numask = "077"\n'
    Path("host.toml").write_text(template.format("mail") + template.format("news"))
    for name in ("mail.env", "news.env"):
        Path(name).write_text("MY_NAME=s3cret\n")
        Path(name).chmod(0o600)
    assert main(["agent", "check", "--offline"]) == 0
    printed = capsys.readouterr().out
    assert f"    variables        of {tmp_path}/mail.env, too, which is read at each start\n" in printed
    assert "    umask            0077\n" in printed
    assert "warning            template mail: $(HEADWAY_WORKER_NUM) stays as it is: the agent replaces " in printed
    Path("mail.env").chmod(0o644)
    Path("news.env").write_text("MY_NAME=s3cret\ns3cret\n")
    assert main(["agent", "check", "--offline"]) == 0  # the unit checks before each start: other templates can run
    warned = capsys.readouterr()
    begins = "warning            template"
    assert f"{begins} 'mail': environment_file {tmp_path}/mail.env is open to others (mode 0644)" in warned.out
    assert f"{begins} 'news': environment_file {tmp_path}/news.env line 2 is not NAME=value" in warned.out
    for each in (printed, warned.out, warned.err):
        assert "s3cret" not in each
        assert "MY_NAME" not in each


@pytest.mark.parametrize(
    ("host_file", "flags", "said"),
    [
        (None, (), "host.toml cannot be read"),
        ("[templates.mail]\nargv = ['no-such-program']\n", (), "'no-such-program' is not on PATH"),
        (HOST_FILE, ("--control", "127.0.0.1:1"), "control plane 127.0.0.1:1 does not answer within"),
        (HOST_FILE, ("--state-dir", "host.toml/state"), "host.toml/state cannot be written"),
    ],
)
def test_check_names_what_stands_in_the_way(
    host_file: str | None,
    flags: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway.cli.roles.agent_setup.ANSWER_BOUND_S", 0.3)
    if host_file is not None:
        Path("host.toml").write_text(host_file)
    assert main(["agent", "check", *flags]) == 2
    assert said in capsys.readouterr().err


def test_a_unit_restarts_the_agent_and_leaves_its_workers_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(Path(sys.executable).with_name("headway"))])
    assert main(["agent", "unit", "--user", "deploy", "--control", "10.0.0.1:8461"]) == 0
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(capsys.readouterr().out)
    service = unit["Service"]
    assert (service["User"], service["KillMode"], service["Restart"]) == ("deploy", "process", "always")
    program, *words = shlex.split(service["ExecStart"])
    assert program == str(Path(sys.executable).with_name("headway"))
    assert words[:5] == ["agent", "--host-file", str(Path("host.toml").absolute()), "--control", "10.0.0.1:8461"]
    assert service["ExecStartPre"].endswith("--offline")
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_a_unit_refuses_what_systemd_would_read_as_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(Path(sys.executable).with_name("headway"))])
    assert main(["agent", "unit", "--host-file", "/srv/my app/host.toml"]) == 2
    assert (
        "'/srv/my app/host.toml' has a character that a systemd unit would read as its own" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            'argv = ["celery", "worker"]',
            "reports its jobs to the agent, which adds `--include headway_celery_reporter`",
        ),
        ('argv = ["celery", "worker"]\nreporter = "none"', 'reports nothing: reporter = "none"'),
        (
            'argv = ["sh", "-c", "exec celery -A shop worker"]',
            (
                "reports nothing: give Celery the words `--include headway_celery_reporter`, and the template "
                '`reporter = "celery"`; it needs PYTHONPATH and HEADWAY_REPORTER_PIPE of the agent'
            ),
        ),
        ('argv = ["python3", "-E", "-m", "celery", "worker"]', "reports nothing: give Celery the words"),
        (
            'argv = ["sh", "-c", "celery worker --include headway_celery_reporter"]\nreporter = "celery"',
            "reports its jobs to the agent, once Celery has `--include headway_celery_reporter` among its words",
        ),
        ('argv = ["sh", "-c", "npm run worker"]', None),
        ('argv = ["rq", "worker"]', None),
    ],
)
def test_check_says_whether_workers_report_and_the_words_to_add(
    template: str, said: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    Path("host.toml").write_text(f"[templates.t]\n{template}\n")
    assert main(["agent", "check", "--offline"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert said in printed if said else "reports" not in printed
