"""Groups over HTTP: versions as ETags, a dry run, what is used of a cap, and what profiles contradict."""

from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.control.http.overview.alerting import conditions_of
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.conditions.incident_rules import IncidentKey
from headway.scaling.model import Decision, GroupUse
from headway.scaling.profile import Profile
from headway.store.engine import Engine
from support.seed import Seed

BODY = {"workers_max": 4, "pools": ["news", "mail"]}


@pytest.fixture
def overviews(engine: Engine) -> OverviewBuilder:
    return OverviewBuilder(engine=engine, clock=lambda: NOW_S)


def pools(seed: Seed) -> None:
    for pool in ("mail", "news"):
        seed.profile(Profile(pool=pool, queues=(f"redis/{pool}",), template="rq"))
    seed.host("a")
    seed.worker("a", "mail", 1)
    seed.worker("a", "news", 2)


async def put(client: httpx.AsyncClient, body: Any = BODY, query: str = "", **headers: str) -> httpx.Response:
    return await client.put(f"/v1/groups/database{query}", json=body, headers=headers)


async def test_a_group_is_created_read_listed_and_deleted(client: httpx.AsyncClient, seed: Seed) -> None:
    pools(seed)
    created = await put(client, **{"If-None-Match": "*"})
    assert (created.status_code, created.headers["ETag"]) == (201, '"1"')
    answer = created.json()
    assert answer["group"] == {"workers_max": 4, "slots_max": None, "pools": ["mail", "news"]}
    assert (answer["used"], answer["notes"]) == (2, [])
    read = await client.get("/v1/groups/database")
    assert (read.headers["ETag"], read.json()) == ('"1"', answer)
    assert (await client.get("/v1/groups")).json() == {"groups": [answer]}
    again = await put(client, answer["group"], **{"If-Match": '"1"'})
    assert (again.status_code, again.headers["ETag"]) == (200, '"1"')
    assert (await client.delete("/v1/groups/database")).status_code == 428
    assert (await client.delete("/v1/groups/database", headers={"If-Match": '"1"'})).status_code == 204
    assert (await client.get("/v1/groups/database")).status_code == 404


async def test_a_dry_run_says_what_would_change_and_changes_nothing(client: httpx.AsyncClient, seed: Seed) -> None:
    pools(seed)
    assert (await put(client, BODY, "?dry_run=true")).status_code == 201
    assert (await client.get("/v1/groups")).json() == {"groups": []}
    await put(client)
    answer = await put(client, {"slots_max": 9, "pools": ["mail"]}, "?dry_run=true", **{"If-Match": '"1"'})
    assert {each["key"]: (each["before"], each["after"]) for each in answer.json()["changes"]} == {
        "slots_max": (None, 9),
        "pools": (["mail", "news"], ["mail"]),
        "workers_max": (4, None),
    }
    assert (await client.get("/v1/groups/database")).headers["ETag"] == '"1"'


async def test_every_mistake_is_named_and_what_profiles_contradict_is_refused(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", workers_min=5))
    answer = await put(client, {"workers_max": 0, "slots_max": 3, "pools": ["mail", "mail"], "colour": "red"})
    assert (answer.status_code, len(answer.json()["breaches"])) == (422, 3)
    answer = await put(client)
    assert answer.status_code == 409
    assert "workers_min=5 exceeds workers_max=4" in answer.json()["detail"]
    assert "pool 'news' has no profile" in answer.json()["detail"]


async def test_a_pool_is_shown_with_its_groups_and_what_is_used_of_them(client: httpx.AsyncClient, seed: Seed) -> None:
    pools(seed)
    await put(client)
    use = GroupUse(name="database", cap=4, is_binding=True)
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=1, binding="group_share", groups=(use,)))
    answer = (await client.get("/v1/pools")).json()
    groups = {each["pool"]: each["groups"] for each in answer["pools"]}
    shown = {"name": "database", "cap": 4, "is_in_slots": False, "used": 2}
    assert groups == {"mail": [{**shown, "is_binding": True}], "news": [{**shown, "is_binding": False}]}


async def test_an_incident_of_a_late_pool_that_its_group_caps_names_the_cap_to_raise(
    overviews: OverviewBuilder, seed: Seed, client: httpx.AsyncClient
) -> None:
    pools(seed)
    await put(client)
    seed.leader()
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=9, oldest_age_s=60.0)
    use = GroupUse(name="database", cap=4, is_binding=True)
    decision = Decision(pool="mail", at_s=NOW_S, target_workers=1, binding="group_share", groups=(use,))
    seed.decision(decision)
    found = conditions_of(await overviews.of_pools())[IncidentKey(rule="pool_at_ceiling", pool="mail")]
    assert "group database allows no more workers: 4 workers for all its pools" in found.summary
    assert found.action == "Raise the cap of group database, or the pool's priority or weight in it."


async def test_the_cap_of_a_group_and_its_use_are_metrics(client: httpx.AsyncClient, seed: Seed) -> None:
    pools(seed)
    await put(client)
    metrics = (await client.get("/metrics")).text
    assert 'headway_group_cap{group="database",unit="workers"} 4.0' in metrics
    assert 'headway_group_used{group="database",unit="workers"} 2.0' in metrics
