"""Queues, hosts, decisions, history and telemetry over HTTP, on rows as the other processes leave them."""

import json
from dataclasses import asdict, replace
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.values import BATCH, decision
from headway.control.http.middleware import TELEMETRY_BYTES_MAX
from headway.control.http.overview import overview_builder
from headway.errors import Overloaded
from headway.scaling.measure import RATE_WINDOW_S, sketch_index
from headway.scaling.metrics.behaviour import Behaviour, Spread, behaviour_from_mapping
from headway.scaling.metrics.prediction_error import PredictionError
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.store.pools.behaviours import Learned
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail", "redis/news"), template="rq", objective=Objective(target_s=5))


async def test_queues_are_those_seen_and_those_wanted(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.sample("redis/mail", at_s=NOW_S - 2, waiting_jobs=7, in_flight_jobs=2, oldest_age_s=3.5, poll_interval_s=2.5)
    seed.sample("redis/stray", at_s=NOW_S - 90, waiting_jobs=1)
    seed.bucket("redis/mail", at_s=NOW_S - 10, pickups_s=[1.0, 2.0], arrived_jobs=12, waiting_jobs=5)
    answer = (await client.get("/v1/queues")).json()
    mail, news, stray = answer["queues"]
    assert [(row["queue"], row["pool"]) for row in answer["queues"]] == [
        ("redis/mail", "mail"),
        ("redis/news", "mail"),
        ("redis/stray", None),
    ]
    # The newest depths are ingest's, the rates and waits are the pipeline's.
    assert (mail["sample_age_s"], mail["metrics"]["waiting_jobs"], mail["metrics"]["oldest_age_s"]) == (2.0, 7, 3.5)
    assert [row["poll_interval_s"] for row in answer["queues"]] == [2.5, None, None]
    assert mail["metrics"]["arrival_rate_per_s"] == pytest.approx(12 / RATE_WINDOW_S)
    assert mail["metrics"]["pickup_p95_s"] == pytest.approx(2.0, rel=0.02)
    assert (news["sample_age_s"], news["metrics"]["waiting_jobs"]) == (None, None)  # not seen is not empty
    assert (stray["sample_age_s"], stray["metrics"]["oldest_age_s"]) == (90.0, None)
    of_pool = (await client.get("/v1/queues?pool=mail")).json()["queues"]
    assert [row["queue"] for row in of_pool] == ["redis/mail", "redis/news"]


async def test_hosts_show_what_they_have_what_is_used_and_whether_they_are_known(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    seed.host("a")
    seed.host("b", lease_s=-5)
    for number in range(3):
        seed.worker("a", "mail", number, is_busy=None)
    first, second = (await client.get("/v1/hosts")).json()["hosts"]
    assert (first["name"], first["is_known"], second["name"], second["is_known"]) == ("a", True, "b", False)
    plain = {"gpus": 0, "cpu_pressure": None, "memory_pressure": None}
    assert first["capacity"] == {"cpu_cores": 4.0, "memory_bytes": 8 << 30, **plain}
    assert first["used"] == {"cpu_cores": 0.75, "memory_bytes": 3 * (64 << 20), **plain}
    assert [worker["is_busy"] for worker in first["workers"]] == [None] * 3


async def test_how_a_pool_behaves_is_what_a_rehearsal_takes(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.profile(Profile(pool="new", queues=("redis/new",), template="other"))
    seed.host("a")
    seed.start_up("a", "rq", 1.5)
    lag = Spread(p50_s=0.7, p95_s=1.9, count=50)
    error = PredictionError(p50_s=0.4, p95_s=2.1, bias_s=-0.2, count=118)
    learned = Behaviour(sample_lag=lag, dispatch_overhead_s=0.034)
    seed.learned("mail", Learned(body={}, behaviour=learned, prediction=error))
    answer = (await client.get("/v1/pools/mail/behaviour")).json()
    start_up = Spread(p50_s=1.5, p95_s=1.5, count=1)
    assert behaviour_from_mapping(answer) == replace(learned, start_up=start_up, start_up_of_late_s=1.5)
    assert answer["prediction"] == asdict(error)
    assert (answer["pool"], answer["template"]) == ("mail", "rq")
    nothing = (await client.get("/v1/pools/new/behaviour")).json()
    assert {key for key, value in nothing.items() if value is not None} == {"pool", "template"}
    assert (await client.get("/v1/pools/lost/behaviour")).status_code == 404


async def test_decisions_come_newest_first_a_page_at_a_time(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    for number in range(5):
        seed.decision(decision(number), previous_workers=number - 1, ago_s=100 - number)
    targets, path = [], "/v1/decisions?limit=2&pool=mail"
    for _ in range(3):
        page = (await client.get(path)).json()
        targets.append([each["decision"]["target_workers"] for each in page["decisions"]])
        path = f"/v1/decisions?limit=2&pool=mail&before={page['next']}"
    assert (targets, page["next"]) == ([[4, 3], [2, 1], [0]], None)
    (latest,) = (await client.get("/v1/decisions/latest")).json()["decisions"]
    assert (latest["previous_workers"], latest["epoch"]) == (3, 3)
    assert latest["decision"]["demands"] == [{"name": "steady_state", "slots": 2.0, "terms": {}}]
    assert latest["decision"]["predicted_pickup_s"] is None


async def test_a_history_adds_the_pools_queues_and_begins_with_what_held_before(api, seed: Seed) -> None:
    import time

    now_s = time.time() // 5 * 5  # decisions are dated by Postgres
    seed.profile(MAIL)
    seed.bucket("redis/mail", at_s=now_s - 20, pickups_s=[1.0] * 19, waiting_jobs=4, oldest_age_s=2.0)
    seed.bucket("redis/news", at_s=now_s - 20, pickups_s=[4.0], waiting_jobs=3, oldest_age_s=6.0)
    sketch = json.dumps({sketch_index(0.5): 3, sketch_index(30.0): 1})
    seed.bucket(
        "redis/mail", at_s=now_s - 10, waiting_jobs=None, sampled_at_s=None, arrived_jobs=4, service_sketch=sketch
    )
    seed.bucket("redis/mail", at_s=now_s - 90, waiting_jobs=50)
    seed.decision(decision(2, running_workers=1), ago_s=500)
    seed.decision(decision(3, running_workers=2, starting_workers=1), ago_s=400)
    seed.decision(decision(6, running_workers=3), ago_s=15)
    transport = httpx.ASGITransport(api(clock=lambda: now_s))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        history = (await client.get("/v1/pools/mail/history?minutes=1")).json()
    assert history["objective"]["target_s"] == 5.0
    assert [
        (p["at_s"] - now_s, p["waiting_jobs"], p["oldest_age_s"], p["started_jobs"]) for p in history["buckets"]
    ] == [(-20.0, 7, 6.0, 20), (-10.0, None, None, 0)]
    assert history["buckets"][0]["pickup_p95_s"] == pytest.approx(1.0, rel=0.02)  # 19 of 20 waited 1 s
    assert history["buckets"][1]["pickup_p95_s"] is None
    assert [p["arrived_jobs"] for p in history["buckets"]] == [0, 4]
    assert [(each["service_s"], each["jobs"]) for each in history["service_times"]] == [
        (pytest.approx(0.5, rel=0.01), 3),
        (pytest.approx(30.0, rel=0.01), 1),
    ]
    assert [(p["target_workers"], p["running_workers"], p["starting_workers"]) for p in history["targets"]] == [
        (3, 2, 1),
        (6, 3, 0),
        (6, 0, 0),  # now, as agents report
    ]


async def test_a_batch_is_received_once_however_often_it_is_sent(client: httpx.AsyncClient) -> None:
    first = (await client.post("/v1/telemetry", json=BATCH)).json()
    kept = {"is_duplicate": False, "accepted_events": 2, "accepted_samples": 1, "corrected_times": 0}
    assert first == {**kept, "refused_items": 0, "refused": ""}
    assert (await client.post("/v1/telemetry", json=BATCH)).json()["is_duplicate"] is True
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    assert (queue["queue"], queue["metrics"]["waiting_jobs"]) == ("redis/mail", 3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"producer": ""}, "producer"),
        ({"sequence": -1}, "sequence"),
        ({"sequence": 2**63}, "sequence"),
        ({"surprise": 1}, "surprise"),
        ({"events": [{**BATCH["events"][0], "kind": "sample"}]}, "events.0.kind"),
        ({"events": [{**BATCH["events"][0], "job_id": "a\0"}]}, "events.0.job_id"),
        ({"samples": [{"queue": "redis/mail", "at_s": NOW_S, "waiting_jobs": -3}]}, "samples.0.waiting_jobs"),
        ({"samples": [{"queue": "redis/mail", "at_s": NOW_S, "waiting_jobs": None}]}, "give waiting_jobs, or at least"),
        (
            {"samples": [{"queue": "redis/mail", "at_s": NOW_S, "waiting_jobs": 3, "waiting_min_jobs": 4}]},
            "waiting_min_jobs=4 exceeds waiting_jobs=3",
        ),
    ],
)
async def test_a_wrong_batch_is_refused_by_name(client: httpx.AsyncClient, change: dict[str, Any], says: str) -> None:
    answer = await client.post("/v1/telemetry", json=BATCH | change)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


async def test_a_sample_may_have_lower_bounds_alone(client: httpx.AsyncClient) -> None:
    bounds = {"queue": "redis/mail", "at_s": NOW_S, "waiting_min_jobs": 3, "in_flight_min_jobs": 2}
    answer = await client.post("/v1/telemetry", json=BATCH | {"samples": [bounds]})
    assert answer.json()["accepted_samples"] == 1


async def test_a_sample_may_say_when_jobs_are_due(client: httpx.AsyncClient) -> None:
    sample = {"queue": "redis/mail", "at_s": NOW_S, "waiting_jobs": 0, "delayed_jobs": 3}
    due = [{"within_s": 5.0, "jobs": 1}, {"within_s": 10.0, "jobs": 3}]
    answer = await client.post("/v1/telemetry", json=BATCH | {"samples": [sample | {"due": due}]})
    assert answer.json()["accepted_samples"] == 1
    answer = await client.post("/v1/telemetry", json=BATCH | {"samples": [sample | {"due": due[::-1]}]})
    assert answer.status_code == 422
    assert "due does not ascend" in answer.json()["detail"]


async def test_a_large_batch_is_read_and_a_too_large_one_refused(client: httpx.AsyncClient) -> None:
    events = [{**BATCH["events"][0], "job_id": str(number)} for number in range(5000)]
    answer = await client.post("/v1/telemetry", json=BATCH | {"events": events})
    assert answer.json()["accepted_events"] == 5000
    answer = await client.post("/v1/telemetry", content=b" " * (TELEMETRY_BYTES_MAX + 1))
    assert answer.status_code == 413


async def test_an_overloaded_ingest_asks_to_come_again(api) -> None:
    class Full:
        has_event_log = True

        async def accept(self, batch: object, *_: object, **__: object) -> None:
            raise Overloaded("too much waits: send again after a pause")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(api(ingest=Full())), base_url="http://[::1]") as client:
        answer = await client.post("/v1/telemetry", content=json.dumps(BATCH))
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")


async def test_a_list_of_queues_reads_only_what_was_written_since_the_last(
    client: httpx.AsyncClient, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand queues have more rows in five minutes than a request may take time to read."""
    seed.sample("redis/mail", at_s=NOW_S - 2)
    seed.bucket("redis/mail", at_s=NOW_S - 10, arrived_jobs=12)
    first = (await client.get("/v1/queues")).json()
    after = []
    read = overview_builder.read_buckets

    async def noted(*given: Any, **named: Any) -> Any:
        after.append(named["after_revision"])
        return await read(*given, **named)

    monkeypatch.setattr(overview_builder, "read_buckets", noted)
    assert (await client.get("/v1/queues")).json() == first
    assert after == [1]


async def test_a_past_decision_is_explained(client: httpx.AsyncClient, seed: Seed) -> None:
    def asked(**at: float) -> Any:
        return client.get("/v1/pools/mail/explain", params=at)

    assert (await asked()).status_code == 404  # no such pool
    seed.profile(MAIL)
    assert "has no decision yet" in (await asked()).json()["detail"]
    seed.decision(decision(2), ago_s=3_600.0)
    seed.decision(decision(7, notes=("a note",)), previous_workers=2, ago_s=60.0)
    newest, first = (await client.get("/v1/decisions")).json()["decisions"]
    for moment, held in (
        (newest["decided_at_s"] + 59, newest),
        (newest["decided_at_s"], newest),
        (newest["decided_at_s"] - 0.001, first),
        (first["decided_at_s"], first),
    ):
        answer = (await asked(at_s=moment)).json()
        assert {key: answer[key] for key in held} == held
    said = (await asked(at_s=newest["decided_at_s"])).json()["sentences"]
    assert (said[0], said[-1]) == ("Pool mail should have 7 workers; the previous target was 2.", "A note.")
    before = await asked(at_s=first["decided_at_s"] - 1)
    assert (before.status_code, "kept for 14 days" in before.json()["detail"]) == (404, True)
    assert (
        await asked(at_s=first["decided_at_s"] + 2 * 86_400)
    ).status_code == 404  # nothing says that it held so long
    assert (await asked(at_s=-1)).status_code == 422
    assert (await asked(at_s=1e300)).status_code == 422
