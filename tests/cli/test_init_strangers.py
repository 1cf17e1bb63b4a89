"""Which workers and brokers `headway init` takes for those of its folder, case by case, without processes."""

from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.commands.worker_commands import understood
from headway.cli.setup.application import Application, application_in, declare
from headway.cli.setup.broker_candidates import candidate
from headway.cli.setup.broker_survey import FoundBroker
from headway.cli.setup.found_connections import FoundConnection, connections
from headway.cli.setup.ownership import stranger
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.collect.libraries import Libraries
from headway.collect.source import FoundQueue
from headway.connections import Connection, shown

CELERY = "/v/bin/python /v/bin/celery -A shop worker -Q mail"
HEADWAYS = {"HEADWAY_WORKER_ID": "w"}


def worker(line: str = CELERY, *, folder: str = "/", **values: object) -> RunningWorker:
    command = understood(line.split())
    assert command is not None
    return replace(RunningWorker(pid=7, command=command, folder=folder, environment={}), **values)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder of an application, in which `headway init` is typed."""
    folder = (tmp_path / "shop").resolve()
    folder.mkdir()
    (folder / "shop.py").write_text("from celery import Celery\n\napp = Celery('shop')\n")
    return folder


def why_not(found: RunningWorker, here: Path) -> str | None:
    judged = stranger(found, here=here, files_folder=here)
    return None if judged is None else judged.why


def test_a_worker_is_the_folders_own_by_its_folder_module_paths_or_program(here: Path) -> None:
    above = str(here.parent)
    (here.parent / "link").symlink_to(here)
    for own in (
        worker(folder=str(here)),
        worker(folder=str(here / "jobs")),
        worker(folder=f"{above}/link"),
        worker(folder="/"),  # its module is here
        worker("/v/bin/rq worker mail", folder="/srv/other", search_folders=(str(here / "src"),)),
        worker(f"{here}/.venv/bin/rq worker mail", folder="/"),
        worker(folder=str(here), environment=HEADWAYS, output_files=(f"{here}/.headway/agent/logs/w.log",)),
    ):
        assert why_not(own, here) is None, own


def test_other_workers_are_named_with_what_makes_them_others(here: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "shop.py").touch()  # a module of the same name
    for found, why in (
        (worker(folder=str(other)), ""),
        (worker(folder="/", search_folders=(str(other),)), ""),
        (worker("/v/bin/rq worker mail", folder="/"), ""),
        (worker(f"{here}/.venv/bin/rq worker mail", folder=str(other)), ""),  # a Python that several share
        (worker(folder=f"{here}-2"), ""),
        (worker(folder=str(here), user="bob"), "as bob: type `headway init` as that user"),
        (worker(folder=str(here), environment=HEADWAYS), "started by another Headway"),
        (worker(folder=str(here), environment=HEADWAYS, output_files=("/var/w.log",)), "started by another Headway"),
        (worker(folder=str(here), is_in_container=True), "in a container: an agent for it runs in that container"),
        (
            worker("/v/bin/rq worker mail", folder=str(here.parent)),
            "which this folder is a part of: type `headway init` there",
        ),
    ):
        assert why_not(found, here) == why, found


def broker(url: str, *queues: str, library: str = "celery", **values: object) -> FoundBroker:
    found = candidate(url, **{"source": "REDIS_URL", **values})  # type: ignore[arg-type]
    return FoundBroker(
        candidate=found,
        library=Libraries().of(Connection(name="x", url=found.url, library=library)),
        queues=tuple(FoundQueue(name=each, waiting_jobs=1) for each in queues),
    )


def test_queues_that_only_strangers_serve_are_left_to_them() -> None:
    """Three applications of one database: a worker of this one would not know the tasks of another."""
    there = {"CELERY_BROKER_URL": "redis://h/0"}
    theirs = worker("celery -A news worker -Q news", environment=there)
    unnamed = worker("celery -A bills worker", environment=there)
    (found,), _ = connections([broker("redis://h/0", "celery", "mail", "news")], [], strangers=[theirs, unnamed])
    assert (found.known_queues, found.others_queues) == (["mail"], ["celery", "news"])
    found.declared = ["celery"]  # two applications share it
    assert (found.known_queues, found.others_queues) == (["celery", "mail"], ["news"])


@pytest.mark.parametrize(
    ("written", "is_ours"),
    [
        ("redis://h/0", True),
        ("redis://h/9", False),  # another database of the same server
        ("redis://alias/9", True),  # perhaps the same server by another name: the connection says so
        (None, True),
        ("redis+socket:///run/redis", True),
        ("redis://[h/0", True),  # which is no URL
    ],
)
def test_a_worker_reads_what_its_source_writes_out_unless_that_is_another_server(
    here: Path, written: str | None, *, is_ours: bool
) -> None:
    found = replace(broker("redis://h/0", "mail"), addresses=frozenset({("10.0.0.1", 6379)}))
    app = CeleryApp(app="shop:app", folder=here, file=here / "shop.py", broker=written)
    ours = worker(folder=str(here), app=app, addresses=frozenset({("10.0.0.1", 6379)}))
    (connection,), _ = connections([found], [ours])
    assert bool(connection.workers) is is_ours


def test_a_redis_says_which_of_its_databases_a_worker_reads(here: Path) -> None:
    """Whose configuration nobody can read from outside, and whose queue has the same name in both."""
    ends = frozenset({("10.0.0.2", 50_000)})
    server = frozenset({("10.0.0.1", 6379)})
    first = replace(broker("redis://h/0", "mail"), addresses=server, other_clients=ends)
    third = replace(broker("redis://h/3", "mail"), addresses=server, clients=ends)
    ours = worker(folder=str(here), addresses=server, own_addresses=ends)
    found, _ = connections([first, third], [ours])
    assert [len(each.workers) for each in found] == [0, 1]
    (alone,), strays = connections([first], [ours])
    assert (alone.workers, strays) == ([], [ours])


def test_no_queue_is_left_to_a_stranger_for_its_name_alone() -> None:
    """A worker that starts up is connected to nothing yet, and no socket in the file system shows who is at it."""
    stranger_here = worker("celery -A news worker -Q mail", addresses=frozenset())
    (found,), _ = connections([broker("unix:///run/redis?db=0", "mail")], [], strangers=[stranger_here])
    assert (found.known_queues, found.strangers) == (["mail"], [])
    (found,), _ = connections([broker("unix:///run/redis?db=0", "mail")], [stranger_here])
    assert found.workers == [stranger_here]


def declared(application: Application, *brokers: FoundBroker) -> tuple[list[list[str]], list[str]]:
    found = [FoundConnection(name="", broker=each, is_declared_only=each.candidate.is_guess) for each in brokers]
    said = declare(application, found, {})
    return [each.declared for each in found], said


def with_queue(folder: Path, broker: str = "") -> Application:
    more = f", broker={broker!r}" if broker else ""
    text = f"from celery import Celery\n\napp = Celery('x'{more})\n\n@app.task(queue='mail')\ndef f(): ...\n"
    (folder / "shop.py").write_text(text)
    return application_in(folder)


def test_an_application_without_a_broker_is_assumed_at_the_usual_database_only(here: Path) -> None:
    usual = broker("redis://127.0.0.1:6379/0", is_guess=True)
    another = broker("redis://127.0.0.1:6379/3", "mail", is_guess=True)  # somebody's queue of that name
    queues, said = declared(with_queue(here), another, usual)
    assert queues == [[], ["mail"]]
    assert said == [
        "shop:app: nothing here names its broker, and redis://127.0.0.1:6379/0 is assumed: name it with --broker URL"
    ]
    assert declared(with_queue(here), another) == ([[]], [])


def test_the_broker_of_a_variable_goes_before_the_usual_one(here: Path) -> None:
    usual = broker("redis://127.0.0.1:6379/0", is_guess=True)
    assert declared(with_queue(here), usual, broker("redis://h/1")) == ([[], ["mail"]], [])


@pytest.mark.parametrize(
    ("own", "queues", "ends"),
    [
        ("redis://h:6379/17", ["mail"], None),
        ("redis://h:6379/3", [], "its queues are left out"),  # another database of that server
        ("redis://redis:6379/0", ["mail"], "--broker is taken in its place"),  # a name that only containers know
        ("redis://[h/0", ["mail"], "--broker is taken in its place"),
    ],
)
def test_of_an_application_of_another_database_nothing_is_declared(
    here: Path, own: str, queues: list[str], ends: str | None
) -> None:
    found, said = declared(with_queue(here, own), broker("redis://h/17", source="--broker"))
    assert found == [queues]
    assert said == ([] if ends is None else [f"shop:app names {shown(own)} as its broker: {ends}"])


def test_dramatiqs_queues_are_declared_in_a_rabbitmq_and_else_named(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("import dramatiq\n\n@dramatiq.actor(queue_name='mail')\ndef f(): ...\n")
    rabbit = broker("amqp://h", library="rabbitmq", source="RABBITMQ_URL")
    assert declared(application_in(tmp_path), rabbit) == ([["mail"]], [])
    assert declared(application_in(tmp_path), broker("redis://h/0"))[1] == [
        "queues of Dramatiq (mail): Headway reads them in RabbitMQ only, and no RabbitMQ of this application was found"
    ]
