"""The stream of overviews over a real server: one snapshot for all, soon after a change, and an end when asked."""

import asyncio
import gzip
import json
import re
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from control.http.conftest import Bound
from headway.control.bounds import Bounds
from headway.control.http.http_server import HttpServer
from headway.control.http.overview.broadcaster import BROADCAST_REFRESH_S, PAUSE_MAX_S, Feed
from headway.errors import Misconfigured, Overloaded, Unavailable
from headway.scaling.profile import Profile
from support.seed import Seed
from support.tree import ROOT

PROMPTLY_S = 30.0
READ_S = 3.0  # to make an overview, and to bring it to the page


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[tuple[HttpServer, httpx.AsyncClient]]:
    server = HttpServer(app, address=Bound())
    await server.start()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=PROMPTLY_S) as client:
        yield server, client
    await server.stop()


async def events(answer: httpx.Response) -> AsyncIterator[dict[str, str]]:
    event: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif event:
            yield event
            event = {}


async def test_a_viewer_gets_the_overview_at_once_and_again_after_a_change(api, seed: Seed) -> None:
    feed = Feed(pause_s=0.01, refresh_s=60.0)
    seed.sample("redis/mail", at_s=time.time(), waiting_jobs=3)
    async with served(api(feed=feed, clock=time.time)) as (_, client), client.stream("GET", "/v1/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        seen = events(answer)
        first = await anext(seen)
        assert (first["event"], first["id"]) == ("overview", "1")
        overview = json.loads(first["data"])
        assert [queue["queue"] for queue in overview["queues"]] == ["redis/mail"]
        assert (overview["pools"], overview["health"]["status"]) == ([], "degraded")

        seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
        seed.host("a", lease_s=-1)
        seed.worker("a", "mail", 1)
        feed.publish()
        (pool,) = json.loads((await anext(seen))["data"])["pools"]
        assert (pool["pool"], pool["metrics"]["waiting_jobs"], pool["target_workers"]) == ("mail", 3, None)
        assert (pool["running_workers"], pool["unknown_workers"]) == (0, 1)  # its host is silent


async def test_who_takes_changes_gets_what_differs_from_the_overview_before(api, seed: Seed) -> None:
    feed = Feed(pause_s=0.01, refresh_s=60.0)
    for name in ("mail", "images"):
        seed.profile(Profile(pool=name, queues=(f"redis/{name}",), template="rq"))
        seed.sample(f"redis/{name}", at_s=time.time(), waiting_jobs=3)
    async with (
        served(api(feed=feed, clock=time.time)) as (_, client),
        client.stream("GET", "/v1/events", params={"changes": True}) as answer,
    ):
        seen = events(answer)
        first = await anext(seen)
        assert first["event"] == "overview"
        places = [pool["pool"] for pool in json.loads(first["data"])["pools"]]
        seed.sample("redis/mail", at_s=time.time(), waiting_jobs=7)
        feed.publish()
        second = await anext(seen)
        assert second["event"] == "change"
        change = json.loads(second["data"])
        assert change["since"] == int(first["id"])
        waiting = [
            (fields["metrics"]["waiting_jobs"], ranges)
            for fields, ranges in change["pools"]["fields"]
            if "waiting_jobs" in fields.get("metrics", {})
        ]
        place = places.index("mail")
        assert waiting == [(7, [place, place])]


@pytest.mark.parametrize("changes", [False, True])
async def test_a_compressed_stream_is_whole_when_the_server_ends_it(api, changes: bool) -> None:
    feed = Feed(pause_s=0.01, refresh_s=0.01)
    async with (
        served(api(feed=feed)) as (server, client),
        client.stream("GET", "/v1/events", params={"changes": changes}) as answer,
        client.stream("GET", "/v1/events", params={"changes": changes}, headers={"Accept-Encoding": "br"}) as plain,
    ):
        assert answer.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert (await anext(events(plain)))["event"] in {"overview", "problem"}
        raw = b""
        async for received in answer.aiter_raw():
            raw += received
            if raw.count(b"\x00\x00\xff\xff") == 3:  # each part ends so
                await server.stop()
        assert gzip.decompress(raw).count(b"\nid: ") >= 3


@pytest.mark.parametrize("changes", [False, True])
async def test_what_ends_for_good_sends_its_report_last(api, changes: bool) -> None:
    feed = Feed(pause_s=0.01, refresh_s=60.0, ended_report=lambda: '{"title":"a day"}')
    async with (
        served(api(feed=feed)) as (server, client),
        client.stream("GET", "/v1/events", params={"changes": changes}) as answer,
    ):
        seen = events(answer)
        assert (await anext(seen))["event"] != "ended"
        await server.stop()
        assert [(each["event"], each["data"]) async for each in seen][-1] == ("ended", '{"title":"a day"}')


async def test_who_missed_a_change_gets_the_whole_overview() -> None:
    feed = Feed(pause_s=0.01, refresh_s=60.0)
    made = 0

    async def compute() -> str:
        nonlocal made
        made += 1
        return json.dumps({"at_s": made, "pools": [], "queues": [], "hosts": [], "decisions": []})

    quick, slow = (feed.watch(compute, by_changes=True) for _ in range(2))
    seen = [(await anext(quick)).event, (await anext(slow)).event]
    for _ in range(2):
        feed.publish()
        seen.append((await anext(quick)).event)
    assert seen == ["overview", "overview", "change", "change"]
    assert (await anext(slow)).event == "overview"
    feed.publish()
    assert [(await anext(viewer)).event for viewer in (quick, slow)] == ["change", "change"]
    for viewer in (quick, slow):
        await viewer.aclose()
    await feed.close()


async def test_a_held_stream_does_not_hold_the_server_up(api) -> None:
    async with served(api()) as (server, client), client.stream("GET", "/v1/events") as answer:
        seen = events(answer)
        await anext(seen)
        await server.stop()
        assert [event async for event in seen if "data" not in event] == []  # it ends, and is not cut off


async def test_a_port_that_is_taken_is_named_with_its_setting(api) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        class Taken(Bound):
            def __str__(self) -> str:
                return f"{self.host}:{self.port}"

        with pytest.raises(Misconfigured, match=f"HEADWAY_HTTP_ADDRESS=127.0.0.1:{port}: cannot listen there"):
            await HttpServer(api(), address=Taken(port=port)).start()


class Counting:
    """Makes snapshots and counts them."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self) -> str:
        self.made += 1
        return str(self.made)


async def test_all_viewers_share_one_snapshot() -> None:
    feed, compute = Feed(pause_s=0.01, refresh_s=60.0), Counting()
    viewers = [feed.watch(compute) for _ in range(20)]
    first = await asyncio.gather(*(anext(viewer) for viewer in viewers))
    feed.publish()
    second = await asyncio.gather(*(anext(viewer) for viewer in viewers))
    assert ({each.data for each in first}, {each.data for each in second}) == ({"1"}, {"2"})
    for viewer in viewers:
        await viewer.aclose()
    await feed.close()


async def test_without_a_viewer_nothing_is_made_and_the_next_one_gets_a_new_one() -> None:
    feed, compute = Feed(pause_s=0.01, refresh_s=0.01), Counting()
    feed.publish()
    viewer = feed.watch(compute)
    await anext(viewer)
    await viewer.aclose()
    async with asyncio.timeout(PROMPTLY_S):
        while not feed.is_idle:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)
    made = compute.made
    feed.publish()
    assert feed.is_idle
    viewer = feed.watch(compute)
    assert (await anext(viewer)).data == str(made + 1)
    await viewer.aclose()
    await feed.close()


async def test_a_snapshot_that_cannot_be_made_is_reported_and_tried_again() -> None:
    answers: list[Exception | None] = [Unavailable("Postgres is away"), ValueError("a bug"), None]

    async def compute() -> str:
        error = answers.pop(0) if answers else None
        if error is not None:
            raise error
        return "{}"

    feed = Feed(pause_s=0.01, refresh_s=0.01)
    viewer = feed.watch(compute)
    seen = [await anext(viewer) for _ in range(3)]
    assert [(each.event, json.loads(each.data)) for each in (seen[0], seen[2])] == [
        ("problem", "Postgres is away"),
        ("overview", {}),
    ]
    assert "bug" in seen[1].data
    await viewer.aclose()
    await feed.close()


async def test_one_viewer_too_many_is_refused(api) -> None:
    feed = Feed(bounds=Bounds(viewers_max=3, viewers_per_token_max=2))
    with feed.place("another"), feed.place("127.0.0.1"):
        async with served(api(feed=feed)) as (_, client), client.stream("GET", "/v1/events") as answer:
            seen = events(answer)  # the stream ends with who reads it
            await anext(seen)
            refused = await client.get("/v1/events")
            assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
            assert "HEADWAY_VIEWERS_PER_TOKEN" in refused.json()["detail"]
            with pytest.raises(Overloaded, match=r"HEADWAY_VIEWERS$"), feed.place("a third"):
                pass
            metrics = (await client.get("/metrics")).text
    assert "headway_viewers 3.0" in metrics
    assert 'headway_refused_viewers_total{bound="token"} 1.0' in metrics
    assert 'headway_refused_viewers_total{bound="all"} 1.0' in metrics
    assert feed.places_taken == 0


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.02, 1.0), (0.2, 2.0), (2.0, 5.0), (30.0, 5.0)])
def test_snapshots_that_take_long_come_less_often_and_before_the_page_gives_up(took_s: float, pause_s: float) -> None:
    """On a busy machine a snapshot of 2 s was followed by a pause of 20 s, and the page said that nobody answered."""
    assert Feed().pause_after_s(took_s) == pytest.approx(pause_s)
    quiet = re.search(r"const QUIET_MS = ([\d_]+);", (ROOT / "service/headway/control/web/stream.js").read_text())
    assert quiet is not None
    assert int(quiet[1].replace("_", "")) / 1000.0 >= PAUSE_MAX_S + BROADCAST_REFRESH_S + READ_S
