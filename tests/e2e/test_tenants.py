"""`headway up` with a pattern: a tenant's queue appears, its job starts in time, and the idle worker is renewed."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from rq import Queue
from rq.job import Job
from rq.worker import Worker

from e2e.running_up import RunningUp, running_up
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(1200)]

SERVED_WITHIN_S = 30.0
RENEWED_WITHIN_S = 60.0  # the new worker proves itself for 10 s before the old one goes
PROFILES = """
brokers:
  redis: {{url: "{url}", library: rq}}
pools:
  tenants:
    queues: [redis/tenant-*]
    template: tenants
    workers_min: 1
    workers_max: 2
    objective: {{target_s: 30}}
"""
HOST = """
[templates.tenants]
argv = ["{rq}", "worker", "--url", "{url}", "$(HEADWAY_QUEUES)"]
queues_allowed = ["tenant-*"]
ready_pattern = "Listening on"
"""


@pytest.fixture
def up(tmp_path: Path, broker: str) -> Iterator[RunningUp]:
    (tmp_path / "profiles.yaml").write_text(PROFILES.format(url=broker))
    (tmp_path / "host.toml").write_text(HOST.format(rq=Path(sys.executable).with_name("rq"), url=broker))
    with running_up(tmp_path, {"PYTHONPATH": os.pathsep.join(sys.path)}) as up:
        yield up


def waited_s(job: Job) -> float:
    """How long the job waited for a worker, once it has ended."""
    eventually(lambda: job.get_status(refresh=True) == "finished", within_s=240.0)
    job.refresh()
    assert job.enqueued_at is not None
    assert job.started_at is not None
    return (job.started_at - job.enqueued_at).total_seconds()


def test_a_new_tenant_is_served_within_thirty_seconds_and_the_idle_worker_is_replaced(
    up: RunningUp, broker: str
) -> None:
    with redis.Redis.from_url(broker) as client:
        waited_s(Queue("tenant-a", connection=client).enqueue("time.time"))  # the first queue that the pool has at all
        eventually(lambda: len(up.workers("tenants")) == 1)
        before = up.workers("tenants")
        assert up.ask("/v1/profiles/tenants")["profile"]["queues"] == ["redis/tenant-*"]
        job = Queue("tenant-b", connection=client).enqueue("time.sleep", 1)
        assert waited_s(job) < SERVED_WITHIN_S
        renewed = eventually(
            lambda: (now := up.workers("tenants")) and not now & before and now, within_s=RENEWED_WITHIN_S
        )
        listening = {
            worker.pid: worker.queue_names() for worker in Worker.all(connection=client) if worker.pid in renewed
        }
        assert set(map(tuple, listening.values())) == {("tenant-a", "tenant-b")}
        # A queue that no pattern matches has no owner, and its job no worker.
        other = Queue("mail", connection=client).enqueue("time.time")
        queues = eventually(
            lambda: (
                (rows := {each["queue"]: each for each in up.ask("/v1/queues")["queues"]})
                and "redis/mail" in rows
                and rows
            )
        )
        assert queues["redis/tenant-b"]["pool"] == "tenants"
        assert queues["redis/mail"]["pool"] is None
        time.sleep(2)
        assert other.get_status(refresh=True) == "queued"
