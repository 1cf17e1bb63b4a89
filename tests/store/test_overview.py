"""What people see, read from rows as the other processes leave them."""

import time

import pytest

from headway.scaling.measure import BucketRow
from headway.scaling.model import Decision
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.overview import (
    TargetRow,
    read_buckets,
    read_health,
    read_hosts,
    read_queues,
    read_samples,
    read_target_history,
    read_targets,
)
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq")


async def test_reading_goes_on_after_the_newest_revision(engine: Engine, seed: Seed) -> None:
    seed.bucket("redis/mail", at_s=1000.0, pickups_s=[1.0], waiting_jobs=4)
    seed.bucket("redis/mail", at_s=1005.0)
    async with transaction(engine) as conn:
        first, revision = await read_buckets(conn, from_s=1000.0)
        assert [row.bucket_s for row in first] == [1000.0, 1005.0]
        assert isinstance(first[0], BucketRow)
        assert sum(first[0].pickup_sketch.values()) == 1
        assert await read_buckets(conn, from_s=1000.0, after_revision=revision) == ([], revision)
    seed.bucket("redis/mail", at_s=1010.0)
    seed.bucket("redis/news", at_s=900.0)
    async with transaction(engine) as conn:
        rows, newest = await read_buckets(conn, from_s=1000.0, after_revision=revision)
        assert ([row.bucket_s for row in rows], newest > revision) == ([1010.0], True)
        assert (await read_buckets(conn, from_s=0.0, queues=["redis/news"]))[0][0].queue == "redis/news"


async def test_queues_are_the_union_of_the_seen_and_the_wanted(engine: Engine, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.sample("redis/stray", at_s=1000.0, waiting_jobs=2)
    async with transaction(engine) as conn:
        assert await read_queues(conn) == {"redis/mail": "mail", "redis/stray": None}
        assert {queue: sample.waiting_jobs for queue, sample in (await read_samples(conn)).items()} == {
            "redis/stray": 2
        }


async def test_queues_that_no_profile_names_are_left_out_where_only_pools_count(engine: Engine, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.sample("redis/mail", at_s=1000.0, waiting_jobs=1)
    seed.sample("redis/stray", at_s=1000.0, waiting_jobs=2)
    async with transaction(engine) as conn:
        assert await read_queues(conn, in_pools=True) == {"redis/mail": "mail"}
        assert list(await read_samples(conn, in_pools=True)) == ["redis/mail"]


async def test_a_target_history_begins_with_the_decision_that_held(engine: Engine, seed: Seed) -> None:
    now_s = time.time()
    seed.profile(MAIL)
    for target_workers, ago_s in [(1, 900.0), (2, 600.0), (3, 30.0)]:
        decision = Decision(pool="mail", at_s=now_s, target_workers=target_workers, binding="idle", running_workers=1)
        seed.decision(decision, ago_s=ago_s)
    async with transaction(engine) as conn:
        rows = await read_target_history(conn, pool="mail", from_s=now_s - 60)
        assert [row.target_workers for row in rows] == [2, 3]
        assert now_s <= rows[0].at_s + 600 <= time.time()
        assert rows[0] == TargetRow(at_s=rows[0].at_s, target_workers=2, running_workers=1, starting_workers=0)
        assert await read_targets(conn) == {"mail": 3}


async def test_hosts_are_read_with_their_workers_and_their_last_report(engine: Engine, seed: Seed) -> None:
    began_s = time.time()
    seed.host("b", reported_ago_s=20.0)
    seed.host("a", lease_s=-1.0)
    seed.worker("b", "mail", 1)
    async with transaction(engine) as conn:
        first, second = await read_hosts(conn)
    assert (first.host.name, first.host.is_known, first.host.workers) == ("a", False, ())
    assert (second.host.name, second.host.is_known, len(second.host.workers)) == ("b", True, 1)
    assert second.reported_at_s is not None
    assert began_s <= second.reported_at_s + 20 <= time.time()


async def test_a_new_installation_has_no_leader_and_no_pipeline(engine: Engine) -> None:
    async with transaction(engine) as conn:
        health = await read_health(conn)
    assert (health.leader_age_s, health.pipelines) == (None, ())


async def test_how_long_no_queue_of_a_profile_was_read_is_known_once_one_was(engine: Engine, seed: Seed) -> None:
    """A queue that nobody is responsible for says nothing of the collectors."""
    seed.profile(MAIL)
    seed.sample("redis/stray", at_s=1000.0)
    async with transaction(engine) as conn:
        assert (await read_health(conn)).read_ages_s == {}
    seed.sample("redis/mail", at_s=1000.0)
    seed.execute("update queue_samples set received_at = now() - interval '5 minutes' where queue = 'redis/mail'")
    async with transaction(engine) as conn:
        assert (await read_health(conn)).read_ages_s["redis"] == pytest.approx(300.0, abs=60.0)
