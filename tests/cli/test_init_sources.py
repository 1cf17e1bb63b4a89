"""Queues that `headway init` reads in an application's source, and where it says that it cannot."""

from pathlib import Path

import pytest

from headway.cli.setup.application import Application, application_in
from headway.cli.setup.source import celery_apps, source_files
from headway.cli.setup.source.declared_queues import files_with_queues
from headway.cli.setup.source.source_files import read_sources

HEAD = "from celery import Celery, shared_task\nfrom kombu import Queue\n\napp = Celery('shop')\n"
TASK = "\n@app.task\ndef mail():\n    pass\n"


def application(folder: Path, **files: str) -> Application:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return application_in(folder)


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("app.conf.task_routes = {'a.*': {'queue': 'a'}, 'b.*': 'b', 'c.*': {'queue': Queue('c')}}", "a b c"),
        ("app.conf.update(task_routes=([('a.*', {'queue': 'a'}), ('b.*', dict(queue='b'))],))", "a b"),
        ("app.conf['task_routes'] = [{'a.*': {'queue': 'a'}}, ('b.*', 'b')]", "a b"),
        ("app.conf.update({'task_routes': {'a.*': {'queue': 'a', 'priority': 3}, 'b': {'priority': 1}}})", "a"),
        ("app.conf.task_queues = (Queue('a', routing_key='a.#'), Queue(name='b'))", "a b"),
        ("app.conf.task_queues = [Queue(name) for name in ('a', 'b')]", "a b"),
        ("app.conf.task_queues = {'a': {'exchange': 'a'}}", "a"),
        ("app.conf.task_routes = {}\napp.conf.task_routes['a.f'] = {'queue': 'a'}", "a"),
        ("app.conf['task_routes'].update({'a.f': 'a'})\napp.conf.task_routes |= {'b.f': 'b'}", "a b"),
        ("app.conf.task_queues = [Queue('a')]\napp.conf.task_queues += [Queue('b')]", "a b"),
        ("app.conf.task_default_queue = 'a'", "a"),
        ("CELERY_TASK_ROUTES = {'a.*': {'queue': 'a'}}", "a"),
        ("CELERY_ROUTES = {'a.*': {'queue': 'a'}}", "a"),
        ("class Config:\n    task_routes = {'a.*': {'queue': 'a'}}\n\napp.config_from_object(Config)", "a"),
        ("A = 'a'\nROUTES = {'a.*': {'queue': A}}\napp.conf.task_routes = ROUTES", "a"),
        ("class Queues:\n    A = 'a'\n\n@app.task(queue=Queues.A)\ndef f(): ...", "a"),
        ("@shared_task(queue='a')\ndef f(): ...\n\n@shared_task(bind=True, queue='b')\ndef g(self): ...", "a b"),
        ("@app.task\ndef f(): ...\n\nf.apply_async((1,), queue='a')", "a"),
        ("@app.task\ndef f(): ...\n\nf.s(1).set(queue='a').apply_async()\nf.delay(1)", "a celery"),
        ("app.send_task('other.f', queue='a')", "a"),
        ("app.conf.beat_schedule = {'n': {'task': 'a.f', 'schedule': 1, 'options': {'queue': 'a'}}}", "a"),
        (f"app.conf.task_routes = {{'tasks.mail': 'a'}}\n{TASK}", "a"),
        (f"app.conf.task_routes = {{'news.*': 'a'}}\n{TASK}", "a celery"),
        (f"app.conf.task_routes = {{'news.*': 'a'}}\napp.conf.task_default_queue = 'd'\n{TASK}", "a d"),
        (TASK, "celery"),
        ("", ""),
        ("from queue import Queue as Q\nx = Q('no')\nx.set(1)\nprint(queue=3)", ""),
    ],
)
def test_celery_queues_are_read_from_literals(tmp_path: Path, text: str, queues: str) -> None:
    found = application(tmp_path, tasks=HEAD + text).declared["tasks:app"]
    assert (" ".join(found.queues), found.unread) == (queues, ())


@pytest.mark.parametrize(
    "text",
    [
        "app.conf.task_routes = routes()",
        "app.conf.task_routes = {'a.*': {'queue': name()}}",
        "app.conf.task_routes = ('shop.routers.Router',)",
        "app.conf.task_queues = [Queue(n) for n in names()]",
        "app.conf.task_routes['a.f'] = {'queue': name()}",
        "app.conf.task_default_queue = os.environ['QUEUE']",
        "@app.task(queue=NAME)\ndef f(): ...",
        "app.config_from_object('elsewhere.celeryconfig')",
        "app.config_from_envvar('CONFIG')",
        "app.config_from_object('django.conf:settings', namespace='CELERY')",
    ],
)
def test_routes_that_code_makes_are_said_not_to_be_read(tmp_path: Path, text: str) -> None:
    (place,) = application(tmp_path, tasks=HEAD + text).declared["tasks:app"].unread
    assert place == f"{tmp_path}/tasks.py, line 5"


def test_the_settings_of_django_are_those_of_its_application(tmp_path: Path) -> None:
    found = application(
        tmp_path,
        proj__celery=HEAD + "app.config_from_object('django.conf:settings', namespace='CELERY')",
        proj__settings__base="import os\nCELERY_BROKER_URL = os.environ.get('BROKER', 'redis://h/5')\n"
        "CELERY_TASK_ROUTES = {'proj.mail.tasks.*': {'queue': 'mail'}}\n",
        proj__mail__tasks="from celery import shared_task\n\n@shared_task\ndef send(): ...\n",
    )
    (app,) = found.apps
    assert (app.app, app.broker_url({}), app.broker_url({"BROKER": "redis://h/6"})) == (
        *("proj.celery:app", "redis://h/5", "redis://h/6"),
    )
    assert (found.declared[app.app].queues, found.declared[app.app].unread) == (("mail",), ())


def test_each_of_two_applications_has_the_queues_of_its_own_folder(tmp_path: Path) -> None:
    tasks = "from celery import shared_task\n\n@shared_task(queue='{0}')\ndef f(): ...\n"
    found = application(
        tmp_path,
        shop__celery=HEAD,
        shop__tasks=tasks.format("mail"),
        bills__celery=HEAD,
        bills__jobs__tasks=tasks.format("bills"),
    )
    assert {name: each.queues for name, each in found.declared.items()} == {
        "shop.celery:app": ("mail",),
        "bills.celery:app": ("bills",),
    }


def test_an_application_that_a_function_makes_has_queues_and_a_sentence(tmp_path: Path) -> None:
    text = (
        "from celery import Celery\n\ndef make_app():\n    app = Celery('x')\n"
        "    app.conf.task_routes = {'a': 'mail'}\n    return app\n"
    )
    found = application(tmp_path, factory=text)
    assert (found.has_celery, found.declared[""].queues) == (True, ("mail",))
    (problem,) = found.problems
    assert problem.startswith(f"{tmp_path}/factory.py, line 4, makes a Celery application in a function")


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("from rq import Queue\nq = Queue('mail', connection=c)\nn = Queue(name='news')", "mail news"),
        ("import rq\nq = rq.Queue(connection=c)", "default"),
        ("from rq.decorators import job\n\n@job('mail', connection=c)\ndef f(): ...", "mail"),
        ("from rq import Worker\nWorker(['high', 'low'], connection=c)", "high low"),
        ("from rq.decorators import job\n\n@job(queue='mail', connection=c)\ndef f(): ...", "mail"),
        ("import django_rq\ndjango_rq.get_queue('mail')", "mail"),
        ("RQ_QUEUES = {'default': {'URL': 'redis://h'}, 'high': {}}", "default high"),
        ("from kombu import Queue\nq = Queue('no')", ""),
        ("import multiprocessing\nq = multiprocessing.Queue(3)  # not rq", ""),
    ],
)
def test_rq_queues_are_read_from_literals(tmp_path: Path, text: str, queues: str) -> None:
    assert " ".join(application(tmp_path, jobs=text).rq_queues) == queues


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("for name in ('high', 'low'):\n    Queue(name, connection=c)", ["line 4"]),
        ("from names import MAIL\nQueue(MAIL, connection=c)", ["line 4"]),
        ("from queues import mail\n@job(mail)\ndef f(): ...", []),
        ("mail = Queue('mail')\n@job(mail)\ndef f(): ...", []),
    ],
)
def test_names_of_rq_queues_that_code_makes_are_said_not_to_be_read(
    tmp_path: Path, text: str, lines: list[str]
) -> None:
    found = application(tmp_path, jobs=f"from rq import Queue\nfrom rq.decorators import job\n{text}")
    assert list(found.unread_rq) == [f"{tmp_path}/jobs.py, {each}" for each in lines]


def test_the_broker_of_an_application_that_a_function_makes_is_in_its_settings(tmp_path: Path) -> None:
    text = "def make():\n    app = Celery('x')\n    app.config_from_mapping(CELERY=dict(broker_url='redis://h/3'))\n"
    found = application(tmp_path, factory=f"from celery import Celery\n\n{text}")
    assert (found.title, found.factory_url({})) == ("a Celery application", "redis://h/3")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("q = rq.Queue(connection=redis.from_url(os.environ.get('SHOP') or 'redis://h/4'))", "redis://s/1"),
        ("q = rq.Queue(connection=redis.from_url(os.environ.get('UNSET') or 'redis://h/4'))", "redis://h/4"),
        ("q = rq.Queue(connection=redis.Redis.from_url('redis://h/3'))", "redis://h/3"),
        ("q = rq.Queue(connection=redis.Redis.from_url(os.environ['SHOP']))", "redis://s/1"),
        ("q = rq.Queue(connection=redis.Redis(host='h', db=2))", "redis://h:6379/2"),
        ("q = rq.Queue(connection=redis.Redis())", "redis://localhost:6379/0"),
        ("q = rq.Queue(connection=redis.Redis(host='h', password='p'))", None),
        ("q = rq.Queue(connection=redis.Redis(host=HOST))", None),
    ],
)
def test_the_broker_of_rq_is_read_from_literals_and_variables(tmp_path: Path, text: str, url: str | None) -> None:
    found = application(tmp_path, jobs=f"import os, redis, rq\n{text}\n")
    assert [*found.rq_urls({"SHOP": "redis://s/1"})] == ([url] if url else [])


def test_dramatiq_queues_are_read_from_literals(tmp_path: Path) -> None:
    text = "import dramatiq\n\n@dramatiq.actor(queue_name='mail')\ndef f(): ...\n\n@dramatiq.actor\ndef g(): ...\n"
    found = application(tmp_path, jobs=text)
    assert (found.dramatiq_queues, found.dramatiq_modules) == (["mail", "default"], ["jobs"])


def test_files_of_others_of_tests_and_behind_links_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.py").write_text(HEAD)
    here = tmp_path / "here"
    for name in ("venv/lib/x", "node_modules/x", "tests/x", "src/shop/test_x", "conftest", ".git/x", "a/b/c/d/e/f/x"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / f"{name}.py").write_text(HEAD)
    (here / "venv/pyvenv.cfg").touch()
    (here / "link").symlink_to(tmp_path / "outside")
    (here / "src/shop/tasks.py").write_text(HEAD)
    assert [each.app for each in celery_apps.find(read_sources(here).files)] == ["shop.tasks:app"]


@pytest.mark.parametrize(
    "content", [b"app.task(queue='x'\n", "# -*- coding: utf-8 -*-\napp.task(queue='ü')".encode("latin-1")]
)
def test_a_file_that_is_no_python_is_named_and_the_others_are_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(content)
    found = application(tmp_path, tasks=HEAD + "app.conf.task_routes = {'a': 'a'}")
    assert found.declared["tasks:app"].queues == ("a",)
    assert [each.partition(" was not read: it is no text of Python")[0] for each in found.problems] == [
        str(tmp_path / "broken.py")
    ]


def test_a_source_in_an_old_encoding_that_it_names_is_read(tmp_path: Path) -> None:
    text = f"# -*- coding: latin-1 -*-\n{HEAD}app.conf.task_routes = {{'ä': 'mail'}}\n"
    (tmp_path / "tasks.py").write_bytes(text.encode("latin-1"))
    assert application_in(tmp_path).declared["tasks:app"].queues == ("mail",)


def test_a_folder_that_may_not_be_read_has_no_source(tmp_path: Path) -> None:
    assert not application_in(tmp_path / "none").has_celery


def test_more_files_than_may_be_read_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "FILES_MAX", 2)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text("import celery\n\n@app.task\ndef f(): ...\n")
    sources = read_sources(tmp_path)
    assert len(sources.files) == 2
    assert sources.problems[0].startswith(f"of the source below {tmp_path}, 2 files were read, and no more")
    assert files_with_queues(sources, within_s=-1.0) == []
    assert sources.problems[1] == "queues were read in 0 of 2 files of source, and no more"
