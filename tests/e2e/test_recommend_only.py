"""`headway up --recommend-only` beside three workers of RQ that somebody runs: it counts them and touches none."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import redis
from rq import Queue

from e2e.running_up import RunningUp, running_up
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(900)]

APPS = Path(__file__).parent / "apps"
PROFILES = """
brokers: {{redis: "{url}"}}
pools:
  mail: {{queues: [redis/mail], template: mail, mode: act, workers_max: 8, objective: {{target_s: 10}}}}
"""


@contextmanager
def workers_of(url: str, count: int, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers that somebody started."""
    running = [
        subprocess.Popen(
            [Path(sys.executable).with_name("rq"), "worker", "--url", url, "mail"],
            cwd=APPS,
            env={"PATH": "/usr/bin:/bin", "LEDGER": str(folder / "ledger"), "PYTHONPATH": str(APPS)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    try:
        yield running
    finally:
        for each in running:
            each.terminate()
        for each in running:
            each.wait(30)


def pool(up: RunningUp) -> dict[str, object]:
    found: dict[str, object] = up.ask("/v1/pools", pool="mail")["pools"][0]
    return found


def test_it_counts_the_workers_and_starts_and_stops_none(tmp_path: Path, broker: str) -> None:
    (tmp_path / "profiles.yaml").write_text(PROFILES.format(url=broker))
    with redis.Redis.from_url(broker) as client, workers_of(broker, 3, tmp_path) as workers:
        queue = Queue("mail", connection=client)
        eventually(lambda: client.scard("rq:workers:mail") == 3, within_s=60)
        with running_up(tmp_path, {}, words=("--recommend-only",)) as up:
            for number in range(6):
                queue.enqueue("time.sleep", 1.0 + number % 2)
            eventually(lambda: pool(up)["running_workers"] == 3, within_s=60)
            eventually(lambda: bool(up.decision("mail")), within_s=60)
            assert up.ask("/v1/health")["recommends_only"] is True
            assert up.decision("mail")["mode"] == "recommend"
            assert up.ask("/v1/hosts")["hosts"] == []
            assert "3 listed" in up.headway("get", "pools")
            assert "starts and stops no worker" in up.headway("explain", "mail")
            before = {each.pid for each in psutil.Process().children() if each.name().startswith("rq")}
            refused = up.refused("apply", "profiles.yaml")
            assert "only recommends" in refused
            eventually(lambda: queue.count == 0 and queue.started_job_registry.count == 0, within_s=60)
            assert all(each.poll() is None for each in workers)
            assert not (tmp_path / ".headway" / "logs" / "agent.log").exists()
            workers[0].send_signal(signal.SIGTERM)
            workers[0].wait(30)
            eventually(lambda: pool(up)["running_workers"] == 2, within_s=60)
            assert {each.pid for each in psutil.Process().children() if each.name().startswith("rq")} <= before
