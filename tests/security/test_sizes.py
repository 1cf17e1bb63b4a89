"""Requests that hold more than anybody means: each is refused, and costs no more than it takes to read."""

from typing import Any

import pytest

from security.planes import Plane

MANY = 90_000  # within 1 MB
MISTAKES = 3_000
LISTED_BYTES_MAX = 100_000


@pytest.fixture
def plane(shared_plane: Plane) -> Plane:
    return shared_plane


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"queues": [f"q{each}" for each in range(MANY)]}, "HEADWAY_QUEUES_PER_PROFILE"),
        ({"schedules": [{"starts": "08:00", "ends": "09:00", "workers_min": 1}] * 101}, "at most 100"),
        ({"placement": {"labels": {f"l{each}": "v" for each in range(51)}}}, "at most 50"),
        ({"member_objectives": {f"q{each}": {} for each in range(20_000)}}, "HEADWAY_QUEUES_PER_PROFILE"),
    ],
)
def test_a_profile_of_endless_lists_is_refused(plane: Plane, more: dict[str, Any], says: str) -> None:
    """One of 90,000 queues was taken: for 6.5 s everything stood still, and the leader did not renew its lease."""
    with plane.client(plane.token("operator", f"operator-{says}-{len(more)}-{next(iter(more))}")) as client:
        answer = client.put("/v1/profiles/many", json={"queues": ["q"], "template": "rq", **more})
    assert (answer.status_code, says in answer.json()["detail"]) == (422, True), answer.text[:500]


def test_a_profile_of_a_thousand_queues_is_taken(plane: Plane) -> None:
    with plane.client() as client:
        profile = {"queues": [f"q{each}" for each in range(1_000)], "template": "rq"}
        assert client.put("/v1/profiles/thousand", json=profile).status_code == 201
        assert client.delete("/v1/profiles/thousand", headers={"If-Match": '"1"'}).status_code == 204


@pytest.mark.parametrize(
    ("role", "method", "path", "body"),
    [
        (
            "operator",
            "PUT",
            "/v1/profiles/odd",
            {"queues": ["q"], "template": "rq", **{f"worker_{n}": 0 for n in range(MISTAKES)}},
        ),
        ("ingest", "POST", "/v1/telemetry", {"producer": "p", "sequence": 1, "sent_at_s": 1.0, "events": [{}] * 9_000}),
        ("ingest", "POST", "/v1/telemetry", {f"key{n}": 0 for n in range(MISTAKES)}),
    ],
)
def test_of_endless_mistakes_some_are_listed(plane: Plane, role: str, method: str, path: str, body: Any) -> None:
    """150 kB of telemetry took 200 MB and a second, and the answer listed 200,000 mistakes."""
    with plane.client(plane.token(role, f"{role}-{len(body)}")) as client:
        answer = client.request(method, path, json=body)
    assert answer.status_code == 422
    assert len(answer.content) < LISTED_BYTES_MAX
    assert answer.json()["breaches"]
