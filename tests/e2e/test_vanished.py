"""`headway up` with real Celery workers that drop expired tasks: what no worker ever began is no reason for workers."""

import os
import sys
from pathlib import Path

import pytest
import redis
from celery import Celery

from e2e.running_up import running_up
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(1200)]

EXPIRED_TASKS = 1_200
SHOP = (Path(__file__).parent / "apps" / "tasks_app.py").read_text()
PROFILES = """
brokers:
  shop: {{url: "{url}", library: celery}}
pools:
  tasks: {{queues: [shop/tasks], template: tasks, workers_max: 4, hold_down_s: 0, objective: {{target_s: 10}}}}
"""
HOST = """
[templates.tasks]
argv = ["{python}", "-m", "celery", "-A", "shop", "worker", "-c", "1", "-Q", "tasks"]
working_directory = "{folder}"
environment = {{ BROKER_URL = "{url}" }}
ready_pattern = "ready"
"""


def test_expired_tasks_leave_no_standing_workers(tmp_path: Path, broker: str) -> None:
    """Field C2: "needs 81 standing workers", for hours."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "profiles.yaml").write_text(PROFILES.format(url=broker))
    (tmp_path / "host.toml").write_text(HOST.format(python=sys.executable, url=broker, folder=tmp_path))
    with (
        running_up(tmp_path, {"PYTHONPATH": os.pathsep.join(sys.path)}) as up,
        redis.Redis.from_url(broker) as client,
        Celery("shop", broker=broker) as app,
    ):

        def is_measured_at_rest() -> bool:
            (pool,) = up.ask("/v1/pools")["pools"]
            return pool["measured_age_s"] is not None and pool["measured_age_s"] < 10.0 and not up.workers("tasks")

        for _ in range(EXPIRED_TASKS):
            app.send_task("work", queue="prepared", expires=0.5)
        app.send_task("work", queue="tasks", expires=0.5)  # which tells the collector of the queue
        eventually(lambda: up.workers("tasks"), within_s=200)
        eventually(is_measured_at_rest, within_s=200)
        client.rename("prepared", "tasks")
        eventually(lambda: up.workers("tasks"), within_s=100)
        eventually(lambda: not client.llen("tasks") and not client.hlen("unacked"), within_s=100)
        eventually(lambda: not up.workers("tasks"), within_s=60)
