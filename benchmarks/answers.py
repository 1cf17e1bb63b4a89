"""How long the HTTP API takes to answer what reads history, where there are many pools and all that is ever kept.

An embedded Postgres is filled with rows as Headway leaves them, in the order of time: hours of 400 days and minutes of
14 days of some queues, attainment of 31 days and decisions of some days of every pool, workers, incidents. Then each
request is sent to the app, in this process, one at a time. Figures are the median and the greatest of the runs; the
first one, of cold caches, has its own column.

    python benchmarks/answers.py --pools 1000 --runs 5
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
from bench import database, machine
from exit_statuses import GOAL_MISSED
from options import positive_count

from headway.control.http.app import App, create_app
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.ingest import Ingest
from headway.scaling.model import Decision, Demand, QueueMetrics, Step
from headway.scaling.profile import Profile, profile_to_mapping
from headway.settings import Address
from headway.store.engine import create_engine
from headway.store.events.event_log import EventLog
from headway.store.pools.decisions import decision_to_json

DAY_S = 86_400
GOAL_MS = 500.0
HOURS_DAYS = 400
MINUTES_DAYS = 14
ATTAINED_DAYS = 31
WORKERS_PER_POOL = 5


def filled(url: str, *, pools: int, queues_with_history: int, decision_days: int, now_s: float) -> None:
    """Plant what an installation of so many pools keeps."""
    end_s = now_s // 3600 * 3600
    with psycopg.connect(url, autocommit=True) as db:
        for number in range(pools):
            name = f"pool-{number:04}"
            profile = Profile(pool=name, queues=(f"redis/{name}",), template="rq")
            db.execute(
                "insert into profiles (pool, body) values (%s, %s)", [name, json.dumps(profile_to_mapping(profile))]
            )
            db.execute("insert into profile_queues (queue, pool, rank) values (%s, %s, 0)", [f"redis/{name}", name])
        for table, step_s, days in (("rollup_hours", 3600, HOURS_DAYS), ("rollup_minutes", 60, MINUTES_DAYS)):
            db.execute(
                f"""
                insert into {table} (queue, bucket_s, arrived_jobs, started_jobs, finished_jobs, pickup_sketch,
                    pickup_max_s, sampled_at_s, waiting_jobs)
                select queue, at_s, 100, 100, 100,
                    '{{"100": 40, "120": 30, "140": 20, "160": 8, "170": 2}}', 3.0, at_s, 2
                from (select queue from profile_queues order by queue limit %s) of_some,
                    generate_series(%s::bigint, %s::bigint, %s) as at_s
                order by at_s
                """,
                [queues_with_history, end_s - days * DAY_S, end_s - step_s, step_s],
            )
        db.execute("update rollup_progress set minutes_until_s = %s, hours_until_s = %s", [end_s, end_s])
        db.execute(
            "insert into pool_attainment (pool, from_s, jobs, late_jobs) select pool, at_s, 100, 1 from profiles, "
            "generate_series(%s::bigint, %s::bigint, 300) as at_s order by at_s",
            [end_s - ATTAINED_DAYS * DAY_S, end_s - 300],
        )
        _decided(db, decision_days=decision_days, now_s=now_s)
        db.execute(
            """
            insert into hosts
                (host_id, name, agent_version, cpu_cores, memory_bytes, templates, reported_at, lease_ends_at)
            select 'id-' || n, 'host-' || n, '0.1.0', 64, 1::bigint << 36, '[]', now(), now() + interval '1 hour'
            from generate_series(1, 50) as n
            """
        )
        db.execute(
            """
            insert into workers (worker_id, host_id, pool, template, pid, state, is_busy, started_at)
            select pool || '-' || n, 'id-' || (1 + abs(hashtext(pool)) %% 50), pool, 'rq', 1000 + n, 'running', true,
                now()
            from profiles, generate_series(1, %s) as n
            """,
            [WORKERS_PER_POOL],
        )
        db.execute(
            """
            insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action, opened_at)
            select 'pool_late', 'page', pool, '', '', extract(epoch from moment),
                case when n > 0 then extract(epoch from moment) + 600 end, 'jobs wait too long', 'look', moment
            from profiles, generate_series(0, 99) as n, lateral (select now() - n * interval '4 days' as moment) as at
            """
        )
        db.execute("analyze")


def _decided(db: psycopg.Connection, *, decision_days: int, now_s: float) -> None:
    """A decision of each pool every five minutes."""
    metrics = QueueMetrics(queue="redis/mail", sampled_at_s=now_s, waiting_jobs=2, oldest_age_s=0.5)
    steps = tuple(Step(name=name, workers=5) for name in ("wanted", "tolerance", "hold_down", "workers_max"))
    decision = Decision(
        pool="mail", at_s=now_s, target_workers=5, binding="steady_state", steps=steps, metrics=(metrics,),
        demands=(Demand(name="steady_state", slots=4.2), Demand(name="backlog_drain", slots=1.0)),
        running_workers=5,
    )  # fmt: skip
    today = datetime.fromtimestamp(now_s, UTC).date()
    for days in range(-decision_days, 2):
        day = today + timedelta(days=days)
        db.execute(
            f"create table if not exists decisions_{day:%Y%m%d} partition of decisions "
            f"for values from ('{day} 00:00:00+00') to ('{day + timedelta(days=1)} 00:00:00+00')"
        )
    db.execute(
        """
        insert into decisions (decided_at, pool, epoch, target_workers, previous_workers, binding, body)
        select to_timestamp(at_s), pool, 1, 5, 5, 'steady_state', %s
        from profiles, generate_series(%s::bigint, %s::bigint, 300) as at_s order by at_s
        """,
        [json.dumps(decision_to_json(decision)), int(now_s) - decision_days * DAY_S, int(now_s) - 1],
    )


def asked(now_s: float) -> list[tuple[str, str]]:
    """What is asked, and what the row is called."""

    def since(days: float) -> str:
        return f"from_s={now_s - days * DAY_S:.0f}"

    first = "pool-0000"
    return [
        *((f"series of {days:g} days", f"/v1/pools/{first}/series?{since(days)}") for days in (1, 7, 30, 399)),
        *((f"objectives of all pools, {days} days", f"/v1/slo?{since(days)}") for days in (1, 7, 30)),
        ("objectives of all pools, a day by the hour", f"/v1/slo?{since(1)}&step=hour"),
        ("objectives of a pool, 30 days", f"/v1/slo?{since(30)}&pool={first}"),
        ("objectives of a pool, 399 days", f"/v1/slo?{since(399)}&pool={first}"),
        ("newest decisions", "/v1/decisions"),
        ("decisions, 500", "/v1/decisions?limit=500"),
        ("newest decisions of a pool", f"/v1/decisions?pool={first}"),
        ("decisions upwards, of which there are none", "/v1/decisions?direction=up"),
        ("decisions for a reason that there is not", "/v1/decisions?reason=budget"),
        ("decisions of a pool, upwards", f"/v1/decisions?pool={first}&direction=up"),
        ("why, a day ago", f"/v1/pools/{first}/explain?at_s={now_s - DAY_S:.0f}"),
        ("workers, 500", "/v1/workers"),
        ("workers, 2,000", "/v1/workers?limit=2000"),
        ("workers of a pool", f"/v1/workers?pool={first}"),
        ("incidents that go on", "/v1/alerts"),
        ("incidents of 400 days", "/v1/alerts?state=all"),
        ("incidents of a pool", f"/v1/alerts?state=all&pool={first}"),
    ]


async def answers(app: App, requests: list[tuple[str, str]], runs: int) -> bool:
    """Print a row for each request. Returns whether all were answered as fast as they shall be."""
    is_good = True
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8460", timeout=120.0) as client:
        print("| request | first, ms | median, ms | greatest, ms | kB |\n| --- | --- | --- | --- | --- |")
        for name, path in requests:
            took_ms = []
            for _ in range(runs + 1):
                began_s = time.perf_counter()
                answer = await client.get(path)
                took_ms.append((time.perf_counter() - began_s) * 1000)
                if answer.status_code != 200:
                    sys.exit(f"{path}: {answer.status_code} {answer.text[:500]}")
            first_ms, *later_ms = took_ms
            median_ms = statistics.median(later_ms)
            is_good &= median_ms <= GOAL_MS
            mark = "" if median_ms <= GOAL_MS else " too slow"
            kilobytes = len(answer.content) // 1000
            row = f"| {name} | {first_ms:.0f} | {median_ms:.0f}{mark} | {max(later_ms):.0f} | {kilobytes} |"
            print(row, flush=True)
    return is_good


async def measured(url: str, folder: Path, requests: list[tuple[str, str]], runs: int) -> bool:
    """Print the rows of an app on the database at ``url``."""
    engine = create_engine(url)
    ingest = Ingest(engine=engine, event_log=EventLog(folder / "events", free_bytes_min=0), clock=time.time)
    await ingest.start()
    try:
        app = create_app(
            engine=engine, ingest=ingest, feed=Feed(), token=None, address=Address(host="127.0.0.1", port=0)
        )
        return await answers(app, requests, runs)
    finally:
        await ingest.stop()
        await engine.dispose()


def main() -> None:
    """Fill a database, and print how long each answer takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=positive_count, default=1_000)
    parser.add_argument(
        "--queues-with-history", type=positive_count, default=20, help="of which hours and minutes are kept"
    )
    parser.add_argument("--decision-days", type=positive_count, default=3, help="of the 14 that are kept")
    parser.add_argument("--runs", type=positive_count, default=5)
    given = parser.parse_args()
    now_s = time.time()
    with database(is_durable=False) as (url, folder):
        filled(
            url, pools=given.pools, queues_with_history=given.queues_with_history, decision_days=given.decision_days,
            now_s=now_s,
        )  # fmt: skip
        print(f"{machine()}, {vars(given)}")
        print(f"filled in {time.time() - now_s:.0f} s", flush=True)
        is_good = asyncio.run(measured(url, folder, asked(now_s), given.runs))
    sys.exit(0 if is_good else GOAL_MISSED)


if __name__ == "__main__":
    main()
