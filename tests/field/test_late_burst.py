"""Situation C7: a burst of short jobs that no new worker can start in time. A late job gets no worker of its own."""

from pathlib import Path

import pytest

from e2e.init_shops import Row, Shop
from e2e.running_up import running_up
from support.valkeys import Valkey
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(900)]

JOBS, JOB_S = 150, 0.2
WORKERS_MAX = 20
STARTED_MOST = 15
CELERY = """
import sys, time
from celery import Celery
from ledger import done

if "worker" in sys.argv:
    time.sleep(4.0)  # what a large application imports
app = Celery("shop")  # its broker is CELERY_BROKER_URL
app.conf.update(broker_connection_retry_on_startup=True)

@app.task
def work(job, seconds):
    done(job, seconds)

def send(first, jobs, seconds):
    for job in range(first, first + jobs):
        work.delay(job, seconds)
"""
ROW = Row(
    text=CELERY,
    words=("celery", "-A", "shop", "worker", "-l", "INFO", "-c", "1", "--prefetch-multiplier", "1"),
    url_variable="CELERY_BROKER_URL",
    may_begin_twice=True,
)


def test_a_burst_that_is_late_starts_few_workers(broker: Valkey, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    shop = Shop(ROW, folder, broker)
    said = shop.headway_init_beside_a_worker()
    profiles = folder / "profiles.yaml"
    lines = profiles.read_text().splitlines()
    bounds = {"workers_min": 1, "workers_max": WORKERS_MAX}
    keys = [line.strip().partition(":")[0] for line in lines]
    assert bounds.keys() <= set(keys), said
    lines = [f"    {key}: {bounds[key]}" if key in bounds else line for key, line in zip(keys, lines, strict=True)]
    profiles.write_text("\n".join(lines) + "\n")
    with running_up(folder, shop.env) as up:
        (pool,) = [each["pool"] for each in up.ask("/v1/pools")["pools"]]
        eventually(lambda: len(up.workers(pool)) == 1, within_s=200.0)
        for bursts in (1, 2):  # before the first has ended, no service time is known
            shop.send(JOBS, JOB_S)
            eventually(lambda ended=bursts * JOBS + 1: shop.count("end").total() >= ended, within_s=120.0)
        assert up.started(pool) <= STARTED_MOST
    assert set(shop.count("start").values()) == {1}
