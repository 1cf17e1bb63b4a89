"""A Celery app reports its tasks without a line of its own: its real worker with Valkey, each way a task can end."""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from celery import Celery
from celery.app.task import Context
from kombu import Exchange, Queue, binding
from kombu.transport.native_delayed_delivery import calculate_routing_key

from control.telemetry import ingesting
from headway.collect.celery.celery_source import CelerySource
from headway.collect.source import Reading
from headway.connections import Connection
from headway.scaling.model import EventKind, JobEvent, TelemetryBatch
from headway.store.engine import create_engine, transaction
from headway.store.overview import read_samples
from support.http_control import HttpControl, serving

pytestmark = pytest.mark.e2e

APP = """
import os, signal, time
from celery import Celery
from celery.exceptions import Ignore, Reject

app = Celery("shop", broker=os.environ["BROKER"])

@app.task(name="well")
def well(): time.sleep(0.05)

@app.task(name="badly")
def badly(): raise ValueError("no")

@app.task(name="again", bind=True)
def again(self):
    if not self.request.retries:
        raise self.retry(countdown=0.2)

@app.task(name="ignored")
def ignored(): raise Ignore

@app.task(name="killed")
def killed(): os.kill(os.getpid(), signal.SIGKILL)

@app.task(name="late", time_limit=1)
def late(): time.sleep(30)

@app.task(name="rejected", acks_late=True)
def rejected(): raise Reject("for good", requeue=False)

@app.task(name="put back", bind=True, acks_late=True)
def put_back(self):
    if not self.request.delivery_info.get("redelivered"):
        raise Reject("for now", requeue=True)

@app.task(name="stopped", bind=True)
def stopped(self):
    app.control.revoke(self.request.id, terminate=True)
    time.sleep(30)
"""
SENT = """
import headway.emit.celery
from shop import *
well.delay(); badly.delay(); again.delay(); ignored.delay(); killed.delay(); late.delay(); stopped.delay()
rejected.delay(); put_back.delay()
before_s = time.time()
well.apply_async(queue="other", countdown=1.0, task_id="for later")
print(before_s, time.time())
well.apply(task_id="called here, and never in a queue")
well.apply_async(expires=-60.0, task_id="expired before its worker came")
well.apply_async(countdown=1.0, expires=0.5, task_id="expired before it was due")
"""
SENT_BY_OTHERS = "from shop import *; well.apply_async(task_id='of others')"
WITHIN_S = 60.0


@pytest.fixture
def control() -> Iterator[HttpControl]:
    with serving(HttpControl()) as control:
        yield control


@pytest.fixture
def environment(tmp_path: Path, valkey_url: str, control: HttpControl) -> dict[str, str]:
    (tmp_path / "shop.py").write_text(APP)
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "BROKER": f"redis+socket://{urlsplit(valkey_url).path}",
        "HEADWAY_URL": control.url,
        "HEADWAY_CONNECTION": "shop",
    }


@pytest.mark.parametrize("pool", [("prefork", "--concurrency=2"), ("threads", "--concurrency=2"), ("solo",)])
def test_each_life_of_a_task_is_reported_once(
    control: HttpControl, environment: dict[str, str], tmp_path: Path, pool: tuple[str, ...]
) -> None:
    is_prefork = pool[0] == "prefork"
    sent = (
        SENT if is_prefork else SENT.replace(" killed.delay(); late.delay(); stopped.delay()", "")
    )  # others have no child to end
    run = {"env": environment, "cwd": tmp_path}
    words = ["--app=shop", "worker", "--queues=celery,other", "--include=headway.emit.celery", "--pool", *pool]
    worker = subprocess.Popen([sys.executable, "-m", "celery", *words], stderr=subprocess.DEVNULL, **run)
    try:
        sender = subprocess.run(
            [sys.executable, "-c", sent], check=True, timeout=WITHIN_S, stdout=subprocess.PIPE, **run
        )
        subprocess.run([sys.executable, "-c", SENT_BY_OTHERS], check=True, timeout=WITHIN_S, **run)
        lives = settled(control, ends=15 if is_prefork else 12)
    finally:
        worker.terminate()
        worker.wait(WITHIN_S)
    good = ["enqueued", "started", "finished"]
    bad = ["enqueued", "started", "failed"]
    expected = {
        "well": good,
        "badly": bad,
        "again": [*bad, "retried", *good],
        "ignored": good,
        "for later": good,
        "of others": good,
        "expired before its worker came": ["enqueued", "revoked"],
        "expired before it was due": ["revoked"],
        "rejected": bad,
        "put back": ["enqueued", "started", "started", "finished", "failed", "retried"],  # two runs of one attempt
        **({"killed": bad, "late": bad, "stopped": bad} if is_prefork else {}),
    }
    assert {name: [event["kind"] for event in life] for name, life in lives.items()} == expected

    for name, life in lives.items():
        waits = [event for event in life if event["kind"] == "enqueued"]
        starts = [event for event in life if event["kind"] == "started"]
        assert {event["queue"] for event in life} == {"shop/other" if name == "for later" else "shop/celery"}
        attempts = [1, 1] if name == "put back" else list(range(1, len(starts) + 1))
        assert [event["attempt"] for event in starts] == attempts
        for wait, start in zip(waits * (len(starts) // len(waits)) if starts else (), starts, strict=True):
            if name == "of others":  # whoever sent it does not say when: its wait is not known
                assert "enqueued_at_s" not in start
            else:
                assert start["enqueued_at_s"] == wait["at_s"] <= start["at_s"]
    for name in ("again", "put back"):  # the attempt counts as retried where both events are of one time
        at_s = {event["kind"]: event["at_s"] for event in lives[name]}
        assert at_s["retried"] == at_s["failed"]
    (wait, start, _) = lives["for later"]
    before_s, after_s = map(float, sender.stdout.split())
    assert before_s + 1.0 <= wait["at_s"] <= after_s + 1.0  # from when it was due
    (_, start, end) = lives["well"]
    assert end["started_at_s"] == start["at_s"] <= end["at_s"] - 0.05


@pytest.mark.parametrize(
    ("exchange", "routing_key", "queue"),
    [
        ("feeds", "feed.import", "feeds"),
        ("feeds", "feed.import.deep", "feeds"),
        ("feeds", "feed", "feeds"),  # "#" is no word, too
        ("feeds", "news.today.now", "news"),
        ("feeds", "news.today", "news.today"),  # bound by nobody
        ("media", "small", "pictures"),
        ("media", "large", "pictures"),
        ("media", "feed.import", "feed.import"),  # another exchange's key
        ("", "mail", "mail"),
    ],
)
def test_a_task_is_of_the_queue_that_its_route_leads_to(exchange: str, routing_key: str, queue: str) -> None:
    from headway.emit.celery import CONNECTION, queue_of

    feeds, media = Exchange("feeds", type="topic"), Exchange("media")
    pictures = [binding(media, routing_key="small"), binding(media, routing_key="large")]
    app = Celery("shop")
    app.conf.task_queues = [
        Queue("feeds", feeds, routing_key="feed.#"),
        Queue("news", feeds, routing_key="news.*.now"),
        Queue("pictures", bindings=pictures),
    ]
    assert queue_of(app, {"exchange": exchange, "routing_key": routing_key}) == f"{CONNECTION}/{queue}"


@pytest.mark.parametrize(
    ("routing_key", "queue"), [("feed.import", "feeds"), ("urgent", "mail"), ("small", "small"), ("unknown", "unknown")]
)
def test_a_delayed_task_is_of_the_queue_that_its_route_led_to_before_its_delay(routing_key: str, queue: str) -> None:
    from headway.emit.celery import CONNECTION, queue_of

    app = Celery("shop")
    app.conf.task_queues = [
        Queue("feeds", Exchange("feeds", type="topic"), routing_key="feed.#"),
        Queue("mail", Exchange("mail", type="topic"), routing_key="urgent"),
        Queue("pictures", Exchange("media"), routing_key="small"),  # direct: Celery delivers nothing there
    ]
    sent = {"exchange": "celery_delayed_27", "routing_key": calculate_routing_key(60, routing_key)}
    assert queue_of(app, sent) == f"{CONNECTION}/{queue}"


def test_a_batch_of_celery_batches_is_one_job_of_the_queue_of_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request has no id and no message: the signals have an id, and the messages are the argument of the task."""
    from headway.emit import celery as emitting

    reported: list[tuple[Any, ...]] = []
    said = SimpleNamespace(report=lambda kind, queue, job_id, **_: reported.append((kind, queue, job_id)))
    monkeypatch.setattr(emitting, "emitter", said)
    task = Celery("shop").task(name="batched")(work)
    messages = [SimpleNamespace(delivery_info={"exchange": "", "routing_key": "mail"})] * 2
    task.request_stack.push(Context(loglevel=0, logfile=None))
    about = {"sender": task, "task_id": "batch 1", "task": task, "args": (messages,), "kwargs": {}}
    emitting._started(**about)
    emitting._ended(**about, state="SUCCESS", retval=None)
    task.request_stack.pop()
    queue = f"{emitting.CONNECTION}/mail"
    assert reported == [(kind, queue, "batch 1") for kind in ("enqueued", "started", "finished")]


def work() -> None:
    """What a task does."""


def test_collector_and_workers_together_count_each_task_once(
    control: HttpControl, environment: dict[str, str], tmp_path: Path, valkey_url: str, migrated_url: str
) -> None:
    """The collector reports depths and no events, the workers events and no depths, both of the same queue."""
    run = {"env": environment, "cwd": tmp_path}
    source = CelerySource(Connection(name="shop", url=valkey_url, library="celery"), None)
    send = "from shop import *\nfor n in range(20): well.apply_async(task_id=f'well {n}')\nagain.delay(); badly.delay()"
    subprocess.run([sys.executable, "-c", send], check=True, timeout=WITHIN_S, **run)
    readings = [source.poll(time.time())]
    words = ["--app=shop", "worker", "--include=headway.emit.celery", "--pool=prefork", "--concurrency=2"]
    worker = subprocess.Popen([sys.executable, "-m", "celery", *words], stderr=subprocess.DEVNULL, **run)
    try:
        until_s = time.monotonic() + WITHIN_S
        while sum(event["kind"] in {"finished", "failed"} for event in control.events) < 23:
            assert time.monotonic() < until_s, control.events
            time.sleep(0.2)
            readings.append(source.poll(time.time()))
    finally:
        worker.terminate()
        worker.wait(WITHIN_S)
    readings.append(source.poll(time.time()))
    source.close()
    assert [sample.waiting_jobs for reading in readings for sample in reading.samples][:: len(readings) - 1] == [22, 0]

    counts, waiting_jobs = asyncio.run(taken(migrated_url, tmp_path / "log", readings, control.events))
    assert counts == {"enqueued": 23, "started": 23, "finished": 21, "failed": 2, "retried": 1}
    assert waiting_jobs == {"shop/celery": 0}


async def taken(
    url: str, root: Path, readings: list[Reading], events: list[dict[str, Any]]
) -> tuple[Counter[str], dict[str, int]]:
    """What ingest makes of both: how many events of each kind, and how many jobs wait in each queue."""
    emitted = [JobEvent(**{**event, "kind": EventKind(event["kind"])}) for event in events]
    batches = [
        ("collect-shop", number, {"events": reading.events, "samples": reading.samples})
        for number, reading in enumerate(readings)
    ]
    batches.insert(len(batches) // 2, ("emit-worker", 1, {"events": tuple(emitted)}))
    async with ingesting(url, root, clock=time.time) as ingest:
        for producer, sequence, items in batches:
            await ingest.accept(
                TelemetryBatch(producer=producer, sequence=sequence, sent_at_s=time.time(), **items)  # type: ignore[arg-type]
            )
    rows = [row for path in (root / "hot").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    engine = create_engine(url)
    async with transaction(engine) as connection:
        waiting_jobs = {queue: sample.waiting_jobs for queue, sample in (await read_samples(connection)).items()}
    await engine.dispose()
    return Counter(row["kind"] for row in rows if row["kind"] != "sample"), waiting_jobs


def test_an_app_works_as_before_where_nobody_takes_telemetry(environment: dict[str, str], tmp_path: Path) -> None:
    environment["HEADWAY_URL"] = "http://127.0.0.1:1"
    code = "import headway.emit.celery\nfrom shop import *\nassert well.apply().successful() and well.delay().id"
    began_s = time.monotonic()
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True, timeout=WITHIN_S)
    assert time.monotonic() - began_s < WITHIN_S / 2


def settled(control: HttpControl, *, ends: int) -> dict[str, list[dict[str, Any]]]:
    """The events of each task by its name or the id it was given, in their order, once so many attempts have ended."""
    until_s = time.monotonic() + WITHIN_S
    while sum(event["kind"] in {"finished", "failed", "revoked"} for event in control.events) < ends:
        assert time.monotonic() < until_s, control.events
        time.sleep(0.1)
    lives: dict[str, list[dict[str, Any]]] = {}
    order = ["enqueued", "started", "finished", "failed", "retried", "revoked"]
    for event in sorted(control.events, key=lambda event: (event.get("attempt", 1), order.index(event["kind"]))):
        name = event["job_id"] if " " in event["job_id"] else event["job_class"]
        lives.setdefault(name, []).append(event)
    return lives
