"""`headway up` with a queue that RQ workers of two pools take from: one pool owns it, and the other helps."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from rq import Queue

from e2e.running_up import RunningUp, running_up
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(900)]

OWN_JOBS, HELPED_JOBS, JOB_S = 3, 14, 30.0  # at least two rounds for the helpers and the owner's one worker
PROFILES = """
brokers:
  redis: {{url: "{url}", library: rq}}
pools:
  default: {{queues: [redis/default], template: default, workers_min: 1, workers_max: 1}}
  images: {{queues: [redis/images], helps: [redis/default], template: images, workers_max: 6, hold_down_s: 0}}
"""
HOST = """
[templates.default]
argv = ["{rq}", "worker", "--url", "{url}", "--with-scheduler", "default"]
ready_pattern = "Listening on"

[templates.images]
argv = ["{rq}", "worker", "--url", "{url}", "--with-scheduler", "images", "default"]
ready_pattern = "Listening on"
"""


@pytest.fixture
def up(tmp_path: Path, broker: str) -> Iterator[RunningUp]:
    (tmp_path / "profiles.yaml").write_text(PROFILES.format(url=broker))
    rq = Path(sys.executable).with_name("rq")
    (tmp_path / "host.toml").write_text(HOST.format(rq=rq, url=broker))
    with running_up(tmp_path, {"PYTHONPATH": os.pathsep.join(sys.path)}) as running:
        yield running


def shared(up: RunningUp, pool: str, side: str) -> int:
    """How many jobs of the shared queue the newest decision of ``pool`` knows: those ``helped``, or ``helping``."""
    rows: list[dict[str, Any]] = up.decision(pool).get(side, [])
    return sum(row["jobs"] for row in rows if row["queue"] == "redis/default")


def test_idle_workers_of_a_helper_run_the_owners_jobs_and_are_kept_until_they_are_done(
    up: RunningUp, broker: str
) -> None:
    with redis.Redis.from_url(broker) as client:
        images, default = Queue("images", connection=client), Queue("default", connection=client)
        own = [images.enqueue("time.sleep", 20) for _ in range(OWN_JOBS)]
        eventually(lambda: all(job.get_status() == "started" for job in own), within_s=120)
        eventually(lambda: len(up.workers("default")) == 1, within_s=60)
        jobs = [default.enqueue("time.sleep", JOB_S) for _ in range(HELPED_JOBS)]

        # The helper has no work of its own any more: it is not raised, and no worker that has a job is asked to leave.
        eventually(lambda: all(job.is_finished for job in own), within_s=60)
        eventually(lambda: up.decision("images")["binding"] == "helping", within_s=30)
        helpers, started = up.workers("images"), up.started("images")
        assert len(helpers) >= OWN_JOBS
        eventually(lambda: shared(up, "images", "helping") == len(helpers), within_s=60)
        eventually(lambda: shared(up, "default", "helped") == len(helpers), within_s=60)
        helping, owning = up.decision("images"), up.decision("default")
        assert helping["target_workers"] == helping["helping_workers"] == len(helpers)
        assert max(demand["slots"] for demand in helping["demands"]) == 0
        assert owning["target_workers"] == 1
        assert owning["metrics"][0]["in_flight_jobs"] == 1
        assert "jobs of redis/default (pool default)" in up.headway("explain", "images")
        assert "more jobs of redis/default run on workers of pool images" in up.headway("explain", "default")

        eventually(lambda: all(job.is_finished for job in jobs), within_s=300)
        assert up.started("images") == started
        eventually(lambda: not up.workers("images"), within_s=120)
        assert [job.is_failed for job in (*own, *jobs)] == [False] * (OWN_JOBS + HELPED_JOBS)
        assert "killed" not in (up._folder / ".headway" / "logs" / "agent.log").read_text()
