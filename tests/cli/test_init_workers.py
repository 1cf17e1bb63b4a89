"""Command lines and variables of workers that run: what `headway init` takes over, and what it leaves out."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.agent.config.commands.worker_commands import WorkerCommand, understood
from headway.agent.config.library_presets import RQ_SAFE
from headway.agent.config.worker_programs import library_in_title
from headway.cli.setup.broker_candidates import as_read, candidate, place_of
from headway.cli.setup.broker_survey import FoundBroker
from headway.cli.setup.found_connections import connections
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.source import celery_apps
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.cli.setup.source.source_files import read_sources
from headway.cli.setup.worker_environment import carried
from headway.cli.setup.worker_templates import Templates, celery_url
from headway.collect.libraries import Libraries
from headway.collect.source import FoundQueue
from headway.connections import Connection
from headway.local.files import read_regular

SECRET = "s3cret-7"
CELERY = "/v/bin/python /v/bin/celery "


def known(line: str) -> WorkerCommand:
    command = understood(line.split())
    assert command is not None, line
    return command


@pytest.mark.parametrize("app", ["", ".", "..", "a..b", "/", "/etc/passwd", "a/b", "../x", ":", "\x1b[2J"])
def test_an_application_that_is_no_module_is_none(tmp_path: Path, app: str) -> None:
    """It is a word of a command line, which any user of the machine may write: one ended `headway init`."""
    assert celery_apps.named(app, tmp_path) is None


@pytest.mark.timeout(30)
@pytest.mark.parametrize("made", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_what_is_no_file_holds_nobody_up(tmp_path: Path, made: Callable[[Path], None]) -> None:
    """A folder of another user may hold a pipe that nobody writes to, and a device without end."""
    made(tmp_path / "shop.py")
    assert celery_apps.named("shop", tmp_path) is None
    assert celery_apps.find(read_sources(tmp_path).files) == []
    with pytest.raises(OSError, match="no regular file"):
        read_regular(tmp_path / "shop.py", 10)


@pytest.mark.parametrize(
    ("line", "words", "queues", "concurrency"),
    [
        ("-A shop worker -Q mail,news -c 4 -l debug", "-A shop worker --loglevel DEBUG", "mail news", 4),
        ("--app=shop worker --queues=mail --concurrency=2", "--app=shop worker --loglevel INFO", "mail", 2),
        ("-Ashop worker -Qmail -c8 -Ofair -E", "-Ashop worker -Ofair -E --loglevel INFO", "mail", 8),
        ("worker -A shop -l WARNING -n w1@%h --pidfile p -f log", "worker -A shop --loglevel INFO", "", None),
        ("-A shop worker --autoscale 10,3 -X slow", "-A shop worker --loglevel INFO", "", 10),
        ("-A shop -b redis://h/0 worker --odd x", "-A shop worker --odd x --loglevel INFO", "", None),
    ],
)
def test_celery_workers_keep_what_is_theirs(line: str, words: str, queues: str, concurrency: int | None) -> None:
    command = known(CELERY + line)
    assert (" ".join(command.words), " ".join(command.queues), command.concurrency) == (words, queues, concurrency)


@pytest.mark.parametrize(
    ("line", "words", "queues"),
    [
        ("/v/bin/python /v/bin/rq worker high low", "worker", "high low"),
        ("/v/bin/python -m rq.cli worker -u redis://h/0 -b --name x mail", "worker", "mail"),
        (
            "/v/bin/python -u /v/bin/rq worker -w my.Worker -q --with-scheduler",
            "worker -w my.Worker --with-scheduler",
            "default",
        ),
        ("rq worker-pool -n 4 high -ds round_robin", "worker -ds round_robin", "high"),
        ("/v/bin/rqworker mail", "worker", "mail"),
        ("/v/bin/python manage.py rqworker mail --settings s", "rqworker --settings s", "mail"),
    ],
)
def test_rq_workers_keep_what_is_theirs(line: str, words: str, queues: str) -> None:
    command = known(line)
    assert (" ".join(command.words), " ".join(command.queues)) == (words, queues)


@pytest.mark.parametrize(
    "line",
    [
        *(CELERY + verb for verb in ("-A shop beat", "-A shop flower", "inspect worker", "-A shop multi start worker")),
        *("/v/bin/rq info", "python -c rq", "python", "vim rq worker", "sh -c rq", "python manage.py runserver", ""),
    ],
)
def test_nothing_else_is_a_worker(line: str) -> None:
    assert understood(line.split()) is None


def test_what_would_do_damage_in_many_workers_is_left_out_and_said() -> None:
    command = known(CELERY + "-A shop worker -B --purge -D --without-heartbeat")
    assert command.words == ("-A", "shop", "worker", "--loglevel", "INFO")
    assert [remark.partition(" is left out: ")[0] for remark in command.remarks] == [
        *("--beat", "--detach", "--purge", "--without-heartbeat"),
    ]
    assert [each.option for each in command.hazards] == ["--beat", "--detach", "--purge", "--without-heartbeat"]


def test_the_solo_pool_is_kept_and_said() -> None:
    command = known(CELERY + "-A shop worker -P solo")
    assert "-P solo" in " ".join(command.words)
    assert [remark.partition(":")[0] for remark in command.remarks] == ["--pool solo is kept"]


def test_no_secret_of_a_command_line_stays_in_it() -> None:
    command = known(CELERY + f"-A shop -b redis://:{SECRET}@h/0 --result-backend redis://:{SECRET}@h/1 worker")
    assert command.words == ("-A", "shop", "worker", "--loglevel", "INFO")
    assert SECRET not in f"{command} {command.remarks}"
    assert command.remarks[0].startswith("--result-backend is left out, whose value holds a password")


def test_a_worker_that_hides_its_command_line_is_known_by_its_title() -> None:
    assert library_in_title("[celeryd: celery@h:MainProcess] -active- (-A shop worker)") == "celery"
    assert library_in_title("rq:worker:ab12: Listening on mail") == "rq"
    assert library_in_title("/v/bin/python") is None


def test_variables_that_say_how_are_taken_and_others_are_named() -> None:
    worker = {
        "DJANGO_SETTINGS_MODULE": "shop.settings",
        "SECRET_KEY": SECRET,
        "DATABASE_URL": f"pg://u:{SECRET}@h",
        "HOME": "/root",
        "HEADWAY_WORKER_ID": "w",
        "SHARED": "1",
        "RABBITMQ_URL": "guest:guest@h",
        "REDIS_URL": "redis://h/1",
        "CELERY_BROKER_URL": f"redis://:{SECRET}@h/0",
        "RQ_REDIS_URL": f"redis://:{SECRET}@h/2",
    }
    taken = carried(worker, own={"SHARED": "1"}, written={"RQ_REDIS_URL": worker["RQ_REDIS_URL"]})
    assert taken.variables == {
        "DJANGO_SETTINGS_MODULE": "shop.settings",
        "REDIS_URL": "redis://h/1",
        "RQ_REDIS_URL": worker["RQ_REDIS_URL"],  # known to whoever types the command
    }
    assert taken.missing == ("CELERY_BROKER_URL", "DATABASE_URL", "RABBITMQ_URL", "SECRET_KEY")
    assert SECRET not in repr(taken)


def templates(tmp_path: Path) -> Templates:
    return Templates(source_folder=tmp_path, folder=tmp_path, env={}, dotenv={})


@pytest.mark.parametrize(("url", "has_note"), [("redis://h/0", False), (f"redis://:{SECRET}@h/0", True)])
def test_a_note_says_why_a_url_is_no_word_of_the_command(tmp_path: Path, url: str, has_note: bool) -> None:
    command = known("/v/bin/rq worker mail")
    worker = RunningWorker(pid=7, command=command, folder="/srv/shop", environment={"PYTHONUNBUFFERED": "1"})
    made = templates(tmp_path).like(worker, ["mail"], candidate(url, source="RQ_REDIS_URL"))
    assert made.environment["PYTHONUNBUFFERED"] == "1"
    assert ("environment" in made.notes) is has_note


def test_a_template_is_as_the_worker_is(tmp_path: Path) -> None:
    worker = RunningWorker(
        pid=7,
        command=known(CELERY + "-A shop worker -c 8 --time-limit 300 -P threads"),
        folder="/srv/shop",
        environment={"REMAP_SIGTERM": "SIGQUIT", "CELERY_BROKER_URL": f"redis://:{SECRET}@h:6379/0"},
        user="shop",
    )
    found = candidate(f"redis://:{SECRET}@h/0", source="CELERY_BROKER_URL")
    made = templates(tmp_path).like(worker, ["mail", "news"], found)
    assert made.argv[-8:-2] == ("--queues", "mail,news", "--concurrency", "8", "--prefetch-multiplier", "1")
    assert made.argv[-2:] == ("--hostname", "worker-$(HEADWAY_WORKER_ID)@%h")
    assert (made.slots, made.cpu_cores, made.memory) == (8, 0.8, "512MB")
    assert (made.working_directory, made.user) == ("/srv/shop", "shop")
    assert made.stop_signal == "INT"  # TERM is remapped, and would end its jobs
    assert made.environment["CELERY_BROKER_URL"] == found.given  # the same broker, by the URL that was typed here


@pytest.mark.parametrize(
    ("line", "children", "written"),
    [
        ("-c 8", 0, 8),
        ("-c 8 -P solo", 0, 1),
        ("", 3, 3),
        ("-P gevent", 0, None),  # worker_concurrency of its application may be 100
        ("", 0, None),  # worker_pool may be solo, or threads
    ],
)
def test_a_concurrency_that_nobody_knows_is_left_to_the_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, children: int, written: int | None
) -> None:
    """An option would override what the application says."""
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    worker = RunningWorker(
        pid=7, command=known(f"{CELERY}-A shop worker {line}"), folder="/srv", environment={}, children=children
    )
    made = templates(tmp_path).like(worker, ["mail"], candidate("redis://h/0", source="x"))
    words = list(made.argv)
    assert (words[words.index("--concurrency") + 1] if "--concurrency" in words else None) == (
        None if written is None else str(written)
    )
    assert made.slots == (6 if written is None else written)  # Celery's own default
    assert any("worker_concurrency" in remark for remark in made.remarks) == (written is None)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("--include headway_celery_reporter", ""),
        ("--include shop.more,headway_celery_reporter", "--include shop.more"),
        ("-Ishop.more,headway_celery_reporter", "-Ishop.more"),
        ("--include=shop.more", "--include=shop.more"),
        ("--include=headway_celery_reporter", ""),
    ],
)
def test_what_an_agent_has_added_to_its_worker_is_no_part_of_a_template(tmp_path: Path, given: str, kept: str) -> None:
    """The files are written again beside workers of this folder's own Headway."""
    command = known(f"{CELERY}-A shop worker {given} -c 1")
    worker = RunningWorker(pid=7, command=command, folder="/srv", environment={})
    argv = templates(tmp_path).like(worker, ["mail"], candidate("redis://h/0", source="x")).argv
    assert " ".join(argv[3:]).partition(" --loglevel")[0] == f"shop worker {kept}".strip()


@pytest.mark.parametrize(("given", "workers"), [(f"redis://:{SECRET}@h/0", 1), ("redis://elsewhere/0", 0), ("", 1)])
def test_a_queue_of_the_same_name_makes_no_worker_of_another_broker_ours(given: str, workers: int) -> None:
    ours = candidate(f"redis://:{SECRET}@h/0", source="CELERY_BROKER_URL")
    app = CeleryApp(app="shop:app", folder=Path("/srv"), file=Path("/srv/shop.py"), broker_variable="SHOP_BROKER")
    worker = RunningWorker(
        pid=7,
        command=known(CELERY + "-A shop worker -Q mail"),
        folder="/srv",
        environment={"SHOP_BROKER": given} if given else {},  # without it only the queue says whose it is
        app=app,
    )
    library = Libraries().of(Connection(name="x", url=ours.url, library="celery"))
    (found,), strays = connections(
        [FoundBroker(candidate=ours, library=library, queues=(FoundQueue(name="mail", waiting_jobs=1),))], [worker]
    )
    assert (len(found.workers), len(strays)) == (workers, 1 - workers)


def two_apps(tmp_path: Path, **queues_of: tuple[str, ...]) -> Templates:
    """Two applications of one broker, with the queues of each."""
    apps = [
        CeleryApp(app=f"{name}.tasks:app", folder=tmp_path, file=tmp_path / name / "tasks.py", broker="redis://h/0")
        for name in queues_of
    ]
    named = {f"{name}.tasks:app": queues for name, queues in queues_of.items()}
    return Templates(source_folder=tmp_path, folder=tmp_path, env={}, dotenv={}, apps=apps, queues_of=named)


def test_of_two_applications_in_one_broker_each_serves_its_own_queue(tmp_path: Path) -> None:
    """Celery discards a task that its application does not know: a worker of the other one would lose it."""
    made = two_apps(tmp_path, shop=("mail", "celery"), bills=("bills", "celery"))
    at = candidate("redis://h/0", source="x")
    served = {queue: made.plain("celery", [queue], at) for queue in ("mail", "bills", "celery")}
    assert {queue: each.argv[2] for queue, each in served.items()} == {
        "mail": "shop.tasks:app",
        "bills": "bills.tasks:app",
        "celery": "shop.tasks:app",
    }
    assert (served["mail"].remarks, served["bills"].remarks) == ([], [])
    assert served["celery"].remarks == [
        "bills.tasks:app may send to celery, too: a worker of shop.tasks:app discards tasks that it does not know"
    ]


def test_no_template_for_a_queue_is_like_a_worker_of_another_application(tmp_path: Path) -> None:
    made = two_apps(tmp_path, shop=("mail",), bills=("bills",))
    app = CeleryApp(app="tasks:app", folder=tmp_path / "shop", file=tmp_path / "shop/tasks.py")
    worker = RunningWorker(pid=7, command=known(CELERY + "-A tasks worker"), folder="/srv", environment={}, app=app)
    assert [made.can_serve(worker, queue) for queue in ("mail", "bills", "unknown")] == [True, False, True]


def test_an_rq_worker_class_of_its_own_is_kept(tmp_path: Path) -> None:
    def like(line: str) -> tuple[str, ...]:
        worker = RunningWorker(pid=7, command=known(line), folder="/srv", environment={})
        return tuple(templates(tmp_path).like(worker, ["mail"], candidate("redis://h/0", source="x")).argv)

    (tmp_path / "headway").touch()
    assert like(f"{tmp_path}/rq worker mail") == (f"{tmp_path}/rq", "worker", *RQ_SAFE, "--url", "redis://h/0", "mail")
    assert like(f"{tmp_path}/rq worker -w my.W mail")[1:] == ("worker", "-w", "my.W", "--url", "redis://h/0", "mail")
    assert like("/none/rq worker mail")[1:] == ("worker", "--url", "redis://h/0", "mail")


def test_celery_applications_are_found_by_reading(tmp_path: Path) -> None:
    for name, text in {
        "tasks.py": "from celery import Celery\napp = Celery('a', broker='redis://h/0')\nraise SystemExit\n",
        "shop/celery.py": "import celery\ncelery_app: object = celery.Celery('b')\n",
        "src/pack/__init__.py": "from celery import Celery\nc = Celery()\n",
        "broken.py": "Celery( = ",
        ".venv/x.py": "app = Celery()",
        "tests/x.py": "app = Celery()",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [(each.app, each.folder.name, each.broker) for each in celery_apps.find(read_sources(tmp_path).files)] == [
        ("tasks:app", tmp_path.name, "redis://h/0"),
        ("shop.celery:celery_app", tmp_path.name, None),
        ("pack:c", "src", None),
    ]
    named = celery_apps.named("shop", tmp_path)
    assert named is not None
    assert named.app == "shop.celery:celery_app"


@pytest.mark.parametrize(
    ("given", "read", "back"),
    [
        ("redis://h/0", "redis://h/0", "redis://h/0"),
        ("redis+socket:///s?virtual_host=3", "unix:///s?db=3", "redis+socket:///s?virtual_host=3"),
        ("rediss://h/0?ssl_cert_reqs=CERT_NONE", "rediss://h/0?ssl_cert_reqs=none", None),
        ("pyamqp://h//", "amqp://h//", None),
        ("nonsense", "nonsense", None),
    ],
)
def test_urls_are_read_as_libraries_write_them(given: str, read: str, back: str | None) -> None:
    assert as_read(given) == read
    assert back is None or celery_url(read) == back


def test_one_broker_has_one_place() -> None:
    assert place_of("redis://localhost") == place_of("redis://u:p@127.0.0.1:6379/0") == place_of("redis://[::1]:6379")
    assert place_of("redis://h/0") != place_of("redis://h/1")
    assert place_of("redis://h:bad") == ("redis://h:bad",)
