import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.safety_stock import SafetyStock
from headway.scaling.forecasts.shortfalls import Shortfalls
from headway.scaling.model import Decision, Memory, Objective, QueueMetrics, QueueOrder
from headway.scaling.reading.pool_times import exposed_s, times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.strategies.hybrid import HYBRID
from headway.scaling.strategy import State
from headway.scaling.view import PoolView
from scaling.bands import changed
from scaling.laws.drawn import views
from support.pools import NOW_S, held, profile, queue, view

TICK_S = 5.0
HOUR_S = 3600.0


def demanded(pool: PoolView, state: State | None = None) -> dict[str, float]:
    """The slots of each demand, by its name."""
    advice = HYBRID.advise(pooled(pool.queues), pool, state or {}, NOW_S)
    return {demand.name: demand.slots for demand in advice.demands}


def state_after(pool: PoolView, state: State | None = None) -> State:
    return HYBRID.advise(pooled(pool.queues), pool, state or {}, NOW_S).state


def exposed(*queues: QueueMetrics, **values: Any) -> PoolView:
    """Promises 10 s and starts in 8 s: tick and start-up exceed the objective by 3.5 s."""
    return view(*queues, start_up_s=8.0, **values)


# Work in progress


@pytest.mark.parametrize(
    ("in_flight_jobs", "busy_workers", "starting_workers", "slots"),
    [
        (6, None, 0, 6),  # each job has its slot
        (6, None, 2, 14),  # and a worker that starts has four
        (None, None, 0, 12),  # not known who has a job: all three may have
        (None, 2, 0, 8),  # two workers have: any of their slots may
        (0, 2, 0, 0),  # the jobs are counted, and there are none
    ],
)
def test_what_is_at_work_or_starting_is_wanted_and_what_is_not_known_counts_as_busy(
    in_flight_jobs: int | None, busy_workers: int | None, starting_workers: int, slots: int
) -> None:
    pool = view(
        queue(in_flight_jobs=in_flight_jobs),
        slots_per_worker=4,
        running_workers=3,
        busy_workers=busy_workers,
        starting_workers=starting_workers,
    )
    assert demanded(pool)["work_in_progress"] == slots


@pytest.mark.parametrize(
    ("running_workers", "starting_workers", "slots"),
    [
        (0, 0, 5),  # the jobs in nobody's hands get slots
        (0, 1, 5),  # of which four start: each evaluation asked for one worker more
        (0, 2, 8),
        (0, 4, 16),
        (1, 0, 5),
        (1, 1, 8),
        (2, 1, 9),  # those that run may have all five
    ],
)
def test_slots_that_start_are_for_jobs_that_no_running_worker_can_have(
    running_workers: int, starting_workers: int, slots: int
) -> None:
    pool = view(
        queue(in_flight_jobs=5),
        running_workers=running_workers,
        starting_workers=starting_workers,
        slots_per_worker=4,
        start_up_s=1.0,
    )
    assert demanded(pool)["work_in_progress"] == slots


# Waking


@pytest.mark.parametrize(
    ("waiting_jobs", "running_workers", "starting_workers", "slots"),
    [(3, 0, 0, 1), (0, 0, 0, 0), (3, 1, 0, 0), (3, 0, 1, 0)],
)
def test_one_slot_wakes_a_pool_in_which_jobs_wait_and_nobody_is(
    waiting_jobs: int, running_workers: int, starting_workers: int, slots: int
) -> None:
    pool = view(queue(waiting_jobs=waiting_jobs), running_workers=running_workers, starting_workers=starting_workers)
    assert demanded(pool)["wake"] == slots


@pytest.mark.parametrize(
    ("arrived_jobs", "tick_s", "running_workers", "slots"),
    [
        (300, 5.0, 1, 1),  # one comes each 17 ms, and none happens to be at work
        (1, 5.0, 3, 1),  # the next may come in 5 s; a start costs 16 × 1.5 s of a core + 2.5 × 2 s = 29 s
        (0, 5.0, 1, 0),
        (1, 30.0, 1, 0),  # in 30 s: starting again is cheaper
        (2, 30.0, 1, 1),
        (300, 5.0, 0, 0),  # nobody is there to be kept
    ],
)
def test_the_last_worker_stays_while_the_next_job_is_nearer_than_a_start_is_dear(
    arrived_jobs: int, tick_s: float, running_workers: int, slots: int
) -> None:
    served = queue(arrived_jobs=arrived_jobs, service_time_s=0.01)
    pool = view(served, start_up_s=2.0, running_workers=running_workers, tick_s=tick_s)
    assert demanded(pool)["work_in_progress"] == slots


def test_who_serves_is_not_counted_beside_those_at_work() -> None:
    busy = queue(arrived_jobs=300, in_flight_jobs=2)
    assert demanded(view(busy, running_workers=4))["work_in_progress"] == 2


# Draining


@pytest.mark.parametrize(
    ("asked", "slots"),
    [
        ([], 2),  # asked for by the last look, so up for 1 s: 2 × (1 + 4) start in the 4 s that a new one takes
        ([[NOW_S - 3.0, 2]], 3),  # up in 1 s: 2 × (1 + 3), and two jobs are left, of which a new one starts 1 + 2
        ([[NOW_S, 2]], 5),  # up when a new one would be: 2 × 1, and eight are left
        ([[NOW_S - 3.0, 1], [NOW_S, 1]], 4),  # 1 + 3 and 1: five are left
    ],
)
def test_workers_that_start_are_reckoned_with_from_when_they_were_asked_for(
    asked: list[list[float]], slots: int
) -> None:
    late = queue(waiting_jobs=10, oldest_age_s=9.0)
    assert demanded(view(late, start_up_s=4.0, starting_workers=2), {"asked": asked})["backlog_drain"] == slots


@pytest.mark.parametrize(
    ("starting_workers", "asked"),
    [
        (3, [[NOW_S - 7.0, 1], [NOW_S - 2.0, 2]]),
        (2, [[NOW_S - 2.0, 2]]),  # who was asked for first is up first
        (1, [[NOW_S - 2.0, 1]]),
        (5, [[NOW_S - 7.0, 1], [NOW_S - 2.0, 2], [NOW_S - 5.0, 2]]),  # two more since the last look
        (0, None),
    ],
)
def test_who_starts_was_asked_for_last(starting_workers: int, asked: list[list[float]] | None) -> None:
    before = {"asked": [[NOW_S - 7.0, 1], [NOW_S - 2.0, 2]]}
    after = state_after(view(queue(), starting_workers=starting_workers), before)
    assert json.loads(json.dumps(after.get("asked"))) == asked


def test_while_no_job_has_finished_every_late_job_asks_for_a_slot_of_its_own() -> None:
    late = queue(waiting_jobs=7, in_flight_jobs=20, oldest_age_s=60.0, service_time_s=None)
    assert demanded(view(late, running_workers=20))["backlog_drain"] == 27  # no slot is known to be free soon


@pytest.mark.parametrize(("guess_s", "slots"), [(None, 7), (100.0, 7), (3.0, 4), (1.0, 2)])
def test_while_no_job_has_finished_what_the_profile_says_of_them_counts(guess_s: float | None, slots: int) -> None:
    late = queue(waiting_jobs=7, oldest_age_s=2.0, service_time_s=None)
    configured = profile(objective=Objective(target_s=10.0), service_time_guess_s=guess_s)
    assert demanded(view(late, profile=configured, start_up_s=2.0))["backlog_drain"] == slots


@pytest.mark.parametrize(
    ("service_time_s", "slots"),
    [
        (None, 10),  # still not known: each job may need a worker of its own
        (30.0, 10),  # each does
        (1.0, 6),  # four are ready in 1 s and start 1 + 3 each in the 4 s that a new one takes, two in 3 s and 1 + 1
        (0.002, 1),  # ready in 1 s, one starts 1,500 in the three that are left
    ],
)
def test_workers_asked_for_before_anything_was_known_are_wanted_as_far_as_what_is_known_asks_for_them(
    service_time_s: float | None, slots: int
) -> None:
    first = queue(waiting_jobs=10, oldest_age_s=5.0, service_time_s=None)
    state = state_after(view(first, start_up_s=4.0))
    late = queue(waiting_jobs=20, oldest_age_s=9.0, service_time_s=service_time_s)
    starting = view(late, start_up_s=4.0, starting_workers=10)
    blind = demanded(starting, {**state, "asked": [[NOW_S - 1.0, 6], [NOW_S - 3.0, 4]]})
    assert blind["work_in_progress"] == slots
    assert demanded(starting, {"asked": [[NOW_S - 3.0, 10]]})["work_in_progress"] == 10  # asked for knowingly


def test_while_nothing_is_known_of_the_jobs_nobody_who_starts_is_given_up() -> None:
    few = queue(waiting_jobs=2, oldest_age_s=9.0, service_time_s=None)
    starting = view(few, start_up_s=4.0, starting_workers=10)
    assert demanded(starting, {"blind": True, "asked": [[NOW_S - 3.0, 10]]})["work_in_progress"] == 10
    assert state_after(starting)["blind"]


def test_a_pool_that_knows_how_long_its_jobs_take_keeps_no_note_of_it() -> None:
    late = queue(waiting_jobs=10, oldest_age_s=5.0)
    assert "blind" not in state_after(view(late, start_up_s=4.0, starting_workers=3), {"blind": True})
    assert "blind" not in state_after(view(queue(service_time_s=None)))


def test_idle_slots_that_waiting_jobs_need_are_kept() -> None:
    late = queue(waiting_jobs=20, oldest_age_s=60.0)
    assert demanded(view(late, running_workers=3))["backlog_drain"] == 8  # three start 1 + 1 each, 14 ÷ 3 are left
    few = queue(waiting_jobs=3, oldest_age_s=60.0)
    assert demanded(view(few, running_workers=3))["backlog_drain"] == 3  # two would do; all three take one
    assert demanded(view(queue(waiting_jobs=1), running_workers=3))["backlog_drain"] == 1  # also while it may wait


def test_less_risk_reckons_with_fewer_completions() -> None:
    late = queue(waiting_jobs=20, in_flight_jobs=16, oldest_age_s=60.0)
    slots = [
        demanded(view(late, running_workers=16, profile=profile(risk=risk)))["backlog_drain"]
        for risk in (0.5, 1.0, 4.0)
    ]
    assert slots == [20, 19, 18]  # 16 − √16 ÷ risk get done in 1 s: 8, 12, 15; a slot for three of the rest


# Several members


def members(**objectives: float) -> PoolView:
    """``mail`` has three jobs of 9 s that are 4 s old, ``news`` two that are 6 s old; the pool promises 60 s."""
    return view(
        queue(queue="redis/mail", waiting_jobs=3, oldest_age_s=4.0, service_time_s=9.0),
        queue(queue="redis/news", waiting_jobs=2, oldest_age_s=6.0, service_time_s=9.0),
        profile=profile(
            queues=("redis/mail", "redis/news"),
            objective=Objective(target_s=60.0),
            member_objectives={f"redis/{name}": Objective(target_s=target_s) for name, target_s in objectives.items()},
        ),
        queue_order=QueueOrder.STRICT,
        strict_queues=("mail", "news"),
    )


def test_members_are_drained_together_and_each_within_its_own_objective() -> None:
    assert demanded(members())["backlog_drain"] == 0  # all can wait
    assert demanded(members(mail=5.0))["backlog_drain"] == 3  # 0 s left of 5 − 4 − 1: a slot each
    assert demanded(members(news=8.0))["backlog_drain"] == 2 + 3  # the mails come first
    assert demanded(members(mail=5.0, news=8.0))["backlog_drain"] == 5
    together = replace(
        members(), profile=profile(queues=("redis/mail", "redis/news"), objective=Objective(target_s=5.0))
    )
    assert demanded(together)["backlog_drain"] == 5


def test_a_member_with_a_looser_objective_than_the_pools_waits_by_its_own() -> None:
    """600 jobs with 15 min of their own got a worker each, because the pool's objective was 30 s."""
    pool = members(news=60.0)
    within_5_s = replace(pool, profile=replace(pool.profile, objective=Objective(target_s=5.0)))
    assert demanded(within_5_s)["backlog_drain"] == 3  # the mails; the news, which come after them, have 54 s left


def test_a_member_counts_on_its_own_jobs_in_flight_only() -> None:
    pool = view(
        queue(queue="redis/mail", waiting_jobs=3, oldest_age_s=60.0, service_time_s=None),
        queue(queue="redis/news", in_flight_jobs=50),
        running_workers=50,
    )
    # Together fifty jobs of 1 s would make room in time; nothing is known of how long a mail takes.
    assert demanded(pool)["backlog_drain"] == 50 + 3


# Standing


def test_a_pool_that_reacts_soon_enough_never_stands() -> None:
    for tick_s, start_up_s, target_s in ((5.0, 4.5, 10.0), (5.0, 30.0, 60.0), (1.0, 2.0, 3.5)):
        pool = view(
            queue(arrival_rate_per_s=100.0, arrived_jobs=500, arrived_until_s=NOW_S, late_rate_per_s=10.0),
            tick_s=tick_s,
            start_up_s=start_up_s,
            profile=profile(objective=Objective(target_s=target_s)),
            recalled_jobs=1000.0,
        )
        assert exposed_s(pool.profile, times_of(pool)) == 0.0
        assert "standing" not in demanded(pool)
        assert "guard" not in state_after(pool)


def guarding(*, beyond: float, recalled_jobs: float | None = None) -> State:
    """Of a thousand jobs, five came at once beyond what was expected."""
    rush = Shortfalls(jobs=1000.0, time_s=600.0).seen(5.0, jobs=0, span_s=0.0)
    guard = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=rush, beyond_log=math.log(beyond))
    return {"guard": changed(guard, recalled_jobs=recalled_jobs).stored()}


def test_an_exposed_pool_stands_for_what_is_expected_and_for_the_spare() -> None:
    # 9.5 s are left for each job that comes now: a new slot is up after 8 s and starts two of them by then.
    assert demanded(exposed(), guarding(beyond=0.01))["standing"] == 0  # ten of a thousand may be beyond the spare
    assert demanded(exposed(), guarding(beyond=0.0005))["standing"] == 3  # half a job may: 4.5 ÷ 2
    rushed = queue(arrival_rate_per_s=4.0)
    assert demanded(exposed(rushed), guarding(beyond=0.01))["standing"] == 7  # 3.5 s × 4 = 14 ÷ 2
    assert demanded(exposed(rushed), guarding(beyond=0.0005))["standing"] == 10  # 18.5 ÷ 2


def test_slots_that_stand_are_beside_those_at_work() -> None:
    at_work = queue(in_flight_jobs=2, service_time_s=math.inf)  # they start nothing of what is to come
    assert demanded(exposed(at_work, running_workers=2), guarding(beyond=0.0005))["standing"] == 2 + 5


def test_slots_that_stand_are_kept_and_not_asked_for_again() -> None:
    slots = demanded(exposed(running_workers=1), guarding(beyond=0.0005))["standing"]
    assert slots == 1  # one that is idle starts 1 + 9.5 ÷ 1 of the 4.5


def evaluations(pool: PoolView, *seen: tuple[int, QueueMetrics], memory: Memory | None = None) -> Iterator[Decision]:
    """Decisions a tick apart; of each queue so many in turn. What was decided runs at the next evaluation."""
    memory, tick = memory or Memory(), 0
    for times, metrics in seen:
        for _ in range(times):
            now_s = NOW_S + TICK_S * tick
            fresh = replace(metrics, sampled_at_s=now_s, arrived_until_s=now_s)
            running = replace(pool, queues=(fresh,), running_workers=memory.target_workers or 0)
            decision, memory = decide(running, memory, now_s=now_s)
            yield decision
            tick += 1


def test_an_exposed_pool_stands_after_misses_and_lets_go_when_jobs_are_in_time_again() -> None:
    missed = queue(late_rate_per_s=0.2, start_rate_per_s=2.0)
    in_time = queue(start_rate_per_s=20.0)
    memory = Memory(strategy_state=guarding(beyond=0.01))
    targets = [
        each.target_workers for each in evaluations(exposed(), (1, queue()), (12, missed), (90, in_time), memory=memory)
    ]
    assert targets[0] == 0
    assert targets[12] == 1  # after twelve late jobs half a job of a thousand may be beyond: 4.5 to spare
    assert max(targets) <= 3
    assert targets[-1] == 0  # nine thousand in time: 0.05 % × e^2.7 is seven, more than the five


def test_a_first_job_keeps_one_worker_standing_for_as_long_as_that_pays() -> None:
    """On the first day an hour of a worker that takes 10.5 jobs in time: 10.5 h for one job that came alone."""
    state: State = {}
    for now_s, arrived_jobs, slots in (
        (NOW_S, 0, 1),  # nothing is known yet
        (NOW_S + 30.0, 0, 0),
        (NOW_S + 35.0, 1, 1),
        (NOW_S + 10 * HOUR_S, 0, 1),
        (NOW_S + 11 * HOUR_S, 0, 0),
    ):
        pool = exposed(
            queue(
                sampled_at_s=now_s,
                arrived_jobs=arrived_jobs,
                arrived_until_s=now_s if arrived_jobs else None,
                arrival_rate_per_s=arrived_jobs / 60,
            ),
            running_workers=1,
        )
        advice = HYBRID.advise(pool.queues[0], pool, state, now_s)
        assert {demand.name: demand.slots for demand in advice.demands}["standing"] == slots, now_s
        state = advice.state


# What is kept


@pytest.mark.parametrize("pool", [view(), exposed()], ids=["reacts", "exposed"])
def test_what_a_quiet_pool_keeps_does_not_change_from_evaluation_to_evaluation(pool: PoolView) -> None:
    memory, memories = Memory(), []
    for tick in range(40):
        now_s = NOW_S + TICK_S * tick
        busy = {"in_flight_jobs": 3, "arrived_jobs": 3, "arrived_until_s": now_s} if tick in {3, 4} else {}
        seen = replace(pool, queues=(queue(sampled_at_s=now_s, **busy),), running_workers=memory.target_workers or 0)
        _, memory = decide(seen, memory, now_s=now_s)
        memories.append(memory)
    assert memories[4] != memories[3]
    rest = [each.strategy_state for each in memories[6:]]
    assert all(each == rest[-1] for each in rest)
    is_exposed = exposed_s(pool.profile, times_of(pool)) > 0
    assert rest[-1].keys() == ({"guard"} if is_exposed else {"periods"})  # forgotten when nothing came for long
    if not is_exposed:
        assert all(each == memories[-1] for each in memories[6:])


def reloaded(memory: Memory) -> Memory:
    """``memory`` with its state as a store gives it back."""
    return replace(memory, strategy_state=json.loads(json.dumps(asdict(memory)["strategy_state"])))


@given(
    seen=st.lists(
        st.fixed_dictionaries(
            {
                "waiting_jobs": st.integers(0, 100),
                "in_flight_jobs": st.integers(0, 20),
                "oldest_age_s": st.floats(0, 60),
                "arrived_jobs": st.integers(0, 100),
                "arrival_rate_per_s": st.floats(0, 20),
                "start_rate_per_s": st.floats(0, 20),
                "late_rate_per_s": st.floats(0, 1),
            }
        ),
        min_size=2,
        max_size=12,
    ),
    starting=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    recalled_jobs=st.none() | st.floats(0, 100),
)
def test_a_state_that_was_stored_decides_as_one_that_was_not(
    seen: list[dict[str, Any]], starting: list[int], recalled_jobs: float | None
) -> None:
    kept, stored = Memory(), Memory()
    for tick, (values, starting_workers) in enumerate(zip(seen, starting, strict=False)):
        now_s = NOW_S + TICK_S * tick
        pool = exposed(
            queue(sampled_at_s=now_s, arrived_until_s=now_s, **values),
            running_workers=20,
            starting_workers=starting_workers,
            recalled_jobs=recalled_jobs,
        )
        ours, kept = decide(pool, kept, now_s=now_s)
        theirs, stored = decide(pool, stored, now_s=now_s)
        assert ours == theirs
        stored = reloaded(stored)


# Whatever is seen


@given(pool=views())
def test_every_demand_is_a_number_and_none_forgets_what_is_at_work(pool: PoolView) -> None:
    slots = demanded(pool)
    assert all(0.0 <= each < math.inf for each in slots.values())
    assert slots["backlog_drain"] >= slots["work_in_progress"]
    assert slots.get("standing", math.inf) >= slots["work_in_progress"]
    assert slots["wake"] in {0.0, 1.0}
    assert ("standing" in slots) == (exposed_s(pool.profile, times_of(pool)) > 0)


@given(pool=views(sampled_ago_s=st.floats(0, 20)))
def test_no_more_new_slots_are_asked_for_than_jobs_wait_where_nothing_stands(pool: PoolView) -> None:
    slots = demanded(pool)
    waiting_jobs = pooled(pool.queues).waiting_least_jobs
    idle_slots = pool.running_workers * pool.slots_per_worker
    assert slots["backlog_drain"] - slots["work_in_progress"] <= waiting_jobs + idle_slots


def test_a_job_that_was_begun_since_the_sample_keeps_its_worker_and_asks_for_no_other() -> None:
    """In the sample it waits, and the idle slot there would start it; it is not asked for twice."""
    sampled = queue(waiting_jobs=1, in_flight_jobs=1, oldest_age_s=9.0)
    seen = view(sampled, running_workers=2, taken_jobs=1)
    assert decide(seen, held(2), now_s=NOW_S)[0].target_workers == 2
    nothing_waits = view(queue(waiting_jobs=0, in_flight_jobs=1), running_workers=2, taken_jobs=1)
    assert decide(nothing_waits, held(2), now_s=NOW_S)[0].target_workers == 2


def test_retries_are_no_news_and_workers_stand_for_them_all_the_same() -> None:
    def standing(retry_rate_per_s: float) -> float:
        storm = queue(service_time_s=1.0, arrival_rate_per_s=retry_rate_per_s, retry_rate_per_s=retry_rate_per_s)
        advice = HYBRID.advise(storm, view(storm, start_up_s=12.0), {}, NOW_S)
        return next(demand.slots for demand in advice.demands if demand.name == "standing")

    assert standing(4.0) > standing(0.0)
