"""What Postgres keeps of pools, as jobs to play again."""

import json

import psycopg
import pytest

from headway.cli.backtesting.history_source import Asked, past_of
from headway.scaling.measure import sketch_index
from headway.scaling.profile import Profile
from support.seed import Seed

NOW_S = 1_760_000_040.0
MAIL = Profile(pool="mail", queues=("redis/mail", "redis/news"), template="rq", workers_max=7)
IDLE = Profile(pool="idle", queues=("redis/idle",), template="rq")


def took(service_s: float, jobs: int) -> str:
    return json.dumps({sketch_index(service_s): jobs})


def test_both_queues_of_a_pool_are_played_and_minutes_hold_what_is_no_longer_known_by_5_s(
    migrated_url: str, seed: Seed
) -> None:
    seed.profile(MAIL)
    seed.profile(IDLE)
    seed.bucket("redis/mail", at_s=NOW_S, arrived_jobs=3, service_sketch=took(2.0, 3))
    seed.bucket("redis/news", at_s=NOW_S + 5, arrived_jobs=2)
    minute_s = NOW_S // 60 * 60 - 7200
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute(
            "insert into rollup_minutes (queue, bucket_s, arrived_jobs, service_sketch) values (%s, %s, 4, %s)",
            ["redis/mail", minute_s, took(2.0, 4)],
        )
        connection.execute("update rollup_progress set minutes_until_s = %s", [minute_s + 60])
    past = past_of(Asked(database_url=migrated_url))
    (load,) = past.loads
    assert load.pool == "mail"
    assert past.profiles["mail"].workers_max == 7
    came_s = [load.begins_at_s + at_s for at_s in load.jobs.at_s]
    assert [minute_s <= at_s < minute_s + 60 for at_s in came_s] == [True] * 4 + [False] * 5
    assert [NOW_S // 5 * 5 <= at_s < NOW_S + 10 for at_s in came_s[4:]] == [True] * 5
    assert list(load.jobs.service_s) == pytest.approx([2.0] * 9, rel=0.01)
    assert "no job of pool 'idle' arrived" in past.skipped["idle"]
