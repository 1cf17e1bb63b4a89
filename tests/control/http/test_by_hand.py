"""Overrides and pauses over HTTP, and what a profile cannot keep."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.scaling.model import Decision, QueueMetrics
from headway.scaling.profile import Profile
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_min=1)
OVERRIDE, PAUSE = "/v1/pools/mail/override", "/v1/pools/mail/pause"


async def test_an_override_is_set_read_replaced_and_ended(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    answer = await client.put(OVERRIDE, json={"workers": 7, "for_s": 7200, "reason": "sale"})
    assert answer.status_code == 200
    assert answer.json()["override"] == {"workers": 7, "until_s": NOW_S + 7200, "reason": "sale"}
    answer = await client.put(OVERRIDE, json={"workers": 9, "until_s": NOW_S + 60, "reason": "sale goes on"})
    read = (await client.get("/v1/profiles/mail")).json()
    assert read == answer.json()
    assert (read["override"]["workers"], read["profile"]["override"], read["version"]) == (9, None, 1)
    assert (await client.get("/v1/profiles")).json()["profiles"] == [read]
    for _ in range(2):
        ended = await client.delete(OVERRIDE)
        assert (ended.status_code, ended.json()["override"]) == (200, None)


async def test_an_override_that_has_expired_is_not_shown(api, seed: Seed) -> None:
    seed.profile(MAIL)
    for now_s, shown in ((NOW_S, True), (NOW_S + 60, False)):
        transport = httpx.ASGITransport(api(clock=lambda now_s=now_s: now_s))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8460") as client:
            if shown:
                await client.put(OVERRIDE, json={"workers": 7, "for_s": 60, "reason": "sale"})
            assert ((await client.get("/v1/profiles/mail")).json()["override"] is not None) is shown


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"workers": 7, "reason": "x"}, "give one of for_s and until_s"),
        ({"workers": 7, "reason": "x", "for_s": 1, "until_s": NOW_S + 1}, "give one of for_s and until_s"),
        ({"workers": 7, "for_s": 60}, "reason"),
        ({"workers": 7, "for_s": 60, "reason": " "}, "reason is empty"),
        ({"workers": 7, "until_s": NOW_S, "reason": "x"}, "must lie ahead of now"),
        ({"workers": 7, "for_s": 40 * 86_400, "reason": "x"}, "for_s"),
        ({"workers": 0, "for_s": 60, "reason": "x"}, "override.workers=0 lies outside workers_min=1..workers_max=20"),
        ({"workers": -1, "for_s": 60, "reason": "x"}, "workers"),
        ({"workers": 7, "for_s": 60, "reason": "x", "colour": "red"}, "colour"),
    ],
)
async def test_an_override_that_cannot_be_is_refused(
    client: httpx.AsyncClient, seed: Seed, body: dict[str, Any], says: str
) -> None:
    seed.profile(MAIL)
    answer = await client.put(OVERRIDE, json=body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert (await client.get("/v1/profiles/mail")).json()["override"] is None


async def test_a_pause_shows_in_the_overview_and_outlives_a_put(client: httpx.AsyncClient, seed: Seed, api) -> None:
    seed.profile(MAIL)
    paused = (await client.put(PAUSE, json={"mode": "pause_up"})).json()
    assert (paused["pause"], paused["profile"]["mode"]) == ("pause_up", "act")
    body = paused["profile"] | {"workers_max": 30}
    assert (await client.put("/v1/profiles/mail", json=body, headers={"If-Match": '"1"'})).json()["pause"] == "pause_up"
    assert '"mode":"pause_up"' in await api().state.context.overviews.json()
    assert (await client.put(PAUSE)).json()["pause"] == "pause"
    assert (await client.delete(PAUSE)).json()["pause"] is None


async def test_a_pause_has_a_reason_and_an_end_and_acts_again_by_itself(api, seed: Seed) -> None:
    seed.profile(MAIL)

    async def asked(now_s: float, method: str, path: str, **options: Any) -> dict[str, Any]:
        transport = httpx.ASGITransport(api(clock=lambda: now_s))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8460") as client:
            answer = await client.request(method, path, **options)
        assert answer.status_code == 200
        return {key: value for key, value in answer.json().items() if key.startswith("pause")}

    body = {"mode": "pause_down", "for_s": 60, "reason": "deploying"}
    held = {"pause": "pause_down", "pause_reason": "deploying", "pause_until_s": NOW_S + 60}
    nothing = {"pause": None, "pause_reason": None, "pause_until_s": None}
    assert await asked(NOW_S, "PUT", PAUSE, json=body) == held
    assert await asked(NOW_S + 59, "GET", "/v1/profiles/mail") == held
    assert await asked(NOW_S + 60, "GET", "/v1/profiles/mail") == nothing
    # A later pause takes the place of all of the earlier one.
    assert await asked(NOW_S, "PUT", PAUSE, json={}) == {**nothing, "pause": "pause"}
    assert await asked(NOW_S, "PUT", PAUSE, json={"until_s": NOW_S + 9}) == {
        **nothing,
        "pause": "pause",
        "pause_until_s": NOW_S + 9,
    }
    for _ in range(2):
        assert await asked(NOW_S, "DELETE", PAUSE) == nothing


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"mode": "act"}, "mode"),
        ({"reason": ""}, "reason"),
        ({"reason": "  "}, "reason is empty"),
        ({"reason": "a\0b"}, "cannot be stored"),
        ({"for_s": 0}, "for_s"),
        ({"for_s": -5}, "for_s"),
        ({"for_s": 40 * 86_400}, "for_s"),
        ({"for_s": "30m"}, "for_s"),
        ({"until_s": NOW_S}, "must lie ahead of now"),
        ({"until_s": NOW_S - 60}, "must lie ahead of now"),
        ({"until_s": NOW_S + 40 * 86_400}, "must lie ahead of now"),
        ({"for_s": 5, "until_s": NOW_S + 5}, "at most one of for_s and until_s"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_pause_that_cannot_be_is_refused(
    client: httpx.AsyncClient, seed: Seed, body: dict[str, Any], says: str
) -> None:
    seed.profile(MAIL)
    answer = await client.put(PAUSE, json=body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert (await client.get("/v1/profiles/mail")).json()["pause"] is None


async def test_a_pool_without_a_profile_has_nothing_to_set(client: httpx.AsyncClient) -> None:
    answers = [
        await client.put(OVERRIDE, json={"workers": 7, "for_s": 60, "reason": "x"}),
        await client.delete(OVERRIDE),
        await client.put(PAUSE, json={}),
        await client.delete(PAUSE),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert (await client.put(PAUSE, json={"mode": "act"})).status_code == 422


async def test_what_cannot_be_kept_is_reported_when_a_profile_is_put_and_read(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    """With the load of the newest decision and the start-up that hosts have measured."""
    seed.profile(replace(MAIL, workers_min=0))
    nowhere = "no reachable host has template 'rq': its workers cannot run until a host.toml names it"
    assert (await client.get("/v1/profiles/mail")).json()["notes"] == [nowhere]
    seed.host("a")
    seed.start_up("a", "rq", 8.0)
    busy = QueueMetrics(queue="redis/mail", sampled_at_s=NOW_S, arrival_rate_per_s=2.9, service_time_s=1.0)
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=3, binding="idle", metrics=(busy,)))
    notes = ["keep 3 workers warm (workers_min): start-up 8 s + tick 5 s + lag 1 s + margin 0.5 s > 10 s"]
    assert (await client.get("/v1/profiles/mail")).json()["notes"] == notes
    assert (await client.get("/v1/profiles")).json()["profiles"][0]["notes"] == notes
    body = {"queues": ["redis/mail"], "template": "rq", "workers_min": 3}
    assert (await client.put("/v1/profiles/mail", json=body, headers={"If-Match": '"1"'})).json()["notes"] == []
    body["objective"] = {"percentile": 0.99}
    answer = await client.put("/v1/profiles/mail", json=body, headers={"If-Match": '"2"'})
    assert answer.json()["notes"] == [
        "pool 'mail': the objective's percentile=0.99 asks 0.99 % of the jobs to start in time; did you mean 99?"
    ]


@pytest.mark.parametrize(
    ("zone", "status"), [("Europe/Berlin", 201), ("UTC", 201), ("Mars/Olympus", 422), ("../secret", 422), ("", 422)]
)
async def test_a_time_zone_that_this_machine_does_not_know_is_refused(
    client: httpx.AsyncClient, zone: str, status: int
) -> None:
    window = {"starts": "08:00", "ends": "09:00", "workers_min": 1, "time_zone": zone}
    body = {"queues": ["redis/mail"], "template": "rq", "schedules": [window]}
    answer = await client.put("/v1/profiles/mail", json=body)
    assert answer.status_code == status
    assert status == 201 or f"time_zone {zone!r} is not known" in answer.json()["detail"]
