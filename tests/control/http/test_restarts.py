"""Restarts over HTTP, and what is kept of them."""

import httpx

from headway.scaling.profile import Profile
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq")
RESTART = "/v1/pools/mail/restart"


async def test_a_restart_raises_the_generation_and_says_how_far_it_is(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.host("a")
    seed.worker("a", "mail", 1)
    seed.worker("a", "mail", 2)
    nobody = {"awaited_workers": 0, "silent_workers": 0}
    never = {"pool": "mail", "restart_generation": 0, "renewed_workers": 2, "outdated_workers": 0} | nobody
    assert (await client.get(RESTART)).json() == never
    answer = await client.post(RESTART, json={"reason": "new release"})
    assert answer.status_code == 200
    begun = {"pool": "mail", "restart_generation": 1, "renewed_workers": 0, "outdated_workers": 2} | nobody
    assert answer.json() == begun
    assert (await client.get(RESTART)).json() == answer.json()
    assert (await client.post(RESTART, json={"reason": "again"})).json()["restart_generation"] == 2


async def test_applying_the_profile_again_undoes_no_restart(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    await client.post(RESTART, json={"reason": "new release"})
    stored = (await client.get("/v1/profiles/mail")).json()
    await client.put("/v1/profiles/mail", json=stored["profile"] | {"workers_max": 9}, headers={"If-Match": '"1"'})
    assert (await client.get(RESTART)).json()["restart_generation"] == 1


async def test_without_a_reason_or_a_profile_nothing_is_restarted(client: httpx.AsyncClient, seed: Seed) -> None:
    assert (await client.post(RESTART, json={"reason": "x"})).status_code == 404
    seed.profile(MAIL)
    assert (await client.post(RESTART, json={})).status_code == 422
    assert (await client.get(RESTART)).json()["restart_generation"] == 0
