"""The error budget of a day: an incident when it is spent, one a day, and none of moments."""

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.mail_pool import mail, pool_of
from headway.control.http.overview.alerting import Alerting
from headway.control.http.overview.day_attainment import READ_S
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.store.engine import Engine
from support.seed import Seed

DAY_S = 86_400.0
TODAY_S = NOW_S // DAY_S * DAY_S


def attained(seed: Seed, from_s: float, jobs: int, late_jobs: int) -> None:
    seed.execute_with(
        "insert into pool_attainment values ('mail', %s, %s, %s) on conflict (pool, from_s) do update set "
        "jobs = excluded.jobs, late_jobs = excluded.late_jobs",
        *(from_s, jobs, late_jobs),
    )


@pytest.fixture(autouse=True)
def _mail(seed: Seed) -> None:
    mail(seed)
    seed.pipeline()


class Day:
    """One control plane that leads; each evaluation is a minute after the last."""

    def __init__(self, engine: Engine) -> None:
        self.now_s = NOW_S
        overviews = OverviewBuilder(engine=engine, clock=lambda: self.now_s)
        self._alerting = Alerting(engine=engine, overviews=overviews, epoch=lambda: 3)

    async def evaluate(self, *, after_s: float = READ_S) -> tuple[list[str], list[str]]:
        """The days whose incident opened, and those whose incident closed."""
        self.now_s += after_s
        change = await self._alerting.evaluate()
        keys = ([key for key in each if key.rule == "error_budget_spent"] for each in (change.opened, change.closed))
        opened, closed = ([key.kind for key in each] for each in keys)
        return opened, closed


async def test_a_spent_budget_is_a_cause_of_the_pool_and_no_reason_of_health(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    """Each of these jobs may have been late for seconds only: no incident of lateness opens within a minute."""
    attained(seed, TODAY_S, 600, 8)
    attained(seed, TODAY_S - DAY_S, 700, 0)
    pool = await pool_of(client)
    (cause,) = pool["causes"]
    assert cause == (
        "8 of 600 jobs have started late since 00:00 UTC, and its objective allows 7 late jobs a day, by yesterday's "
        "number of jobs: the error budget of the day is spent"
    )
    assert (pool["kinds"], pool["health"]["kinds"]) == (["error_budget_spent"], [])
    assert (pool["day_late_jobs"], pool["day_late_jobs_allowed"]) == (8, pytest.approx(7.0))
    text = (await client.get("/metrics")).text
    assert 'headway_pool_day_late_jobs{pool="mail"} 8.0' in text
    assert 'headway_pool_day_late_jobs_allowed{pool="mail"} 7.0' in text


async def test_a_pool_without_jobs_today_has_spent_nothing(client: httpx.AsyncClient, seed: Seed) -> None:
    attained(seed, TODAY_S - 300, 100, 90)
    pool = await pool_of(client)
    assert (pool["causes"], pool["day_late_jobs"], pool["day_late_jobs_allowed"]) == ([], None, None)


async def test_its_incident_is_one_a_day_and_ends_with_the_day(engine: Engine, seed: Seed) -> None:
    day = Day(engine)
    attained(seed, TODAY_S, 1000, 10)
    assert await day.evaluate() == ([], [])
    attained(seed, TODAY_S, 1000, 11)
    today = "2027-01-15"
    assert await day.evaluate() == ([today], [])
    # More jobs in time make the share smaller, and what is spent stays spent.
    attained(seed, TODAY_S, 5000, 11)
    assert await day.evaluate() == ([], [])
    attained(seed, TODAY_S, 5000, 51)
    assert await day.evaluate() == ([], [])
    assert await day.evaluate(after_s=TODAY_S + DAY_S - day.now_s) == ([], [today])
    attained(seed, TODAY_S + DAY_S, 100, 60)
    assert await day.evaluate() == (["2027-01-16"], [])


async def test_a_new_leader_goes_on_with_the_incident(engine: Engine, seed: Seed) -> None:
    attained(seed, TODAY_S, 1000, 11)
    assert (await Day(engine).evaluate())[0]
    attained(seed, TODAY_S, 5000, 11)
    assert await Day(engine).evaluate() == ([], [])
