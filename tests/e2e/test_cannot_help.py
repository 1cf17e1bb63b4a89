"""`headway up` with Celery workers that cannot help: more of them would get no jobs, and none is started."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu import Queue

from e2e.running_up import RunningUp, running_up
from support.rabbitmq import RabbitServer
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(1200)]

TASKS = 60
TASK_S = 2.0
WATCHED_S = 40.0  # eight evaluations, each of which could ask for workers
SHOP = """
import os, time
from celery import Celery
from kombu import Queue
app = Celery("shop", broker=os.environ["BROKER_URL"])
arguments = {"x-single-active-consumer": True} if os.environ["IS_SINGLE"] else None
app.conf.update(
    task_queues=[Queue("tasks", queue_arguments=arguments)],
    worker_prefetch_multiplier=int(os.environ["PREFETCH"]),
    broker_connection_retry_on_startup=True,
)
@app.task(name="work", rate_limit=os.environ["RATE"] or None)
def work(seconds):
    time.sleep(seconds)
"""
PROFILES = """
brokers:
  shop: {{url: "{url}", library: celery, management_url: "{management}"}}
pools:
  tasks: {{queues: [shop/tasks], template: tasks, workers_min: 1, workers_max: 8, objective: {{target_s: 5}}}}
"""
HOST = """
[templates.tasks]
argv = ["{python}", "-m", "celery", "-A", "shop", "worker", "-c", "1", "-n", "$(HEADWAY_WORKER_ID)@%h", "-Q", "tasks"]
working_directory = "{folder}"
environment = {{ BROKER_URL = "{url}", IS_SINGLE = "{single}", PREFETCH = "{prefetch}", RATE = "{rate}" }}
ready_pattern = "ready"

[templates.tasks.resources]
cpu_cores = 0.02
memory_bytes = "32MB"
"""


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    server = RabbitServer(tmp_path_factory.mktemp("rabbitmq"))
    try:
        server.start()
        yield server
    finally:
        server.close()


def pool_of(up: RunningUp) -> dict[str, Any]:
    (pool,) = up.ask("/v1/pools")["pools"]
    return dict(pool)


def targets(up: RunningUp, *, since_s: float) -> list[int]:
    """The counts that were decided since, the newest first."""
    rows = up.ask("/v1/decisions", pool="tasks", limit=50)["decisions"]
    return [each["decision"]["target_workers"] for each in rows if each["decided_at_s"] >= since_s]


def run(folder: Path, rabbitmq: RabbitServer, *, single: str = "", prefetch: int = 4, rate: str = "") -> Any:
    """An `up` for this application in a virtual host of its own, and the URL of that."""
    vhost = folder.name
    rabbitmq.make_vhost(vhost)
    url = rabbitmq.make_url(vhost)
    (folder / "shop.py").write_text(SHOP)
    (folder / "profiles.yaml").write_text(PROFILES.format(url=url, management=rabbitmq.management_url))
    text = HOST.format(python=sys.executable, folder=folder, url=url, single=single, prefetch=prefetch, rate=rate)
    (folder / "host.toml").write_text(text)
    return running_up(folder, {"PYTHONPATH": os.pathsep.join(sys.path)}), url


def test_one_worker_runs_where_the_queue_has_a_single_active_consumer(tmp_path: Path, rabbitmq: RabbitServer) -> None:
    installation, url = run(tmp_path, rabbitmq, single="yes")
    with installation as up, Celery("shop", broker=url) as app:
        eventually(lambda: pool_of(up)["running_workers"] == 1, within_s=200)
        app.conf.task_queues = [Queue("tasks", queue_arguments={"x-single-active-consumer": True})]
        for _ in range(TASKS):
            app.send_task("work", [TASK_S], queue="tasks", ignore_result=True)
        eventually(lambda: bool(pool_of(up)["bottlenecks"]), within_s=90)
        shown = pool_of(up)
        assert any("single active consumer" in cause for cause in shown["causes"])
        assert "single active consumer" in " ".join(up.ask("/v1/health")["reasons"])
        assert "the others would only wait" in up.headway("explain", "tasks")
        time.sleep(WATCHED_S)  # what must not happen has this long to happen
        assert set(targets(up, since_s=0.0)) <= {0, 1}, up.headway("get", "decisions", "--pool", "tasks")
        assert up.started("tasks") == 1, up.headway("get", "decisions", "--pool", "tasks")
