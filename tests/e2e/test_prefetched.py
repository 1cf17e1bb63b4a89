"""Jobs that one Celery worker has taken and not begun: no other worker can have them."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from celery import Celery
from kombu import pools

from e2e.running_up import ASKS_EACH_S, RunningUp, running_up
from support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SLOTS, PREFETCH = 4, 4
TAKEN = SLOTS * PREFETCH
OBJECTIVE_S = 15.0  # beyond a start-up of 5 s on a machine that has much else to do: else workers are pre-warmed
WATCHED_S = 1.5 * OBJECTIVE_S
COMES_WITHIN_S = 120.0  # on a machine that has much else to do
SHOWS_WITHIN_S = 8.0  # two heartbeats, and what they have to travel
APP = """
import os, redis, time
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.broker_connection_retry_on_startup = True
@app.task(name="work", acks_late=os.environ["LATE"] == "yes")
def work():
    client = redis.Redis.from_url(os.environ["GO_URL"])
    while client.lpop("go") is None:
        time.sleep(0.05)
"""
ACKNOWLEDGES = {"late": 0, "early": 1}
"""Pool -> its broker's database."""
# That late acknowledgements are late shows once jobs end: until then what is held is a lower bound.
IN_FLIGHT = {"late": f"workers have at least {TAKEN} jobs", "early": f"{SLOTS} jobs are running"}


class Shop:
    """An application with one queue, and jobs that end when they are let go."""

    def __init__(self, valkey_url: str, database: int) -> None:
        socket = urlsplit(valkey_url).path
        self.url = f"unix://{socket}?db={database}"
        self.broker = f"redis+socket://{socket}?virtual_host={database}"
        self._redis = redis.Redis.from_url(self.url)
        self._app = Celery("shop", broker=self.broker)

    def send(self, jobs: int) -> None:
        for _ in range(jobs):
            self._app.send_task("work", queue="mail")

    def let_go(self, jobs: int) -> None:
        self._redis.rpush("go", *range(jobs))

    def close(self) -> None:
        self._app.close()
        self._redis.close()


@pytest.fixture
def shops(valkey_url: str) -> Iterator[dict[str, Shop]]:
    pools.reset()  # they remember which queues were declared in a broker that has been emptied since
    made = {name: Shop(valkey_url, database) for name, database in ACKNOWLEDGES.items()}
    yield made
    for shop in made.values():
        shop.close()


@contextmanager
def headway_for(shops: dict[str, Shop], folder: Path) -> Iterator[RunningUp]:
    """A pool for each shop with one worker, which may become four.

    A template that counts a worker as ready at once: where start-ups are measured, a machine with much else to do has
    slow ones, and then a second worker is pre-warmed before there is a job.
    """
    (folder / "shop.py").write_text(APP)
    brokers, profiles, templates = [], [], []
    for name, shop in shops.items():
        brokers.append(f'  {name}: {{url: "{shop.url}", library: celery}}')
        profiles.append(
            f"  {name}: {{queues: [{name}/mail], template: {name}, workers_min: 1, workers_max: 4,"
            f" objective: {{target_s: {OBJECTIVE_S:g}, percentile: 99}}}}"
        )
        words = [sys.executable, "-m", "celery", "--app", "shop", "worker", "--queues", "mail", "--loglevel", "INFO"]
        words += ["--concurrency", f"{SLOTS}", "--prefetch-multiplier", f"{PREFETCH}", "--without-mingle"]
        late = "yes" if name == "late" else "no"
        templates.append(
            f"[templates.{name}]\nargv = {words}\nslots = {SLOTS}\nready_after_s = 0.0\ndrain_timeout_s = 60\n"
            f"environment = {{BROKER_URL = '{shop.broker}', GO_URL = '{shop.url}', LATE = '{late}'}}\n"
            "resources = {cpu_cores = 0.1, memory_bytes = '64MB'}\n"
        )
    (folder / "profiles.yaml").write_text("\n".join(["brokers:", *brokers, "pools:", *profiles, ""]))
    (folder / "host.toml").write_text("\n".join(templates))
    with running_up(folder, {"PYTHONPATH": os.pathsep.join(sys.path)}) as up:
        try:
            yield up
        finally:
            for shop in shops.values():
                shop.let_go(2 * TAKEN + SLOTS)


def test_of_16_prefetched_jobs_4_run_and_12_wait_and_no_other_worker_is_started(
    shops: dict[str, Shop], tmp_path: Path
) -> None:
    with headway_for(shops, tmp_path) as up:
        eventually(lambda: _workers_that_take_jobs(tmp_path) == len(shops))
        # Which jobs are acknowledged before they run, the broker shows once more run than workers hold.
        shops["early"].send(SLOTS)
        # What is not acknowledged yet makes four as well, and the heartbeat after it may be of when two had begun.
        _comes_to(up, "early", running=SLOTS, reserved=0, for_s=SHOWS_WITHIN_S)
        shops["early"].let_go(SLOTS)
        _comes_to(up, "early", running=0, reserved=0)

        for shop in shops.values():
            shop.send(TAKEN)
        for name in shops:
            _comes_to(up, name, running=SLOTS, reserved=TAKEN - SLOTS)
        ages_s = _stay(up, shops, running=SLOTS, reserved=TAKEN - SLOTS, for_s=WATCHED_S)
        for name, ages in ages_s.items():
            assert ages == sorted(ages)
            assert ages[-1] - ages[0] >= WATCHED_S / 2
            assert ages[-1] > OBJECTIVE_S, "and still nobody else can run them"
            assert _raised_for_nothing(up, name) == []
        _decide_anew(up, tmp_path)
        for name in shops:
            eventually(
                lambda name=name: (
                    f"{IN_FLIGHT[name]} and {TAKEN - SLOTS} jobs are reserved and not begun" in _explained(up, name)
                ),
            )


def _workers_that_take_jobs(folder: Path) -> int:
    """How many say so, in what they print."""
    return sum(" ready." in log.read_text() for log in folder.glob(".headway/agent/workers/*.log"))


def _raised_for_nothing(up: RunningUp, pool: str) -> list[dict[str, Any]]:
    """Decisions that asked for more workers while no job was left in the queue for them.

    On a busy machine the broker is read while the worker still takes its jobs: those that wait then are anybody's.
    """
    rows = up.ask("/v1/decisions", pool=pool, limit=50)["decisions"]
    assert rows
    return [
        row
        for row in rows
        if row["decision"]["target_workers"] > (row["previous_workers"] or 1)
        and not any(each["waiting_jobs"] for each in row["decision"]["metrics"])
    ]


def _decide_anew(up: RunningUp, folder: Path) -> None:
    """Change the mode: a decision that is as before is not stored again for minutes, whatever its figures."""
    profiles = folder / "profiles.yaml"
    profiles.write_text(profiles.read_text().replace("workers_min:", "mode: recommend, workers_min:"))
    up.headway("apply", str(profiles))


def _explained(up: RunningUp, pool: str) -> str:
    return " ".join(up.headway("explain", pool).split()).replace(", ", " and ")


def _queue(up: RunningUp, pool: str) -> dict[str, Any]:
    """What is known of the pool's only queue now."""
    queues = {each["queue"]: each["metrics"] for each in up.ask("/v1/queues")["queues"]}
    return queues.get(f"{pool}/mail", {})


def _jobs(queue: dict[str, Any]) -> tuple[int, int] | None:
    """Running and reserved jobs, at least; ``None`` where that is unknown."""
    in_flight, reserved = queue.get("in_flight_jobs"), queue.get("reserved_jobs") or 0
    if in_flight is None:
        in_flight = queue.get("in_flight_min_jobs")
    return None if in_flight is None else (in_flight - reserved, reserved)


def _stay(
    up: RunningUp, names: Iterable[str], *, running: int, reserved: int, for_s: float
) -> dict[str, list[float | None]]:
    """See them stay so for a while. Returns the ages of the oldest job, pool by pool."""
    began_s = time.monotonic()
    ages_s: dict[str, list[float | None]] = {name: [] for name in names}
    while time.monotonic() < began_s + for_s:
        for name, ages in ages_s.items():
            queue = _queue(up, name)
            assert _jobs(queue) == (running, reserved), queue
            ages.append(queue["oldest_age_s"])
        time.sleep(ASKS_EACH_S)
    return ages_s


def _comes_to(up: RunningUp, pool: str, *, running: int, reserved: int, for_s: float = 0.0) -> None:
    """See them become so, and stay so ``for_s`` without a break."""
    seen: list[dict[str, Any]] = []
    since_s: list[float] = []

    def is_so() -> bool:
        seen.append(_queue(up, pool))
        if _jobs(seen[-1]) != (running, reserved):
            since_s.clear()
            return False
        since_s.append(time.monotonic())
        return since_s[-1] - since_s[0] >= for_s

    try:
        eventually(is_so, within_s=COMES_WITHIN_S)
    except AssertionError:
        raise AssertionError(f"{pool}: expected {running} running and {reserved} reserved, saw {seen[-1]}") from None
