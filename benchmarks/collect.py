"""What it costs to read brokers, for us and for the broker, and how soon what enters a queue is stored.

    python benchmarks/collect.py [--libraries rq celery rabbitmq] [--seconds 20] [--json FILE]

For each library, on an embedded Valkey, with `headway collect` and `headway control` as processes beside it:

- one poll of 1,000 idle queues: processor of ours, median (goal: 15 ms), and of the server's main thread, mean (10 ms)
- share of a core that `headway collect` takes at 1,000 idle queues (4 %), and at 100 queues where together
  500 jobs a second enter, start and end (15 %)
- from a job's entry into the broker to its queue's sample in Postgres, meanwhile, p95 (1 s)
- resident memory at most while 200,000 jobs wait in 100 queues (120 MB)
- of Celery, while workers hold 100,000 tasks with an ETA: one poll once each was read, processor of ours, median
  (25 ms), and the memory that they take (60 MB)

Of a RabbitMQ 3.10 of Debian's packages, the first two: one poll takes 10 ms of ours at most, and 60 ms of the server's.
Of the server all threads count, without what it takes while nobody polls. Its queues report statistics each 5 s, the
server's default: to ask one makes it report, and each second, as in the tests, that is part of what a poll costs.

This program writes queues and jobs as the library does: no worker takes processor from what is measured.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import psutil
import psycopg
import pytest
import redis
from bench import database
from exit_statuses import NOT_HERE
from many_agents.served import Control
from options import positive_count

from headway.collect.libraries import Libraries
from headway.collect.source import Source
from headway.connections import Connection
from headway.store.embedded import ensure_valkey

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.rabbitmq import RabbitServer

IDLE_QUEUES = 1_000
BUSY_QUEUES = 100
JOBS_PER_S = 500.0
FILLED_AT_ONCE = 1_000
ETA_POLLS_MAX = 200  # until each task with an ETA was read
SETTLES_S = 6.0
WATCHED_EVERY_S = 0.02
SEPARATOR = "\x06\x16"
HEADS = {
    "library": "library",
    "poll_ms": "poll ms ≤ 15, RabbitMQ 10",
    "server_ms": "server ms ≤ 10, RabbitMQ 60",
    "idle_share": "core idle ≤ 4 %",
    "busy_share": "core busy ≤ 15 %",
    "stored_p95_s": "stored p95 s ≤ 1",
    "resident_mb": "resident MB ≤ 120",
    "eta_poll_ms": "ETA poll ms ≤ 25",
    "eta_mb": "ETA MB ≤ 60",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How long, how often and how much is measured."""

    seconds: float
    """Each share of a core."""
    polls: int
    waiting_jobs: int
    eta_jobs: int

    @property
    def resident_s(self) -> float:
        """How long memory is watched."""
        return 1.5 * self.seconds


class Writer(Protocol):
    """Writes queues and jobs as a library does. A job runs for no time: it starts and ends with its next step."""

    def declare(self, queues: list[str]) -> None:
        """Make queues without a job."""

    def enter(self, queue: str, job: str, pipe: "redis.client.Pipeline") -> None:
        """Put a job into a queue, once ``pipe`` is executed."""

    def take(self, queue: str) -> None:
        """Start the next job of a queue, and end the one that was started before."""


class Rq:
    """RQ 3."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client
        self._running: dict[str, str] = {}

    def declare(self, queues: list[str]) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.sadd("rq:queues", f"rq:queue:{queue}")
                # Registries of ended jobs stay when a queue falls idle.
                pipe.zadd(f"rq:finished:{queue}", {f"{queue}-ended": time.time() + 400.0})
                pipe.zadd(f"rq:failed:{queue}", {f"{queue}-failed": time.time() + 31_000_000.0})
            pipe.execute()

    def enter(self, queue: str, job: str, pipe: "redis.client.Pipeline") -> None:
        pipe.hset(f"rq:job:{job}", mapping={"status": "queued", "created_at": _iso(), "enqueued_at": _iso()})
        pipe.rpush(f"rq:queue:{queue}", job)

    def take(self, queue: str) -> None:
        ended, job = self._running.pop(queue, None), self._client.lpop(f"rq:queue:{queue}")
        with self._client.pipeline(transaction=False) as pipe:
            if ended:
                pipe.zrem(f"rq:wip:{queue}", f"{ended}:{'0' * 32}")
                pipe.hset(f"rq:job:{ended}", mapping={"status": "finished", "ended_at": _iso()})
                pipe.zadd(f"rq:finished:{queue}", {ended: int(time.time()) + 500})
            if job:
                self._running[queue] = str(job)
                pipe.hset(f"rq:job:{job}", mapping={"status": "started", "started_at": _iso()})
                pipe.zadd(f"rq:wip:{queue}", {f"{job}:{'0' * 32}": time.time() + 60.0})
            pipe.execute()


class Celery:
    """Celery, whose workers acknowledge early, as by default: a job that was taken is nowhere."""

    def __init__(self, client: "redis.Redis") -> None:
        self._client = client

    def declare(self, queues: list[str]) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.sadd(f"_kombu.binding.{queue}", f"{queue}{SEPARATOR}{SEPARATOR}{queue}")
            pipe.execute()

    def enter(self, queue: str, job: str, pipe: "redis.client.Pipeline") -> None:
        pipe.lpush(queue, json.dumps(_message(queue, job, tag=job)))

    def take(self, queue: str) -> None:
        self._client.rpop(queue)

    def hold(self, queue: str, jobs: int) -> None:
        """Hold tasks that are due within the next hour, as workers that took them."""
        now_s = time.time()
        for first in range(0, jobs, FILLED_AT_ONCE):
            with self._client.pipeline(transaction=False) as pipe:
                for number in range(first, min(first + FILLED_AT_ONCE, jobs)):
                    tag = str(uuid.uuid4())
                    eta = datetime.fromtimestamp(now_s + 600.0 + number * 7919 % 3000, UTC).isoformat()
                    message = _message(queue, f"held-{number}", tag=tag, eta=eta)
                    pipe.hset("unacked", tag, json.dumps([message, "", queue]))
                    pipe.zadd("unacked_index", {tag: now_s - 0.01 * (jobs - number)})
                pipe.execute()


def _message(queue: str, job: str, *, tag: str, eta: str | None = None) -> dict[str, Any]:
    headers = {"lang": "py", "task": "shop.mail.send", "id": job, "eta": eta, "argsrepr": "('someone',)"}
    properties = {"delivery_tag": tag, "delivery_info": {"exchange": "", "routing_key": queue}}
    body = "W1sic29tZW9uZSJdLCB7fSwge31d" * 4
    return {"body": body, "content-type": "application/json", "headers": headers, "properties": properties}


WRITERS: dict[str, Callable[["redis.Redis"], Writer]] = {"rq": Rq, "celery": Celery}
LIBRARIES = (*WRITERS, "rabbitmq")


def _enter(client: "redis.Redis", writer: Writer, queue: str, job: str) -> None:
    with client.pipeline(transaction=False) as pipe:
        writer.enter(queue, job, pipe)
        pipe.execute()


def _iso() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() // 1_000 % 1_000_000:06d}Z"


class RedisBench:
    """One library's broker, and the processes that read it."""

    def __init__(self, library: str, folder: Path, control: Control, database: "psycopg.Connection[Any]") -> None:
        self._library = library
        self._folder = folder
        self._control = control
        self._database = database
        self._states = 0
        self._server = ensure_valkey(folder / library)
        self._client = redis.Redis.from_url(self._server.url, decode_responses=True)
        self._writer = WRITERS[library](self._client)

    def measured(self, size: Size) -> dict[str, Any]:
        """All figures."""
        self._writer.declare([f"idle-{number}" for number in range(IDLE_QUEUES)])
        poll_ms, server_ms = self._poll(size)
        with self._collecting() as collector:
            idle_share = _share(collector, size.seconds)
        self._client.flushall()
        busy = [f"busy-{number}" for number in range(BUSY_QUEUES)]
        self._writer.declare(busy)
        with self._collecting() as collector, self._working(busy):
            time.sleep(SETTLES_S)
            with self._watching() as waits_s:
                busy_share = _share(collector, size.seconds)
        self._client.flushall()
        resident_mb = self._resident(busy, size)
        eta = self._eta(self._writer, busy[0], size) if isinstance(self._writer, Celery) else {}
        self._client.close()
        self._server.wait_stopped()
        waits_s.sort()
        return {
            "library": self._library,
            "poll_ms": round(poll_ms, 1),
            "server_ms": round(server_ms, 1),
            "idle_share": round(idle_share, 4),
            "busy_share": round(busy_share, 4),
            "stored_p95_s": round(waits_s[int(0.95 * len(waits_s))], 3) if waits_s else None,
            "stored_jobs": len(waits_s),
            "resident_mb": round(resident_mb, 1),
            **eta,
        }

    def _poll(self, size: Size) -> tuple[float, float]:
        connection = Connection(name=self._library, url=self._server.url, library=self._library)
        return _poll_ms(connection, self._server_s, polls=size.polls)

    def _server_s(self) -> float:
        used = self._client.info("cpu")
        return float(used["used_cpu_user_main_thread"]) + float(used["used_cpu_sys_main_thread"])

    @contextlib.contextmanager
    def _collecting(self) -> Iterator[psutil.Process]:
        """`headway collect`, which began anew and has read what is there."""
        self._states += 1
        brokers = self._folder / f"{self._library}.toml"
        brokers.write_text(f'[{self._library}]\nurl = "{self._server.url}"\nlibrary = "{self._library}"\n')
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
            "HEADWAY_STATE_DIR": str(self._folder / f"{self._library}-state-{self._states}"),
            "HEADWAY_CONTROL": self._control.address,
            "HEADWAY_BROKERS_FILE": str(brokers),
        }
        log = (self._folder / f"{self._library}.log").open("ab")
        with (
            log,
            subprocess.Popen(
                [sys.executable, "-m", "headway", "collect"], env=environment, stdout=log, stderr=log
            ) as child,
        ):
            try:
                time.sleep(SETTLES_S)
                if child.poll() is not None:
                    raise SystemExit((self._folder / f"{self._library}.log").read_text())
                yield psutil.Process(child.pid)
            finally:
                child.terminate()
                child.wait(30)

    @contextlib.contextmanager
    def _working(self, queues: list[str]) -> Iterator[None]:
        """Jobs enter, start and end, ``JOBS_PER_S`` of each."""
        stop = threading.Event()
        client = redis.Redis.from_url(self._server.url, decode_responses=True)
        writer = WRITERS[self._library](client)

        def work() -> None:
            began_s = time.monotonic()
            for number in range(10**9):
                if stop.wait(max(0.0, began_s + number / JOBS_PER_S - time.monotonic())):
                    return
                _enter(client, writer, queues[number % len(queues)], f"{self._library}-{number}")
                if number >= 2 * len(queues):
                    writer.take(queues[number % len(queues)])

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            client.close()

    @contextlib.contextmanager
    def _watching(self) -> Iterator[list[float]]:
        """From the entry of jobs into a queue that nobody serves to their queue's stored sample, in seconds."""
        waits_s: list[float] = []
        stop = threading.Event()
        self._writer.declare(["watched"])

        def watch() -> None:
            jobs = 0
            while not stop.wait(0.3):
                jobs += 1
                _enter(self._client, self._writer, "watched", f"watched-{jobs}")
                entered_s = time.monotonic()
                while self._stored_jobs("watched") < jobs and not stop.is_set():
                    time.sleep(WATCHED_EVERY_S)
                if not stop.is_set():
                    waits_s.append(time.monotonic() - entered_s)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield waits_s
        finally:
            stop.set()
            thread.join()

    def _stored_jobs(self, queue: str) -> int:
        asked = "select waiting_jobs from queue_samples where queue = %s"
        row = self._database.execute(asked, [f"{self._library}/{queue}"]).fetchone()
        return int(row[0]) if row else 0

    def _resident(self, queues: list[str], size: Size) -> float:
        """The most that `headway collect` has held, in MB, while many jobs wait."""
        self._writer.declare(queues)
        for first in range(0, size.waiting_jobs, FILLED_AT_ONCE):
            with self._client.pipeline(transaction=False) as pipe:
                for number in range(first, min(first + FILLED_AT_ONCE, size.waiting_jobs)):
                    self._writer.enter(queues[number % len(queues)], f"{self._library}-waiting-{number}", pipe)
                pipe.execute()
        return self._most_mb(size)

    def _most_mb(self, size: Size) -> float:
        """The most that `headway collect` has held, in MB."""
        with self._collecting() as collector:
            most, until_s = 0, time.monotonic() + size.resident_s
            while time.monotonic() < until_s:
                most = max(most, collector.memory_info().rss)
                time.sleep(0.5)
        return most / 1e6

    def _eta(self, writer: Celery, queue: str, size: Size) -> dict[str, float]:
        """What tasks with an ETA cost that workers hold."""
        self._client.flushall()
        writer.declare([queue])
        before_mb = self._most_mb(size)
        writer.hold(queue, size.eta_jobs)
        connection = Connection(name="eta", url=self._server.url, library=self._library)
        source = Libraries().of(connection).open(connection, None)
        if not any(source.poll(time.time()).samples[0].delayed_jobs == size.eta_jobs for _ in range(ETA_POLLS_MAX)):
            raise SystemExit(f"{size.eta_jobs} tasks with an ETA were not read in {ETA_POLLS_MAX} polls")
        took_s = [_polled_s(source) for _ in range(size.polls)]
        source.close()
        return {
            "eta_poll_ms": round(1e3 * statistics.median(took_s), 1),
            "eta_mb": round(self._most_mb(size) - before_mb, 1),
        }


class RabbitBench:
    """A RabbitMQ whose queues are idle."""

    def __init__(self, folder: Path) -> None:
        self._server = RabbitServer(folder / "rabbitmq", config="collect_statistics_interval = 5000\n")

    def measured(self, size: Size) -> dict[str, Any]:
        """What one poll costs."""
        try:
            self._server.start()
            with self._server.channel() as channel:
                for number in range(IDLE_QUEUES):
                    channel.queue_declare(f"idle-{number}", durable=True, auto_delete=False)
            time.sleep(SETTLES_S)
            url, management_url = self._server.url, self._server.management_url
            connection = Connection(name="rabbitmq", url=url, library="rabbitmq", management_url=management_url)
            poll_ms, server_ms = _poll_ms(connection, self._server_s, polls=size.polls, every_s=1.0)
        finally:
            self._server.close()
        return {"library": "rabbitmq", "poll_ms": round(poll_ms, 1), "server_ms": round(server_ms, 1)}

    def _server_s(self) -> float:
        return float(sum(psutil.Process(self._server.pid).cpu_times()[:2]))


def _poll_ms(
    connection: Connection, server_s: Callable[[], float], *, polls: int, every_s: float = 0.0
) -> tuple[float, float]:
    """Milliseconds that a poll takes: of our processor at the median, of the server's at the mean."""
    source = Libraries().of(connection).open(connection, None)
    for _ in range(3):
        source.poll(time.time())
    before_s = server_s()
    time.sleep(polls * every_s)
    alone_s = server_s() - before_s
    took_s, before_s = [], server_s()
    for _ in range(polls):
        took_s.append(_polled_s(source))
        time.sleep(every_s)
    server_ms = 1e3 * (server_s() - before_s - alone_s) / polls
    source.close()
    return 1e3 * statistics.median(took_s), server_ms


def _polled_s(source: Source) -> float:
    """Processor of ours that one poll takes."""
    began_s = time.process_time()
    source.poll(time.time())
    return time.process_time() - began_s


def _share(process: psutil.Process, seconds: float) -> float:
    """The share of a core that ``process`` takes."""
    before_s, began_s = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    return float((sum(process.cpu_times()[:2]) - before_s) / (time.monotonic() - began_s))


def _shown(key: str, value: Any) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if key.endswith("share") else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--seconds", type=float, default=20.0, help="that each share of a core is measured for")
    parser.add_argument("--polls", type=positive_count, default=40, help="of the idle queues")
    parser.add_argument("--waiting-jobs", type=positive_count, default=200_000, help="while memory is watched")
    parser.add_argument("--eta-jobs", type=positive_count, default=100_000, help="tasks with an ETA that workers hold")
    parser.add_argument("--json", type=Path, help="append the figures there, a line each run")
    options = parser.parse_args()
    size = Size(
        seconds=options.seconds, polls=options.polls, waiting_jobs=options.waiting_jobs, eta_jobs=options.eta_jobs
    )
    before = os.getloadavg()[0]
    with database() as (url, folder), contextlib.ExitStack() as stack:
        control = Control(folder, url)
        asyncio.run(control.start())
        stack.callback(control.end)
        connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        rows = [
            (RedisBench(library, folder, control, connection) if library in WRITERS else RabbitBench(folder)).measured(
                size
            )
            for library in options.libraries
        ]
    machine = {
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "load_1m_before": round(before, 2),
        "load_1m_after": round(os.getloadavg()[0], 2),
    }
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print(" | ".join(HEADS.values()))
    for row in rows:
        print(" | ".join(_shown(key, row.get(key)) for key in HEADS))
    if options.json:
        with options.json.open("a") as file:
            file.write(json.dumps({**machine, "seconds": options.seconds, "libraries": rows}) + "\n")


if __name__ == "__main__":
    try:
        main()
    except pytest.skip.Exception as error:  # as the tests leave RabbitMQ out where its packages cannot be had
        print(error, file=sys.stderr)
        sys.exit(NOT_HERE)
