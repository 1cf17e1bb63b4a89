"""What can be said of `headway demo` without starting it; the whole is in tests/e2e/test_demo.py."""

import argparse
import json
import signal
import socket
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from rich.console import Console

from headway.__main__ import main
from headway.agent.config import host_file
from headway.cli.demo import demo, demo_libraries
from headway.cli.demo.demo_libraries import LIBRARIES
from headway.cli.demo.demo_run import Script
from headway.cli.demo.demo_workloads import WORKLOADS
from headway.cli.local.data_dir import DataDir
from headway.cli.local.live_view import Terminal
from headway.cli.process.role_options import positive
from headway.cli.process.shutdown import Stopping
from headway.errors import HeadwayError, Misconfigured


def test_for_how_long_is_a_duration_and_what_is_none_is_one_clear_line(capsys):
    assert demo._options(["demo"]).for_s is None
    assert demo._options(["demo", "--for", "0.5m"]).for_s == 30
    assert main(["demo", "--for", "0s"]) == 2
    assert "--for='0s' is no duration above 0, as in 200ms, 10s or 3m" in capsys.readouterr().err


def test_a_workload_that_there_is_not_is_refused(capsys):
    assert demo._options(["demo", "--workload", "bursts"]).workload == "bursts"
    assert main(["demo", "--workload", "week"]) == 2
    assert "week" in capsys.readouterr().err


def script(workload: str = "day", *, for_s: float, speed: float = 1.0) -> Script:
    return Script(
        workload=WORKLOADS[workload](),
        library=LIBRARIES["rq"],
        speed=speed,
        for_s=for_s,
        is_chaotic=False,
        control={},
        write_host_file=lambda _: None,
        settings={},
    )


@pytest.mark.parametrize(
    ("played", "printed"),
    [
        (script(for_s=216), "a recorded day, 400 times as fast: 216 s, from 05:00"),
        (script(for_s=90), "a recorded day, 400 times as fast: the first 90 s of it, from 05:00 to 15:00"),
        (script(for_s=432), "a recorded day, 400 times as fast: 2 days in 432 s, from 05:00"),
        (script(for_s=108, speed=2), "a recorded day, 800 times as fast: 108 s, from 05:00"),
        (script("bursts", for_s=60), "recorded bursts, as fast as they were: 60 s"),
        (script("bursts", for_s=60, speed=3), "recorded bursts, 3 times as fast: 60 s"),
    ],
)
def test_what_is_going_to_be_played_is_said_first(played, printed):
    first, *rest = demo.announced(played)
    assert first == printed
    assert len(rest) == len(played.workload.lanes) + 2


@pytest.mark.parametrize(
    ("for_s", "sent_for_s", "leave_s"),
    [
        (216, 218, 7),  # a whole day is over within four minutes
        (216, 300, 5),  # the last jobs took long: workers have a moment all the same
        (10, 12, 90),  # with time left, workers leave by themselves
    ],
)
def test_a_default_run_is_over_within_four_minutes(for_s, sent_for_s, leave_s):
    assert script(for_s=for_s).leave_within_s(sent_for_s=sent_for_s) == leave_s


@pytest.mark.parametrize("text", ["0", "-1", "fast", "inf", "nan"])
def test_what_is_no_speed_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no number above 0"):
        positive(text)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_the_agent_can_read_the_host_file_and_workers_in_it_have_time_for_their_job(name, library, tmp_path):
    url = "unix:///tmp/a folder with 'quotes\" and ünicode/valkey.sock?db=0"
    workload = WORKLOADS[name]()
    text = demo._host_file(workload, LIBRARIES[library], broker_url=url, control={"HEADWAY_URL": "http://h:1"})
    (tmp_path / "host.toml").write_text(text)
    templates = host_file.load(tmp_path / "host.toml").templates
    assert set(templates) == {lane.profile.template for lane in workload.lanes}
    for lane in workload.lanes:
        template = templates[lane.profile.template]
        assert lane.queue in template.argv
        assert lane.queue == lane.profile.queues[0].partition("/")[2]
        if library == "rq":
            assert template.argv[template.argv.index("--url") + 1] == url
            assert "headway.cli.demo.libraries.rq_worker.DrainingWorker" in template.argv
        else:
            assert template.environment["DEMO_BROKER_URL"] == url
            assert template.environment["HEADWAY_URL"] == "http://h:1"
        assert template.stop.drain_timeout_s is None, "no job is cut by its worker's drain"
    cores = sum(templates[lane.profile.template].cpu_cores * lane.profile.workers_max for lane in workload.lanes)
    assert cores < 1, "two cores have room for all workers"
    assert tomllib.loads(text)


def test_a_library_that_is_not_installed_is_refused_in_one_line_that_says_what_installs_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(demo_libraries, "version", lambda name: (_ for _ in ()).throw(PackageNotFoundError(name)))
    assert main(["demo", "--library", "celery", "--data-dir", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Celery is not installed beside Headway" in line
    assert f"`{sys.executable} -m pip install 'celery>=5.5'`" in line


def options(tmp_path: Path, *words: str) -> argparse.Namespace:
    return demo._options(["demo", "--data-dir", str(tmp_path / "data"), *words])


def test_a_taken_port_gives_way_unless_it_was_asked_for(tmp_path, monkeypatch):
    for name in ("HEADWAY_HTTP_ADDRESS", "HEADWAY_GRPC_ADDRESS", "HEADWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    layout = DataDir(tmp_path / "data")
    layout.create()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Misconfigured, match=f"port {port} on 127.0.0.1 cannot be had"):
            demo._plan(options(tmp_path, "--http-address", f"127.0.0.1:{port}"), layout)
        monkeypatch.setattr("headway.settings.HTTP_ADDRESS", f"127.0.0.1:{port}")
        plan = demo._plan(options(tmp_path), layout)
    assert plan.http.port != port
    assert plan.url == f"http://127.0.0.1:{plan.http.port}"


def test_a_database_of_the_user_is_never_the_demos(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_DATABASE_URL", "postgresql://precious")
    layout = DataDir(tmp_path / "data")
    layout.create()
    assert demo._plan(options(tmp_path), layout).database_url is None


def test_a_report_that_could_not_be_written_is_refused_before_anything_starts(tmp_path):
    layout = DataDir(tmp_path / "data")
    layout.create()
    with pytest.raises(HeadwayError, match=r"there is no folder .*nowhere"):
        demo._plan(options(tmp_path, "--report", str(tmp_path / "nowhere" / "out.json")), layout)


REPORT = {
    "jobs": 10,
    "done_jobs": 10,
    "failed_jobs": 0,
    "lost_jobs": 0,
    "jobs_started_again": 0,
    "queues": [],
    "worker_seconds": 100.0,
    "workers_max_seen": 5,
    "workers_started": 7,
    "scale_actions": 4,
    "ready_s": 12.0,
    "is_interrupted": False,
    "workload": {"title": "a day", "queues": {}},
    "comparison": [
        {"way": "headway", "in_time": {}, "worker_seconds": 100.0, "times_headway": 1.0, "starts": 7, "workers": None}
    ],
    "faults": [],
}


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, 0), ({"lost_jobs": 1, "done_jobs": 9}, 1), ({"jobs": 0, "done_jobs": 0}, 1)],
)
def test_the_exit_status_says_whether_every_job_was_done(changes, status, tmp_path, capsys):
    out = tmp_path / "out.json"
    terminal = Terminal(console=Console(quiet=True))
    assert demo._conclude({**REPORT, **changes}, out, stopping=Stopping(), terminal=terminal) == status
    assert json.loads(out.read_text()) == {**REPORT, **changes}
    assert ("were not done" in capsys.readouterr().err) == bool(status)


def test_an_interrupted_demo_ends_with_the_signals_status_whatever_was_done(tmp_path):
    with Stopping().listening() as stopping:
        signal.raise_signal(signal.SIGINT)
    terminal = Terminal(console=Console(quiet=True))
    assert demo._conclude({**REPORT, "lost_jobs": 3}, None, stopping=stopping, terminal=terminal) == 130
