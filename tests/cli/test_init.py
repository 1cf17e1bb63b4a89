"""`headway init`: what it writes for a real broker is what `up` and the agent read."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from rq import Queue

from headway.__main__ import main
from headway.agent.config import host_file
from headway.cli.profiles_file import load_profiles_file
from headway.cli.setup.broker_candidates import candidate
from headway.cli.setup.scaffold import Draft, PoolDraft, host_text, pool_names, profiles_text
from headway.cli.setup.worker_templates import Templates
from headway.collect.rq.rq_source import SEEN
from headway.connections import Connection
from headway.scaling.model import Objective
from headway.scaling.profile import Profile

RQ_WORDS = ("--worker-class", "headway.workers.rq.DrainingWorker", "--with-scheduler")
ODD = ["plain", "a/b", "a-b", "with space", "true", "7", "quo\"te'", "ümlaut: #", "{x}", "\\back"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is typed in the folder of an application, as this checkout has some."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture
def broker(valkey_url: str) -> str:
    """A broker with a queue that holds a job and one that did."""
    client = redis.Redis.from_url(valkey_url)
    Queue("emails", connection=client).enqueue("builtins.print")
    client.sadd("rq:queues", "rq:queue:reports")
    return valkey_url


def initialised(broker: str, folder: Path, *more: str) -> int:
    return main(["init", "--broker", broker, "--dir", str(folder), *more])


def test_what_it_writes_is_read_by_up_and_by_the_agent(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert initialised(broker, tmp_path) == 0
    profiles = load_profiles_file(tmp_path / "profiles.yaml")
    assert profiles.brokers == (Connection(name="redis", url=broker),)
    assert profiles.profiles == tuple(
        Profile(
            pool=name,
            queues=(f"redis/{name}",),
            template=name,
            objective=Objective(target_s=10.0, percentile=99.0),
            workers_min=0,
            workers_max=20,
        )
        for name in ("emails", "reports")
    )
    host = host_file.load(tmp_path / "host.toml")
    assert host.templates.keys() == {"emails", "reports"}
    emails = host.templates["emails"]
    assert emails.argv == (str(Path(sys.executable).with_name("rq")), "worker", *RQ_WORDS, "--url", broker, "emails")
    assert emails.burst_arguments == ("--burst",)
    assert emails.working_directory == str(tmp_path)
    assert (emails.ready.pattern, emails.stop.stop_signal, emails.stop.drain_timeout_s) == ("Listening on", 15, None)
    assert capsys.readouterr().out == (
        f"queues of RQ in {broker}: 2\n"
        "  redis/emails  waiting jobs: 1  workers: 0  unserved\n"
        "  redis/reports  waiting jobs: 0  workers: 0  unserved\n"
        "  exact: waiting, in flight, oldest age, busy workers\n"
        "  bounded: delayed, to unknown while the package rq-scheduler has jobs; schedule jobs with RQ itself\n"
        f"  bounded: entries, to {SEEN.bound}; {SEEN.remedy}\n"
        f"  bounded: starts, to {SEEN.bound}; {SEEN.remedy}\n"
        f"  bounded: ends, to {SEEN.bound}; {SEEN.remedy}\n"
        f"wrote {tmp_path}/profiles.yaml and {tmp_path}/host.toml\n"
        f"host.toml starts {emails.argv[0]}, of Headway's own environment, because this folder has no other virtualenv "
        "(.venv, venv, env) with that program: if it lacks your application's packages, put the whole path of your "
        "application's program there\n"
        "next: check both files, then type\n"
        f"  headway up --profiles {tmp_path}/profiles.yaml --host-file {tmp_path}/host.toml\n"
    )


def test_an_rq_that_is_installed_elsewhere_is_started_as_its_own(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python may not have Headway's worker class."""
    elsewhere = tmp_path / "bin" / "rq"
    elsewhere.parent.mkdir()
    elsewhere.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(elsewhere.parent))
    assert initialised(broker, tmp_path) == 0
    assert "own environment" not in capsys.readouterr().out
    assert host_file.load(tmp_path / "host.toml").templates["emails"].argv == (
        *(str(elsewhere), "worker"),
        *("--with-scheduler", "--url", broker, "emails"),
    )


def test_the_worker_it_describes_takes_the_queues_jobs(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    initialised(broker, tmp_path)
    template = host_file.load(tmp_path / "host.toml").templates["emails"]
    worker = subprocess.run(
        [*template.argv, *template.burst_arguments],
        cwd=template.working_directory,
        env={**os.environ, **template.environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert re.search(template.ready.pattern, worker.stdout + worker.stderr)
    assert redis.Redis.from_url(broker).llen("rq:queue:emails") == 0
    assert redis.Redis.from_url(broker).zcard("rq:finished:emails") == 1


def test_files_that_are_there_are_replaced_only_by_force(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "host.toml").write_text("mine")
    assert initialised(broker, tmp_path) == 2
    assert capsys.readouterr().err == (
        f"headway: {tmp_path}/host.toml would be overwritten: add --force to replace, or choose another --dir\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["host.toml"]
    assert initialised(broker, tmp_path, "--force") == 0
    assert (tmp_path / "host.toml").read_text() != "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host.toml", "profiles.yaml"]


def test_without_queues_it_says_so_and_writes_an_example(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # in which there is no application
    assert initialised(valkey_url, tmp_path, "--name", "main") == 0
    assert "both files hold a commented example" in capsys.readouterr().out
    assert load_profiles_file(tmp_path / "profiles.yaml").profiles == ()
    for name in ("profiles.yaml", "host.toml"):  # taken out of its comment, the example is whole
        (tmp_path / name).write_text(_uncommented((tmp_path / name).read_text()))
    assert [profile.pool for profile in load_profiles_file(tmp_path / "profiles.yaml").profiles] == ["emails"]
    assert host_file.load(tmp_path / "host.toml").templates.keys() == {"emails"}


def _uncommented(text: str) -> str:
    """``text`` as it is after the example's ``# `` is deleted: the lines behind the first empty one."""
    head, _, example = text.partition("\n\n")
    lines = [line.removeprefix("# ") for line in example.splitlines()]
    return f"{head}\n\n" + "\n".join(lines)


def test_a_password_is_kept_out_of_sight(valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = redis.Redis.from_url(valkey_url)
    client.acl_setuser("app", enabled=True, passwords=["+se,cret"], keys=["*"], commands=["+@all"])
    client.sadd("rq:queues", "rq:queue:emails")
    url = valkey_url.replace("?", "?username=app&password=se,cret&")
    assert initialised(url, tmp_path) == 0
    client.acl_deluser("app")
    output = capsys.readouterr().out
    assert "readable by you only: a URL holds a password" in output
    assert "se,cret" not in output
    template = host_file.load(tmp_path / "host.toml").templates["emails"]
    assert template.argv[1:] == ("worker", *RQ_WORDS, "emails")
    assert template.environment == {"RQ_REDIS_URL": url}
    assert load_profiles_file(tmp_path / "profiles.yaml").brokers == (
        Connection(name="redis", url=url.replace(",", "%2C")),
    )
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (
            ["--broker", "redis://:secret@127.0.0.1:1/0"],
            "--broker: broker redis://:***@127.0.0.1:1/0 cannot be reached",
        ),
        (["--broker", "sqs://:secret@h"], "--broker: no library reads sqs:// here"),
        (
            ["--broker", "redis://:s3cret#x@h/0"],
            "--broker: expected a URL, as in redis://127.0.0.1:6379/0; in a password",
        ),
        (
            ["--broker", "redis://:s3cret@[h/0"],
            "--broker: expected a URL, as in redis://127.0.0.1:6379/0; in a password",
        ),
        (["--broker", "nonsense"], "--broker: expected a URL, as in redis://127.0.0.1:6379/0"),
        (["--broker", "redis://h", "--name", "a/b"], "--name 'a/b': a connection's name is not empty"),
    ],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], output: str
) -> None:
    assert main(["init", *words, "--dir", str(tmp_path / "new")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"headway: {output}")
    assert printed.count("\n") == 1
    assert "s3cret" not in printed
    assert not (tmp_path / "new").exists()


def test_names_of_every_kind_survive_both_files(tmp_path: Path) -> None:
    templates = Templates(source_folder=tmp_path, folder=tmp_path, env={}, dotenv={})
    found = candidate("redis://h", source="a test")
    pools = [
        PoolDraft(connection="my broker", queues=[queue], template=templates.plain("rq", [queue], found))
        for queue in ODD
    ]
    draft = Draft(connections=[Connection(name="my broker", url="redis://h")], pools=pools)
    (tmp_path / "profiles.yaml").write_text(profiles_text(draft))
    (tmp_path / "host.toml").write_text(host_text(draft))
    profiles = load_profiles_file(tmp_path / "profiles.yaml").profiles
    host = host_file.load(tmp_path / "host.toml")
    assert [profile.queues for profile in profiles] == [(f"my broker/{queue}",) for queue in ODD]
    assert [profile.pool for profile in profiles] == [profile.template for profile in profiles] == list(host.templates)
    assert [template.argv[-1] for template in host.templates.values()] == ODD


def test_pools_are_called_like_their_queues_and_each_only_once() -> None:
    assert pool_names(["mail", "a/b", "a-b", " ", "x" * 300, "mail"]) == [
        *("mail", "a-b", "a-b-2", "pool", "x" * 196, "mail-2"),
    ]
