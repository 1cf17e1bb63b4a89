"""Names without bound: what a single token could fill memory, database and scrapes with."""

import itertools
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from security.planes import Plane, serving

pytestmark = pytest.mark.e2e

BOUNDS = {"HEADWAY_QUEUES": "60", "HEADWAY_QUEUES_PER_TOKEN": "40", "HEADWAY_METRICS_SERIES": "200"}


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path):
    bounds = {**BOUNDS, "HEADWAY_PRODUCERS": "7", "HEADWAY_PRODUCERS_PER_TOKEN": "5"}
    with serving(migrated_url, tmp_path, bounds) as plane:
        yield plane


def batch(producer: str, sequence: int, *queues: str) -> dict[str, Any]:
    samples = [{"queue": queue, "at_s": 1_800_000_000.0, "waiting_jobs": 1} for queue in queues]
    return {"producer": producer, "sequence": sequence, "sent_at_s": 1_800_000_000.0, "samples": samples}


def sent(client: httpx.Client, *shown: Any) -> httpx.Response:
    return client.post("/v1/telemetry", json=batch(*shown))


def listed(client: httpx.Client) -> list[str]:
    names, after = [], None
    while True:
        page = client.get("/v1/queues", params={"limit": 7, **({"after": after} if after else {})}).json()
        names += [queue["queue"] for queue in page["queues"]]
        assert len(page["queues"]) <= 7
        if (after := page["next"]) is None:
            return names


def samples_of(client: httpx.Client) -> dict[str, list[Any]]:
    text = client.get("/metrics").text
    return {family.name: list(family.samples) for family in text_string_to_metric_families(text)}


def test_a_token_that_makes_up_queues_fills_its_own_room_and_no_more(plane: Plane) -> None:
    """300,000 names of one ingest token made `/v1/queues` 459 MB, `/metrics` 738 MB and the process 3.4 GB."""
    with plane.client(plane.token("ingest", "flood")) as flood, plane.client() as people:
        first = sent(flood, "f", 1, *(f"x/{n}" for n in range(30))).json()
        assert (first["accepted_samples"], first["refused_items"]) == (30, 0)
        second = sent(flood, "f", 2, *(f"x/{n}" for n in range(20, 80))).json()
        assert (second["accepted_samples"], second["refused_items"]) == (20, 40)
        assert "40 queues are known of token flood" in second["refused"]
        assert "HEADWAY_QUEUES_PER_TOKEN" in second["refused"]
        third = sent(flood, "f", 3, *(f"y/{n}" for n in range(1_000)))
        assert third.status_code == 422
        assert "headway queue forget" in third.json()["detail"]
        # Everybody else's names are taken on, and what was known of the flood goes on.
        assert sent(people, "p", 1, *(f"real/{n}" for n in range(20))).json()["refused_items"] == 0
        assert sent(flood, "f", 4, "x/1").json()["accepted_samples"] == 1
        full = sent(people, "p", 2, "real/one-more")
        assert "HEADWAY_QUEUES allows" in full.json()["detail"]
        assert len(listed(people)) == 60
        shown = samples_of(people)
        assert sum(map(len, shown.values())) <= 210
        assert shown["headway_metrics_omitted_series"][0].value > 0
        refused = {sample.labels["kind"]: sample.value for sample in shown["headway_refused_names"]}
        assert refused["queues"] == 1_041
    assert sum("telemetry refused sender=token flood" in line for line in plane.said) == 1


def test_a_profile_makes_room_for_its_queue_and_forgetting_one_makes_room_for_another(plane: Plane) -> None:
    with plane.client() as people:
        assert sent(people, "p", 1, *(f"x/{n}" for n in range(60))).json()["refused_items"] == 0
        assert sent(people, "p", 2, "x/new").status_code == 422
        profile = {"queues": ["x/wanted"], "template": "rq"}
        assert people.put("/v1/profiles/mail", json=profile, headers={"If-None-Match": "*"}).status_code == 201
        assert people.delete("/v1/queues/x%2Fwanted").status_code == 409
        assert people.delete("/v1/queues/x%2F0").status_code == 204
        assert people.delete("/v1/queues/x%2F0").status_code == 404
        assert "x/0" not in listed(people)


def test_a_queue_can_be_forgotten_whatever_its_name(shared_plane: Plane) -> None:
    """A line break in a path led nowhere; `..` is a name that no client leaves in one."""
    numbers = itertools.count(1)
    with shared_plane.client() as people:
        before = listed(people)
        for queue in ("x/a\nb", "x//", "x/a b", "x/\x1b[2J", "x/%2F", "x/\u202e"):
            for name in (queue, ".."):
                assert sent(people, "names", next(numbers), name).status_code == 200, queue
            path = f"/v1/queues/{quote(queue, safe='')}"
            assert people.get(f"{path}/metrics").status_code == 200, queue
            assert people.delete(path).status_code == 204, queue
            forgotten = people.post("/v1/queues/forget", json={"queues": [".."]})
            assert forgotten.json() == {"queues": [".."], "is_all": True}
            assert listed(people) == before


def test_forgetting_a_queue_takes_an_operator_and_is_audited(shared_plane: Plane) -> None:
    with shared_plane.client() as people, shared_plane.client(shared_plane.token("viewer", "looks")) as viewer:
        sent(people, "p", 1, "x/gone")
        assert viewer.delete("/v1/queues/x%2Fgone").status_code == 403
        assert viewer.post("/v1/queues/forget", json={"prefix": "x"}).status_code == 403
        with shared_plane.client(shared_plane.token("operator", "does")) as operator:
            assert operator.delete("/v1/queues/x%2Fgone").status_code == 204
    with psycopg.connect(shared_plane.database_url) as connection:
        who = "select actor, action from audit_log where subject = 'queue x/gone'"
        assert connection.execute(who).fetchall() == [("token does", "queue forgotten")]


def test_made_up_producers_are_bounded(plane: Plane) -> None:
    with plane.client(plane.token("ingest", "flood")) as flood, plane.client() as people:
        statuses = [sent(flood, f"p{n}", 1, "x/1").status_code for n in range(8)]
        assert statuses == [200] * 5 + [429] * 3
        assert sent(people, "real", 1, "x/1").status_code == 200
        assert sent(flood, "p1", 2, "x/1").status_code == 200
        shown = samples_of(people)
    assert {each.labels["kind"]: each.value for each in shown["headway_refused_names"]}["producers"] == 3


def test_nobody_claims_batches_of_somebody_elses_producer(shared_plane: Plane) -> None:
    """Claimed beforehand, the true batch would be answered as a duplicate, and lost."""
    with (
        shared_plane.client(shared_plane.token("ingest", "app")) as app,
        shared_plane.client(shared_plane.token("ingest", "thief")) as thief,
    ):
        assert sent(app, "billing", 1, "x/1").json()["is_duplicate"] is False
        stolen = sent(thief, "billing", 2, "x/1")
        assert stolen.status_code == 403
        assert "token app sends under this name" in stolen.json()["detail"]
        assert sent(app, "billing", 2, "x/1").json()["is_duplicate"] is False
        # Whoever replaces a token by another one ends the old one first.
        with shared_plane.client() as people:
            assert people.delete("/v1/tokens/app").status_code == 204
        assert sent(thief, "billing", 3, "x/1").status_code == 200
