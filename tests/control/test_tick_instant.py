"""Ticks on what hosts and brokers said at different moments: nobody leaves for having come, or begun, too lately."""

import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from control.ticks import Database, leading
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision
from support.pools import NOW_S

SAMPLED_AGO_S = 1.0
WAITS: Any = {"waiting_jobs": 1, "oldest_age_s": 2.0}  # of an objective of 10 s


class Worked(Database):
    """With workers, as agents and collectors report them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._rows = psycopg.connect(url, autocommit=True)

    def close(self) -> None:
        self._rows.close()
        super().close()

    def worker(self, number: int, *, ready_ago_s: float, begun_ago_s: float | None = None) -> None:
        """A running worker of the pool ``mail``, assigned to the host ``a``; what it began is the broker's word."""
        self._rows.execute(
            """
            insert into workers
                (worker_id, host_id, pool, template, pid, state, is_busy, started_at, state_since)
            values (%s, 'a', 'mail', 'mail', %s, 'running', %s, now() - interval '1 hour',
                now() - make_interval(secs => %s))
            """,
            [f"w{number}", number, begun_ago_s is not None, ready_ago_s],
        )
        if begun_ago_s is not None:
            self._rows.execute(
                "insert into worker_activities (host_name, pid, is_busy, busy_since_s) values ('a', %s, true, %s)",
                [number, NOW_S - begun_ago_s],
            )

    def reports(self, number: int, *, begun_ago_s: float) -> None:
        """A worker has named a job that it runs, a moment ago."""
        job = {"job_id": f"{number}", "queue": "mail", "started_at_s": NOW_S - begun_ago_s}
        self._rows.execute(
            "update workers set is_busy = true, running_jobs = 1, activity_source = 'reporter', activity_age_s = 0, "
            "running = %s where pid = %s",
            [json.dumps([job]), number],
        )

    def offers(self, *, slots: int) -> None:
        """A worker of the host has so many slots."""
        self._rows.execute(
            "update hosts set templates = jsonb_set(templates, '{0,slots}', to_jsonb(%s::integer))", [slots]
        )

    def runs(self, number: int, *, jobs: int) -> None:
        """So many jobs of a worker have begun, by its broker."""
        self._rows.execute("update worker_activities set running_jobs = %s where pid = %s", [jobs, number])

    def sample(self, *, at_s: float, **known: int) -> None:
        """The newest reading of the queue of the pool ``mail``, straight from ingest."""
        names = ", ".join(("queue", "sampled_at_s", "waiting_jobs", *known))
        places = ", ".join(["%s"] * (3 + len(known)))
        self._rows.execute(
            f"insert into queue_samples ({names}) values ({places})", ["redis/mail", at_s, 0, *known.values()]
        )

    def forget_activities(self) -> None:
        """Nobody knows any more what workers do."""
        self._rows.execute("update workers set is_busy = null")
        self._rows.execute("delete from worker_activities")

    def assign(self, workers: int) -> None:
        self._rows.execute(
            "insert into assignments (pool, host_id, template, base_workers, epoch, revision) "
            "values ('mail', 'a', 'mail', %s, 1, 1)",
            [workers],
        )
        memory = {"version": 1, "target_workers": workers, "wanted": []}
        self._rows.execute(
            "insert into pool_states (pool, target_workers, memory, epoch) values ('mail', %s, %s, 1)",
            [workers, json.dumps(memory)],
        )

    def decision(self) -> Any:
        return from_mapping(Decision, self.read("select body from decisions order by decided_at desc limit 1"))


@pytest.fixture
async def worked(migrated_url: str) -> AsyncIterator[Worked]:
    database = Worked(migrated_url)
    database.profile()
    database.host()
    yield database
    database.close()


async def ticked(url: str) -> None:
    async with leading(url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)


async def test_a_worker_that_became_ready_after_the_sample_still_counts_as_what_it_was_started_for(
    migrated_url: str, worked: Worked
) -> None:
    """The sample cannot show whether it took the job that it was started for."""
    sampled_ago_s = 8.0  # between this and the worker's start lies more than a tick of a busy machine takes
    worked.bucket(at_s=NOW_S - sampled_ago_s, **WAITS)
    worked.worker(1, ready_ago_s=sampled_ago_s / 8)
    worked.assign(1)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.running_workers, decision.starting_workers) == (0, 1)
    assert (decision.target_workers, decision.binding) == (1, "work_in_progress")
    assert worked.assigned() == {("mail", "a"): 1}


async def test_a_worker_that_was_ready_before_the_sample_runs(migrated_url: str, worked: Worked) -> None:
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, **WAITS)
    worked.worker(1, ready_ago_s=SAMPLED_AGO_S * 2)
    worked.assign(1)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.running_workers, decision.starting_workers) == (1, 0)


async def test_an_idle_worker_stays_while_jobs_wait_though_they_have_time(migrated_url: str, worked: Worked) -> None:
    """Without a `ready_pattern` a worker counts as ready while it still imports what its jobs need."""
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, **WAITS)
    worked.worker(1, ready_ago_s=4.0)
    worked.assign(1)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.running_workers, decision.target_workers) == (1, 1)


async def test_a_worker_that_began_a_job_after_the_sample_stays(migrated_url: str, worked: Worked) -> None:
    """In the sample nothing waits and nothing is at work; the broker has said since that a worker is."""
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S)
    worked.worker(1, ready_ago_s=60.0, begun_ago_s=SAMPLED_AGO_S / 2)
    worked.worker(2, ready_ago_s=60.0)
    worked.assign(2)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.target_workers, decision.binding) == (1, "work_in_progress")


async def test_a_worker_that_began_its_job_before_the_sample_is_in_it(migrated_url: str, worked: Worked) -> None:
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S)  # where it has ended since
    worked.worker(1, ready_ago_s=60.0, begun_ago_s=SAMPLED_AGO_S * 2)
    worked.assign(1)
    await ticked(migrated_url)
    assert worked.decision().target_workers == 0


async def test_a_job_that_its_worker_reports_runs_though_the_broker_does_not_count_it(
    migrated_url: str, worked: Worked
) -> None:
    """A broker whose heartbeats are late counts one of two jobs; both workers have named theirs."""
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, in_flight_jobs=1)
    for number in (1, 2):
        worked.worker(number, ready_ago_s=60.0)
        worked.reports(number, begun_ago_s=30.0)
    worked.assign(2)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.target_workers, decision.binding) == (2, "work_in_progress")


async def test_the_job_of_a_worker_whose_report_is_late_counts_once(migrated_url: str, worked: Worked) -> None:
    """The sample shows a job of a worker that still starts by its host's last word: one worker is enough."""
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, in_flight_jobs=1)
    worked.worker(1, ready_ago_s=SAMPLED_AGO_S * 2)
    worked.run("update workers set state = 'starting'")
    worked.assign(1)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.running_workers, decision.starting_workers, decision.target_workers) == (1, 0, 1)


async def test_workers_without_a_job_leave_where_the_depth_is_all_that_is_known(
    migrated_url: str, worked: Worked
) -> None:
    """Who has a job is what their agents report: one of three has."""
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, oldest_age_s=None, in_flight_jobs=None)
    worked.worker(1, ready_ago_s=60.0)
    worked.worker(2, ready_ago_s=60.0)
    worked.worker(3, ready_ago_s=60.0, begun_ago_s=30.0)
    worked.assign(3)
    await ticked(migrated_url)
    decision = worked.decision()
    assert decision.target_workers == 1
    assert decision.metrics[0].arrival_rate_per_s is None


async def test_slots_of_a_worker_are_busy_as_its_broker_counts_them(migrated_url: str, worked: Worked) -> None:
    """Of two workers with four slots, one runs two jobs; of the other nothing is said, and it has a job."""
    worked.offers(slots=4)
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, oldest_age_s=None, in_flight_jobs=None)
    worked.worker(1, ready_ago_s=60.0, begun_ago_s=30.0)
    worked.worker(2, ready_ago_s=60.0, begun_ago_s=30.0)
    worked.runs(1, jobs=2)
    worked.assign(2)
    await ticked(migrated_url)
    demands = {each.name: each.slots for each in worked.decision().demands}
    assert demands["work_in_progress"] == 2 + 4


async def test_workers_of_which_nobody_knows_what_they_do_are_work_and_leave_one_at_a_time(
    migrated_url: str, worked: Worked
) -> None:
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, in_flight_jobs=None)
    worked.sample(at_s=NOW_S - SAMPLED_AGO_S / 2, in_flight_min_jobs=1)
    for number in (1, 2, 3):
        worked.worker(number, ready_ago_s=60.0)
    worked.forget_activities()
    worked.assign(3)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.target_workers, decision.binding) == (2, "may_be_busy")
    assert (decision.metrics[0].in_flight_jobs, decision.metrics[0].in_flight_min_jobs) == (None, 1)


async def test_a_broker_that_lists_fewer_workers_than_run_does_not_know_that_none_works(
    migrated_url: str, worked: Worked
) -> None:
    """Two of three publish that they are idle; the third may have taken any job."""
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S)
    worked.sample(at_s=NOW_S - SAMPLED_AGO_S / 2, in_flight_jobs=0, listed_workers=2)
    for number in (1, 2, 3):
        worked.worker(number, ready_ago_s=60.0)
    worked.run("update workers set is_busy = null where worker_id = 'w3'")
    worked.assign(3)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.target_workers, decision.metrics[0].in_flight_jobs) == (1, None)


async def test_what_a_worker_has_reserved_asks_for_no_other(migrated_url: str, worked: Worked) -> None:
    worked.bucket(at_s=NOW_S - SAMPLED_AGO_S, in_flight_jobs=16, oldest_age_s=2.0)
    worked.sample(at_s=NOW_S - SAMPLED_AGO_S / 2, in_flight_jobs=16, reserved_jobs=15)
    worked.worker(1, ready_ago_s=60.0, begun_ago_s=30.0)
    worked.assign(1)
    await ticked(migrated_url)
    decision = worked.decision()
    assert (decision.target_workers, decision.metrics[0].running_jobs, decision.metrics[0].reserved_jobs) == (1, 1, 15)
