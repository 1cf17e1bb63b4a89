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
  shop: {{url: "{url}", library: celery{management}}}
pools:
  tasks: {{queues: [shop/tasks], template: tasks, workers_min: 1, workers_max: 8, objective: {{target_s: {target_s}}}}}
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


def targets(up: RunningUp) -> list[int]:
    """The counts that were decided, the newest first."""
    rows = up.ask("/v1/decisions", pool="tasks", limit=50)["decisions"]
    return [each["decision"]["target_workers"] for each in rows]


def send(app: Celery, *, seconds: float = TASK_S, tasks: int = TASKS) -> None:
    for _ in range(tasks):
        app.send_task("work", [seconds], queue="tasks", ignore_result=True)


def run(
    folder: Path,
    url: str,
    *,
    management: str = "",
    target_s: float = 5.0,
    single: str = "",
    prefetch: int = 4,
    rate: str = "",
) -> Any:
    """An `up` for this application."""
    (folder / "shop.py").write_text(SHOP)
    known = f', management_url: "{management}"' if management else ""
    (folder / "profiles.yaml").write_text(PROFILES.format(url=url, management=known, target_s=target_s))
    text = HOST.format(python=sys.executable, folder=folder, url=url, single=single, prefetch=prefetch, rate=rate)
    (folder / "host.toml").write_text(text)
    return running_up(folder, {"PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.fixture
def vhost(tmp_path: Path, rabbitmq: RabbitServer) -> str:
    """A virtual host of the test's own."""
    rabbitmq.make_vhost(tmp_path.name)
    return rabbitmq.make_url(tmp_path.name)


def test_one_worker_runs_where_the_queue_has_a_single_active_consumer(
    tmp_path: Path, rabbitmq: RabbitServer, vhost: str
) -> None:
    installation = run(tmp_path, vhost, management=rabbitmq.management_url, single="yes")
    with installation as up, Celery("shop", broker=vhost) as app:
        eventually(lambda: pool_of(up)["running_workers"] == 1, within_s=200)
        app.conf.task_queues = [Queue("tasks", queue_arguments={"x-single-active-consumer": True})]
        send(app)
        eventually(lambda: bool(pool_of(up)["bottlenecks"]), within_s=90)
        shown = pool_of(up)
        assert any("single active consumer" in cause for cause in shown["causes"])
        assert "single active consumer" in " ".join(up.ask("/v1/health")["reasons"])
        assert "the others would only wait" in up.headway("explain", "tasks")
        time.sleep(WATCHED_S)  # what must not happen has this long to happen
        assert set(targets(up)) <= {0, 1}
        assert up.started("tasks") == 1


def test_jobs_that_one_worker_has_taken_without_a_bound_start_no_other(
    tmp_path: Path, rabbitmq: RabbitServer, vhost: str
) -> None:
    """Its objective is long enough to react: no worker stands by for jobs that may come."""
    installation = run(tmp_path, vhost, management=rabbitmq.management_url, target_s=60.0, prefetch=0)
    with installation as up, Celery("shop", broker=vhost) as app:
        eventually(lambda: pool_of(up)["running_workers"] == 1, within_s=200)
        send(app)
        eventually(lambda: "no other worker can have those" in up.headway("explain", "tasks"), within_s=90)
        time.sleep(WATCHED_S)  # what must not happen has this long to happen
        assert set(targets(up)) <= {0, 1}
        assert up.started("tasks") == 1


def test_a_rate_limit_of_the_library_is_said_and_the_profile_bounds_all_workers(tmp_path: Path, broker: str) -> None:
    """Celery's is per worker: each more starts ten more a minute, and in between all are idle beside a backlog."""
    with run(tmp_path, broker, rate="10/m") as up, Celery("shop", broker=broker) as app:
        eventually(lambda: pool_of(up)["running_workers"] == 1, within_s=200)
        send(app, seconds=0.1, tasks=10 * TASKS)
        eventually(lambda: any("rate_limit_per_s" in each for each in pool_of(up)["bottlenecks"]), within_s=120)
        assert "rate_limit_per_s" in " ".join(up.ask("/v1/health")["reasons"])
        assert "rate_limit is per worker" in up.headway("explain", "tasks")
        text = (tmp_path / "profiles.yaml").read_text()
        (tmp_path / "profiles.yaml").write_text(
            text.replace("workers_max: 8", "workers_max: 8, rate_limit_per_s: 0.17")
        )
        up.headway("apply", "profiles.yaml")
        eventually(lambda: pool_of(up)["target_workers"] == 1, within_s=60)
        time.sleep(WATCHED_S)
        assert targets(up)[0] == 1
