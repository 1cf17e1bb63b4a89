"""Beside what scales today: decided as always, with the workers that the broker lists, and nothing is assigned."""

from control.ticks import LATE, Database, leading
from support.pools import NOW_S

PRESENT = "select body -> 'running_workers', body -> 'is_running_known', body ->> 'mode' from decisions"


def sampled(database: Database, listed: int | None, *, age_s: float = 1.0) -> None:
    workers = "null" if listed is None else listed
    database.run(
        "insert into queue_samples (queue, sampled_at_s, waiting_jobs, listed_workers) "
        f"values ('redis/mail', {NOW_S - age_s}, 0, {workers})"
    )


async def decided(url: str, database: Database) -> list[object]:
    async with leading(url, recommends_only=True) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    return [database.read(f"select {column} from ({PRESENT}) as it(a, b, c)") for column in ("a", "b", "c")]


async def test_nothing_is_assigned_though_the_profile_acts_and_a_host_has_room(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    sampled(database, 3)
    assert await decided(migrated_url, database) == [3, True, "recommend"]
    assert database.assigned() == {}
    assert database.revision_of() == 0
    assert database.decisions() == [("mail", 4, "backlog_drain")]


async def test_what_was_assigned_before_stays_as_it_was(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    before = database.assigned(), database.revision_of()
    database.run("delete from profiles")
    async with leading(migrated_url, recommends_only=True) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert (database.assigned(), database.revision_of()) == before


async def test_workers_that_the_broker_does_not_list_are_not_known(migrated_url: str, database: Database) -> None:
    database.profile()
    database.bucket(**LATE)
    sampled(database, None)
    assert (await decided(migrated_url, database))[1] is False
