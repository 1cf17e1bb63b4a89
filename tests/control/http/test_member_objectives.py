"""A pool whose queues have objectives of their own: every view judges each queue by its own."""

from dataclasses import replace

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.cli.operator.pools_table import POOLS
from headway.control.http.overview.alerting import conditions_of
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.conditions.incident_rules import IncidentKey
from headway.scaling.decisions.bottlenecks import UNMOVED
from headway.scaling.model import Decision, Note, NoteKind, Objective, QueueMetrics
from headway.scaling.profile import Profile
from headway.store.engine import Engine
from support.seed import Seed

URGENT, BULK = "redis/urgent", "redis/bulk"
PROFILE = Profile(
    pool="both",
    queues=(URGENT, BULK),
    template="rq",
    objective=Objective(target_s=5),
    member_objectives={BULK: Objective(target_s=900)},
)
LOOSE = Profile(
    pool="both",
    queues=(URGENT, BULK),
    template="rq",
    objective=Objective(target_s=900),
    member_objectives={URGENT: Objective(target_s=5)},
)


@pytest.fixture
def overviews(engine: Engine) -> OverviewBuilder:
    return OverviewBuilder(engine=engine, clock=lambda: NOW_S)


def both(
    seed: Seed,
    profile: Profile,
    *,
    urgent_age_s: float = 0.0,
    bulk_age_s: float = 0.0,
    urgent_pickup_s: float = 0.5,
    bulk_pickup_s: float = 0.5,
) -> None:
    """A pool of two queues at this moment: how long the oldest job of each has waited, and what those before waited."""
    seed.profile(profile)
    seed.leader()
    seed.pipeline()
    seed.host("a")
    seed.worker("a", "both", 1)
    for queue, age_s, pickup_s in ((URGENT, urgent_age_s, urgent_pickup_s), (BULK, bulk_age_s, bulk_pickup_s)):
        seed.bucket(queue, at_s=NOW_S - 7, pickups_s=[pickup_s] * 20, arrived_jobs=20, finished_jobs=20)
        seed.sample(queue, at_s=NOW_S, waiting_jobs=int(age_s > 0), oldest_age_s=age_s)
    seed.decision(Decision(pool="both", at_s=NOW_S, target_workers=1, binding="steady_state", running_workers=1))


LATE = IncidentKey(rule="pool_late", pool="both")


async def test_a_queue_within_its_own_long_objective_is_not_late_by_the_pools(
    client: httpx.AsyncClient, overviews: OverviewBuilder, seed: Seed
) -> None:
    both(seed, PROFILE, bulk_age_s=74.0, bulk_pickup_s=80.0)
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    assert (pool["state"], pool["causes"]) == ("on_time", [])
    assert pool["oldest_wait"]["queue"] == BULK
    assert pool["oldest_wait"]["wait_s"] == 74.0
    assert pool["oldest_wait"]["objective"]["target_s"] == 900.0
    assert (await client.get("/v1/health")).json()["reasons"] == []
    assert LATE not in conditions_of(await overviews.of_pools())
    assert POOLS.columns["longest wait"](pool) == "74 s of 15 min (redis/bulk)", "the row of `headway top`"
    metrics = (await client.get("/metrics")).text
    assert 'headway_pool_state{pool="both",state="on_time"} 1.0' in metrics
    assert f'headway_pool_oldest_wait_ratio{{pool="both"}} {74 / 900}' in metrics
    assert 'headway_queue_objective_seconds{pool="both",queue="redis/bulk"} 900.0' in metrics
    assert 'headway_queue_objective_seconds{pool="both",queue="redis/urgent"} 5.0' in metrics


async def test_a_queue_late_by_its_own_short_objective_makes_the_pool_late(
    client: httpx.AsyncClient, overviews: OverviewBuilder, seed: Seed
) -> None:
    """The pool's objective is 900 s, and another queue's older job is well within it."""
    both(seed, LOOSE, urgent_age_s=25.0, bulk_age_s=74.0)
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    late = "the oldest job of redis/urgent had waited 25 s, longer than its objective's 5 s"
    assert (pool["state"], pool["causes"]) == ("breaching", [late])
    condition = conditions_of(await overviews.of_pools())[LATE]
    assert (condition.severity, condition.summary) == ("page", late)
    assert POOLS.columns["longest wait"](pool) == "25 s of 5 s (redis/urgent)", "the row of `headway top`"
    metrics = (await client.get("/metrics")).text
    assert 'headway_pool_state{pool="both",state="breaching"} 1.0' in metrics
    assert 'headway_pool_oldest_wait_ratio{pool="both"} 5.0' in metrics  # 25 s of 5 s
    assert 'headway_queue_pickup_seconds{pool="both",queue="redis/urgent"} 0.' in metrics


async def test_a_late_queue_behind_another_one_is_to_be_separated_and_not_to_get_more_workers(
    client: httpx.AsyncClient, overviews: OverviewBuilder, seed: Seed
) -> None:
    full = replace(LOOSE, workers_max=1)
    both(seed, full, urgent_age_s=25.0)
    ceiling = IncidentKey(rule="pool_at_ceiling", pool="both")
    raised = "Raise workers_max of pool both, or add hosts."
    assert conditions_of(await overviews.of_pools())[ceiling].action == raised
    note = "separate pools: redis/urgent shares its workers with redis/bulk"
    decision = Decision(pool="both", at_s=NOW_S, target_workers=1, binding="workers_max")
    seed.decision(decision.with_notes(Note(kind=NoteKind.SEPARATE_POOLS, text=note)))
    assert conditions_of(await overviews.of_pools())[ceiling].action == f"S{note[1:]}."
    (shown,) = (await client.get("/v1/profiles")).json()["profiles"]
    assert note in shown["notes"]


async def test_a_late_queue_whose_due_jobs_no_worker_moves_is_not_to_get_more_workers(
    overviews: OverviewBuilder, seed: Seed
) -> None:
    both(seed, replace(LOOSE, workers_max=1), urgent_age_s=25.0)
    waiting = QueueMetrics(queue="redis/urgent", sampled_at_s=NOW_S, waiting_jobs=3, overdue_jobs=3, oldest_age_s=25.0)
    decision = Decision(pool="both", at_s=NOW_S, target_workers=1, binding="workers_max", leaves_due_jobs=True)
    seed.decision(replace(decision, metrics=(waiting,)))
    ceiling = IncidentKey(rule="pool_at_ceiling", pool="both")
    assert conditions_of(await overviews.of_pools())[ceiling].action == f"S{UNMOVED[1:]}."


@pytest.mark.parametrize(
    ("profile", "waits", "state"),
    [
        (LOOSE, {"urgent_age_s": 4.0}, "at_risk"),  # 0.8 of 5 s
        (LOOSE, {"urgent_pickup_s": 9.0}, "recovering"),
        (PROFILE, {"bulk_pickup_s": 9.0}, "on_time"),  # of 900 s
        (PROFILE, {"bulk_age_s": 700.0}, "at_risk"),  # 0.78 of 900 s
        (PROFILE, {"urgent_pickup_s": 9.0}, "recovering"),
    ],
)
async def test_a_pools_state_is_the_worst_of_its_queues(
    client: httpx.AsyncClient, seed: Seed, profile: Profile, waits: dict[str, float], state: str
) -> None:
    both(seed, profile, **waits)
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    assert pool["state"] == state


@pytest.mark.parametrize(
    ("profile", "oldest", "pickup"),
    [
        (PROFILE, 74 / 900, 80 / 900),  # not 74 of the pool's 5 s
        (LOOSE, 4 / 5, 3 / 5),  # not hidden by the longer waits of bulk
    ],
)
async def test_charts_judge_each_queue_by_its_own_objective(
    client: httpx.AsyncClient, seed: Seed, profile: Profile, oldest: float, pickup: float
) -> None:
    seed.profile(profile)
    urgent = (0.0, 0.1) if profile is PROFILE else (4.0, 3.0)
    for queue, (age_s, pickup_s) in ((URGENT, urgent), (BULK, (74.0, 80.0))):
        seed.bucket(queue, at_s=NOW_S - 5, pickups_s=[pickup_s] * 20, waiting_jobs=1, oldest_age_s=age_s)
    (point,) = (await client.get("/v1/pools/both/history?minutes=1")).json()["buckets"]
    assert (point["oldest_age_s"], point["oldest_wait_ratio"]) == (74.0, pytest.approx(oldest))
    assert point["pickup_ratio"] == pytest.approx(pickup, rel=0.02)
    series = (await client.get(f"/v1/pools/both/series?from_s={NOW_S - 60}&until_s={NOW_S}")).json()
    assert max(filter(None, series["columns"]["pickup_ratio"])) == pytest.approx(pickup, rel=0.02)
    assert list(series["member_objectives"]) == list(profile.member_objectives)
