"""`headway init` as a script against a real RabbitMQ whose management API is not at its usual port."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from collect.rabbit_shop import QUORUM, Shop
from headway.__main__ import main
from headway.agent.config.host_file import load
from headway.agent.config.templates import WORKER_ID_IN_ARGV
from headway.cli.profiles_file import load_profiles_file
from support.ports import free_port
from support.waiting import eventually

pytestmark = pytest.mark.e2e


def _headway(folder: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWAY_", "PYTHON"))}
    argv = [sys.executable, "-m", "headway", *words]
    return subprocess.run(
        argv, cwd=folder, env={**kept, **env}, capture_output=True, text=True, check=False, timeout=60
    )


class _Worker:
    def __init__(self, folder: Path, words: Sequence[str], env: Mapping[str, str]) -> None:
        self._log = folder / f"{uuid4().hex}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(words, cwd=folder, env={**os.environ, **env}, stdout=log, stderr=log)

    def until_ready(self) -> None:
        eventually(lambda: " ready." in self._log.read_text() or self._process.poll() is not None)
        assert self._process.poll() is None, self._log.read_text()[-2000:]

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@contextmanager
def _running(folder: Path, words: Sequence[str], env: Mapping[str, str]) -> Iterator[_Worker]:
    worker = _Worker(folder, words, env)
    try:
        yield worker
    finally:
        worker.end()


def test_init_reads_the_management_api_where_it_is_said_to_be_and_writes_it_down(shop: Shop, tmp_path: Path) -> None:
    shop.declare("mail")
    shop.declare("news", arguments=QUORUM)
    shop.publish("mail", 3)
    at = shop.server.management_url
    done = _headway(tmp_path, "init", "--broker", shop.url, "--management-url", at)
    assert done.returncode == 0, done.stderr
    assert "  rabbitmq/mail  waiting jobs: 3" in done.stdout
    assert "  rabbitmq/news  waiting jobs: 0" in done.stdout
    assert "guest:guest" not in done.stdout
    file = tmp_path / "profiles.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (connection,) = load_profiles_file(file).brokers
    assert (connection.url, connection.management_url) == (shop.url, at)
    brokers = f"rabbitmq = {{url = {json.dumps(connection.url)}, management_url = {json.dumps(at)}}}"
    checked = _headway(tmp_path, "collect", "--check", HEADWAY_BROKERS=brokers)
    assert checked.returncode == 0, checked.stderr
    assert "mail" in checked.stdout


@pytest.mark.parametrize("is_celery", [False, True])
def test_init_writes_no_pool_for_dead_letters(shop: Shop, tmp_path: Path, *, is_celery: bool) -> None:
    """A worker of such a pool ran failed tasks again, or a pool whose workers took none was late for ever."""
    shop.channel.exchange_declare("dlx", "fanout", durable=True, auto_delete=False)
    shop.declare("mail", arguments={"x-dead-letter-exchange": "dlx"})
    shop.declare("failed")
    shop.channel.queue_bind("failed", "dlx")
    shop.publish("failed", 2)
    env = {"CELERY_BROKER_URL": shop.url} if is_celery else {}
    words = () if is_celery else ("--broker", shop.url)
    done = _headway(tmp_path, "init", *words, "--management-url", shop.server.management_url, **env)
    assert done.returncode == 0, done.stderr
    assert "/failed  waiting jobs: 2  dead letters: no pool" in done.stdout
    (pool,) = load_profiles_file(tmp_path / "profiles.yaml").profiles
    assert [queue.partition("/")[2] for queue in pool.queues] == ["mail"]


def test_a_broker_of_the_environment_has_it_there_too(shop: Shop, tmp_path: Path) -> None:
    shop.declare("celery")
    at = shop.server.management_url
    done = _headway(tmp_path, "init", "--management-url", at, CELERY_BROKER_URL=shop.url)
    assert done.returncode == 0, done.stderr
    found = {each.url: each for each in load_profiles_file(tmp_path / "profiles.yaml").brokers}
    assert (found[shop.url].library, found[shop.url].management_url) == ("celery", at)


def test_without_the_management_api_init_names_the_option(shop: Shop, tmp_path: Path) -> None:
    shop.declare("mail")
    elsewhere = f"http://127.0.0.1:{free_port()}"
    done = _headway(tmp_path, "init", "--broker", shop.url, "--management-url", elsewhere)
    assert done.returncode == 2
    assert "`headway init`: --management-url" in done.stderr
    assert elsewhere in done.stderr
    assert not list(tmp_path.iterdir())


APP = 'from celery import Celery\n\napp = Celery("shop")\n'


@pytest.mark.parametrize("has_worker", [False, True], ids=["as its makers would", "like one that runs here"])
def test_two_celery_workers_of_the_template_that_init_wrote_run_beside_each_other(
    shop: Shop, tmp_path: Path, *, has_worker: bool
) -> None:
    """Each locks a queue that is named after the worker, so that a second one of that name cannot start."""
    (tmp_path / "shop.py").write_text(APP)
    env = {"CELERY_BROKER_URL": shop.url}
    by_hand = [str(Path(sys.executable).with_name("celery")), "-A", "shop", "worker", "-c", "1", "-l", "INFO"]
    with ExitStack() as stack:
        if has_worker:
            stack.enter_context(_running(tmp_path, by_hand, env)).until_ready()
        done = _headway(tmp_path, "init", "--broker", shop.url, "--management-url", shop.server.management_url, **env)
        assert done.returncode == 0, done.stderr
        (template,) = load(tmp_path / "host.toml").templates.values()
        argv = [[word.replace(WORKER_ID_IN_ARGV, each) for word in template.argv] for each in ("one", "two")]
        workers = [stack.enter_context(_running(tmp_path, words, template.environment)) for words in argv]
        for worker in workers:
            worker.until_ready()


@pytest.mark.parametrize(
    ("words", "breach"),
    [
        (
            ["--broker", "amqp://h", "--management-url", "http://u:se-cret@h:1"],
            "--management-url: expected http://HOST",
        ),
        (["--broker", "amqp://h", "--management-url", "h:15672"], "--management-url: expected http://HOST:PORT"),
        (["--broker", "redis://h", "--management-url", "http://h:1"], "--management-url is of a RabbitMQ, and no"),
        (
            ["--broker", "amqp://a", "--broker", "amqp://b", "--management-url", "http://h:1"],
            "--management-url could be of 2 brokers",
        ),
    ],
)
def test_a_management_url_that_cannot_be_is_refused(
    words: list[str], breach: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--dir", str(tmp_path), *words]) == 2
    said = capsys.readouterr().err
    assert breach in said
    assert "se-cret" not in said
    assert not list(tmp_path.iterdir())
