"""Ticks on a real Postgres: what Spark wrote and agents reported goes in, assignments come out."""

import asyncio
import json
import math
from typing import Any

import psycopg
import pytest

from control.ticks import LATE, Database, leading
from headway.control.scheduler import evaluator
from headway.control.scheduler import ticker as tick
from headway.control.scheduler.ticker import Ticker
from headway.scaling.decide import decide
from headway.scaling.model import (
    MEMORY_VERSION,
    Assignment,
    Backlog,
    BacklogSample,
    DayPaid,
    Decision,
    Demand,
    HoldCosts,
    LastMove,
    MeasuredService,
    Memory,
    Mode,
    Objective,
    PoolDepths,
    Wanted,
)
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Advice, Strategy
from headway.store.engine import create_engine
from headway.store.leadership import Superseded
from headway.store.pools.evaluation_io import EvaluationResult, apply, gather
from support.pools import NOW_S


async def test_waiting_jobs_become_an_assignment_a_revision_and_a_decision(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4}
    assert database.revision_of() == 1
    assert database.decisions() == [("mail", 4, "backlog_drain")]


async def test_a_second_tick_with_nothing_new_writes_nothing(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.revision_of() == 1
    assert len(database.decisions()) == 1


async def test_a_pool_that_stays_stale_stores_a_row_and_the_heartbeats(migrated_url: str, database: Database) -> None:
    """A hundred evaluations without a new sample, from fresh on: one row says that the metrics are stale."""
    database.profile()
    database.host()
    database.bucket(waiting_jobs=0, in_flight_jobs=2)
    now_s = [NOW_S]
    async with leading(migrated_url) as (ticker, epoch):
        ticker._clock = lambda: now_s[0]
        for _ in range(100):
            await ticker.tick(epoch=epoch, is_all_due=True)
            now_s[0] += 5.0
    fresh, stale, *heartbeats = database.notes()
    assert (fresh, "metrics are older than 20 s" in stale[0]) == ([], True)
    assert heartbeats == [stale] * int(500 // tick.DECISION_HEARTBEAT_S)


async def test_who_leads_again_stores_what_it_decided_before(migrated_url: str, database: Database) -> None:
    """Whoever led meanwhile has stored others, and the last stored one is the only story."""
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.run("update leader_epoch set epoch = epoch + 1")
        await ticker.tick(epoch=epoch + 1, is_all_due=True)
    assert database.decisions() == [("mail", 4, "backlog_drain")] * 2


async def test_a_clock_that_was_set_back_keeps_no_decision_from_being_stored(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host()
    times_s = [NOW_S]
    async with leading(migrated_url) as (ticker, epoch):
        ticker._clock = lambda: times_s[-1]
        await ticker.tick(epoch=epoch, is_all_due=True)
        times_s.append(NOW_S - 3600.0)
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert len(database.decisions()) == 2


async def test_a_pool_says_that_no_host_moves_its_due_jobs_until_one_does(
    migrated_url: str, database: Database
) -> None:
    database.profile()
    database.host("a", leaves_due_jobs=True)
    database.bucket(delayed_jobs=2)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert any("add --with-scheduler" in note for note in database.notes()[-1])
        database.host("b")
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert not any("add --with-scheduler" in note for note in database.notes()[-1])


async def test_metrics_wake_a_pool_at_zero_and_no_other(migrated_url: str, database: Database) -> None:
    database.profile("asleep")
    database.profile("awake")
    database.host()
    database.bucket("awake", at_s=NOW_S - 5, waiting_jobs=1)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.bucket("asleep", waiting_jobs=2)
        database.bucket("awake", waiting_jobs=50, oldest_age_s=60.0)
        await ticker.tick(epoch=epoch, is_all_due=False)
    assert database.assigned() == {("asleep", "a"): 1, ("awake", "a"): 1}


async def test_a_lower_bound_of_what_waits_wakes_a_pool_at_zero(migrated_url: str, database: Database) -> None:
    """As of 7,000 messages that came into a Redis list at once: their first reading is a bound."""
    database.profile()
    database.host()
    database.bucket(at_s=NOW_S - 5)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {}
        database.bucket(at_s=NOW_S, waiting_jobs=None)
        database.run(
            "insert into queue_samples (queue, sampled_at_s, waiting_min_jobs, oldest_age_s) "
            f"values ('redis/mail', {NOW_S}, 6000, 0.5)"
        )
        await ticker.tick(epoch=epoch, is_all_due=False)
    assert database.assigned() != {}


async def test_a_pool_that_is_woken_keeps_to_its_threshold(migrated_url: str, database: Database) -> None:
    database.profile(activation_jobs=2, objective=Objective(target_s=300.0))
    database.host()
    database.bucket()
    times_s = [NOW_S]
    async with leading(migrated_url) as (ticker, epoch):
        ticker._clock = lambda: times_s[-1]
        await ticker.tick(epoch=epoch, is_all_due=True)
        for waiting_jobs in (2, 3):
            assert database.assigned() == {}
            times_s.append(times_s[-1] + 5.0)
            database.bucket(at_s=times_s[-1], waiting_jobs=waiting_jobs)
            await ticker.tick(epoch=epoch, is_all_due=False)
    assert [binding for _, _, binding in database.decisions()] == ["idle", "activation", "wake"]
    assert database.assigned() == {("mail", "a"): 1}


async def test_a_profile_that_cannot_be_read_touches_no_other_pool(migrated_url: str, database: Database) -> None:
    """Law 10: one pool's failure is its own."""
    database.body("broken", {"queues": ["redis/broken"], "template": "mail", "no_such_key": 1})
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4}


@pytest.mark.parametrize("age_s", [math.nan, math.inf, -math.inf])
async def test_an_age_that_is_no_number_touches_no_other_pool(
    migrated_url: str, database: Database, age_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    """All pools of a tick are compared where capacity is short, and written together."""
    for pool in ("odd", "mail"):
        database.profile(pool)
    database.host(cpu_cores=0.6)
    database.bucket(**LATE)
    database.bucket("odd", waiting_jobs=2, oldest_age_s=60.0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {("mail", "a"): 4, ("odd", "a"): 2}
        database.bucket(at_s=NOW_S + 5.0, waiting_jobs=9, oldest_age_s=60.0)
        database.bucket("odd", at_s=NOW_S + 5.0, waiting_jobs=9, oldest_age_s=age_s)
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4, ("odd", "a"): 2}, "what has failed keeps its workers"
    assert "share" in {binding for pool, _, binding in database.decisions() if pool == "mail"}, "the other is decided"
    assert f"not decided, target held: pool=odd reason=oldest_age_s={age_s} of queue 'redis/odd'" in caplog.text


@pytest.mark.parametrize(
    "left",
    [
        {"state": {"slots": math.nan}},
        {"state": {"seen": {1, 2}}},
        {"state": {"why": "\0"}},
        {"notes": (object(),)},
        {"burst_workers": 0.5},
    ],
)
async def test_a_strategy_that_leaves_what_cannot_be_stored_touches_no_other_pool(
    migrated_url: str, database: Database, left: dict[str, Any]
) -> None:
    """All pools of a tick are written together."""

    def advise(*_: object) -> Advice:
        return Advice(**({"demands": (Demand(name="odd", slots=1.0),)} | left))

    odd = Strategy(name="odd", advise=advise)
    database.profile("odd", strategy="odd")
    database.profile()
    database.host()
    database.bucket("odd")
    database.bucket(**LATE)
    async with leading(migrated_url, strategies={**BUILT_IN, "odd": odd}) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4}


async def test_recommend_moves_nothing_and_says_what_it_would(migrated_url: str, database: Database) -> None:
    database.profile(mode=Mode.RECOMMEND)
    database.host()
    database.run("update hosts set assignment_revision = 7")
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {}
    assert database.revision_of() == 7
    assert database.decisions() == [("mail", 4, "backlog_drain")]


async def test_a_deleted_profile_is_taken_off_its_hosts(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.run("delete from profiles")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {}
    assert database.revision_of() == 2


async def test_a_superseded_leader_assigns_nothing(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        database.run("update leader_epoch set epoch = epoch + 1")
        with pytest.raises(Superseded):
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {}


async def test_hosts_are_notified_at_once_of_changed_assignments_and_of_no_others(
    migrated_url: str, database: Database
) -> None:
    """Their polls are held: without a notification, they would receive it when their time is over."""
    database.profile()
    database.host()
    database.bucket(**LATE)
    with psycopg.connect(migrated_url, autocommit=True) as listening:
        listening.execute("listen headway_assignments")
        async with leading(migrated_url) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
            assert [notice.payload for notice in listening.notifies(timeout=60.0, stop_after=1)] == ["a"]
            await ticker.tick(epoch=epoch, is_all_due=True)
        assert list(listening.notifies(timeout=0.0)) == []


async def test_a_new_leader_goes_on_from_what_is_remembered(migrated_url: str, database: Database) -> None:
    """The hold outlives the leader: memory is in Postgres."""
    database.profile(hold_down_s=30.0)
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    database.bucket(at_s=NOW_S + 6)
    async with leading(migrated_url, now_s=NOW_S + 6) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4}
    assert database.decisions()[-1] == ("mail", 4, "hold_down")


async def test_a_new_leader_goes_on_counting_evaluations_without_metrics(migrated_url: str, database: Database) -> None:
    """Each leads for one evaluation: at the third the fallback begins, and at the fourth it still holds."""
    database.profile(fallback_workers=2, fallback_after_evaluations=3)
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    targets = []
    for number in range(1, 5):
        async with leading(migrated_url, now_s=NOW_S + 60 + 5 * number) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
        targets.append(sum(database.assigned().values()))
    assert targets == [4, 4, 2, 2]
    assert database.decisions()[-1] == ("mail", 2, "fallback")


async def test_everything_that_is_remembered_comes_back_as_it_was(migrated_url: str, database: Database) -> None:
    database.profile()
    remembered = Memory(
        target_workers=4,
        wanted=(Wanted(at_s=NOW_S, workers=4),),
        lows=(Wanted(at_s=NOW_S - 5, workers=2),),
        last_move=LastMove(at_s=NOW_S, is_up=True),
        hold_costs=HoldCosts(
            began_at_s=NOW_S - 60, at_s=NOW_S, levels=(0,) * 8 + (4,), bands=((150.5,) * 9, (170.25,) * 9)
        ),
        missed_evaluations=2,
        held_since_s=NOW_S - 3.5,
        day_paid=DayPaid(day="1970-01-12", at_s=NOW_S, paid_worker_s=7.5, workers=4, since_s=NOW_S - 60),
        service=MeasuredService(time_s=0.25, batch_s=1.5),
        backlog=Backlog(
            since_s=NOW_S - 9,
            samples=(BacklogSample(at_s=NOW_S - 8, waiting_jobs=40, in_flight_jobs=2),),
            learned={"periods": {"at_s": NOW_S - 9}},
            depths=PoolDepths(busy_slots=2, cycle_s=0.5),
            service=MeasuredService(time_s=0.5),
            vanished_jobs=12,
        ),
        strategy_state={"asked": [[NOW_S, 4]]},
    )
    decision = Decision(pool="mail", at_s=NOW_S, target_workers=4, binding="backlog_drain")
    async with leading(migrated_url) as (_, epoch):
        engine = create_engine(migrated_url)
        gathered = await gather(engine, revision=0, from_s=0.0)
        news = EvaluationResult(remembered=[(decision, remembered)], decisions=[], assignments=[])
        await apply(engine, news, gathered, epoch=epoch)
        gathered = await gather(engine, revision=0, from_s=0.0)
        await engine.dispose()
    assert gathered.states["mail"].memory == remembered


async def test_what_a_later_version_wrote_costs_no_more_than_the_memory_of_its_pool(
    migrated_url: str, database: Database
) -> None:
    """Who goes back to this version decides on, and knows the hosts."""
    database.profile("odd")
    database.profile()
    database.host()
    database.run("update hosts set templates = jsonb_set(templates, '{0,colour}', '7')")
    memory = {"version": MEMORY_VERSION, "target_workers": 3, "wanted": [{"at_s": NOW_S, "slots": 3}]}
    database.run(
        f"insert into pool_states (pool, target_workers, memory, epoch) values ('odd', 3, '{json.dumps(memory)}', 1)"
    )
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "a"): 4}


@pytest.mark.parametrize("target_s", [10.0, 5.0])  # reacting is soon enough; it is not, for 5 + 3 + 0.5 > 5
async def test_a_pool_at_rest_is_written_no_more(target_s: float, migrated_url: str, database: Database) -> None:
    database.profile(objective=Objective(target_s=target_s), hold_down_s=None)
    database.host()
    now_s, written = [NOW_S], []
    async with leading(migrated_url) as (ticker, epoch):
        ticker._clock = lambda: now_s[0]
        # The longest wait before scaling down that is tried ends after ten minutes.
        for tick, after_s in enumerate([*range(0, 60, 5), *range(60, 660, 60), *range(660, 690, 5)]):
            now_s[0] = NOW_S + after_s
            database.bucket(at_s=now_s[0], **(LATE if tick < 2 else {}))
            await ticker.tick(epoch=epoch, is_all_due=True)
            written.append(database.read("select xmin::text from pool_states"))
    assert written[0] != written[1]
    assert set(written[-6:]) == {written[-1]}


async def test_a_silent_hosts_share_moves_and_its_workers_count_as_unknown(
    migrated_url: str, database: Database
) -> None:
    database.profile(workers_max=5)
    database.host("silent", lease_s=-3600.0)
    database.host("b")
    database.run(
        "insert into workers (worker_id, host_id, pool, template, pid, state, started_at) "
        "values ('w', 'silent', 'mail', 'mail', 1, 'running', now())"
    )
    database.bucket(waiting_jobs=240, oldest_age_s=60.0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("mail", "b"): 4}  # 5 at most, 1 of them may still run on the silent host


async def test_scarce_room_goes_to_the_higher_priority_though_the_lower_was_there_first(
    migrated_url: str, database: Database
) -> None:
    database.profile("low", priority=1)
    database.host(cpu_cores=0.6)  # six workers
    database.bucket("low", waiting_jobs=600, oldest_age_s=60.0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.profile("high", priority=2, workers_max=4)
        database.bucket("high", waiting_jobs=600, oldest_age_s=60.0)
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {("high", "a"): 4, ("low", "a"): 2}
    # Both were decided in one tick: which of them is stored first is not told.
    assert ("low", 2, "share") in database.decisions()[-2:]


async def test_recommend_holds_where_assignments_are_written_whatever_a_tick_asks(
    migrated_url: str, database: Database
) -> None:
    """A tick that wants to start, move and stop workers of such a pool moves nothing; the pool beside it is served."""
    database.profile("advised", mode=Mode.RECOMMEND)
    database.profile("acting")
    for name in ("a", "b"):
        database.host(name)
    database.run(
        "insert into assignments (pool, host_id, template, base_workers, epoch, revision) "
        "values ('advised', 'a', 'mail', 3, 0, 0)"
    )
    database.run("update hosts set assignment_revision = 7 where host_id = 'a'")  # of which it was told
    wanted = [
        Assignment(pool="advised", host_id="b", template="mail", base_workers=9),  # and none on a
        Assignment(pool="acting", host_id="b", template="mail", base_workers=2),
    ]
    async with leading(migrated_url) as (_, epoch):
        engine = create_engine(migrated_url)
        gathered = await gather(engine, revision=0, from_s=0.0)
        await apply(engine, EvaluationResult(remembered=[], decisions=[], assignments=wanted), gathered, epoch=epoch)
        assert database.assigned() == {("advised", "a"): 3, ("acting", "b"): 2}
        assert (database.revision_of("a"), database.revision_of("b")) == (7, 1)
        # The mode may have changed since the tick looked: what is stored when it writes is what counts.
        database.run("update profiles set body = body || '{\"mode\": \"recommend\"}' where pool = 'acting'")
        gathered = await gather(engine, revision=0, from_s=0.0)
        await apply(engine, EvaluationResult(remembered=[], decisions=[], assignments=[]), gathered, epoch=epoch)
        assert database.assigned() == {("advised", "a"): 3, ("acting", "b"): 2}
        # A profile that is gone is advised no more: its workers are let go.
        database.run("delete from profiles where pool = 'advised'")
        gathered = await gather(engine, revision=0, from_s=0.0)
        await apply(engine, EvaluationResult(remembered=[], decisions=[], assignments=[]), gathered, epoch=epoch)
        await engine.dispose()
    assert database.assigned() == {("acting", "b"): 2}


async def test_an_override_by_hand_holds_until_it_expires(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    database.run(
        f"update profiles set override = jsonb_build_object('workers', 7, 'reason', 'sale', 'until_s', {NOW_S + 60})"
    )
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions() == [("mail", 7, "override")]
    assert database.assigned() == {("mail", "a"): 7}
    database.bucket(at_s=NOW_S + 60)
    async with leading(migrated_url, now_s=NOW_S + 60) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions()[-1] == ("mail", 0, "idle")
    assert database.assigned() == {}


async def test_a_pause_by_hand_takes_the_place_of_the_profiles_mode(migrated_url: str, database: Database) -> None:
    database.profile()
    database.host()
    database.bucket(**LATE)
    database.run("update profiles set pause = 'pause_up'")
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.decisions() == [("mail", 0, "pause")]
        database.run("update profiles set pause = null")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.decisions()[-1] == ("mail", 4, "backlog_drain")


async def test_a_pause_by_hand_does_not_end_recommend(migrated_url: str, database: Database) -> None:
    """The last advice was never followed; to keep it would be to act on it."""
    database.profile(mode=Mode.RECOMMEND)
    database.host()
    database.bucket(**LATE)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.run("update profiles set pause = 'pause'")
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert database.assigned() == {}


async def test_a_schedule_begins_and_ends_by_the_clock_of_its_zone(migrated_url: str, database: Database) -> None:
    """At ``NOW_S`` it is 13:46:40 in UTC, 19:16:40 in Kolkata."""
    evening = Schedule(starts="19:17", ends="19:18", time_zone="Asia/Kolkata", workers_min=3)
    database.profile(schedules=(evening,))
    database.host()
    targets = []
    for later_s in (0, 20, 79, 80):
        database.bucket(at_s=NOW_S + later_s)
        async with leading(migrated_url, now_s=NOW_S + later_s) as (ticker, epoch):
            await ticker.tick(epoch=epoch, is_all_due=True)
        targets.append(database.decisions()[-1][1:])
    assert targets == [(0, "idle"), (3, "schedule"), (3, "schedule"), (0, "idle")]


async def test_a_budget_of_the_day_counts_what_was_decided_since_midnight(
    migrated_url: str, database: Database
) -> None:
    """Ten workers since midnight, by a decision of yesterday that was never followed by another."""
    database.profile(cost_per_worker_hour=1.0, budget_per_day=1.0)
    database.run(
        "create table decisions_yesterday partition of decisions for values "
        "from ((now() - interval '1 day')::date) to (now()::date)"
    )
    body = {"running_workers": 10, "starting_workers": 0, "unknown_workers": 0, "mode": "act"}
    database.run(
        "insert into decisions (pool, epoch, target_workers, binding, decided_at, body) values "
        "('mail', 1, 4, 'idle', date_trunc('day', now() at time zone 'utc') at time zone 'utc' - interval '1 hour', "
        f"'{json.dumps(body)}')"
    )
    engine = create_engine(migrated_url)
    gathered = await gather(engine, revision=0, from_s=0.0)
    await engine.dispose()
    since_midnight_h = database.read("select extract(epoch from (now() at time zone 'utc')::time) / 3600")
    assert gathered.worker_hours_today == {"mail": pytest.approx(10 * float(since_midnight_h), abs=0.01)}


async def test_what_a_day_has_cost_outlives_the_leader(migrated_url: str, database: Database) -> None:
    """20 of 24 worker-hours are paid at noon; the next leader counts on from there, and reads no decisions for it."""
    noon_s = 12 * 3600.0 + 86_400.0 * 20_000
    database.profile(cost_per_worker_hour=1.0, budget_per_day=24.0, workers_min=1, service_time_guess_s=1.0)
    database.host()
    database.bucket(at_s=noon_s)
    async with leading(migrated_url, now_s=noon_s) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        first = database.read("select memory -> 'day_paid' from pool_states")
        database.run("update pool_states set memory = jsonb_set(memory, '{day_paid,paid_worker_s}', '72000')")
    assert (first["day"], first["paid_worker_s"]) == ("2024-10-04", 0.0)
    database.bucket(at_s=noon_s + 5, waiting_jobs=600, oldest_age_s=60.0)
    async with leading(migrated_url, now_s=noon_s + 5) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    engine = create_engine(migrated_url)
    gathered = await gather(engine, revision=0, from_s=0.0)
    await engine.dispose()
    assert gathered.worker_hours_today == {}
    assert database.decisions()[-1] == ("mail", 0, "budget")  # 4 h do not pay for a floor of one until midnight
    spent = database.read("select body -> 'day_budget' from decisions order by decided_at desc limit 1")
    assert spent["paid_worker_s"] == pytest.approx(72_000, abs=60)


async def test_a_pool_that_wakes_is_shared_with_those_that_are_not_due(migrated_url: str, database: Database) -> None:
    database.profile("low", priority=1)
    database.profile("high", priority=2, workers_max=4)
    database.host(cpu_cores=0.6)  # six workers
    database.bucket("low", waiting_jobs=600, oldest_age_s=60.0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        assert database.assigned() == {("low", "a"): 6}
        database.bucket("high", waiting_jobs=600, oldest_age_s=60.0)
        await ticker.tick(epoch=epoch, is_all_due=False)
    assert database.assigned() == {("high", "a"): 4, ("low", "a"): 2}


async def test_a_pool_only_advised_since_it_was_decided_moves_nothing_when_another_wakes(
    migrated_url: str, database: Database
) -> None:
    database.profile("low", priority=1)
    database.profile("high", priority=2, workers_max=4)
    database.host(cpu_cores=0.6)
    database.bucket("low", waiting_jobs=600, oldest_age_s=60.0)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
        database.run("update profiles set body = jsonb_set(body, '{mode}', '\"recommend\"') where pool = 'low'")
        database.bucket("high", waiting_jobs=600, oldest_age_s=60.0)
        await ticker.tick(epoch=epoch, is_all_due=False)
    assert database.assigned() == {("low", "a"): 6}


async def test_deciding_knows_the_cores_of_the_hosts_that_may_start_workers(
    migrated_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watched(view: Any, memory: Any, *, now_s: float, strategies: Any) -> Any:
        seen.append(view.host_cores)
        return decide(view, memory, now_s=now_s, strategies=strategies)

    monkeypatch.setattr(evaluator, "decide", watched)
    database.profile()
    for host in ("a", "b", "c"):
        database.host(host)
    database.run("update hosts set cpu_cores = 3")
    database.run("update hosts set state = 'cordoned' where host_id = 'c'")
    database.bucket(waiting_jobs=1)
    async with leading(migrated_url) as (ticker, epoch):
        await ticker.tick(epoch=epoch, is_all_due=True)
    assert seen == [6.0]


async def test_an_idle_pool_is_not_decided_again_but_its_story_is_renewed(
    migrated_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided_at_s = []

    def counted(view: Any, memory: Any, *, now_s: float, strategies: Any) -> Any:
        decided_at_s.append(now_s)
        return decide(view, memory, now_s=now_s, strategies=strategies)

    monkeypatch.setattr(evaluator, "decide", counted)
    now_s = [NOW_S]
    database.profile(strategy="fixed")
    database.host()
    async with leading(migrated_url) as (ticker, epoch):
        ticker._clock = lambda: now_s[0]
        for tick in range(100):
            now_s[0] = NOW_S + 5 * tick
            database.bucket(at_s=now_s[0])
            await ticker.tick(epoch=epoch, is_all_due=True)
    assert len(decided_at_s) < 10
    assert len(database.decisions()) == 1 + 495 // 360  # renewed after 300 s, at the next look that decides


async def test_a_tick_that_finds_no_database_is_one_line_and_no_progress(caplog: pytest.LogCaptureFixture) -> None:
    class Leading:
        epoch = 7
        progresses = 0

        def progressed(self) -> None:
            self.progresses += 1

    missed = asyncio.Event()
    caplog.set_level("WARNING")
    leading = Leading()
    engine = create_engine("postgresql://127.0.0.1:1/headway")
    ticker = Ticker(engine=engine, leadership=leading, clock=lambda: NOW_S)  # type: ignore[arg-type]
    with caplog.filtering(lambda _: not missed.set()):  # type: ignore[arg-type]
        running = asyncio.create_task(ticker.run())
        try:
            ticker.all_due()
            async with asyncio.timeout(30):
                await missed.wait()
            assert not running.done()
        finally:
            running.cancel()
            await engine.dispose()
    (logged,) = [record for record in caplog.records if record.name == "headway.control.scheduler.ticker"]
    assert logged.getMessage().startswith("tick missed: Postgres ")
    assert logged.exc_info is None
    assert leading.progresses == 0


async def test_a_leader_whose_ticks_all_fail_does_not_seem_alive(
    migrated_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease must end, whatever it still reads, so that another tries and health shows it."""

    class Leading:
        epoch = 7
        progresses = 0

        def progressed(self) -> None:
            self.progresses += 1

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("of this process alone")

    monkeypatch.setattr(tick, "apply", broken)
    leading, engine = Leading(), create_engine(migrated_url)
    ticker = Ticker(engine=engine, leadership=leading, clock=lambda: NOW_S)  # type: ignore[arg-type]
    running = asyncio.create_task(ticker.run())
    wake, read = ticker.all_due, 0
    try:
        for times in range(1, 4):
            wake()
            async with asyncio.timeout(30):
                while sum(record.getMessage() == "tick failed" for record in caplog.records) < times:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            read = leading.progresses if times == 1 else read
            wake = ticker.metrics_written  # Spark writes on, and no pool sleeps
        assert leading.progresses == read  # what the first tick of a lead reads may take longer than the lease
    finally:
        running.cancel()
        await engine.dispose()
