"""An installation with many queues and hosts of which a few need attention: rows of a database."""

from headway.scaling.model import Decision, Demand, Objective, QueueMetrics, Step
from headway.scaling.profile import Profile
from support.seed import Seed

LATE = ("redis/mail-7", "redis/orders-3", "redis/search-9")
UNKNOWN = ("redis/exports-2", "redis/orders-8")
SILENT = ("eu-host-9", "us-host-6")
LIBRARIES = ("mail", "orders", "search", "exports")
PATIENT = Objective(target_s=600)  # nothing turns late by itself while a slow machine looks


def gather(seed: Seed, *, now_s: float, queues: int = 40, hosts: int = 10) -> None:
    """Write it, as of ``now_s``."""
    seed.leader()
    seed.pipeline()
    add(seed, now_s=now_s, queues=queues, hosts=hosts)


def add(seed: Seed, *, now_s: float, queues: int, hosts: int) -> None:
    """Write the queues and hosts, beside what is there."""
    for number in range(hosts):
        name = f"{'eu' if number % 2 else 'us'}-host-{number}"
        seed.host(name, lease_s=-40.0 if name in SILENT else 3600.0, reported_ago_s=85.0 if name in SILENT else 3.0)
    for number in range(queues):
        library = LIBRARIES[number % len(LIBRARIES)]
        _queue(seed, f"{library}-{number // len(LIBRARIES)}", number, now_s=now_s, host=f"us-host-{number * 2 % hosts}")


def _queue(seed: Seed, pool: str, number: int, *, now_s: float, host: str) -> None:
    queue = f"redis/{pool}"
    waiting_jobs = 100 + number if queue in LATE else number % 7
    oldest_age_s = 3000.0 if queue in LATE else float(number % 7)
    seed.profile(Profile(pool=pool, queues=(queue,), template="rq", objective=PATIENT, stale_after_s=900))
    seed.sample(
        queue,
        at_s=now_s - (3600 if queue in UNKNOWN else 0),
        waiting_jobs=waiting_jobs,
        in_flight_jobs=number % 3,
        oldest_age_s=oldest_age_s,
    )
    seed.bucket(queue, at_s=now_s, pickups_s=[1.0], arrived_jobs=1, waiting_jobs=None, sampled_at_s=None)
    seed.worker(host, pool, number)
    if number % (4 * len(LIBRARIES)) == 0:
        decide(seed, pool, now_s=now_s, ago_s=number)


def decide(seed: Seed, pool: str, *, now_s: float, ago_s: float = 0.0) -> None:
    """Decide on a second worker for a pool."""
    metrics = QueueMetrics(queue=f"redis/{pool}", sampled_at_s=now_s, waiting_jobs=4, arrival_rate_per_s=1.0)
    decision = Decision(
        pool=pool,
        at_s=now_s,
        target_workers=2,
        binding="work_in_progress",
        demands=(Demand(name="work_in_progress", slots=2),),
        steps=(Step(name="wanted", workers=2),),
        metrics=(metrics,),
        running_workers=1,
    )
    seed.decision(decision, previous_workers=1, ago_s=ago_s)
