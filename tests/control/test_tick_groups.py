"""Ticks with groups: pools share a cap, decisions say which, and rows say that no two of one place may exist."""

import json

from control.ticks import LATE, Database, leading


def grouped(database: Database, cap: int, *pools: str, name: str = "database") -> None:
    body = json.dumps({"workers_max": cap, "pools": pools})
    database.run(f"insert into groups (name, body) values ('{name}', '{body}')")


def pools(database: Database) -> None:
    for pool in ("mail", "news"):
        database.profile(pool)
        database.bucket(pool, **LATE)
    database.host()


async def test_pools_of_a_group_get_no_more_than_its_cap_together(migrated_url: str, database: Database) -> None:
    pools(database)
    grouped(database, 5, "mail", "news")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert sum(database.assigned().values()) == 5
    assert {binding for _, _, binding in database.decisions()} == {"group_share"}
    uses = database.read("select body -> 'groups' from decisions where pool = 'news'")
    assert uses == [{"name": "database", "cap": 5, "is_in_slots": False, "taken_by_others": 3, "is_binding": True}]
    assert database.read("select bool_and(is_exclusive) from assignments") is True


async def test_a_new_group_and_its_end_hold_from_the_next_tick_on(migrated_url: str, database: Database) -> None:
    pools(database)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert sum(database.assigned().values()) == 8
        assert database.read("select bool_or(is_exclusive) from assignments") is False
        grouped(database, 6, "mail", "news")
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert sum(database.assigned().values()) == 6
        database.run("delete from groups")
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert sum(database.assigned().values()) == 8
        assert database.read("select bool_or(is_exclusive) from assignments") is False
