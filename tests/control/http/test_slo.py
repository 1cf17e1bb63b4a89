"""The report on objectives and the list of workers over HTTP."""

from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.values import decision
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.pools.attainment import count_attainment
from support.seed import Seed

MAIL = Profile(
    pool="mail", queues=("redis/mail",), template="rq", objective=Objective(percentile=90), cost_per_worker_hour=2.0
)
TODAY_S = NOW_S // 86_400 * 86_400


def counted(seed: Seed, from_s: float, jobs: int, late_jobs: int) -> None:
    seed.execute_with("insert into pool_attainment values ('mail', %s, %s, %s)", from_s, jobs, late_jobs)


async def test_attainment_is_reported_by_day_and_hour(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    counted(seed, TODAY_S + 300, 60, 3)
    counted(seed, TODAY_S + 600, 40, 2)
    counted(seed, TODAY_S - 300, 10, 0)
    report = (await client.get("/v1/slo", params={"from_s": TODAY_S - 86_400})).json()
    (pool,) = report["pools"]
    assert (report["step_s"], pool["pool"], pool["jobs"], pool["late_jobs"]) == (86_400, "mail", 110, 5)
    assert [period["jobs"] for period in pool["periods"]] == [10, 100]
    assert pool["periods"][1]["burn_rate"] == pytest.approx(0.5)
    assert (pool["worker_hours"], pool["cost"], pool["static_worker_hours"]) == (None, None, None)
    hours = (await client.get("/v1/slo", params={"from_s": TODAY_S, "step": "hour", "pool": "mail"})).json()
    assert [period["jobs"] for period in hours["pools"][0]["periods"]][:2] == [100, None]


async def test_the_report_says_until_when_jobs_are_counted(
    client: httpx.AsyncClient, seed: Seed, engine: Engine
) -> None:
    """The pipeline rolls up minutes, and a leader counts those that it finds: each once a minute."""
    seed.profile(MAIL)
    assert (await client.get("/v1/slo")).json()["counted_until_s"] is None
    seed.execute(f"update rollup_progress set minutes_until_s = {NOW_S - 60}")
    assert (await client.get("/v1/slo")).json()["counted_until_s"] is None
    async with transaction(engine) as conn:
        await count_attainment(conn, [MAIL], now_s=NOW_S)
    seed.execute(f"update rollup_progress set minutes_until_s = {NOW_S}")
    assert (await client.get("/v1/slo")).json()["counted_until_s"] == NOW_S - 60


async def test_worker_hours_are_those_that_decisions_recorded(seed: Seed, api: Any) -> None:
    """3 workers for 100 s, then 5; a decision that no other follows holds 390 s at most."""
    (now_s,) = seed.rows("select extract(epoch from now())::float8")[0]
    seed.profile(MAIL)
    seed.decision(decision(3, running_workers=2, leaving_workers=1), ago_s=700.0)
    seed.decision(decision(5, running_workers=4, starting_workers=1), ago_s=600.0)
    transport = httpx.ASGITransport(api(clock=lambda: now_s))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8460") as client:
        (pool,) = (await client.get("/v1/slo", params={"from_s": now_s - 7200, "step": "hour"})).json()["pools"]
        assert pool["worker_hours"] == pytest.approx((3 * 100 + 5 * 390) / 3600, abs=0.01)
        assert pool["cost"] == pytest.approx(2 * pool["worker_hours"])
        assert pool["static_worker_hours"] == pytest.approx(5 * 490 / 3600, abs=0.01)
        assert sum(period["workers_known_s"] for period in pool["periods"]) == pytest.approx(490, abs=1)
        text = (await client.get("/v1/slo/export", params={"from_s": now_s - 7200, "step": "hour"})).text
    lines = text.splitlines()
    assert lines[0] == "pool,from_s,jobs,late_jobs,attainment,burn_rate,worker_hours,workers_known_s,cost"
    assert lines[1].startswith("mail,")
    assert ",,,," in lines[1]  # what is not known is empty, and not 0


@pytest.mark.parametrize(
    "asked", [{"from_s": "nan"}, {"from_s": NOW_S + 1}, {"from_s": NOW_S - 401 * 86_400}, {"step": "minute"}]
)
async def test_a_report_that_makes_no_sense_is_refused(client: httpx.AsyncClient, asked: dict[str, Any]) -> None:
    for path in ("/v1/slo", "/v1/slo/export"):
        assert (await client.get(path, params=asked)).status_code == 422


async def test_no_profile_has_no_report(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/slo")).json()["pools"] == []
    assert (await client.get("/v1/slo", params={"pool": "none"})).status_code == 404


async def test_a_pool_is_no_formula_of_a_spreadsheet(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(Profile(pool="=1+1", queues=("redis/mail",), template="rq"))
    assert "\r\n'=1+1," in (await client.get("/v1/slo/export")).text


async def test_workers_are_listed_by_page_and_by_what_is_asked(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.host("a")
    seed.host("b", lease_s=-5.0, reported_ago_s=90.0)
    for number in range(3):
        seed.worker("a", "mail", number)
    seed.worker("b", "news", 0, state="draining", is_busy=None)
    first = (await client.get("/v1/workers", params={"limit": 3})).json()
    assert ([each["worker_id"] for each in first["workers"]], first["next"]) == (
        ["a-mail-0", "a-mail-1", "a-mail-2"],
        "a-mail-2",
    )
    (last,) = (await client.get("/v1/workers", params={"limit": 3, "after": first["next"]})).json()["workers"]
    assert (last["host"], last["state"], last["is_busy"], last["is_reachable"]) == ("b", "draining", None, False)
    assert last["seen_age_s"] >= 90
    assert (last["busy_since_s"], last["running_jobs"], last["memory_bytes"]) == (None, None, None)
    for asked, count in (({"pool": "mail"}, 3), ({"host": "b"}, 1), ({"state": "running"}, 3), ({"pool": "x"}, 0)):
        assert len((await client.get("/v1/workers", params=asked)).json()["workers"]) == count
    assert (await client.get("/v1/workers", params={"state": "asleep"})).status_code == 422
