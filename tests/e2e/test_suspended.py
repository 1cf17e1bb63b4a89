"""`headway up` while somebody suspends RQ, and cancels the consumers of every Celery worker, by their own commands."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from rq import Queue
from rq.suspension import resume, suspend

from e2e.running_up import RunningUp, running_up
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(1200)]

WAITED_S = 30.0  # long enough for six evaluations, three workers that would crash, and a page after a minute's half
ASKED_WITHIN_S = 2.0
SHOP = (Path(__file__).parent / "apps" / "tasks_app.py").read_text()
PROFILES = """
brokers:
  redis: {{url: "{url}", library: rq}}
  shop: {{url: "{tasks}", library: celery}}
pools:
  mail: {{queues: [redis/mail], template: mail, workers_max: 4, objective: {{target_s: 10}}}}
  tasks: {{queues: [shop/tasks], template: tasks, workers_min: 2, workers_max: 4, objective: {{target_s: 10}}}}
"""
HOST = """
[templates.mail]
argv = ["{rq}", "worker", "--url", "{url}", "mail"]
ready_pattern = "Listening on"

[templates.tasks]
argv = ["{python}", "-m", "celery", "-A", "shop", "worker", "-c", "1", "-Q", "tasks"]
working_directory = "{folder}"
environment = {{ BROKER_URL = "{tasks}" }}
ready_pattern = "ready"
"""


class Installation:
    """An `up`, and what is asked of it."""

    def __init__(self, up: RunningUp) -> None:
        self.up = up

    def pool(self, name: str) -> dict[str, Any]:
        return next(each for each in self.up.ask("/v1/pools")["pools"] if each["pool"] == name)

    def is_suspended(self, name: str, by: str) -> bool:
        pool = self.pool(name)
        return (pool["state"], pool["suspension"]) == ("suspended", by)

    def pages(self, name: str) -> list[str]:
        alerts = self.up.ask("/v1/alerts", state="all", pool=name)["alerts"]
        return [each["rule"] for each in alerts if each["severity"] == "page"]

    def targets(self, name: str) -> list[tuple[float, int]]:
        """When each count was decided, newest first."""
        rows = self.up.ask("/v1/decisions", pool=name, limit=50)["decisions"]
        return [(each["decided_at_s"], each["decision"]["target_workers"]) for each in rows]


@pytest.fixture
def installation(tmp_path: Path, broker: str) -> Iterator[Installation]:
    tasks = f"{broker.rpartition('/')[0]}/1"
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "profiles.yaml").write_text(PROFILES.format(url=broker, tasks=tasks))
    rq = Path(sys.executable).with_name("rq")
    host = HOST.format(rq=rq, url=broker, python=sys.executable, tasks=tasks, folder=tmp_path)
    (tmp_path / "host.toml").write_text(host)
    with running_up(tmp_path, {"PYTHONPATH": os.pathsep.join(sys.path)}) as up:
        yield Installation(up)


def test_nobody_is_started_or_paged_and_all_are_at_work_as_soon_as_they_may(
    installation: Installation, broker: str
) -> None:
    up = installation.up
    with redis.Redis.from_url(broker) as client, Celery("shop", broker=f"{broker.rpartition('/')[0]}/1") as app:
        queue = Queue("mail", connection=client)
        jobs = [queue.enqueue("time.sleep", 0.01)]
        eventually(lambda: jobs[0].is_finished, within_s=120)
        eventually(lambda: not up.workers("mail") and installation.pool("mail")["target_workers"] == 0, within_s=200)
        eventually(lambda: installation.pool("tasks")["running_workers"] == 2, within_s=120)
        consuming = up.workers("tasks")
        started = up.started("mail")

        suspend(client)
        eventually(lambda: installation.is_suspended("mail", "library"), within_s=30)
        app.control.cancel_consumer("tasks")
        eventually(lambda: installation.is_suspended("tasks", "consumers_cancelled"), within_s=30)
        jobs += [queue.enqueue("time.sleep", 0.01) for _ in range(20)]
        for _ in range(20):
            app.send_task("work", queue="tasks")
        time.sleep(WAITED_S)  # what must not happen has this long to happen
        assert installation.is_suspended("mail", "library")
        assert installation.is_suspended("tasks", "consumers_cancelled")
        assert (up.started("mail"), up.workers("tasks")) == (started, consuming)
        assert installation.pages("mail") == installation.pages("tasks") == []
        assert up.headway("get", "pools").count("suspended") >= 2
        assert "Suspended: the library has suspended all workers" in up.headway("explain", "mail")
        assert "suspended" in up.ask("/v1/health")["kinds"]

        resume(client)
        resumed_s = time.time()
        eventually(lambda: all(job.is_finished for job in jobs), within_s=60)
        asked_s = min(at_s for at_s, target in installation.targets("mail") if target and at_s > resumed_s - 1)
        assert asked_s - resumed_s <= ASKED_WITHIN_S
        app.control.add_consumer("tasks")
        eventually(lambda: installation.pool("tasks")["state"] != "suspended", within_s=30)
        eventually(lambda: installation.pool("tasks")["metrics"]["waiting_jobs"] == 0, within_s=60)
        assert installation.pages("mail") == installation.pages("tasks") == []
        assert "failed pool=" not in (up._folder / ".headway" / "logs" / "agent.log").read_text()
