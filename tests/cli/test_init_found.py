"""`headway init` with nothing said: brokers of the environment and of `.env`, and the workers that run here."""

import os
import re
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from celery import Celery
from rq import Queue, Worker

from headway.__main__ import main
from headway.agent.config import host_file
from headway.cli.profiles_file import load_profiles_file
from headway.cli.setup import init
from headway.cli.setup.broker_candidates import candidate
from headway.cli.setup.broker_survey import FoundBroker, survey
from headway.cli.setup.pool_drafts import as_one_library
from headway.collect.libraries import Libraries
from headway.connections import Connection
from headway.store.embedded import ensure_valkey
from support.called import Called, called
from support.faulty_proxy import FaultyProxy
from support.valkeys import Valkey
from support.waiting import eventually

pytestmark = pytest.mark.e2e

BIN = Path(sys.executable).parent
SECRET = "s3cret-7"
WITHIN_S = 5.0
APP = """
import os
from celery import Celery

app = Celery("shop", broker=os.environ["SHOP_BROKER"])
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder of a Celery application."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/tasks.py").write_text(APP)
    return tmp_path / "shop"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts programs, and ends them with the test."""
    begun: list[subprocess.Popen] = []
    with ExitStack() as stack:

        def start(*words: str, cwd: Path, **env: str) -> subprocess.Popen:
            log = stack.enter_context((tmp_path / f"{len(list(tmp_path.iterdir()))}.log").open("w"))
            plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
            process = subprocess.Popen(words, cwd=cwd, env={**plain, **env}, stdout=log, stderr=log)
            stack.callback(process.wait, 60)
            begun.append(process)
            return process

        yield start
        for process in begun:
            process.terminate()


@pytest.fixture
def second_broker(tmp_path: Path) -> Iterator[str]:
    """Another broker, which wants a password."""
    server = ensure_valkey(tmp_path / "second")
    client = redis.Redis.from_url(server.url)
    client.acl_setuser("app", enabled=True, passwords=[f"+{SECRET}"], keys=["*"], channels=["*"], commands=["+@all"])
    yield server.url.replace("?", f"?username=app&password={SECRET}&")
    assert server.wait_stopped()


def initialised(folder: Path, **env: str) -> Called:
    return called("init", folder=folder, env={**_plain(), **env})


def initialised_by_a_process(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    argv, env = [sys.executable, "-m", "headway", "init"], {**_plain(), **env}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60)


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith("_URL")}


def celery_of(valkey_url: str) -> str:
    return valkey_url.replace("unix://", "redis+socket://").replace("db=", "virtual_host=")


def test_two_brokers_two_libraries_and_four_workers_become_two_files(
    valkey_url: str, second_broker: str, shop: Path, started: Any
) -> None:
    shop_broker = celery_of(valkey_url)
    celery = [str(BIN / "celery"), "--app", "tasks", "worker", "--without-mingle", "--without-gossip"]
    with Celery(broker=shop_broker) as app:
        app.send_task("x", queue="reports", ignore_result=True)
    mail = [
        started(
            *celery, "-Q", "mail", "-c", "2", "-n", f"w{number}@%h", cwd=shop, SHOP_BROKER=shop_broker, TOKEN=SECRET
        )
        for number in (1, 2)
    ]
    (shop / "jobs").mkdir()
    for queues in (["high", "low"], ["news"]):
        started(str(BIN / "rq"), "worker", *queues, cwd=shop / "jobs", RQ_REDIS_URL=second_broker)
    eventually(lambda: len(Worker.all(connection=redis.Redis.from_url(second_broker))) == 2, within_s=60)
    eventually(
        lambda: redis.Redis.from_url(valkey_url).sismember("_kombu.binding.mail", "mail\x06\x16\x06\x16mail"),
        within_s=60,
    )
    (shop / ".env").write_text(
        f"export REDIS_URL='{second_broker}'\nSECRET_KEY={SECRET}\nRABBITMQ_URL=amqp://${{HOST}}\n"
    )
    pids = sorted(each.pid for each in mail)
    before_s = _children_s()
    done = initialised_by_a_process(shop, CELERY_BROKER_URL=shop_broker)
    assert _children_s() - before_s < WITHIN_S  # of processor: the clock is the machine's matter
    assert (done.returncode, done.stderr) == (0, "")
    assert SECRET not in done.stdout
    assert {path.name for path in shop.iterdir()} == {
        *(".env", "tasks.py", "jobs", "__pycache__", "profiles.yaml", "host.toml"),
    }
    files = [shop / "profiles.yaml", shop / "host.toml"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}

    written = load_profiles_file(files[0], check=Libraries().breaches)
    ours = {each.name: each for each in written.brokers}
    assert ours["redis"] == Connection(name="redis", url=second_broker)
    assert ours["celery"] == Connection(name="celery", url=valkey_url, library="celery")
    pools = {profile.pool: profile.queues for profile in written.profiles}
    assert pools["mail"] == ("celery/mail",)
    assert pools["reports"] == ("celery/reports",)
    assert pools["high"] == ("redis/high", "redis/low")
    assert pools["news"] == ("redis/news",)
    templates = host_file.load(files[1]).templates
    assert templates["mail"].argv[:4] == (str(BIN / "celery"), "--app", "tasks", "worker")
    assert templates["mail"].slots == 2
    assert templates["mail"].working_directory == str(shop)
    assert SECRET not in f"{templates['mail'].environment}"
    assert templates["high"].argv[-2:] == ("high", "low")
    assert templates["high"].environment["RQ_REDIS_URL"] == second_broker
    assert templates["high"].working_directory == str(shop / "jobs")

    for line in (
        "  celery/reports  waiting jobs: 1  workers here: 0  unserved",
        "  celery/mail  waiting jobs: 0  workers here: 2",
        "  not shown by the broker: starts; workers that Headway starts report them; start others with --include",
        "RABBITMQ_URL in .env is made of other variables",
        "TOKEN of its environment is left out",
        f"processes {pids[0]}, {pids[1]}  Celery  celery: mail",
    ):
        assert line in done.stdout, done.stdout
    assert re.search(r"SHOP_BROKER(, TOKEN)? of its environment is left out", done.stdout)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_celery_app_that_nobody_runs_is_found_with_its_own_environment(valkey_url: str, shop: Path) -> None:
    (shop / ".venv/bin").mkdir(parents=True)
    (shop / ".venv/bin/celery").touch(mode=0o755)
    broker = celery_of(valkey_url)
    with Celery(broker=broker) as app:
        app.send_task("x", ignore_result=True)
    done = initialised(shop, CELERY_BROKER_URL=broker)
    assert done.returncode == 0, done.stderr
    template = host_file.load(shop / "host.toml").templates["celery"]
    assert template.argv[:6] == (str(shop / ".venv/bin/celery"), "--app", "tasks:app", "worker", "--queues", "celery")
    assert template.environment == {"CELERY_BROKER_URL": broker}


def test_a_celery_app_whose_queue_is_not_there_yet_has_a_pool_for_it(valkey_url: str, shop: Path) -> None:
    done = initialised(shop, CELERY_BROKER_URL=celery_of(valkey_url), REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 0, done.stderr
    assert "REDIS_URL: broker redis://127.0.0.1:1/0 cannot be reached" in done.stdout
    assert ("celery/celery",) in [profile.queues for profile in load_profiles_file(shop / "profiles.yaml").profiles]


@pytest.mark.parametrize(
    "read", ['os.environ["SHOP_BROKER"]', 'os.getenv("SHOP_BROKER")', 'os.environ.get("SHOP_BROKER", "redis://h:1/0")']
)
def test_an_app_beside_the_queues_of_another_has_a_pool_before_its_first_job(
    read: str, valkey_url: str, second_broker: str, shop: Path
) -> None:
    """As on a machine with other projects: what they have in their brokers is no reason to leave this one out."""
    Queue("mail", connection=redis.Redis.from_url(second_broker)).enqueue("builtins.print")
    (shop / "tasks.py").write_text(APP.replace('os.environ["SHOP_BROKER"]', read))
    done = initialised(shop, SHOP_BROKER=celery_of(valkey_url), REDIS_URL=second_broker)
    assert done.returncode == 0, done.stderr
    pools = {profile.queues: profile.template for profile in load_profiles_file(shop / "profiles.yaml").profiles}
    assert {("redis/mail",), ("celery/celery",)} <= pools.keys()
    template = host_file.load(shop / "host.toml").templates[pools["celery/celery",]]
    assert template.argv[1:4] == ("--app", "tasks:app", "worker")
    assert template.environment == {"CELERY_BROKER_URL": celery_of(valkey_url)}
    assert f"(SHOP_BROKER, of {shop / 'tasks.py'})" in done.stdout
    assert "  celery/celery  waiting jobs: none yet  workers here: 0  unserved" in done.stdout


def test_each_of_two_apps_serves_its_own_broker(valkey_url: str, second_broker: str, shop: Path) -> None:
    (shop / "billing.py").write_text(APP.replace("SHOP_BROKER", "BILLING_BROKER"))
    other = celery_of(second_broker)
    done = initialised(shop, SHOP_BROKER=celery_of(valkey_url), BILLING_BROKER=other)
    assert done.returncode == 0, done.stderr
    apps = {
        each.environment["CELERY_BROKER_URL"]: each.argv[2]
        for each in host_file.load(shop / "host.toml").templates.values()
        if "CELERY_BROKER_URL" in each.environment
    }
    assert (apps[celery_of(valkey_url)], apps[other]) == ("tasks:app", "billing:app")
    assert SECRET not in done.stdout


def test_both_libraries_in_one_database_are_two_connections(
    valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # in which there is no application
    Queue("mail", connection=redis.Redis.from_url(valkey_url)).enqueue("builtins.print")
    with Celery(broker=celery_of(valkey_url)) as app:
        app.send_task("x", queue="mail", ignore_result=True)
    assert main(["init", "--broker", valkey_url, "--dir", str(tmp_path)]) == 0
    written = load_profiles_file(tmp_path / "profiles.yaml", check=Libraries().breaches)
    assert [(each.name, each.library) for each in written.brokers] == [("celery", "celery"), ("redis", "rq")]
    assert [profile.queues for profile in written.profiles] == [("celery/mail",), ("redis/mail",)]
    assert yaml.safe_load((tmp_path / "profiles.yaml").read_text())["pools"].keys() == {"mail", "mail-2"}


def test_a_broker_that_several_variables_name_is_shown_with_each(valkey_url: str, shop: Path) -> None:
    Queue("mail", connection=redis.Redis.from_url(valkey_url)).enqueue("builtins.print")
    done = initialised(shop, RQ_REDIS_URL=valkey_url, CELERY_BROKER_URL=valkey_url)
    assert f"queues of RQ in {valkey_url} (RQ_REDIS_URL, CELERY_BROKER_URL): 1" in done.stdout


@pytest.mark.parametrize(
    ("variable", "is_celery", "library"),
    [("CELERY_BROKER_URL", False, "celery"), ("RABBITMQ_URL", True, "celery"), ("RABBITMQ_URL", False, "rabbitmq")],
)
def test_a_rabbitmq_is_one_connection_however_many_libraries_read_it(
    variable: str, is_celery: bool, library: str
) -> None:
    libraries = Libraries()
    found = candidate("pyamqp://guest@h//", source=variable, variable=variable)
    brokers = [
        FoundBroker(candidate=found, library=libraries.of(Connection(name="x", url=found.url, library=name)), queues=())
        for name in ("celery", "rabbitmq")
    ]
    (kept,) = as_one_library(brokers, is_celery=is_celery)
    assert kept.library.name == library


def test_a_broker_that_never_answers_holds_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"redis://:{SECRET}@127.0.0.1:{server.getsockname()[1]}/0"
        found = survey([candidate(url, source="REDIS_URL")], Libraries(), within_s=0.1)
    shown = url.replace(SECRET, "***")
    assert (found.brokers, found.unseen) == ([], [f"REDIS_URL: broker {shown} did not answer within 0.1 s"])


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_a_slow_broker_is_read_where_it_is_asked_for(
    is_asked_for: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be far away, or its machine may have much else to do; one that may be anywhere is not waited for."""
    monkeypatch.setattr(init, "SURVEY_WITHIN_S", 0.05)
    monkeypatch.chdir(tmp_path)
    with closing(Valkey(tmp_path)) as server, closing(FaultyProxy(server.port)) as proxy:
        proxy.late_s = 0.1
        monkeypatch.setenv("REDIS_URL", f"redis://127.0.0.1:{proxy.port}/0")
        words = ["--broker", os.environ["REDIS_URL"]] if is_asked_for else []
        main(["init", *words, "--dir", str(tmp_path)])
    printed = "".join(capsys.readouterr())
    assert ("did not answer within" in printed) is not is_asked_for


def test_every_broker_that_cannot_be_read_is_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for url in (f"redis://:{SECRET}@127.0.0.1:1/0", "sqs://", "x") for word in ("--broker", url)]
    assert main(["init", *words, "--dir", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert printed.count("--broker: ") == 3
    assert SECRET not in printed
    assert not list(tmp_path.iterdir())
