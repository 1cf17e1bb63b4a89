"""Jobs that their broker counts as taken and that no worker has: named in every view, and a ticket."""

from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.mail_pool import mail, pool_of
from headway.control.http.overview.alerting import Alerting, conditions_of
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.profile import Profile
from headway.store.engine import Engine
from support.seed import Seed

TEXT = "are held by no worker: the broker gives them back after its visibility timeout (3600 s by default)"


class Clock:
    now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


def left_behind(seed: Seed, *, at_s: float = NOW_S, jobs: int = 3, **values: Any) -> None:
    """Jobs are taken, and the only worker says that it is idle."""
    given = {"in_flight_jobs": jobs, "delayed_jobs": 0, "redelivery": "visibility_timeout", "listed_workers": 1}
    seed.sample("redis/mail", at_s=at_s, **{**given, **values})


@pytest.fixture
def _idle(seed: Seed) -> None:
    mail(seed, at_s=NOW_S - 90)
    seed.pipeline()
    seed.execute("update workers set is_busy = false, activity_source = 'reporter', activity_age_s = 0")


async def after_a_minute(overviews: OverviewBuilder, clock: Clock, seed: Seed, **values: Any) -> dict[str, Any]:
    """The pool, when this has been so for a minute."""
    for _ in range(8):
        left_behind(seed, at_s=clock.now_s, **values)
        seen = await overviews.of_pools()
        clock.now_s += 10.0
    clock.now_s -= 10.0
    pool = next(each for each in seen.pools if each.pool == "mail")
    return {**pool.model_dump(), "health": seen.health.model_dump(), "incidents": conditions_of(seen)}


@pytest.mark.usefixtures("_idle")
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, f"3 jobs {TEXT}"),
        ({"redelivery": "clean_up"}, "3 jobs are held by no worker: the library's next clean-up fails or retries them"),
        # Nobody lists workers that others started, which may have them.
        ({"listed_workers": None}, f"3 jobs {TEXT}".replace("no worker", "no worker of this pool")),
        ({"in_flight_jobs": None, "in_flight_min_jobs": 1}, "1 job is held by no worker: the broker gives"),
    ],
)
async def test_jobs_that_no_worker_has_are_named_everywhere(
    engine: Engine, seed: Seed, values: dict[str, Any], said: str
) -> None:
    clock = Clock()
    overviews = OverviewBuilder(engine=engine, clock=clock)
    pool = await after_a_minute(overviews, clock, seed, **values)
    assert pool["unheld_jobs"] == (3 if values.get("in_flight_jobs", 3) else 1)
    assert pool["causes"][0].startswith(said)
    assert pool["health"]["kinds"] == ["unheld_jobs"]
    (reason,) = pool["health"]["reasons"]
    assert "held by no worker" in reason
    assert "mail" not in reason
    found = {key.rule: each for key, each in pool["incidents"].items()}
    assert (found["jobs_unheld"].severity, set(found)) == ("ticket", {"jobs_unheld"})


@pytest.mark.usefixtures("_idle")
@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("update workers set is_busy = true", {}),
        ("update workers set is_busy = null", {}),
        ("update workers set state = 'draining'", {}),
        ("update hosts set lease_ends_at = now() - interval '1 minute'", {}),
        ("select 1", {"listed_workers": 2}),  # one that no agent has started
        ("select 1", {"redelivery": None}),
        ("update profiles set body = jsonb_set(body, '{mode}', '\"recommend\"')", {}),
    ],
)
async def test_nothing_is_said_where_a_worker_may_have_them(
    engine: Engine, seed: Seed, sql: str, values: dict[str, Any]
) -> None:
    seed.execute(sql)
    clock = Clock()
    pool = await after_a_minute(OverviewBuilder(engine=engine, clock=clock), clock, seed, **values)
    assert (pool["unheld_jobs"], "unheld_jobs" in pool["health"]["kinds"]) == (None, False)


@pytest.mark.usefixtures("_idle")
@pytest.mark.parametrize(("is_busy", "jobs"), [(True, None), (None, None), (False, 3)])
async def test_a_worker_of_a_pool_that_helps_may_have_them(
    engine: Engine, seed: Seed, *, is_busy: bool | None, jobs: int | None
) -> None:
    seed.profile(Profile(pool="bulk", queues=("redis/bulk",), template="rq", helps=("redis/mail",)))
    seed.host("b")
    seed.worker("b", "bulk", 1, is_busy=is_busy)
    seed.execute("update workers set activity_source = 'reporter', activity_age_s = 0 where is_busy is not null")
    seed.execute(f"update hosts set reported_at = to_timestamp({NOW_S})")
    clock = Clock()
    pool = await after_a_minute(OverviewBuilder(engine=engine, clock=clock), clock, seed)
    assert pool["unheld_jobs"] == jobs


@pytest.mark.usefixtures("_idle")
async def test_a_worker_that_starts_a_job_now_and_then_may_hold_the_others(engine: Engine, seed: Seed) -> None:
    """A task with a rate limit."""
    seed.bucket("redis/mail", at_s=NOW_S + 30, pickups_s=[0.5], in_flight_jobs=3)
    clock = Clock()
    pool = await after_a_minute(OverviewBuilder(engine=engine, clock=clock), clock, seed)
    assert pool["unheld_jobs"] is None


@pytest.mark.usefixtures("_idle")
@pytest.mark.parametrize(("starts_ago_s", "unheld_jobs"), [(600.0, 3), (30.0, None), (None, None)])
async def test_where_no_rate_is_known_the_last_start_counts(
    engine: Engine, seed: Seed, starts_ago_s: float | None, unheld_jobs: int | None
) -> None:
    """Celery in a database with several queues: no age is known of what workers hold, and no row has an event."""
    seed.execute("delete from queue_buckets")
    seed.bucket("redis/mail", at_s=NOW_S - 5, in_flight_jobs=None)
    if starts_ago_s is not None:
        seed.event_source("redis/mail", source="agent-", starts_ago_s=starts_ago_s)
    clock = Clock()
    values = {"in_flight_jobs": None, "in_flight_min_jobs": 3, "listed_workers": None}
    pool = await after_a_minute(OverviewBuilder(engine=engine, clock=clock), clock, seed, **values)
    assert pool["unheld_jobs"] == unheld_jobs


@pytest.mark.usefixtures("_idle")
async def test_its_incident_stays_while_nobody_knows_and_ends_when_they_are_given_back(
    engine: Engine, seed: Seed
) -> None:
    clock = Clock()
    overviews = OverviewBuilder(engine=engine, clock=clock)
    alerting = Alerting(engine=engine, overviews=overviews, epoch=lambda: 3)
    opened = []
    for _ in range(15):
        left_behind(seed, at_s=clock.now_s)
        opened += [key.rule for key in (await alerting.evaluate()).opened]
        clock.now_s += 10.0
    assert opened == ["jobs_unheld"]
    seed.execute("update workers set is_busy = true")
    for _ in range(6):
        left_behind(seed, at_s=clock.now_s, jobs=4)
        assert not (await alerting.evaluate()).closed
        clock.now_s += 10.0
    left_behind(seed, at_s=clock.now_s, jobs=0)
    assert [key.rule for key in (await alerting.evaluate()).closed] == ["jobs_unheld"]


async def test_a_pool_without_such_jobs_says_0_and_exposes_it(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.sample("redis/mail", at_s=NOW_S - 1, in_flight_jobs=0, delayed_jobs=0)
    assert (await pool_of(client))["unheld_jobs"] == 0
    assert 'headway_pool_unheld_jobs{pool="mail"} 0.0' in (await client.get("/metrics")).text
