"""Windows over HTTP, on rows as the pipeline and the leader leave them."""

from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest

from control.http.conftest import NOW_S
from control.http.values import decision
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq", objective=Objective(target_s=5))
BOTH = Profile(pool="mail", queues=("redis/mail", "redis/news"), template="rq", objective=Objective(target_s=5))


def minute(url: str, queue: str, at_s: float, *, job_class: str = "", **values: Any) -> None:
    """A rolled-up minute; minutes are rolled up to the one that ends now."""
    columns = ", ".join(values)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"insert into rollup_minutes (queue, job_class, bucket_s, {columns}) "
            f"values (%s, %s, %s, {', '.join(['%s'] * len(values))})",
            [queue, job_class, at_s // 60 * 60, *values.values()],
        )
        connection.execute("update rollup_progress set minutes_until_s = %s", [NOW_S - 60])


async def test_windows_are_of_buckets_and_of_minutes(client: httpx.AsyncClient, seed: Seed, migrated_url: str) -> None:
    """Each job counts once: buckets that are rolled up are not added to their minute."""
    seed.profile(MAIL)
    seed.bucket("redis/mail", at_s=NOW_S - 1, arrived_jobs=1, pickups_s=[2.0])
    seed.bucket("redis/mail", at_s=NOW_S - 200, arrived_jobs=10)
    minute(migrated_url, "redis/mail", NOW_S - 200, arrived_jobs=10)
    minute(migrated_url, "redis/mail", NOW_S - 1800, arrived_jobs=100)
    answer = (await client.get("/v1/queues/redis/mail/metrics")).json()
    assert answer["until_s"] == NOW_S
    assert [window["until_s"] - window["from_s"] for window in answer["windows"]] == [60.0, 300.0, 900.0, 3600.0]
    assert [window["arrived_jobs"] for window in answer["windows"]] == [1, 11, 11, 111]
    assert answer["windows"][0]["pickup_p95_s"] == pytest.approx(2.0, rel=0.02)
    assert answer["windows"][0]["utilization"] is None  # no host says how many slots there are


async def test_windows_end_where_the_pipeline_has_come_to(client: httpx.AsyncClient, seed: Seed) -> None:
    """What came since is not known, which is not the same as nothing."""
    seed.profile(MAIL)
    seed.bucket("redis/mail", at_s=NOW_S - 1000, arrived_jobs=5)
    answer = (await client.get("/v1/queues/redis/mail/metrics")).json()
    assert NOW_S - 1000 < answer["until_s"] <= NOW_S - 995
    assert answer["windows"][0]["arrived_jobs"] == 5


async def test_job_classes_have_windows_of_their_own(client: httpx.AsyncClient, seed: Seed, migrated_url: str) -> None:
    seed.profile(MAIL)
    seed.bucket("redis/mail", at_s=NOW_S - 1, arrived_jobs=1)
    for job_class, jobs in (("Video", 7), ("Mail", 3)):
        minute(migrated_url, "redis/mail", NOW_S - 120, job_class=job_class, arrived_jobs=jobs)
    answer = (await client.get("/v1/queues/redis/mail/metrics")).json()
    found = [(each["job_class"], each["window"]["arrived_jobs"]) for each in answer["job_classes"]]
    assert found == [("Mail", 3), ("Video", 7)]
    assert answer["windows"][3]["arrived_jobs"] == 1  # classes are parts of their queue, not more of it


async def test_a_pool_adds_its_queues_and_knows_how_busy_its_slots_were(client: httpx.AsyncClient, seed: Seed) -> None:
    """Two workers of one slot each for the whole minute, of whose 120 s jobs took 30."""
    seed.profile(BOTH)
    seed.host("a")
    for number in range(2):
        seed.worker("a", "mail", number)
    seed.decision(decision(2, running_workers=2), ago_s=7200.0)
    for queue in BOTH.queues:
        seed.bucket(
            queue, at_s=NOW_S - 20, arrived_jobs=4, finished_jobs=5, service_sum_s=15.0, service_sketch='{"56": 5}'
        )
    seed.bucket("redis/news", at_s=NOW_S - 1)
    seed.bucket("redis/news", at_s=NOW_S - 3600)
    answer = (await client.get("/v1/pools/mail/metrics")).json()
    first = answer["windows"][0]
    assert (answer["running_slots"], first["arrived_jobs"]) == (2.0, 8)
    assert first["busy_slots"] == pytest.approx(0.5)
    assert first["utilization"] == pytest.approx(0.25)
    of_member = (await client.get("/v1/queues/redis/news/metrics")).json()
    assert of_member["running_slots"] is None  # it shares them


async def test_a_long_job_that_runs_is_in_use_now_and_in_each_window(client: httpx.AsyncClient, seed: Seed) -> None:
    """It has run for half an hour and ended nowhere; nobody knows what the third worker does."""
    seed.profile(MAIL)
    seed.host("a")
    for number, is_busy in enumerate((True, False, None)):
        seed.worker("a", "mail", number, is_busy=is_busy)
    seed.execute(
        "update workers set activity_source = 'reporter', activity_age_s = 0, running_jobs = 1, running = "
        f"""'[{{"job_id": "1", "queue": "mail", "started_at_s": {NOW_S - 1800}}}]' where is_busy"""
    )
    seed.execute(f"update hosts set reported_at = to_timestamp({NOW_S})")
    seed.bucket("redis/mail", at_s=NOW_S - 3600, oldest_age_s=0.0)
    seed.bucket("redis/mail", at_s=NOW_S - 1, oldest_age_s=0.0)
    for path in ("queues/redis/mail", "pools/mail"):
        answer = (await client.get(f"/v1/{path}/metrics")).json()
        assert (answer["busy_slots"], answer["unknown_workers"], answer["running_slots"]) == (1, 1, 3.0)
        assert [each["busy_slots"] for each in answer["windows"]] == pytest.approx([1.0, 1.0, 1.0, 0.5])


async def test_rates_of_a_new_queue_are_of_the_time_since_it_was_read(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.bucket("redis/mail", at_s=NOW_S - 100, arrived_jobs=50, pickups_s=[1.0])
    seed.bucket("redis/mail", at_s=NOW_S - 1)
    windows = (await client.get("/v1/pools/mail/metrics")).json()["windows"]
    assert [each["measured_s"] for each in windows] == [60.0, 100.0, 100.0, 100.0]
    assert windows[3]["arrival_rate_per_s"] == pytest.approx(0.5)


@pytest.mark.parametrize("shared", [{"helps": ("redis/bulk",)}, {}])
async def test_how_busy_slots_were_is_not_known_of_pools_that_share_queues(
    client: httpx.AsyncClient, seed: Seed, shared: dict[str, Any]
) -> None:
    """Of the jobs that ended, nothing counts in whose slots they ran."""
    other = Profile(pool="bulk", queues=("redis/bulk",), template="rq", helps=() if shared else ("redis/mail",))
    seed.profile(replace(MAIL, **shared))
    seed.profile(other)
    seed.host("a")
    seed.worker("a", "mail", 1)
    seed.bucket("redis/mail", at_s=NOW_S - 3600)
    seed.bucket("redis/mail", at_s=NOW_S - 1, finished_jobs=30, service_sum_s=30.0, service_sketch='{"0": 30}')
    for path in ("pools/mail", "queues/redis/mail"):
        answer = (await client.get(f"/v1/{path}/metrics")).json()
        assert answer["running_slots"] is None
        assert answer["windows"][0]["utilization"] is None
        assert answer["windows"][0]["busy_slots"] == pytest.approx(0.5)


async def test_arrivals_that_nobody_reports_are_null_in_windows_and_in_the_history(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    """One queue is read by its depth alone, the other has events."""
    seed.profile(BOTH)
    seed.bucket("redis/mail", at_s=NOW_S - 20, waiting_jobs=7)
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=7)
    seed.bucket("redis/news", at_s=NOW_S - 20, arrived_jobs=4, pickups_s=[1.0], oldest_age_s=0.0)
    rates = {"arrived_jobs", "arrival_rate_per_s", "started_jobs", "completion_rate_per_s", "busy_slots"}
    for path in ("queues/redis/mail", "pools/mail"):
        for window in (await client.get(f"/v1/{path}/metrics")).json()["windows"]:
            assert {window[name] for name in rates} == {None}
            assert window["arrivals"] == []
    answer = (await client.get("/v1/queues/redis/news/metrics")).json()
    assert [window["arrived_jobs"] for window in answer["windows"]] == [4] * 4
    (point,) = (await client.get("/v1/pools/mail/history")).json()["buckets"]
    assert (point["waiting_jobs"], point["arrived_jobs"], point["retried_jobs"], point["started_jobs"]) == (
        7,
        None,
        None,
        None,
    )


async def test_a_queue_or_pool_that_nobody_knows_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/queues/redis/none/metrics")).status_code == 404
    assert (await client.get("/v1/pools/none/metrics")).status_code == 404
