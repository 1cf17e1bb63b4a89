"""Situation B5: urgent jobs behind long ones of another queue, in one pool whose workers take from both.

Celery on Redis takes from its queues in turn, so that no number of workers that the pool may have keeps the objective
of the urgent queue. RQ takes from them in strict order, and keeps it.
"""

from pathlib import Path
from typing import Any

import pytest

from e2e.init_shops import Row, Shop
from e2e.running_up import RunningUp, running_up
from support.valkeys import Valkey
from support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

URGENT, BULK = 50, 30
BULK_S = 6.0
TARGET_S = 5.0
WORKERS = 3
URGENT_FROM = 1_000  # numbers of jobs, from here on
RQ = """
import os
import redis, rq
from ledger import done, note

def work(job, seconds, sent_s):
    note("waited", f"{job}:{__import__('time').time() - sent_s}")
    done(job, seconds)

def send(first, jobs, seconds, urgent=0):
    import time
    for job in range(first, first + jobs):
        queue = rq.Queue("urgent" if urgent else "bulk", connection=redis.Redis.from_url(os.environ["RQ_REDIS_URL"]))
        queue.enqueue("shop.work", job + 1_000 * urgent, seconds, time.time())
"""
CELERY = """
import time
from celery import Celery
from ledger import done, note

app = Celery("shop")  # its broker is CELERY_BROKER_URL
app.conf.update(broker_connection_retry_on_startup=True)

@app.task
def work(job, seconds, sent_s):
    note("waited", f"{job}:{time.time() - sent_s}")
    done(job, seconds)

def send(first, jobs, seconds, urgent=0):
    for job in range(first, first + jobs):
        queue = "urgent" if urgent else "bulk"
        work.apply_async((job + 1_000 * urgent, seconds, time.time()), queue=queue)
"""
CELERY_WORDS = ("celery", "-A", "shop", "worker", "-Q", "urgent,bulk", "-l", "INFO", "-c", "1")
ROWS = {
    "RQ": Row(text=RQ, words=("rq", "worker", "--with-scheduler", "urgent", "bulk"), url_variable="RQ_REDIS_URL"),
    "Celery on Redis": Row(
        text=CELERY,
        words=(*CELERY_WORDS, "--prefetch-multiplier", "1"),
        url_variable="CELERY_BROKER_URL",
        may_begin_twice=True,
    ),
}


def restrict(folder: Path) -> None:
    """Give the pool its bounds, and the urgent queue an objective of its own."""
    file = folder / "profiles.yaml"
    text = file.read_text()
    (name,) = [line.split("[")[1].split("/")[0] for line in text.splitlines() if "queues:" in line]
    bounded = []
    for line in text.splitlines():
        key = line.strip().partition(":")[0]
        if key == "objective":
            line = "    objective: {target_s: 600, percentile: 99}\n    member_objectives:\n"
            line += f"      {name}/urgent: {{target_s: {TARGET_S:g}, percentile: 99}}"
        elif key in {"workers_min", "workers_max"}:
            line = f"    {key}: {WORKERS}"
        bounded.append(line)
    file.write_text("\n".join(bounded) + "\n")


def separations(up: RunningUp, pool: str) -> list[str]:
    return [note for note in up.decision(pool).get("notes", ()) if note.startswith("separate pools: ")]


def predicted(up: RunningUp, pool: str) -> dict[str, Any]:
    """By queue."""
    rows = up.decision(pool).get("member_pickups", ())
    return {each["queue"].rpartition("/")[2]: each["predicted_pickup_s"] for each in rows}


@pytest.mark.proof
@pytest.mark.parametrize(("name", "order"), [("RQ", "strict"), ("Celery on Redis", "in_turn")])
def test_a_pool_whose_order_keeps_no_objective_is_to_be_separated(
    name: str, order: str, broker: Valkey, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    shop = Shop(ROWS[name], folder, broker)
    said = shop.headway_init_beside_a_worker()
    restrict(folder)
    with running_up(folder, shop.env) as up:
        (pool,) = [each["pool"] for each in up.ask("/v1/pools")["pools"]]
        eventually(lambda: len(up.workers(pool)) == WORKERS, within_s=200.0)
        eventually(lambda: up.decision(pool).get("queue_order") == order, within_s=100.0)
        shop.send(BULK, BULK_S)
        eventually(lambda: shop.count("start").total() >= 1 + WORKERS, within_s=60.0)
        shop.send(URGENT, 0.1, urgent=1)
        if order == "in_turn":
            eventually(lambda: bool(separations(up, pool)), within_s=60.0)
            (note,) = separations(up, pool)
            assert "/urgent, whose jobs are to start within 5 s, shares its workers with" in note, said
            assert f"workers_max={WORKERS} allows {WORKERS} here" in note
            assert predicted(up, pool)["urgent"] > TARGET_S
            assert "Separate pools: " in up.headway("explain", pool)
        eventually(lambda: urgent_begun(shop) == URGENT, within_s=300.0)
        assert order == "in_turn" or not separations(up, pool)
    waits_s = sorted(
        float(each.partition(":")[2]) for each in shop.count("waited") if int(each.partition(":")[0]) >= URGENT_FROM
    )
    if order == "in_turn":
        assert waits_s[len(waits_s) // 2] > TARGET_S, "the prediction was wrong"
    else:
        # One of bulk ends first; then the urgent ones start, three at a time.
        assert waits_s[0] <= BULK_S + TARGET_S


def urgent_begun(shop: Shop) -> int:
    return sum(int(job) >= URGENT_FROM for job in shop.count("start"))
