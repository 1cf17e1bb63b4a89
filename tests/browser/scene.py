"""An installation with everything that a dashboard can show, as rows of a database."""

import json
import math
import time
from dataclasses import replace

from headway.scaling.measure import sketch_index
from headway.scaling.model import Decision, Demand, Mode, Objective, QueueMetrics, Step
from headway.scaling.profile import Profile
from support.seed import Seed

# A minute for all but the late one: a slow machine opens the page when the scene's newest readings are ten seconds old.
SOON = Objective(target_s=60)
PROFILES = [
    Profile(pool="emails", queues=("redis/emails",), template="rq", objective=SOON, workers_max=12),
    Profile(pool="reports", queues=("redis/reports",), template="rq", objective=Objective(target_s=30), workers_max=16),
    Profile(
        pool="images", queues=("redis/thumbnails", "redis/transcodes"), template="rq", objective=SOON, workers_max=20
    ),
    Profile(pool="invoices", queues=("redis/invoices",), template="rq", mode=Mode.RECOMMEND),
    Profile(pool="webhooks", queues=("redis/webhooks",), template="rq", mode=Mode.PAUSE),
]


def play(seed: Seed, *, now_s: float) -> None:
    """Write the scene, as of ``now_s``."""
    seed.leader()
    seed.pipeline()
    for profile in PROFILES:
        seed.profile(profile)
    _hosts(seed)
    _buckets(seed, now_s=now_s)
    _samples(seed, now_s=now_s)
    _decisions(seed, now_s=now_s)


def one_pool(seed: Seed, *, pickups_s: list[float] | None = None, **bucket: int) -> None:
    """Write an installation of one queue, as of now, in which nothing is wrong."""
    now_s = time.time()
    seed.leader()
    seed.pipeline()
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", objective=SOON, stale_after_s=900))
    seed.host("worker-1")
    seed.worker("worker-1", "mail", 1)
    seed.bucket("redis/mail", at_s=now_s - 10, pickups_s=pickups_s or [0.5] * 5, **{"finished_jobs": 4, **bucket})
    seed.sample("redis/mail", at_s=now_s, waiting_jobs=0, in_flight_jobs=1, oldest_age_s=0.0)


def _hosts(seed: Seed) -> None:
    seed.host("worker-1", cpu_cores=4.0, memory_bytes=4 << 30)
    seed.host("worker-2", cpu_cores=4.0, memory_bytes=8 << 30)
    seed.host("worker-3", lease_s=-40.0, reported_ago_s=85.0, cpu_cores=8.0, memory_bytes=16 << 30)
    for host, pool, states in [
        ("worker-1", "emails", ["running"] * 5),
        ("worker-1", "reports", ["running"] * 6 + ["starting"] * 4),
        ("worker-2", "images", ["running"] * 7 + ["draining"]),
        ("worker-3", "webhooks", ["running"] * 2),
    ]:
        for number, state in enumerate(states):
            seed.worker(host, pool, number, state=state)


def _buckets(seed: Seed, *, now_s: float) -> None:
    """Ten minutes: steady mail, reports that surged four minutes ago, images that come in waves."""
    for step in range(120, 0, -1):
        at_s, minute = now_s - 5 * step, -step / 12
        wave = 0.5 + 0.5 * math.sin(minute * 1.7)
        surge = max(0.0, 1 - abs(minute + 1.6) / (2.4 if minute < -1.6 else 5.0))
        for queue, waiting_jobs, wait_s, jobs, service_s in [
            ("redis/emails", round(6 + 5 * wave), 0.8 + 1.5 * wave, 60, 0.4),
            ("redis/reports", round(4 + 180 * surge), 3 + 38 * surge, 8, 4.5),
            ("redis/thumbnails", round(20 * wave), 0.5 + 4 * wave, 30, 0.3),
            ("redis/transcodes", round(4 * wave), 1 + 5 * wave, 6, 2.5),
            ("redis/invoices", 0, None, 0, None),
        ]:
            seed.bucket(
                queue,
                at_s=at_s,
                pickups_s=[] if wait_s is None else [wait_s * (0.4 + 0.6 * part / 9) for part in range(10)],
                arrived_jobs=jobs,
                finished_jobs=jobs,
                service_sum_s=jobs * (service_s or 0.0),
                service_sketch=json.dumps({sketch_index(service_s): jobs} if service_s else {}),
                waiting_jobs=waiting_jobs,
                in_flight_jobs=min(jobs, 6),
                oldest_age_s=0.0 if wait_s is None else 1.15 * wait_s,
            )


def _samples(seed: Seed, *, now_s: float) -> None:
    seed.sample("redis/emails", at_s=now_s, waiting_jobs=9, in_flight_jobs=5, oldest_age_s=1.4)
    seed.sample("redis/reports", at_s=now_s, waiting_jobs=66, in_flight_jobs=6, oldest_age_s=32.0)
    seed.sample("redis/thumbnails", at_s=now_s, waiting_jobs=12, in_flight_jobs=5, oldest_age_s=2.1)
    seed.sample("redis/transcodes", at_s=now_s, waiting_jobs=3, in_flight_jobs=2, oldest_age_s=4.0)
    seed.sample("redis/invoices", at_s=now_s, waiting_jobs=0, in_flight_jobs=0, oldest_age_s=0.0)
    seed.sample("redis/webhooks", at_s=now_s - 130, waiting_jobs=17)
    seed.sample("redis/legacy-imports", at_s=now_s, waiting_jobs=210, oldest_age_s=5400.0)


def _decisions(seed: Seed, *, now_s: float) -> None:
    reports = QueueMetrics(
        queue="redis/reports",
        sampled_at_s=now_s,
        waiting_jobs=160,
        in_flight_jobs=6,
        oldest_age_s=22.4,
        arrival_rate_per_s=1.6,
        service_time_s=4.5,
    )
    calm = QueueMetrics(
        queue="redis/emails", sampled_at_s=now_s, waiting_jobs=4, arrival_rate_per_s=12.0, service_time_s=0.4
    )
    for pool, before, after, values, ago_s in [
        ("emails", 6, 5, {"demands": (Demand(name="work_in_progress", slots=5),)}, 42),
        ("images", 8, 7, {"demands": (Demand(name="standing", slots=7),)}, 75),
        (
            "reports",
            4,
            6,
            {
                "demands": (Demand(name="backlog_drain", slots=6),),
                "metrics": (replace(reports, waiting_jobs=21, oldest_age_s=9.1),),
            },
            190,
        ),
        ("invoices", None, 0, {"binding": "idle", "metrics": (replace(calm, waiting_jobs=0),)}, 400),
        (
            "webhooks",
            2,
            2,
            {
                "binding": "hold_stale",
                "is_fresh": False,
                "metrics_age_s": 97.0,
                "notes": ("metrics are older than 20 s: they lower nothing until fresh ones arrive",),
            },
            280,
        ),
    ]:
        seed.decision(
            Decision(
                **{
                    "pool": pool,
                    "at_s": now_s,
                    "target_workers": after,
                    "binding": "work_in_progress",
                    "steps": (Step(name="wanted", workers=after),),
                    "metrics": (calm,),
                    "running_workers": before or 0,
                    **values,
                }
            ),
            previous_workers=before,
            ago_s=ago_s,
        )
    seed.decision(
        Decision(
            pool="reports",
            at_s=now_s,
            target_workers=16,
            binding="workers_max",
            demands=(
                Demand(name="work_in_progress", slots=10),
                Demand(name="backlog_drain", slots=24),
                Demand(name="wake", slots=0),
            ),
            steps=(
                Step(name="wanted", workers=24),
                Step(name="hold_down", workers=24),
                Step(name="workers_max", workers=16),
            ),
            metrics=(reports,),
            running_workers=6,
            starting_workers=4,
            predicted_pickup_s=38.0,
        ),
        previous_workers=6,
        ago_s=9,
    )
