"""Ticks on a database that was restored: it knows of its hosts what was long ago, and they report what they run."""

import json
from typing import Any

from control.ticks import TEMPLATE, Database, leading

BACKUP = 3
"""The epoch of the last leader that the backup knows."""


class Restored(Database):
    """A backup of some minutes ago, in which the worker of a pinned pool is on host a; it is on b by now."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.run(f"update leader_epoch set epoch = {BACKUP}")
        self.run("update leader_heartbeat set renewed_at = now() - interval '5 minutes'")
        for name in ("a", "b"):
            self.host(name)
            self.run(
                f"update hosts set epoch_seen = {BACKUP}, assignment_epoch = {BACKUP}, assignment_revision = 8, "
                "reported_at = now() - interval '5 minutes', lease_ends_at = now() - interval '4 minutes 30 seconds'"
            )
        self.run(
            "insert into assignments (pool, host_id, template, base_workers, epoch, revision, is_exclusive) "
            f"values ('mail', 'a', 'mail', 1, {BACKUP}, 8, true)"
        )
        self.worker("a")

    def worker(self, host: str, pool: str = "mail") -> None:
        self._connection.execute(
            "insert into workers (worker_id, host_id, pool, template, pid, state, started_at) "
            "values (%s, %s, %s, 'mail', 7, 'running', now())",
            [f"{pool}-{host}", host, pool],
        )

    def reports(self, host: str, *pools: str, epoch_seen: int) -> None:
        """The host reports that it runs these pools' workers, one each, and no others."""
        self._connection.execute("delete from workers where host_id = %s", [host])
        self._connection.execute(
            "update hosts set reported_at = now(), lease_ends_at = now() + interval '45 seconds', epoch_seen = %s, "
            "templates = %s where host_id = %s",
            [epoch_seen, json.dumps([TEMPLATE]), host],
        )
        for pool in pools:
            self.worker(host, pool)

    def orders(self) -> dict[str, Any]:
        """Host -> epoch of its orders."""
        return dict(self._connection.execute("select host_id, assignment_epoch from hosts").fetchall())


async def test_a_pinned_worker_that_has_moved_since_the_backup_stays_where_it_is(migrated_url: str) -> None:
    database = Restored(migrated_url)
    database.profile(pinned=1)
    lost = BACKUP + 5
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.orders() == {"a": BACKUP, "b": BACKUP}, "nobody is told before he has told"

        database.reports("a", epoch_seen=lost)
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {}, "on b, which is silent, it may run: it is started nowhere"
        assert database.orders() == {"a": epoch, "b": BACKUP}

        database.reports("b", "mail", epoch_seen=lost)
        for _ in range(3):
            await ticker.tick(epoch=epoch, is_all_due=True)
            assert database.assigned() == {("mail", "b"): 1}
        assert database.orders() == {"a": epoch, "b": epoch}
    database.close()


async def test_a_pinned_worker_is_started_once_every_host_has_reported_that_it_runs_nowhere(migrated_url: str) -> None:
    database = Restored(migrated_url)
    database.profile(pinned=1)
    async with leading(migrated_url) as (ticker, epoch):
        for host in ("a", "b"):
            database.reports(host, epoch_seen=BACKUP + 5)
            await ticker.tick(epoch=epoch, is_all_due=True)
        assert sum(database.assigned().values()) == 1
    database.close()


async def test_after_a_crash_that_lost_nothing_no_host_receives_anything_anew(migrated_url: str) -> None:
    database = Restored(migrated_url)
    database.profile(pinned=1)
    async with leading(migrated_url) as (ticker, epoch):
        for host, pools in (("a", ("mail",)), ("b", ())):
            database.reports(host, *pools, epoch_seen=BACKUP)
            await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {("mail", "a"): 1}
        assert database.orders() == {"a": BACKUP, "b": BACKUP}
    database.close()


async def test_an_ordinary_pool_goes_on_from_what_runs_and_is_brought_to_its_target(migrated_url: str) -> None:
    database = Restored(migrated_url)
    database.profile(workers_min=2, workers_max=2)
    async with leading(migrated_url) as (ticker, epoch):
        database.reports("b", "mail", epoch_seen=BACKUP + 5)
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned()["mail", "b"] >= 1
        database.reports("a", epoch_seen=BACKUP + 5)
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert sum(database.assigned().values()) == 2
        assert database.orders() == {"a": epoch, "b": epoch}
    database.close()


async def test_an_undecided_host_receives_no_empty_assignment_before_its_report(
    migrated_url: str,
) -> None:
    """It was forgotten and came back with its workers just before the lead, and perhaps the database, changed."""
    database = Restored(migrated_url)
    database.profile(pool="other")
    database.run("update hosts set assignment_epoch = 0, assignment_revision = 0 where host_id = 'b'")
    database.run("update hosts set lease_ends_at = now() + interval '20 seconds' where host_id = 'b'")
    database.worker("b", "other")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.revision_of("b") == 0

        database.reports("b", "other", epoch_seen=0)
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned()["other", "b"] == 1
        assert database.revision_of("b") == 1
    database.close()
