"""Ticks on a real Postgres while hosts go silent, come back, are cordoned and drain."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from control.ticks import LATE, Database, leading
from headway.scaling.model import Host, Mode, Objective
from headway.scaling.profile import profile_to_mapping
from headway.store.engine import Connection, create_engine, transaction
from headway.store.pools import evaluation_io
from store.reporting import read_assignments
from support.pools import profile


@pytest.fixture
async def database(migrated_url: str) -> AsyncIterator[Database]:
    database = Database(migrated_url)
    yield database
    database.close()


async def tick(url: str) -> None:
    async with leading(url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)


def worker(database: Database, host: str, name: str = "w") -> None:
    database.run(
        "insert into workers (worker_id, host_id, pool, template, pid, state, started_at) "
        f"values ('{name}', '{host}', 'mail', 'mail', 1, 'running', now())"
    )


def lease(database: Database, host: str, *, ends_in_s: int) -> None:
    database.run(f"update hosts set lease_ends_at = now() + interval '{ends_in_s} s' where host_id = '{host}'")


async def test_a_lost_host_keeps_its_assignment_and_loses_nothing_by_coming_back(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host("a")
    database.bucket(**LATE)
    await tick(migrated_url)
    assert database.assigned() == {("mail", "a"): 4}
    assigned_row = database.revision_of("a")
    lease(database, "a", ends_in_s=-5)
    database.host("b")
    await tick(migrated_url)
    assert database.assigned() == {("mail", "a"): 4, ("mail", "b"): 4}
    assert database.revision_of("a") == assigned_row


async def test_a_pinned_worker_of_a_lost_host_is_neither_started_twice_nor_stopped_when_it_is_back(
    migrated_url: str, database: Database
) -> None:
    database.profile(workers_min=1, workers_max=1, pinned=1)
    database.host("a")
    database.bucket()
    await tick(migrated_url)
    assigned_row = database.revision_of("a")
    database.host("b")
    for ends_in_s in (-5, 3600):
        lease(database, "a", ends_in_s=ends_in_s)
        await tick(migrated_url)
        assert database.assigned() == {("mail", "a"): 1}
    assert database.revision_of("a") == assigned_row


async def test_what_a_pinned_pool_runs_is_marked_exclusive_for_as_long_as_it_is_pinned(
    migrated_url: str, database: Database
) -> None:
    database.host("a")
    database.bucket()
    engine = create_engine(migrated_url)
    for pinned in (1, None, 1):
        database.run("delete from profiles")
        database.profile(workers_min=1, workers_max=1, pinned=pinned)
        before = database.revision_of("a")
        await tick(migrated_url)
        async with transaction(engine) as connection:
            (assigned_row,) = (await read_assignments(connection, "a")).assignments
        assert (assigned_row.base_workers, assigned_row.is_exclusive) == (1, pinned is not None)
        assert database.revision_of("a") > before  # so that its agent hears of it
    await engine.dispose()


async def test_what_a_host_runs_that_nobody_decided_about_is_taken_over_as_it_is(
    migrated_url: str, database: Database
) -> None:
    database.profile(workers_min=1, workers_max=1, pinned=1)
    database.host("a")
    database.host("b")
    worker(database, "b")
    database.bucket()
    await tick(migrated_url)
    assert database.assigned() == {("mail", "b"): 1}
    assert database.revision_of("b") == 1  # it is told, so that it is sure


async def test_an_undecided_host_receives_an_empty_assignment_too(migrated_url: str, database: Database) -> None:
    """It was forgotten, replaced, and is back: its agent may act on the earlier assignment until the next."""
    database.profile(workers_min=1, workers_max=1, pinned=1)
    database.host("b")
    database.bucket()
    await tick(migrated_url)
    database.host("a")
    for _ in range(2):
        await tick(migrated_url)
        assert database.assigned() == {("mail", "b"): 1}
        assert (database.revision_of("a"), database.revision_of("b")) == (1, 1)


async def test_what_a_host_runs_of_a_pool_that_is_only_advised_is_neither_ended_nor_added_to(
    migrated_url: str, database: Database
) -> None:
    database.profile(workers_min=3, mode=Mode.RECOMMEND)
    database.host("a")
    worker(database, "a")
    database.bucket()
    for _ in range(2):
        await tick(migrated_url)
        assert database.assigned() == {("mail", "a"): 1}
        assert database.revision_of("a") == 1


async def test_what_a_forgotten_host_still_runs_is_stopped_where_it_was_replaced(
    migrated_url: str, database: Database
) -> None:
    database.profile(workers_min=1, workers_max=1, pinned=1)
    database.host("b")
    database.bucket()
    await tick(migrated_url)
    database.host("a")
    worker(database, "a")
    await tick(migrated_url)
    assert sum(database.assigned().values()) == 1
    assert database.revision_of("a") == 1


async def test_a_cordoned_host_keeps_what_runs_and_gets_nothing_new(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host("a")
    database.bucket(**LATE)
    await tick(migrated_url)
    database.run("update hosts set state = 'cordoned'")
    database.host("b")
    database.bucket(**{**LATE, "waiting_jobs": 9}, at_s=1_000_005.0)
    await tick(migrated_url)
    assigned = database.assigned()
    assert (assigned["mail", "a"], sum(assigned.values())) == (4, 9)


async def test_workers_of_a_draining_host_are_placed_elsewhere_first(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host("a")
    database.bucket(**LATE)
    await tick(migrated_url)
    database.run("update hosts set state = 'draining'")
    database.host("b")
    await tick(migrated_url)
    assert database.assigned() == {("mail", "a"): 4, ("mail", "b"): 4}
    for number in range(4):
        worker(database, "b", f"w{number}")
    await tick(migrated_url)
    assert database.assigned() == {("mail", "b"): 4}


async def test_a_host_that_changes_while_a_tick_reads_is_seen_as_it_was_throughout(
    migrated_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known by one statement and without workers by the one before, it would lose them: unknown taken for zero."""
    database.profile(workers_min=1, workers_max=1, pinned=1)
    database.host("a")
    lease(database, "a", ends_in_s=-5)
    read = evaluation_io.load_hosts

    async def meanwhile(connection: Connection) -> tuple[Host, ...]:
        before = await read(connection)
        worker(database, "a")
        lease(database, "a", ends_in_s=3600)
        after = await read(connection)
        assert before == after
        assert [(host.is_known, host.workers) for host in after] == [(False, ())]
        return after

    monkeypatch.setattr(evaluation_io, "load_hosts", meanwhile)
    engine = create_engine(migrated_url)
    gathered = await evaluation_io.gather(engine, revision=0, from_s=0.0)
    await engine.dispose()
    assert (gathered.assignments, gathered.undecided) == ((), frozenset())


async def test_a_host_that_is_forgotten_while_a_tick_decides_costs_no_tick(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    for host in ("a", "b"):
        database.host(host)
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        decide = ticker._evaluation.evaluate

        def meanwhile(*args: Any, **kwargs: Any) -> Any:
            decided = decide(*args, **kwargs)
            database.run("delete from hosts where host_id = 'a'")
            return decided

        ticker._evaluation.evaluate = meanwhile  # type: ignore[method-assign]
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "b"): 2}


@pytest.mark.parametrize(
    ("orders", "decided"),
    [
        (['{"queue_order": "strict", "strict_queues": ["urgent", "mail"]}'], ("strict", 4 + 9)),
        (['{"queue_order": "strict", "strict_queues": ["mail", "urgent"]}'], ("strict", 4)),
        (['{"queue_order": "in_turn"}', '{"queue_order": "in_turn"}'], ("in_turn", 4 + 8)),
        (['{"queue_order": "in_turn"}', "{}"], ("in_turn", 4 + 8)),  # no worker has run on the second yet
        (['{"queue_order": "in_turn"}', '{"queue_order": "random"}'], (None, 4 + 9)),
        (['{"queue_order": "of a later version"}'], (None, 4 + 9)),
        (["{}"], (None, 4 + 9)),
    ],
)
async def test_a_pool_is_decided_by_the_order_that_its_hosts_report(
    orders: list[str], decided: tuple[str | None, int], migrated_url: str, database: Database
) -> None:
    """Four of ``mail`` are late, behind nine of ``urgent`` that may wait; a slot each, for no job has finished yet."""
    queues = ("redis/mail", "redis/urgent")
    late = {"redis/mail": Objective(target_s=10.0)}
    waiting = profile(queues=queues, objective=Objective(target_s=3_600.0), member_objectives=late)
    database.body("mail", profile_to_mapping(waiting))
    for position, name in enumerate(queues):
        database.run(f"insert into profile_queues values ('{name}', 'mail', {position})")
    for number, order in enumerate(orders):
        database.host(f"host-{number}", cpu_cores=100.0)
        merged = f"jsonb_build_array(templates->0 || '{order}')"
        database.run(f"update hosts set templates = {merged} where host_id = 'host-{number}'")
    database.bucket(waiting_jobs=4, oldest_age_s=60.0)
    database.bucket("urgent", waiting_jobs=9)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    order = database.read("select body -> 'queue_order' from decisions")
    drain = database.read(
        "select max((each ->> 'slots')::float) from decisions, jsonb_array_elements(body -> 'demands') as each "
        "where each ->> 'name' = 'backlog_drain'"
    )
    assert (order, drain) == decided


async def test_without_evaluations_no_host_was_silent(migrated_url: str, database: Database) -> None:
    """Postgres's clock was set on, or its machine and the leader's stood still: no report could arrive meanwhile."""
    database.profile(workers_min=1, workers_max=1, pinned=1)
    database.host("a", lease_s=45.0)
    database.run(
        "update hosts set templates = jsonb_build_array(templates->0 || "
        '\'{"isolation_drain_after_s": 10, "drain_timeout_s": 10}\')'
    )
    database.bucket()
    async with leading(migrated_url) as (ticker, epoch):
        database.run("update hosts set reported_at = now()")
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {("mail", "a"): 1}
        # Ten minutes, all at once.
        ticker._evaluated_until_s -= 600.0  # type: ignore[operator]
        database.run(
            "update hosts set reported_at = reported_at - interval '10 min', "
            "lease_ends_at = lease_ends_at - interval '10 min'"
        )
        database.run("update leader_epoch set taken_at = taken_at - interval '10 min'")
        database.host("b")  # the first to be heard again
        for _ in range(2):
            await ticker.tick(epoch=epoch, is_all_due=True)
            assert database.assigned() == {("mail", "a"): 1}
        ages_s = database.read("select jsonb_object_agg(host_id, extract(epoch from now() - reported_at)) from hosts")
    assert max(ages_s.values()) < 300.0
    assert min(ages_s.values()) >= 0.0


async def test_where_the_clock_was_set_on_for_weeks_decisions_are_stored_at_once(
    migrated_url: str, database: Database
) -> None:
    """Upkeep makes the days ahead every ten minutes; of a week that was skipped it has made none."""
    database.profile()
    database.host("a")
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=False)
        ticker._evaluated_until_s -= 86_400.0 * 20  # type: ignore[operator]
        of_decisions = "from pg_inherits where inhparent = 'decisions'::regclass"
        days = database.read(f"select string_agg(inhrelid::regclass::text, ', ') {of_decisions}")
        database.run(f"drop table {days}")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions() == [("mail", 4, "backlog_drain")]


async def test_a_restart_goes_from_host_to_host(migrated_url: str, database: Database) -> None:
    database.profile(workers_min=4)
    database.host("a")
    database.host("b")
    database.bucket()
    await tick(migrated_url)
    assert database.assigned() == {("mail", "a"): 2, ("mail", "b"): 2}
    for number, host in enumerate("aabb"):
        worker(database, host, f"w{number}")
    database.run("update profiles set restart_generation = 3")
    await tick(migrated_url)
    generations = "select jsonb_object_agg(host_id, restart_generation) from assignments"
    assert database.read(generations) == {"a": 3, "b": 0}
    database.run("update workers set restart_generation = 3 where host_id = 'a'")
    await tick(migrated_url)
    assert database.read(generations) == {"a": 3, "b": 3}


async def test_what_has_no_place_is_stored_as_hosts_that_are_missing_and_goes_with_the_shortage(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host("a", cpu_cores=0.2)  # two workers
    database.bucket(**LATE)
    await tick(migrated_url)
    (wanted,) = database.read("select body from hosts_wanted")
    assert (wanted["hosts"], wanted["workers"]) == (1, 2)
    version = database.read("select xmin::text from hosts_wanted")
    await tick(migrated_url)
    assert database.read("select xmin::text from hosts_wanted") == version
    database.host("b", cpu_cores=0.2)
    await tick(migrated_url)
    assert database.read("select body from hosts_wanted") == []
