"""Enrolment, reports and what hosts are to run, on a real Postgres."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from headway.errors import Conflict, NotFound
from headway.scaling.model import (
    ActivitySource,
    Assignment,
    Exit,
    Hint,
    HostCapacity,
    QueueOrder,
    RunningJob,
    StartUp,
    Template,
    Worker,
    WorkerActivity,
    WorkerState,
)
from headway.store.engine import Connection, Engine, transaction
from headway.store.events.telemetry import upsert_activities
from headway.store.hosts.forced_kills import read_forced
from headway.store.hosts.host_reports import HostReport, Outcome, record_reports
from headway.store.hosts.hosts import Enrolment, enrol, load_hosts, read_cluster_id
from headway.store.overview import read_hosts
from store.reporting import read_assignments, record_report

NOW_S = 1_000.0  # of the receiver's clock, which only differences are taken from
TEMPLATE = Template(
    name="rq",
    content_hash="h",
    slots=2,
    cpu_cores=0.5,
    memory_bytes=1_000,
    queue_order=QueueOrder.STRICT,
    strict_queues=("urgent", "mail"),
)


@pytest.fixture
async def conn(engine: Engine) -> AsyncIterator[Connection]:
    """One transaction: ``now()`` stands still in it."""
    async with transaction(engine) as connection:
        yield connection


async def enrolled(conn: Connection, name: str = "a", *, host_id: str = "", boot_id: str = "boot") -> str:
    return await enrol(conn, Enrolment(name=name, host_id=host_id, boot_id=boot_id, agent_version="1"))


def worker(worker_id: str = "w1", **values: Any) -> Worker:
    given = {
        "pool": "mail",
        "template": "rq",
        "pid": 100,
        "state": WorkerState.RUNNING,
        "started_at_s": NOW_S - 60.0,
    }
    return Worker(worker_id=worker_id, **(given | values))


def report(host_id: str, sequence: int = 1, **values: Any) -> HostReport:
    return HostReport(
        **{
            "host_id": host_id,
            "boot_id": "boot",
            "sequence": sequence,
            "epoch_seen": 3,
            "received_at_s": NOW_S,
            "capacity": HostCapacity(cpu_cores=4.0, memory_bytes=8_000),
            **values,
        }
    )


async def until_lease_ends(conn: Connection) -> None:
    await conn.execute(text("update hosts set lease_ends_at = now() - interval '1 second'"))


# --- enrolment -------------------------------------------------------------------------------------------------------


async def test_the_same_name_keeps_its_id_and_another_gets_another(conn: Connection) -> None:
    first = await enrolled(conn, "a")
    assert await enrolled(conn, "a", host_id=first) == first
    assert await enrolled(conn, "a") == first  # the agent lost its state folder
    assert await enrolled(conn, "b") not in {"", first}


async def test_a_host_that_was_renamed_keeps_its_id(conn: Connection) -> None:
    first = await enrolled(conn, "a")
    assert await enrolled(conn, "b", host_id=first) == first
    assert [host.name for host in await load_hosts(conn)] == ["b"]


async def test_an_id_of_another_installation_means_nothing_here(conn: Connection) -> None:
    assert await enrolled(conn, "a", host_id="from-elsewhere") != "from-elsewhere"


async def test_a_name_that_another_machine_reports_under_is_refused_until_its_lease_ends(conn: Connection) -> None:
    host_id = await enrolled(conn, "a", boot_id="one")
    await record_report(conn, report(host_id, boot_id="one"))
    with pytest.raises(Conflict, match="host 'a': another machine has this name"):
        await enrolled(conn, "a", boot_id="two")
    assert await enrolled(conn, "a", boot_id="one") == host_id  # the same machine may lose its id at any time
    assert await enrolled(conn, "a", host_id=host_id, boot_id="two") == host_id  # and reboot as quickly as it likes
    await until_lease_ends(conn)
    assert await enrolled(conn, "a", boot_id="two") == host_id


async def test_a_host_cannot_take_the_name_of_another(conn: Connection) -> None:
    await enrolled(conn, "a")
    other = await enrolled(conn, "b")
    with pytest.raises(Conflict, match="another HEADWAY_HOST_NAME"):
        await enrolled(conn, "a", host_id=other)


# --- reports ---------------------------------------------------------------------------------------------------------


async def test_what_a_host_reports_is_what_is_known_of_it(conn: Connection) -> None:
    host_id = await enrolled(conn)
    (silent,) = await load_hosts(conn)
    assert (silent.is_known, silent.workers, silent.templates) == (False, (), ())
    workers = (
        worker("w1", is_busy=True, restart_generation=2),
        worker("w2", pid=0, state=WorkerState.BACKING_OFF, started_at_s=NOW_S, is_burst=True),
    )
    assert await record_report(conn, report(host_id, templates=(TEMPLATE,), workers=workers))

    (host,) = await load_hosts(conn)
    database_now_s = float((await conn.execute(text("select extract(epoch from now())"))).scalar_one())
    shift_s = database_now_s - NOW_S
    assert host.capacity == HostCapacity(cpu_cores=4.0, memory_bytes=8_000)
    assert host.templates == (TEMPLATE,)
    assert host.is_known
    seen = [
        replace(each, started_at_s=round(each.started_at_s - shift_s), state_since_s=None, state_reported_s=None)
        for each in host.workers
    ]
    assert seen == list(workers)


async def test_a_worker_that_is_gone_or_no_longer_reported_is_forgotten(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, 1, workers=(worker("w1"), worker("w2"), worker("w3"))))
    gone = worker("w2", state=WorkerState.GONE)
    await record_report(conn, report(host_id, 2, workers=(worker("w1", state=WorkerState.DRAINING), gone)))
    (host,) = await load_hosts(conn)
    assert [(each.worker_id, each.state) for each in host.workers] == [("w1", WorkerState.DRAINING)]


async def test_a_worker_ended_by_force_counts_once_however_often_it_is_reported(
    conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    host_id = await enrolled(conn)
    await conn.execute(text("insert into profiles (pool, body) values ('mail', '{}')"))
    made_up = worker("w4", pool="made up")
    await record_report(conn, report(host_id, 1, workers=(worker("w1"), worker("w2"), worker("w3"), made_up)))
    draining = worker("w1", state=WorkerState.DRAINING, is_forced=True)
    await record_report(conn, report(host_id, 2, workers=(draining, worker("w2"), worker("w3"), made_up)))
    assert await read_forced(conn) == {}
    by_force, by_itself, of_old = (
        worker(name, state=WorkerState.GONE, is_forced=is_forced)
        for name, is_forced in (("w1", True), ("w2", False), ("w3", None))
    )
    gone_made_up = worker("w4", pool="made up", state=WorkerState.GONE, is_forced=True)
    await record_report(conn, report(host_id, 3, workers=(by_force, by_force, by_itself, of_old, gone_made_up)))
    await record_report(conn, report(host_id, 4, workers=(by_force,)))  # the answer was lost
    assert await read_forced(conn) == {host_id: {"mail": 1}}
    assert [record.getMessage() for record in caplog.records if "by force" in record.getMessage()] == [
        "ended by force at the drain deadline host=a pool=mail workers=1"
    ]
    await record_report(conn, report(host_id, 5, workers=(worker("w4"),)))
    await record_report(conn, report(host_id, 6, workers=(worker("w4", state=WorkerState.GONE, is_forced=True),)))
    (row,) = await read_hosts(conn)
    assert row.forced_workers == {"mail": 2}


async def test_a_start_stays_as_it_was_first_reported(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, 1, workers=(worker(started_at_s=NOW_S - 60.0),)))
    (before,) = await load_hosts(conn)
    await record_report(conn, report(host_id, 2, workers=(worker(started_at_s=NOW_S - 58.7),)))
    (after,) = await load_hosts(conn)
    assert after.workers == before.workers


async def test_a_late_report_changes_nothing_and_one_of_a_later_boot_counts(conn: Connection) -> None:
    host_id = await enrolled(conn)
    assert await record_report(conn, report(host_id, 7, workers=(worker("w1"),)))
    assert not await record_report(conn, report(host_id, 6))
    assert not await record_report(conn, report(host_id, 7))
    (host,) = await load_hosts(conn)
    assert [each.worker_id for each in host.workers] == ["w1"]
    assert await record_report(conn, report(host_id, 1, boot_id="later"))
    (host,) = await load_hosts(conn)
    assert host.workers == ()


async def test_a_lease_holds_for_45_seconds_by_postgres_clock(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id))
    left = await conn.execute(text("select extract(epoch from lease_ends_at - now()) from hosts"))
    assert left.scalar_one() == 45
    await until_lease_ends(conn)
    (host,) = await load_hosts(conn)
    assert not host.is_known


async def test_the_highest_epoch_a_host_has_seen_never_falls(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, 1, epoch_seen=9))
    await record_report(conn, report(host_id, 2, epoch_seen=4))
    assert (await conn.execute(text("select epoch_seen from hosts"))).scalar_one() == 9


async def test_a_host_that_nobody_knows_must_enrol(conn: Connection) -> None:
    with pytest.raises(NotFound, match="must enrol again"):
        await record_report(conn, report("nobody"))
    with pytest.raises(NotFound, match="must enrol again"):
        await read_assignments(conn, "nobody")


async def test_no_host_can_touch_anothers_workers(conn: Connection) -> None:
    one, two = await enrolled(conn, "a"), await enrolled(conn, "b")
    await record_report(conn, report(one, workers=(worker("w1", pid=1),)))
    await record_report(conn, report(two, workers=(worker("w1", pid=2),)))
    pids = {host.host_id: [each.pid for each in host.workers] for host in await load_hosts(conn)}
    assert pids == {one: [1], two: []}


@pytest.mark.parametrize(
    ("reports", "learned_s"),
    [
        ([[2.0]], 2.0),  # the first counts whole
        ([[2.0], [4.0]], 2.6),  # 2 + 0.3 × (4 − 2)
        ([[2.0], [4.0], [1.0]], 2.12),  # 2.6 + 0.3 × (1 − 2.6)
        ([[2.0, 4.0, 1.0]], 2.12),  # together as one by one
        ([[2.0], [4.0, 1.0]], 2.12),
    ],
)
async def test_start_ups_are_learned_with_weight_0_3_each(
    conn: Connection, reports: list[list[float]], learned_s: float
) -> None:
    host_id = await enrolled(conn)
    for sequence, start_ups_s in enumerate(reports):
        start_ups = tuple(StartUp(template="rq", start_up_s=start_up_s) for start_up_s in start_ups_s)
        await record_report(conn, report(host_id, sequence + 1, templates=(TEMPLATE,), start_ups=start_ups))
    (host,) = await load_hosts(conn)
    assert host.templates[0].start_up_s == pytest.approx(learned_s)
    starts = (await conn.execute(text("select starts from template_start_ups"))).scalar_one()
    assert starts == sum(len(each) for each in reports)


async def test_the_spread_of_the_last_start_ups_and_their_processor_time_are_known(conn: Connection) -> None:
    host_id = await enrolled(conn)
    slow = tuple(StartUp(template="rq", start_up_s=9.0) for _ in range(10))
    fast = tuple(StartUp(template="rq", start_up_s=1.0, cpu_s=0.5) for _ in range(90))
    for sequence, start_ups in enumerate((slow, fast, fast[:4])):
        await record_report(conn, report(host_id, sequence + 1, templates=(TEMPLATE,), start_ups=start_ups))
    (template,) = (await load_hosts(conn))[0].templates
    assert template.start_up_p95_s == 9.0  # six of the last hundred
    assert template.start_up_cpu_s == pytest.approx(0.5)
    await record_report(conn, report(host_id, 4, templates=(TEMPLATE,), start_ups=fast[:1]))
    (template,) = (await load_hosts(conn))[0].templates
    assert template.start_up_p95_s == 1.0  # five of them
    recent_s = (await conn.execute(text("select recent_s from template_start_ups"))).scalar_one()
    assert recent_s == [1.0] * 95 + [9.0] * 5


async def test_exits_are_learned_like_start_ups_and_known_beside_them(conn: Connection) -> None:
    host_id = await enrolled(conn)
    exits = tuple(Exit(template="rq", exit_s=exit_s) for exit_s in (2.0, 4.0))
    await record_report(conn, report(host_id, 1, templates=(TEMPLATE,), exits=exits))
    assert (await load_hosts(conn))[0].templates[0].exit_s is None, "nothing is told of one that never started"
    start_ups = (StartUp(template="rq", start_up_s=1.0),)
    last = (Exit(template="rq", exit_s=1.0),)
    await record_report(conn, report(host_id, 2, templates=(TEMPLATE,), start_ups=start_ups, exits=last))
    assert (await load_hosts(conn))[0].templates[0].exit_s == pytest.approx(2.12)  # as start-ups above
    row = (await conn.execute(text("select exits, recent_s from template_exits"))).one()
    assert (row.exits, row.recent_s) == (3, [1.0, 4.0, 2.0])


async def test_since_when_a_worker_is_in_its_state_is_reported_once_a_state(conn: Connection) -> None:
    host_id = await enrolled(conn)
    now_s = float((await conn.execute(text("select extract(epoch from now())"))).scalar_one())
    reported = (
        # of the worker: its state, for how long, and whether it is busy; and what is known then
        (WorkerState.STARTING, 2.0, None, 2.0),
        (WorkerState.RUNNING, 0.5, None, 0.5),
        (WorkerState.RUNNING, 1.5, True, 0.5),  # the same state: what was told first stays, as time stands still here
        (WorkerState.DRAINING, None, True, 0.0),  # an older agent does not say: since it was told
    )
    for sequence, (state, age_s, is_busy, known_s) in enumerate(reported):
        since_s = None if age_s is None else NOW_S - age_s
        one = worker(state=state, state_since_s=since_s, is_busy=is_busy)
        await record_report(conn, report(host_id, sequence + 1, workers=(one,)))
        ((known,),) = (host.workers for host in await load_hosts(conn))
        assert known.state_since_s is not None
        assert now_s - known.state_since_s == pytest.approx(known_s, abs=1e-3)


# --- what a host is to run, and what brokers say ---------------------------------------------------------------------


async def assigned(conn: Connection, host_id: str, pool: str, base_workers: int, burst_workers: int = 0) -> None:
    await conn.execute(
        text("insert into assignments values (:pool, :host_id, 'rq', :base, :burst, 1, 5, 8)"),
        {"pool": pool, "host_id": host_id, "base": base_workers, "burst": burst_workers},
    )
    await conn.execute(
        text("update hosts set assignment_epoch = 5, assignment_revision = 8 where host_id = :host_id"),
        {"host_id": host_id},
    )


async def active(conn: Connection, pid: int, *, host: str = "a", is_busy: bool = True, seen_s: float = 2.0) -> None:
    await conn.execute(
        text(
            "insert into worker_activities (host_name, pid, is_busy, busy_since_s, seen_at) "
            "values (:host, :pid, :is_busy, case when :is_busy then extract(epoch from now()) - 9 end, "
            "now() - make_interval(secs => :seen_s))"
        ),
        {"host": host, "pid": pid, "is_busy": is_busy, "seen_s": seen_s},
    )


async def test_a_host_stands_at_its_own_assignments_and_its_own_workers_hints(conn: Connection) -> None:
    one, two = await enrolled(conn, "a"), await enrolled(conn, "b")
    assert await read_assignments(conn, one) == await read_assignments(conn, two)
    assert (await read_assignments(conn, one)).revision == 0
    await assigned(conn, one, "web", 1)
    await assigned(conn, one, "mail", 2, 3)
    await assigned(conn, two, "mail", 9)
    await active(conn, 7, seen_s=2.0)
    await active(conn, 8, is_busy=False, seen_s=31.0)  # too old to be told
    await active(conn, 9, host="b")
    await active(conn, 10, is_busy=False, seen_s=0.0)
    await conn.execute(text("update worker_activities set ended_jobs = 12 where pid = 7"))
    standing = await read_assignments(conn, one)
    assert (standing.epoch, standing.revision) == (5, 8)
    common = {"host_id": one, "template": "rq", "restart_generation": 1}
    assert standing.assignments == (
        Assignment(pool="mail", base_workers=2, burst_workers=3, **common),
        Assignment(pool="web", base_workers=1, **common),
    )
    assert sorted(standing.hints, key=lambda hint: hint.pid) == [
        Hint(pid=7, is_busy=True, since_age_s=9.0, age_s=2.0, ended_jobs=12),
        Hint(pid=10, is_busy=False, since_age_s=None, age_s=0.0),  # not known is not 0
    ]


@pytest.mark.parametrize(
    ("said", "is_busy"),
    [
        ({"is_busy": True}, True),  # the broker's word counts more than the agent's guess
        ({"is_busy": True, "seen_s": 16.0}, False),  # unless it is old
        ({"is_busy": True, "host": "b"}, False),  # or of another host
    ],
)
async def test_what_the_broker_just_said_counts_more_than_the_agents_guess(
    conn: Connection, said: dict[str, Any], is_busy: bool
) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, workers=(worker(pid=7, is_busy=False),)))
    await active(conn, 7, **said)
    (host,) = await load_hosts(conn)
    assert host.workers[0].is_busy is is_busy
    assert (host.workers[0].busy_since_s is not None) is is_busy


async def test_the_queue_of_a_busy_worker_is_known_while_its_broker_says_that_it_is_busy(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, workers=(worker(pid=7, is_busy=False),)))
    await active(conn, 7)
    await conn.execute(text("update worker_activities set busy_queue = 'redis/mail'"))
    (host,) = await load_hosts(conn)
    assert host.workers[0].busy_queue == "redis/mail"
    await conn.execute(text("update worker_activities set seen_at = now() - interval '16 seconds'"))
    (host,) = await load_hosts(conn)
    assert host.workers[0].busy_queue is None


async def test_what_was_said_of_a_pid_before_the_worker_started_was_said_of_another_process(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, workers=(worker(pid=7, started_at_s=NOW_S - 1.0, is_busy=None),)))
    await active(conn, 7, seen_s=2.0)
    (host,) = await load_hosts(conn)
    assert host.workers[0].is_busy is None


async def test_the_cluster_has_one_id(conn: Connection) -> None:
    assert await read_cluster_id(conn) == await read_cluster_id(conn) != ""


# --- what a host is and has ------------------------------------------------------------------------------------------


async def test_a_host_is_what_its_last_report_says_of_it(conn: Connection) -> None:
    host_id = await enrolled(conn)
    capacity = HostCapacity(cpu_cores=4.0, memory_bytes=8_000, gpus=2, cpu_pressure=0.5, memory_pressure=0.25)
    template = replace(TEMPLATE, gpus=1, labels={"model": "a100"}, isolation_drain_after_s=60.0)
    reported = worker(template_hash="h", memory_bytes=1_000)
    await record_report(
        conn, report(host_id, capacity=capacity, labels={"zone": "a"}, templates=(template,), workers=(reported,))
    )
    (host,) = await load_hosts(conn)
    assert (host.capacity, host.labels, host.templates) == (capacity, {"zone": "a"}, (template,))
    assert (host.workers[0].template_hash, host.workers[0].memory_bytes) == ("h", 1_000)
    assert host.silent_s == 0.0
    await record_report(conn, report(host_id, 2))
    (host,) = await load_hosts(conn)
    assert (host.labels, host.capacity.memory_pressure) == ({}, None)


@pytest.mark.parametrize(
    ("first", "then", "failing"),
    [
        (WorkerState.BACKING_OFF, WorkerState.BACKING_OFF, {"rq"}),
        (WorkerState.BACKING_OFF, WorkerState.STARTING, {"rq"}),  # it may end again
        (WorkerState.BACKING_OFF, WorkerState.RUNNING, set()),
        (WorkerState.RUNNING, WorkerState.RUNNING, set()),
    ],
)
async def test_a_template_fails_on_a_host_until_one_of_its_workers_runs_there(
    conn: Connection, first: WorkerState, then: WorkerState, failing: set[str]
) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, 1, workers=(worker(state=first),)))
    await record_report(conn, report(host_id, 2, workers=(worker(state=then),)))
    assert (await load_hosts(conn))[0].failing == failing


async def test_one_that_is_tried_in_a_crash_loop_has_yet_to_stay(conn: Connection) -> None:
    """It is ready for a moment each time: an incident that this ended would never last for long enough to be one."""
    host_id = await enrolled(conn)
    backing_off = worker("w1", state=WorkerState.BACKING_OFF)
    for sequence, (workers, failing) in enumerate(
        [
            ((backing_off,), {"rq"}),
            ((backing_off, worker("w2", started_at_s=NOW_S - 5.0)), {"rq"}),
            ((worker("w2", started_at_s=NOW_S - 9.0),), {"rq"}),
            ((worker("w2", started_at_s=NOW_S - 10.0),), set()),
        ]
    ):
        await record_report(conn, report(host_id, 1 + sequence, workers=workers))
        assert (await load_hosts(conn))[0].failing == failing


@pytest.mark.parametrize("age_s", [1.0, 60.0])
async def test_one_worker_that_fails_beside_one_that_runs_says_nothing_of_the_host(
    conn: Connection, age_s: float
) -> None:
    """Of eight that start together, a broker may refuse the last: the others are no reason to leave the host."""
    host_id = await enrolled(conn)
    both = (worker("w1", started_at_s=NOW_S - age_s), worker("w2", state=WorkerState.BACKING_OFF))
    await record_report(conn, report(host_id, workers=both))
    assert (await load_hosts(conn))[0].failing == frozenset()


async def test_what_failed_long_ago_is_forgotten(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, workers=(worker(state=WorkerState.BACKING_OFF),)))
    await conn.execute(text("update hosts set failing = '{\"rq\": 0}'"))
    assert (await load_hosts(conn))[0].failing == frozenset()


async def test_reports_of_many_hosts_are_taken_each_by_its_own_rules(conn: Connection) -> None:
    one, two, three = [await enrolled(conn, name) for name in ("a", "b", "c")]
    await record_report(conn, report(one, 5, workers=(worker("w1"), worker("w2"))))
    await record_report(conn, report(two, 5, workers=(worker("w3"),)))
    recorded = await record_reports(
        conn,
        [
            report(one, 6, workers=(worker("w2", state=WorkerState.DRAINING),)),
            report(two, 4),
            report(three, 1, workers=(worker("w3"), worker("w4"))),  # w3 is another host's
            report("nobody", 1, workers=(worker("w5"),)),
        ],
    )
    taken = dict.fromkeys((one, three), Outcome.TAKEN)
    assert recorded == {**taken, two: Outcome.LATE, "nobody": Outcome.UNKNOWN}
    found = {host.host_id: [(each.worker_id, each.state) for each in host.workers] for host in await load_hosts(conn)}
    assert found == {
        one: [("w2", WorkerState.DRAINING)],
        two: [("w3", WorkerState.RUNNING)],
        three: [("w4", WorkerState.RUNNING)],
    }


async def test_of_many_reports_none_waits_for_who_writes_to_its_host(engine: Engine) -> None:
    """A tick writes to many hosts in one transaction, and each would wait for the other's."""
    async with transaction(engine) as conn:
        one, two = [await enrolled(conn, name) for name in ("a", "b")]
    async with transaction(engine) as tick, transaction(engine) as conn:
        await tick.execute(text("update hosts set assignment_revision = 1 where host_id = :one"), {"one": one})
        recorded = await record_reports(conn, [report(one), report(two)])
        assert recorded == {one: Outcome.LOCKED, two: Outcome.TAKEN}


async def test_a_worker_that_did_not_change_is_not_written_again(conn: Connection) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, 1, workers=(worker("w1"), worker("w2"))))
    versions = text("select worker_id, ctid::text from workers order by worker_id")
    before = dict((await conn.execute(versions)).all())
    await record_report(conn, report(host_id, 2, workers=(worker("w1"), worker("w2", state=WorkerState.DRAINING))))
    after = dict((await conn.execute(versions)).all())
    assert after["w1"] == before["w1"]
    assert after["w2"] != before["w2"]


REPORTED = {"activity_source": ActivitySource.REPORTER, "activity_known_at_s": NOW_S - 1.0}
HINTED = {"activity_source": ActivitySource.BROKER, "activity_known_at_s": NOW_S - 1.0}
SHOWN_BY_CPU = {"activity_source": ActivitySource.CPU, "activity_known_at_s": NOW_S - 1.0}


@pytest.mark.parametrize(
    ("reported", "said", "is_busy", "source"),
    [
        ({"is_busy": True, **REPORTED}, {"is_busy": False}, True, ActivitySource.REPORTER),  # it speaks for itself
        ({"is_busy": False, **REPORTED}, {"is_busy": False}, False, ActivitySource.REPORTER),
        # A proof of work beats an older claim of idleness, and no newer one.
        ({"is_busy": False, **HINTED}, {"is_busy": True, "seen_s": 0.0}, True, ActivitySource.BROKER),
        # It would say so: Celery's heartbeats may name a job for ever that it lost sight of.
        ({"is_busy": False, **REPORTED}, {"is_busy": True, "seen_s": 0.0}, False, ActivitySource.REPORTER),
        ({"is_busy": True, **SHOWN_BY_CPU}, {"is_busy": False, "seen_s": 8.0}, True, ActivitySource.CPU),
        ({"is_busy": True, **SHOWN_BY_CPU}, {"is_busy": False, "seen_s": 0.0}, False, ActivitySource.BROKER),
        ({"is_busy": None}, {"is_busy": False}, False, ActivitySource.BROKER),
        # The worker reports, and lacks something: the broker's word proves work, and no idleness.
        ({"is_busy": None, **REPORTED}, {"is_busy": False, "seen_s": 0.0}, None, ActivitySource.REPORTER),
        ({"is_busy": None, **REPORTED}, {"is_busy": True, "seen_s": 8.0}, True, ActivitySource.BROKER),
        ({"is_busy": None}, {"is_busy": False, "seen_s": 16.0}, None, None),  # too old to say anything of now
    ],
)
async def test_of_several_sources_that_one_counts_which_knows_the_worker_best(
    conn: Connection,
    reported: dict[str, Any],
    said: dict[str, Any],
    is_busy: bool | None,
    source: ActivitySource | None,
) -> None:
    host_id = await enrolled(conn)
    await record_report(conn, report(host_id, workers=(worker(pid=7, started_at_s=NOW_S - 60.0, **reported),)))
    await active(conn, 7, **said)
    (host,) = await load_hosts(conn)
    assert (host.workers[0].is_busy, host.workers[0].activity_source) == (is_busy, source)


@pytest.mark.parametrize(
    ("reported", "is_busy"),
    [
        # A solo worker was shown as idle for a second more: until its agent had heard that the heartbeat is missing.
        ({"is_busy": False, **HINTED}, None),
        ({"is_busy": False, **REPORTED}, False),  # it speaks for itself
        ({"is_busy": True, **HINTED}, True),  # nobody says that the job has ended
        ({"is_busy": True, **SHOWN_BY_CPU}, True),
    ],
)
async def test_what_the_broker_withdraws_its_agent_does_not_keep_up(
    conn: Connection, reported: dict[str, Any], is_busy: bool | None
) -> None:
    host_id = await enrolled(conn)
    at_work = worker(pid=7, started_at_s=NOW_S - 60.0, **reported)
    await record_report(conn, report(host_id, workers=(at_work,)))
    withdrawn = WorkerActivity(host="a", pid=7, is_busy=True, running_jobs=0, is_withdrawn=True)
    await upsert_activities(conn, [withdrawn])
    (host,) = await load_hosts(conn)
    found = host.workers[0]
    assert found.is_busy is is_busy
    assert found.activity_source == (None if is_busy is None else at_work.activity_source)
    assert (found.activity_known_at_s is None) == (is_busy is None)


async def test_of_a_worker_whose_agent_reports_no_longer_the_brokers_later_word_proves_work(conn: Connection) -> None:
    host_id = await enrolled(conn)
    idle = worker(pid=7, started_at_s=NOW_S - 60.0, is_busy=False, **REPORTED)
    await record_report(conn, report(host_id, workers=(idle,)))
    await conn.execute(text("update hosts set reported_at = now() - interval '21 seconds'"))
    await active(conn, 7)
    (host,) = await load_hosts(conn)
    assert (host.workers[0].is_busy, host.workers[0].activity_source) == (True, ActivitySource.BROKER)


async def test_a_workers_jobs_and_the_age_of_its_evidence_are_those_of_its_report(conn: Connection) -> None:
    host_id = await enrolled(conn)
    jobs = (
        RunningJob(job_id="j1", queue="mail", job_class="shop.send", attempt=2, started_at_s=NOW_S - 30.0),
        RunningJob(job_id="j2", queue="mail", started_at_s=NOW_S - 90.0),
    )
    busy = worker(is_busy=True, running_jobs=2, running=jobs, **REPORTED)
    await record_report(conn, report(host_id, workers=(busy,)))
    (host,) = await load_hosts(conn)
    found = host.workers[0]
    assert (found.running, found.running_jobs, found.busy_since_s) == (jobs, 2, NOW_S - 90.0)
    assert found.activity_known_at_s is not None
    now_s = float((await conn.execute(text("select extract(epoch from now())"))).scalar_one())
    assert now_s - found.activity_known_at_s == pytest.approx(2.0, abs=0.5), "ages are rounded up to a beat"
