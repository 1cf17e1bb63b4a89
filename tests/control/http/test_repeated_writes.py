"""A write that is sent again after a lost answer, as docs/reference/http-api.md says of it."""

from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from headway.scaling.profile import Profile
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq")
LATER_S = NOW_S + 600
BOUND = {"queues": ["redis/new"], "template": "rq"}


@pytest.fixture
async def client(client: httpx.AsyncClient, seed: Seed) -> httpx.AsyncClient:
    """The API with a pool, two hosts of which one is unreachable, a worker, a queue that no profile names, a token."""
    seed.profile(MAIL)
    seed.host("a")
    seed.worker("a", "mail", 1)
    seed.host("gone")
    seed.execute("update hosts set lease_ends_at = now() - interval '1 hour' where name = 'gone'")
    seed.sample("redis/old", at_s=NOW_S)
    seed.execute("insert into queues (queue) values ('redis/old')")
    await client.post("/v1/tokens", json={"role": "viewer", "name": "ann"})
    await client.put("/v1/silences/sale", json={"matchers": {"pool": "mail"}, "until_s": LATER_S, "reason": "sale"})
    return client


def acts(seed: Seed) -> int:
    return int(seed.rows("select count(*) from audit_log")[0][0])


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "statuses"),
    [
        ("PUT", "/v1/profiles/new", BOUND, {"If-None-Match": "*"}, (201, 412)),
        ("PUT", "/v1/profiles/mail", {**BOUND, "workers_max": 9}, {"If-Match": '"1"'}, (200, 412)),
        ("DELETE", "/v1/profiles/mail", None, {"If-Match": '"1"'}, (204, 404)),
        ("PUT", "/v1/pools/mail/override", {"workers": 3, "until_s": LATER_S, "reason": "sale"}, {}, (200, 200)),
        ("DELETE", "/v1/pools/mail/override", None, {}, (200, 200)),
        ("PUT", "/v1/pools/mail/pause", {"until_s": LATER_S, "reason": "sale"}, {}, (200, 200)),
        ("DELETE", "/v1/pools/mail/pause", None, {}, (200, 200)),
        ("POST", "/v1/hosts/a/cordon", {"reason": "disk"}, {}, (200, 200)),
        ("POST", "/v1/hosts/a/drain", {"reason": "disk"}, {}, (200, 200)),
        ("POST", "/v1/hosts/a/uncordon", None, {}, (200, 200)),
        ("POST", "/v1/hosts/gone/forget", {"reason": "sold"}, {}, (204, 404)),
        ("POST", "/v1/workers/a-mail-1/kill", {"reason": "hangs"}, {}, (202, 202)),
        ("DELETE", "/v1/queues/redis%2Fold", None, {}, (204, 404)),
        ("POST", "/v1/queues/forget", {"queues": ["redis/old"]}, {}, (200, 404)),
        ("DELETE", "/v1/silences/sale", None, {}, (204, 404)),
        ("POST", "/v1/tokens", {"role": "viewer", "name": "bob"}, {}, (201, 409)),
        ("DELETE", "/v1/tokens/ann", None, {}, (204, 404)),
    ],
)
async def test_the_second_one_changes_nothing_more(
    client: httpx.AsyncClient,
    seed: Seed,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    headers: dict[str, str],
    statuses: tuple[int, int],
) -> None:
    async def status() -> int:
        return (await client.request(method, path, json=body, headers=headers)).status_code

    first = await status()
    done = acts(seed)
    assert ((first, await status()), acts(seed)) == (statuses, done)


async def test_a_silence_that_is_set_again_is_one_silence(client: httpx.AsyncClient) -> None:
    silence = {"matchers": {"host": "a"}, "until_s": LATER_S, "reason": "disk"}
    first, again = [(await client.put("/v1/silences/disk", json=silence)).json() for _ in range(2)]
    assert first == again
    assert [each["name"] for each in (await client.get("/v1/silences")).json()["silences"]].count("disk") == 1


async def test_a_restart_is_the_exception_and_its_generation_shows_that_it_was_done(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    path = "/v1/pools/mail/restart"
    generations = [(await client.get(path)).json()["restart_generation"]]
    for _ in range(2):
        await client.post(path, json={"reason": "new release"})
        generations.append((await client.get(path)).json()["restart_generation"])
    assert generations == [0, 1, 2]
