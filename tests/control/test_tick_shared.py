"""Ticks on queues that workers of two pools take from: what agents report of their jobs says whose job each is."""

import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from control.ticks import Database, leading
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision, NoteKind
from support.pools import NOW_S

POOLS = {"default": {"workers_max": 2}, "images": {"helps": ("redis/default",)}}


class Shared(Database):
    """Pool default at its maximum of two workers, and workers of pool images that help."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._rows = psycopg.connect(url, autocommit=True)

    def close(self) -> None:
        self._rows.close()
        super().close()

    def pools(self, *names: str, images: Any = None) -> None:
        for pool in names:
            self.profile(pool, **POOLS[pool])
        self.host()
        self.bucket("default", waiting_jobs=20, oldest_age_s=30.0, in_flight_jobs=5)
        self.bucket("images", **(images or {}))

    def workers(self, pool: str, *jobs: str | None, source: str | None = "reporter") -> None:
        """Running workers of ``pool``, each with a job of the queue that is named, or idle."""
        for number, queue in enumerate(jobs):
            running = [{"job_id": f"{pool} {number}", "queue": queue, "started_at_s": NOW_S - 30.0}] if queue else []
            self._rows.execute(
                """
                insert into workers (worker_id, host_id, pool, template, pid, state, started_at, state_since,
                    is_busy, running_jobs, activity_source, activity_age_s, running)
                values (%s, 'a', %s, 'mail', %s, 'running', now() - interval '1 hour', now() - interval '1 hour',
                    %s, %s, %s, 0, %s)
                """,
                [
                    f"{pool}-{number}",
                    pool,
                    1000 * len(pool) + number,
                    None if source is None else queue is not None,
                    None if source is None else len(running),
                    source,
                    json.dumps(running if source else []),
                ],
            )
        self._rows.execute(
            "insert into assignments (pool, host_id, template, base_workers, epoch, revision) "
            "values (%s, 'a', 'mail', %s, 1, 1)",
            [pool, len(jobs)],
        )

    async def ticked(self, url: str) -> dict[str, Decision]:
        async with leading(url) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
        rows = self._rows.execute("select pool, body from decisions order by decided_at").fetchall()
        return {pool: from_mapping(Decision, body) for pool, body in rows}


@pytest.fixture
async def database(migrated_url: str) -> AsyncIterator[Shared]:
    database = Shared(migrated_url)
    yield database
    database.close()


@pytest.mark.parametrize("order", [("default", "images"), ("images", "default")])
async def test_a_helpers_workers_are_kept_and_the_owner_counts_its_own(
    database: Shared, migrated_url: str, order: tuple[str, str]
) -> None:
    database.pools(*order)
    database.workers("default", "default", "default")
    database.workers("images", "default", "default", "default", None, None)
    decisions = await database.ticked(migrated_url)
    owner, helper = decisions["default"], decisions["images"]
    assert owner.target_workers == 2
    assert owner.metrics[0].in_flight_jobs == 2
    assert "3 more jobs of redis/default run on workers of pool images." in explained(owner)
    assert (helper.target_workers, helper.binding) == (3, "helping")
    assert max(each.slots for each in helper.demands) == 0
    assert "3 of 5 workers help: they run 3 jobs of redis/default (pool default)." in explained(helper)
    assert database.assigned() == {("default", "a"): 2, ("images", "a"): 3}


async def test_help_that_no_worker_reports_is_a_bound_of_the_owner(database: Shared, migrated_url: str) -> None:
    database.pools("default", "images")
    database.workers("default", "default", "default")
    database.workers("images", "default", "default", "default", source=None)
    owner = (await database.ticked(migrated_url))["default"]
    assert owner.metrics[0].in_flight_jobs == 5
    assert owner.note_of(NoteKind.UNREPORTED_HELP) is not None
    (shared,) = owner.helped
    assert (shared.jobs, shared.most_jobs, shared.is_reported) == (0, 3, False)


async def test_a_profile_that_cannot_be_read_helps_nobody_and_touches_no_other_pool(
    database: Shared, migrated_url: str
) -> None:
    """Law 10: its workers' jobs count as the owner's, as if nobody had reported them."""
    database.pools("default", "images")
    database.workers("default", "default", "default")
    database.workers("images", "default", "default", "default")
    database.run("update profiles set body = body || '{\"workers_max\": \"many\"}' where pool = 'images'")
    decisions = await database.ticked(migrated_url)
    assert decisions.keys() == {"default"}
    assert decisions["default"].metrics[0].in_flight_jobs == 5
    assert database.assigned()["images", "a"] == 3


async def test_a_helper_that_waits_for_its_own_job_starts_one_beside_those_that_help(
    database: Shared, migrated_url: str
) -> None:
    database.pools("default", "images", images={"waiting_jobs": 1, "oldest_age_s": 9.5})
    database.workers("default", "default", "default")
    database.workers("images", "default", "default")
    decisions = await database.ticked(migrated_url)
    assert decisions["images"].target_workers == 3
