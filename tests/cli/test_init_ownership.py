"""`headway init` takes what belongs to the application of its folder, and lists what else runs on the machine."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from rq import Queue, Worker

from headway.agent.config import host_file
from headway.cli.profiles_file import load_profiles_file
from support.called import Called, called
from support.valkeys import Valkey
from support.waiting import eventually

pytestmark = pytest.mark.e2e

BIN = Path(sys.executable).parent
CELERY_APP = """
from celery import Celery

app = Celery("shop", broker="{broker}")


@app.task
def work():
    pass
"""
QUIET = ("--without-mingle", "--without-gossip")

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    """A Redis on a port, with several databases, as many applications of one machine share it."""
    (tmp_path / "broker").mkdir()
    server = Valkey(tmp_path / "broker")
    yield server
    server.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs, and ends them with the test."""
    logs = tmp_path / "logs"
    logs.mkdir()
    begun: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:

        def started(*words: str, cwd: Path, **env: str) -> subprocess.Popen[bytes]:
            log = stack.enter_context((logs / f"{len(begun)}.log").open("w"))
            plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
            process = subprocess.Popen(words, cwd=cwd, env={**plain, **env}, stdout=log, stderr=log)
            begun.append(process)
            return process

        yield started
        for process in begun:
            process.terminate()
        for process in begun:
            process.wait(60)


def folder(tmp_path: Path, name: str, **files: str) -> Path:
    made = tmp_path / name
    for file, text in files.items():
        path = made / f"{file.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made.mkdir(exist_ok=True)
    return made


def initialised(cwd: Path, *words: str, **env: str) -> Called:
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    return called("init", *words, folder=cwd, env={**plain, **env})


def pools(cwd: Path) -> set[tuple[str, ...]]:
    return {profile.queues for profile in load_profiles_file(cwd / "profiles.yaml").profiles}


def database(server: Valkey, number: int) -> str:
    return f"redis://127.0.0.1:{server.port}/{number}"


def until_rq_workers(url: str, count: int) -> None:
    eventually(lambda: len(Worker.all(connection=redis.Redis.from_url(url))) == count)


def until_bound(url: str, queue: str) -> None:
    eventually(lambda: redis.Redis.from_url(url).exists(f"_kombu.binding.{queue}"))


@pytest.fixture
def neighbours(tmp_path: Path, server: Valkey, start: Start) -> dict[str, Path]:
    """Three applications of other folders and the workers of another Headway, in three databases of one server."""
    news = folder(tmp_path, "news", tasks=CELERY_APP.format(broker=database(server, 1)))
    bills = folder(tmp_path, "bills")
    scans = folder(tmp_path, "scans")
    fleet = folder(tmp_path, "fleet")
    start(str(BIN / "celery"), "-A", "tasks", "worker", "-c", "1", "-Q", "news,alerts", *QUIET, cwd=news)
    start(str(BIN / "rq"), "worker", "bills", "-u", database(server, 2), cwd=bills)
    start(str(BIN / "rq"), "worker", "scans", "-u", database(server, 3), cwd=scans)
    mark = {"HEADWAY_WORKER_ID": "w1", "HEADWAY_POOL": "fleet"}
    start(str(BIN / "rq"), "worker", "fleet", "-u", database(server, 3), cwd=fleet, **mark)
    until_rq_workers(database(server, 2), 1)
    until_rq_workers(database(server, 3), 2)
    until_bound(database(server, 1), "news")
    return {"news": news, "bills": bills, "scans": scans, "fleet": fleet}


def test_in_an_empty_folder_it_writes_nothing_of_others(
    tmp_path: Path, server: Valkey, neighbours: dict[str, Path]
) -> None:
    empty = folder(tmp_path, "empty")
    done = initialised(empty)
    assert done.returncode == 2, done.stdout
    assert not list(empty.iterdir())
    assert "nothing was written: no broker, application or worker of this folder was found" in done.stderr
    assert "also runs here, and is not taken (--all takes it):" in done.stdout
    for name, path in neighbours.items():
        library = "celery" if name == "news" else "rq"
        assert f"{library} in {path}, queues {name}" in done.stdout
    assert f"rq in {neighbours['fleet']}, queues fleet (started by another Headway)" in done.stdout

    done = initialised(empty, "--broker", database(server, 2))
    assert done.returncode == 0, done.stderr
    assert pools(empty) == set()  # a commented example: its only queue is served by another folder's worker
    assert "bills" not in (empty / "host.toml").read_text()

    done = initialised(empty, "--all", "--force")
    assert done.returncode == 0, done.stderr
    assert {queue.partition("/")[2] for each in pools(empty) for queue in each} >= {
        *("news", "alerts", "bills", "scans", "fleet"),
    }


def test_a_worker_of_another_database_is_no_worker_of_the_one_that_is_named(
    tmp_path: Path, server: Valkey, start: Start
) -> None:
    """Whichever way it was given its broker: in its source, or by a configuration that nobody can read from outside."""
    ours, theirs = database(server, 0), database(server, 9)
    shop = folder(
        tmp_path,
        "shop",
        tasks="import celery, config\n\napp = celery.Celery('shop', broker=config.BROKER)\n",
        config=f"BROKER = ''.join(['{theirs}'])\n",
        other=CELERY_APP.format(broker=theirs),
    )
    for module, queue in (("tasks", "mail"), ("other", "slow")):
        start(str(BIN / "celery"), "-A", module, "worker", "-c", "1", "-Q", queue, *QUIET, cwd=shop)
    for queue in ("mail", "slow"):
        until_bound(theirs, queue)
    Queue("mail", connection=redis.Redis.from_url(ours)).enqueue("builtins.print")
    redis.Redis.from_url(ours).sadd("_kombu.binding.mail", "mail\x06\x16\x06\x16mail")
    done = initialised(shop, "--broker", ours)
    assert done.returncode == 0, done.stderr
    assert "workers that run here" not in done.stdout
    text = (shop / "host.toml").read_text()
    assert "like process" not in text
    assert "slow" not in text


def test_an_application_with_three_routed_queues_gets_three_pools(tmp_path: Path, server: Valkey) -> None:
    routes = (
        'app.conf.task_routes = {"tasks.mail": {"queue": "mail"}, "tasks.n*": "news", "tasks.bill": {"queue": "bills"}}'
    )
    tasks = "".join(f"\n\n@app.task\ndef {name}():\n    pass\n" for name in ("mail", "news", "bill"))
    app = f'from celery import Celery\n\napp = Celery("shop", broker="{database(server, 4)}")\n{routes}\n{tasks}'
    shop = folder(tmp_path, "shop", tasks=app)
    done = initialised(shop)
    assert done.returncode == 0, done.stderr
    assert pools(shop) == {("celery/mail",), ("celery/news",), ("celery/bills",)}
    for template in host_file.load(shop / "host.toml").templates.values():
        assert template.argv[1:4] == ("--app", "tasks:app", "worker")


def test_an_rq_application_has_pools_before_its_first_job(tmp_path: Path, server: Valkey) -> None:
    """Its broker is in its source, its queues are there, and no worker of it runs."""
    url = database(server, 11)
    shop = folder(
        tmp_path,
        "shop",
        jobs=f"import os, rq\nfrom redis import Redis\n\nshop = Redis.from_url(os.environ.get('SHOP', '{url}'))\n"
        "mail = rq.Queue('mail', connection=shop)\nnews = rq.Queue('news', connection=shop)\n",
    )
    done = initialised(shop)
    assert done.returncode == 0, done.stderr
    assert pools(shop) == {("redis/mail",), ("redis/news",)}
    assert load_profiles_file(shop / "profiles.yaml").brokers[0].url == url


@pytest.mark.parametrize("service", ["--workdir", "PYTHONPATH", "its program"])
def test_a_service_without_a_folder_of_its_own_belongs_where_its_application_is(
    tmp_path: Path, server: Valkey, start: Start, service: str
) -> None:
    """As systemd starts it, whose working directory is /."""
    url = database(server, 5)
    shop = folder(tmp_path, "shop", shop_tasks=CELERY_APP.format(broker=url))
    celery = ["-A", "shop_tasks", "worker", "-c", "1", "-Q", "mail", *QUIET]
    if service == "its program":
        (shop / ".venv/bin").mkdir(parents=True)
        program = shutil.copy(BIN / "rq", shop / ".venv/bin/rq")
        start(program, "worker", "mail", "-u", url, cwd=Path("/"))
        until_rq_workers(url, 1)
    elif service == "--workdir":
        start(str(BIN / "celery"), "--workdir", str(shop), *celery, cwd=Path("/"))
        until_bound(url, "mail")
    else:
        start(str(BIN / "celery"), *celery, cwd=Path("/"), PYTHONPATH=str(shop))
        until_bound(url, "mail")
    done = initialised(shop, RQ_REDIS_URL=url)
    assert done.returncode == 0, done.stderr
    assert re.search(r"/mail  waiting jobs: .*  workers here: 1\n", done.stdout), done.stdout
    assert "workers that run here: 1" in done.stdout


def test_workers_of_the_folder_above_are_named_with_what_to_do(tmp_path: Path, server: Valkey, start: Start) -> None:
    shop = folder(tmp_path, "shop", jobs__empty="")
    start(str(BIN / "rq"), "worker", "mail", "-u", database(server, 6), cwd=shop)
    until_rq_workers(database(server, 6), 1)
    done = initialised(shop / "jobs")
    assert done.returncode == 2
    assert f"rq in {shop}, queues mail (which this folder is a part of: type `headway init` there)" in done.stdout


def test_in_a_part_of_an_application_its_folder_is_named(tmp_path: Path) -> None:
    broker = "redis://127.0.0.1:1/0"
    shop = folder(tmp_path, "shop", proj____init__="", proj__celery=CELERY_APP.format(broker=broker), proj__jobs__x="")
    done = initialised(shop / "proj/jobs")
    assert done.returncode == 2
    assert f"type `headway init` in {shop}" in done.stderr
    assert not list((shop / "proj/jobs").glob("*.toml"))


def test_an_application_whose_broker_is_not_in_its_text_is_named(
    tmp_path: Path, server: Valkey, neighbours: dict[str, Path]
) -> None:
    app = "from celery import Celery\nfrom config import BROKER\n\napp = Celery('shop', broker=BROKER)\n"
    done = initialised(folder(tmp_path, "shop", tasks=app))
    assert done.returncode == 2, done.stdout
    assert "tasks:app was found, and the URL of its broker was not" in done.stderr
    assert "name it with --broker URL, or add --import-app, which asks the application" in done.stderr


def test_two_applications_below_a_folder_have_pools_of_their_own(tmp_path: Path, server: Valkey) -> None:
    def app(number: int, queue: str) -> str:
        broker = database(server, number)
        return f'from celery import Celery\n\napp = Celery("x", broker="{broker}", task_default_queue="{queue}")\n'

    both = folder(tmp_path, "both", shop__tasks=app(7, "mail"), bills__tasks=app(8, "bills"))
    done = initialised(both)
    assert done.returncode == 0, done.stderr
    templates = host_file.load(both / "host.toml").templates
    assert {name: each.argv[2] for name, each in templates.items()} == {
        "mail": "shop.tasks:app",
        "bills": "bills.tasks:app",
    }


def test_what_an_option_or_a_wrapper_does_is_said_of_a_running_worker(
    tmp_path: Path, server: Valkey, start: Start
) -> None:
    url = database(server, 10)
    shop = folder(tmp_path, "shop", tasks=CELERY_APP.format(broker=url))
    celery = [str(BIN / "celery"), "-A", "tasks", "worker", "-Q", "mail", "-P", "solo", "-B", "--without-heartbeat"]
    start("timeout", "600", *celery, *QUIET, cwd=shop)
    until_bound(url, "mail")
    done = initialised(shop)
    assert done.returncode == 0, done.stderr
    for sentence in (
        "--beat is left out: each worker would send all jobs of Celery's schedule",
        "--without-heartbeat is left out: ",
        "--pool solo is kept: ",
        "timeout, which started it, is left out: timeout passes the signal to stop on",
    ):
        assert sentence in done.stdout, done.stdout
    argv = next(iter(host_file.load(shop / "host.toml").templates.values())).argv
    assert "-B" not in argv
    assert "timeout" not in argv
