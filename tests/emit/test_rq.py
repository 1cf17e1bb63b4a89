"""RQ workers report their jobs by one flag: real workers of RQ 2 and 3 with Valkey, each way a job can end."""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

from control.telemetry import ingesting
from headway.collect.rq.rq_source import RqSource
from headway.connections import Connection
from headway.scaling.model import EventKind, JobEvent, TelemetryBatch
from support.environments import python_with
from support.http_control import HttpControl, serving
from support.tree import ROOT

pytestmark = pytest.mark.e2e

APP = """
import json, os, signal, sys, time
import redis
from rq import Queue, Retry
from rq.job import Job
broker = redis.Redis(unix_socket_path=os.environ["SOCKET"], db=int(os.environ["DB"]))

def well(): time.sleep(0.05)
def badly(): raise ValueError("no")
def asks(): return Retry(max=1)
def killed(): os.kill(os.getpid(), signal.SIGKILL)
def broken(*_): raise RuntimeError("a callback that fails")

if __name__ == "__main__":
    import shop
    queue = Queue("mail", connection=broker)
    for name, options in (("well", {}), ("badly", {}), ("asks", {}), ("killed", {}), ("gone", {"result_ttl": 0})):
        queue.enqueue(getattr(shop, {"gone": "well"}.get(name, name)), job_id=name, description="of my own", **options)
    queue.enqueue(shop.badly, job_id="again", retry=Retry(max=1))
    queue.enqueue(shop.well, job_id="called-back", on_success=shop.broken)
"""
ENDS = {"finished", "failed"}
WITHIN_S = 60.0
GOOD = ["started", "finished"]
BAD = ["started", "failed"]
LIVES = {
    "well": GOOD,
    "gone": GOOD,
    "badly": BAD,
    "again": [*BAD, "retried", *BAD],
    "asks": [*BAD, "retried", *BAD],
    "killed": BAD,
    "called-back": BAD,
}


@pytest.fixture
def control() -> Iterator[HttpControl]:
    with serving(HttpControl()) as control:
        yield control


@pytest.fixture
def run(tmp_path: Path, valkey_url: str, control: HttpControl) -> dict[str, Any]:
    (tmp_path / "shop.py").write_text(APP)
    broker = urlsplit(valkey_url)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tmp_path}:{ROOT / 'service'}",
        "SOCKET": broker.path,
        "DB": parse_qs(broker.query)["db"][0],
        "HEADWAY_URL": control.url,
    }
    return {"env": environment, "cwd": tmp_path}


Working = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def working(run: dict[str, Any], valkey_url: str) -> Iterator[Working]:
    began: list[subprocess.Popen[bytes]] = []

    def begin(python: Path, worker_class: str) -> "subprocess.Popen[bytes]":
        rq = python.with_name("rq")
        words = [python, rq, "worker", "--quiet", "--url", valkey_url, "--worker-class", worker_class, "mail"]
        began.append(subprocess.Popen(words, stderr=subprocess.DEVNULL, **run))
        return began[-1]

    yield begin
    for worker in began:
        worker.terminate()
        worker.wait(WITHIN_S)


@pytest.mark.parametrize(
    ("packages", "worker_class"),
    [
        ((), "headway.workers.rq.ReportingWorker"),
        (("rq==3.0.0", "redis==8.1.0"), "headway.emit.rq.Worker"),
    ],
    ids=["2", "3"],
)
def test_each_life_of_a_job_is_reported_once(
    control: HttpControl, run: dict[str, Any], working: Working, packages: tuple[str, ...], worker_class: str
) -> None:
    python = python_with(*packages) if packages else Path(sys.executable)
    working(python, worker_class)
    subprocess.run([python, "shop.py"], check=True, timeout=WITHIN_S, **run)
    lives = settled(control, ends=9)
    assert {name: [event["kind"] for event in life] for name, life in lives.items()} == LIVES
    for name, life in lives.items():
        function = {"gone": "well", "called-back": "well", "again": "badly"}.get(name, name)
        assert {(event["queue"], event["job_class"]) for event in life} == {("redis/mail", f"shop.{function}")}
        starts = [event["at_s"] for event in life if event["kind"] == "started"]
        ends = [event for event in life if event["kind"] in ENDS]
        for at_s, end in zip(starts, ends, strict=True):
            assert end["started_at_s"] == pytest.approx(at_s, abs=1.0)  # of one that was killed, by the worker
            assert end["started_at_s"] <= end["at_s"]
    for name in ("again", "asks"):  # the attempt counts as retried where both events are of one time
        failed, retried = lives[name][1:3]
        assert retried["at_s"] == failed["at_s"]
    assert lives["well"][0]["enqueued_at_s"] <= lives["well"][0]["at_s"]
    assert lives["well"][1]["at_s"] - lives["well"][1]["started_at_s"] >= 0.05


def test_a_job_that_collector_and_worker_report_counts_once(
    control: HttpControl,
    run: dict[str, Any],
    working: Working,
    valkey_url: str,
    migrated_url: str,
    tmp_path: Path,
) -> None:
    """Of two workers one reports. In the end each life is there once, whoever reported it and whoever came first."""
    source = RqSource(Connection(name="redis", url=valkey_url), None)
    collected: list[JobEvent] = [*source.poll(time.time()).events]
    working(Path(sys.executable), "headway.emit.rq.Worker")
    working(Path(sys.executable), "rq.Worker")
    subprocess.run([sys.executable, "shop.py"], check=True, timeout=WITHIN_S, **run)
    until_s = time.monotonic() + WITHIN_S
    while len({event.job_id for event in collected if event.kind in ENDS} | {"gone"}) < len(LIVES):
        assert time.monotonic() < until_s, collected
        time.sleep(0.05)
        collected += source.poll(time.time()).events
    time.sleep(1.0)  # more than a worker gathers
    collected += source.poll(time.time()).events
    source.close()
    emitted = [JobEvent(**{**each, "kind": EventKind(each["kind"])}) for each in control.events]
    assert emitted

    counted = asyncio.run(taken(migrated_url, tmp_path / "log", collected[::2], emitted, collected[1::2]))
    # What came and went between two polls, in the worker that does not report, nobody saw.
    seen = {
        (name, kind): max(ends_as(collected, name, kind), ends_as(emitted, name, kind))
        for name in LIVES
        for kind in ("started", "ended")
    }
    assert {key: jobs for key, jobs in counted.items() if key in seen} == {key: n for key, n in seen.items() if n}
    assert all(seen[name, "ended"] <= life.count("started") for name, life in LIVES.items())


def ends_as(events: list[JobEvent], job_id: str, kind: str) -> int:
    """How often ``events`` report that of a job."""
    return sum(event.job_id == job_id and kind == ("ended" if event.kind in ENDS else event.kind) for event in events)


async def taken(
    url: str, root: Path, first: list[JobEvent], emitted: list[JobEvent], last: list[JobEvent]
) -> Counter[tuple[str, str]]:
    """How often ingest counts the start and the end of each job."""
    async with ingesting(url, root, clock=time.time) as ingest:
        for sequence, events in enumerate((first, emitted, last)):
            producer = "emit-worker" if events is emitted else "collect-redis"
            await ingest.accept(
                TelemetryBatch(producer=producer, sequence=sequence, sent_at_s=time.time(), events=tuple(events))
            )
        assert ingest.counts.repeated_events > 0
    rows = [row for path in (root / "hot").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return Counter((row["job_id"], "ended" if row["kind"] in ENDS else row["kind"]) for row in rows)


def settled(control: HttpControl, *, ends: int) -> dict[str, list[dict[str, Any]]]:
    """The events of each job in their order, once so many attempts have ended."""
    until_s = time.monotonic() + WITHIN_S
    while sum(event["kind"] in ENDS for event in control.events) < ends:
        assert time.monotonic() < until_s, control.events
        time.sleep(0.1)
    time.sleep(0.5)  # more than a worker gathers: what is too much comes, too
    lives: dict[str, list[dict[str, Any]]] = {}
    for event in control.events:
        lives.setdefault(event["job_id"], []).append(event)
    return lives
