"""What the dashboard costs where there are many pools and little changes: its first paint, each update, each viewer.

An embedded Postgres is filled with pools of one queue each, hosts and workers. A control plane's HTTP server runs as a
process of its own. While it is measured, every queue is sampled every two seconds, a few have other depths and new
buckets, hosts report every five seconds, and viewers are notified every second, as by a pipeline that is at work.

    python benchmarks/dashboard.py --pools 1000 --seconds 30
"""

import argparse
import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from bench import database, machine
from exit_statuses import GOAL_MISSED, NOT_HERE
from options import positive_count
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from headway.control.http.app import create_app
from headway.control.http.http_server import HttpServer
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.ingest import Ingest
from headway.scaling.measure import sketch_index
from headway.scaling.profile import Profile, profile_to_mapping
from headway.settings import Address
from headway.store.engine import create_engine
from headway.store.events.event_log import EventLog
from support.chromium import CHROMIUM, MISSING

ACTIVE_POOLS = 20
HOSTS = 50
WORKERS_PER_POOL = 5
FURTHER_VIEWERS = 10
FIRST_PAINT_GOAL_MS = 1_000.0
UPDATE_GOAL_MS = 100.0
BYTES_GOAL_PER_S = 10_000.0
CORE_GOAL = 0.005

SAMPLED = """
    insert into queue_samples (queue, sampled_at_s, waiting_jobs, in_flight_jobs, oldest_age_s)
    select queue, %(at_s)s, n, 1, n * 0.1
    from (select queue, case when row_number() over (order by queue) <= %(active)s then %(depth)s else 0 end as n
          from profile_queues) of_each
    on conflict (queue) do update set sampled_at_s = excluded.sampled_at_s, waiting_jobs = excluded.waiting_jobs,
        oldest_age_s = excluded.oldest_age_s, received_at = now()
"""
BUCKETED = """
    insert into queue_buckets (queue, bucket_s, started_jobs, arrived_jobs, finished_jobs, pickup_sketch, pickup_max_s,
        service_sum_s, sampled_at_s, waiting_jobs, revision)
    select queue, %(bucket_s)s, 10, 10, 10, %(sketch)s, 2.0, 5.0, %(at_s)s, 1, %(revision)s
    from profile_queues order by queue limit %(active)s
    on conflict do nothing
"""
REPORTED = "update hosts set reported_at = now(), lease_ends_at = now() + interval '1 hour'"
PIPELINE = """
    insert into pipeline_health (pipeline, batch_id, rows, batch_s, is_ready, written_at)
    values ('metrics', 7, 100, 0.4, true, now())
    on conflict (pipeline) do update set written_at = now()
"""


def filled(db: psycopg.Connection, *, pools: int) -> None:
    """Plant pools, hosts and workers."""
    for number in range(pools):
        name = f"pool-{number:04}"
        body = json.dumps(profile_to_mapping(Profile(pool=name, queues=(f"redis/{name}",), template="rq")))
        db.execute("insert into profiles (pool, body) values (%s, %s)", [name, body])
        db.execute("insert into profile_queues (queue, pool, rank) values (%s, %s, 0)", [f"redis/{name}", name])
    template = {"name": "rq", "content_hash": "1", "slots": 1, "cpu_cores": 0.25, "memory_bytes": 64 << 20}
    db.execute(
        """
        insert into hosts (host_id, name, agent_version, cpu_cores, memory_bytes, templates, reported_at, lease_ends_at)
        select 'id-' || n, 'host-' || n, '0.1.0', 64, 1::bigint << 36, %s, now(), now() + interval '1 hour'
        from generate_series(1, %s) as n
        """,
        [json.dumps([template]), HOSTS],
    )
    db.execute(
        """
        insert into workers (worker_id, host_id, pool, template, pid, state, is_busy, started_at)
        select pool || '-' || n, 'id-' || (1 + abs(hashtext(pool)) %% %s), pool, 'rq', 1000 + n, 'running', true, now()
        from profiles, generate_series(1, %s) as n
        """,
        [HOSTS, WORKERS_PER_POOL],
    )
    for back in range(24, 0, -1):
        step(db, int(time.time()) - 5 * back, revision=25 - back)
    db.execute("analyze")


def step(db: psycopg.Connection, at_s: float, *, revision: int) -> None:
    """What collectors, the pipeline and agents leave in five seconds."""
    values = {"at_s": at_s, "active": ACTIVE_POOLS, "depth": revision % 7, "bucket_s": at_s // 5 * 5}
    sketch = json.dumps({sketch_index(0.5): 8, sketch_index(1.5): 2})
    db.execute(SAMPLED, values)
    db.execute(BUCKETED, {**values, "sketch": sketch, "revision": revision})
    db.execute(REPORTED)
    db.execute(PIPELINE)


@contextmanager
def going_on(url: str) -> Iterator[None]:
    """Little changes, for as long as the block lasts."""
    stop = threading.Event()

    def change() -> None:
        with psycopg.connect(url, autocommit=True) as db:
            turn = 0
            while not stop.wait(2.0 if turn % 2 else 3.0):
                turn += 1
                step(db, time.time(), revision=100 + turn)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def serve(url: str, folder: Path) -> None:
    """Serve until the parent ends this; the port is the first line."""
    engine = create_engine(url)
    ingest = Ingest(engine=engine, event_log=EventLog(folder / "events", free_bytes_min=0), clock=time.time)
    await ingest.start()
    feed = Feed()
    here = Address(host="127.0.0.1", port=0)
    server = HttpServer(create_app(engine=engine, ingest=ingest, feed=feed, token=None, address=here), address=here)
    await server.start()
    print(server.port, flush=True)
    while True:
        await asyncio.sleep(1.0)
        feed.publish()


@contextmanager
def served(url: str, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    """A server of its own: the port and the process."""
    child = subprocess.Popen(
        [sys.executable, __file__, "--serve", url, "--folder", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    try:
        yield int(child.stdout.readline()), psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait()


class Viewer(threading.Thread):
    """Reads the stream, and counts its bytes as they are sent."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__(daemon=True)
        self.bytes = self.updates = 0
        self._url = f"http://127.0.0.1:{port}{path}"
        self._closed = False

    def run(self) -> None:
        """Read until it is closed."""
        with httpx.stream("GET", self._url, timeout=60.0) as answer:
            for line in answer.iter_lines():
                if self._closed:
                    return
                self.bytes = answer.num_bytes_downloaded
                self.updates += line in {"event: overview", "event: change"}

    def close(self) -> None:
        """End the connection, at the next update."""
        self._closed = True


def cpu_s(process: psutil.Process) -> float:
    """Seconds of processor that it has used."""
    times = process.cpu_times()
    return times.user + times.system


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What it took to be watched for a while."""

    core: float
    """Share of a core that the server used."""
    updates_per_s: float
    """That one viewer got."""
    bytes_per_s: float
    """The same in bytes on the wire."""


def watched(port: int, process: psutil.Process, path: str, *, viewers: int, seconds: float) -> Watched:
    """Watch, and begin to count once each viewer has had its first overview."""
    watching = [Viewer(port, path) for _ in range(viewers)]
    for viewer in watching:
        viewer.start()
    while any(viewer.updates < 2 for viewer in watching):
        time.sleep(0.1)
    began_s, used_s = time.monotonic(), cpu_s(process)
    had_bytes, had_updates = sum(viewer.bytes for viewer in watching), sum(viewer.updates for viewer in watching)
    time.sleep(seconds)
    took_s, used_s = time.monotonic() - began_s, cpu_s(process) - used_s
    sent_bytes = (sum(viewer.bytes for viewer in watching) - had_bytes) / max(1, viewers)
    updates = (sum(viewer.updates for viewer in watching) - had_updates) / max(1, viewers)
    for viewer in watching:
        viewer.close()
    for viewer in watching:
        viewer.join()
    return Watched(core=used_s / took_s, updates_per_s=updates / took_s, bytes_per_s=sent_bytes / took_s)


LONGEST = """() => {
    globalThis.longest_ms = 0;
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) globalThis.longest_ms = Math.max(globalThis.longest_ms, task.duration);
    }).observe({type: "longtask"});
}"""


def painted(port: int, *, seconds: float) -> tuple[float, float, float]:
    """Milliseconds to the first row, of the longest task afterwards, and of main thread a second."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        inspector = page.context.new_cdp_session(page)
        inspector.send("Performance.enable")

        def tasks_s() -> float:
            metrics: list[dict[str, Any]] = inspector.send("Performance.getMetrics")["metrics"]
            return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

        page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
        page.wait_for_selector("tbody tr", timeout=60_000)
        first_ms = page.evaluate("performance.now()")
        page.wait_for_timeout(3_000)
        page.evaluate(LONGEST)
        before_s, began_s = tasks_s(), time.monotonic()
        page.wait_for_timeout(seconds * 1000)
        per_s_ms = 1000 * (tasks_s() - before_s) / (time.monotonic() - began_s)
        longest_ms = page.evaluate("globalThis.longest_ms")
        browser.close()
    return first_ms, longest_ms, per_s_ms


def row(name: str, value: float, unit: str, goal: float | None = None) -> bool:
    """Print a figure beside its goal. Returns whether it is met."""
    is_met = goal is None or value <= goal
    beside = "" if goal is None else f"{goal:g} {unit}"
    print(f"| {name} | {value:.3g} {unit} | {beside} | {'' if is_met else 'missed'} |", flush=True)
    return is_met


def measured(url: str, folder: Path, *, seconds: float, path: str) -> bool:
    """Print the figures. Returns whether each is within its goal."""
    with served(url, folder) as (port, process), going_on(url):
        alone = watched(port, process, path, viewers=0, seconds=seconds)
        one = watched(port, process, path, viewers=1, seconds=seconds)
        many = watched(port, process, path, viewers=1 + FURTHER_VIEWERS, seconds=seconds)
        print("| figure | seen | goal | |\n| --- | --- | --- | --- |")
        met = [
            row("updates of a viewer", one.updates_per_s, "/s"),
            row("an update on the wire", one.bytes_per_s / max(one.updates_per_s, 1e-9), "B"),
            row("a viewer on the wire", one.bytes_per_s, "B/s", BYTES_GOAL_PER_S),
            row("of a core, while anybody watches", 100 * (one.core - alone.core), "%"),
            row("of a core, each viewer more", 100 * (many.core - one.core) / FURTHER_VIEWERS, "%", 100 * CORE_GOAL),
        ]
        first_ms, longest_ms, per_s_ms = painted(port, seconds=seconds)
        met += [
            row("first rows on the screen", first_ms, "ms", FIRST_PAINT_GOAL_MS),
            row("longest task of the main thread", longest_ms, "ms", UPDATE_GOAL_MS),
            row("main thread, each second", per_s_ms, "ms"),
        ]
    return all(met)


def main() -> None:
    """Fill a database, and print what watching it costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=positive_count, default=1_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="that each figure is measured for")
    parser.add_argument("--path", default="/v1/events?changes=true", help="of the stream; /v1/events sends it whole")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve, given.folder))
        return
    if CHROMIUM is None:
        print(MISSING, file=sys.stderr)
        sys.exit(NOT_HERE)
    with database(is_durable=False) as (url, folder):
        with psycopg.connect(url, autocommit=True) as db:
            filled(db, pools=given.pools)
        print(f"{machine()}, {given.pools} pools")
        is_good = measured(url, folder, seconds=given.seconds, path=given.path)
    sys.exit(0 if is_good else GOAL_MISSED)


if __name__ == "__main__":
    main()
