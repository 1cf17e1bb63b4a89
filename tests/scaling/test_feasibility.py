from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.deadlines import standing
from headway.scaling.demands.needs import Supply
from headway.scaling.demands.safety_stock import SafetyStock
from headway.scaling.model import Memory, Mode, Note, Objective
from headway.scaling.planning.feasibility import circumstances, feasibility
from headway.scaling.profile import Override
from headway.scaling.profile_keys.pauses import Pause
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.reading.pool_reading import reading_of
from headway.scaling.reading.pool_times import START_UP_MAX_S, PoolTimes, exposed_s, times_of
from headway.scaling.strategies.hybrid import HybridState
from support.pools import NOW_S, profile, queue, view


def texts(notes: tuple[Note, ...]) -> tuple[str, ...]:
    return tuple(note.text for note in notes)


SLOW = " start-up 8 s + tick 5 s + margin 0.5 s > 10 s"
NOT_ALLOWED = "; workers_max=5 does not allow them"


@pytest.mark.parametrize(
    ("values", "seen", "notes"),
    [
        ({}, {"start_up_s": 4.5}, ()),  # 4.5 + 5 + 0.5 = 10 s: just in time
        # Of what was measured, three digits: with each note that changes a decision is stored again.
        (
            {},
            {"start_up_s": 31.4898},
            ("keep 1 worker warm (workers_min): start-up 31.5 s + tick 5 s + margin 0.5 s > 10 s",),
        ),
        ({}, {"start_up_s": 8.0}, (f"keep 1 worker warm (workers_min):{SLOW}",)),
        (
            {},
            {"start_up_s": 8.0, "arrival_rate_per_s": 4.0, "service_time_s": 0.7},  # 2.8 busy
            (f"keep 3 workers warm (workers_min):{SLOW}",),
        ),
        (
            {},
            {"start_up_s": 8.0, "arrival_rate_per_s": 4.0, "service_time_s": 0.7, "slots_per_worker": 4},
            (f"keep 1 worker warm (workers_min):{SLOW}",),
        ),
        (
            {},
            {"start_up_s": 8.0, "arrival_rate_per_s": 0.17, "service_time_s": 0.2, "burst_jobs": 50.0},
            # A slot starts 1 + ⌊9.5 ÷ 0.25⌋ = 39 of them in time, the margin taken off; 50 ÷ 39 = 1.3
            (f"keep 2 workers warm (workers_min):{SLOW}, and 50 jobs arrive together",),
        ),
        (
            {},
            {"start_up_s": 8.0, "arrival_rate_per_s": 0.17, "service_time_s": 0.2, "burst_jobs": 38.0},
            (f"keep 1 worker warm (workers_min):{SLOW}",),
        ),
        (
            {},
            {"start_up_s": 8.0, "service_time_s": 30.0, "burst_jobs": 40.26},  # each slot starts one only; two digits
            (f"keep 40 workers warm (workers_min):{SLOW}, and 40 jobs arrive together",),
        ),
        (
            {},
            {"start_up_s": 8.0, "service_time_s": 30.0, "burst_jobs": 41.0, "slots_per_worker": 8},  # 41 ÷ 8
            (f"keep 6 workers warm (workers_min):{SLOW}, and 41 jobs arrive together",),
        ),
        (
            {},
            {"start_up_s": 8.0, "arrival_rate_per_s": 4.0, "service_time_s": 0.7, "burst_jobs": 100.0},
            # 114 come; two slots of the 2.8 that are busy surely end 20. 94 ÷ (1 + ⌊9.5 ÷ 0.75⌋) = 7.2, beside the two
            (f"keep 10 workers warm (workers_min):{SLOW}, and 100 jobs arrive together",),
        ),
        (
            {"workers_max": 5},
            {"start_up_s": 8.0, "service_time_s": 30.0, "burst_jobs": 9.0},
            (f"keep 9 workers warm (workers_min):{SLOW}, and 9 jobs arrive together" + NOT_ALLOWED,),
        ),
        ({"workers_min": 2}, {"start_up_s": 8.0, "service_time_s": 0.2, "burst_jobs": 50.0}, ()),
        ({}, {"start_up_s": 4.0, "service_time_s": 30.0, "burst_jobs": 40.0}, ()),  # reacting is soon enough
        ({"workers_min": 3}, {"start_up_s": 8.0, "arrival_rate_per_s": 4.0, "service_time_s": 0.7}, ()),
        ({"pinned": 3}, {"start_up_s": 8.0, "arrival_rate_per_s": 4.0, "service_time_s": 0.7}, ()),
        (
            {"objective": Objective(target_s=7.0)},
            {"start_up_s": None},
            ("keep 1 worker warm (workers_min): start-up 3 s (a guess) + tick 5 s + margin 0.5 s > 7 s",),
        ),
        (
            {"member_objectives": {"redis/mail": Objective(target_s=2.0)}},  # the strictest of all counts
            {"start_up_s": 1.0},
            ("keep 1 worker warm (workers_min): start-up 1 s + tick 5 s + margin 0.5 s > 2 s",),
        ),
        (
            {"hold_up_s": 30.0},
            {"start_up_s": 1.0},
            ("keep 1 worker warm (workers_min): start-up 1 s + tick 5 s + margin 0.5 s + hold_up_s 30 s > 10 s",),
        ),
        (
            {"workers_max": 4},
            {"start_up_s": 8.0, "arrival_rate_per_s": 6.0, "service_time_s": 1.0},
            (
                f"keep 6 workers warm (workers_min):{SLOW}; workers_max=4 does not allow them",
                "workers_max=4 cannot keep up: what arrives keeps 6.0 workers busy",
            ),
        ),
        (
            {"pinned": 2},
            {"start_up_s": 1.0, "arrival_rate_per_s": 3.0, "service_time_s": 1.0},
            ("pinned=2 cannot keep up: what arrives keeps 3.0 workers busy",),
        ),
        (
            {"rate_limit_per_s": 2.0},
            {"start_up_s": 1.0, "arrival_rate_per_s": 3.0},
            ("rate_limit_per_s=2 cannot keep up: 3.0 jobs arrive per second",),
        ),
        (
            {"workers_min": 5, "cost_per_worker_hour": 0.5, "budget_per_hour": 2.0},
            {"start_up_s": 1.0},
            ("budget_per_hour=2 does not pay for 5 standing workers at 0.5",),
        ),
        (
            {"workers_min": 5, "cost_per_worker_hour": 0.5, "budget_per_day": 59.0},
            {"start_up_s": 1.0},
            ("budget_per_day=59 does not pay for 5 workers all day",),
        ),
        ({"workers_min": 5, "cost_per_worker_hour": 0.5, "budget_per_day": 60.0}, {"start_up_s": 1.0}, ()),
    ],
)
def test_what_cannot_be_kept_is_reported_with_its_sum(
    values: dict[str, Any], seen: dict[str, Any], notes: tuple[str, ...]
) -> None:
    load = dict(seen)
    times = PoolTimes(known_start_up_s=load.pop("start_up_s"))
    assert texts(feasibility(profile(**values), times, **load)) == notes


def test_as_many_are_to_be_kept_warm_as_the_demand_asks_for_where_nobody_is_there() -> None:
    """A pool of jobs of 30 s with a burst of 40 at once, beside nothing: one model says both."""
    slow, times = profile(), PoolTimes(known_start_up_s=8.0, lag_s=1.0)
    (note,) = feasibility(slow, times, service_time_s=30.0, burst_jobs=40.0)
    assert note.text == (
        "keep 40 workers warm (workers_min): start-up 8 s + tick 5 s + lag 1 s + margin 0.5 s > 10 s, and 40 jobs "
        "arrive together"
    )
    nobody = Supply(
        busy_slots=0, idle_slots=0, coming=(), completions_per_s=0.0, cycle_s=30.05, caution=1.0, tick_s=5.0
    )
    need = standing(
        nobody, waiting_jobs=0, exposed_s=exposed_s(slow, times), target_s=10.0, arrivals_per_tick=0.0, spare_jobs=40.0
    )
    assert need.slots == 40


@given(st.floats(0.0, 60.0), st.floats(0.1, 60.0), st.integers(0, 20), st.floats(0.0, 100.0))
def test_more_standing_workers_never_bring_a_note_and_enough_end_it(
    start_up_s: float, target_s: float, floor: int, rate_per_s: float
) -> None:
    def notes(workers_min: int) -> tuple[Note, ...]:
        wanted = profile(workers_min=workers_min, objective=Objective(target_s=target_s), workers_max=1_000)
        return feasibility(
            wanted, PoolTimes(known_start_up_s=start_up_s), arrival_rate_per_s=rate_per_s, service_time_s=1.0
        )

    assert len(notes(floor + 1)) <= len(notes(floor))
    assert notes(1_000) == ()


@given(
    jobs=st.floats(0.0, 1e6),
    more=st.floats(0.0, 1e6),
    rate_per_s=st.floats(0.0, 20.0),
    service_s=st.floats(0.0, 100.0),
)
def test_more_jobs_at_once_never_need_fewer_standing_workers(
    jobs: float, more: float, rate_per_s: float, service_s: float
) -> None:
    def needed(burst_jobs: float | None) -> int:
        slow = profile()
        note, *_ = feasibility(
            slow,
            PoolTimes(known_start_up_s=8.0),
            arrival_rate_per_s=rate_per_s,
            service_time_s=service_s,
            burst_jobs=burst_jobs,
        )
        return int(note.text.split()[1])

    assert needed(None) == needed(0.0) <= needed(jobs) <= needed(jobs + more)


def test_bursts_are_remembered_by_the_strategy_s_state_and_reported_between_them() -> None:
    """Thirty jobs each 5 min, as an exposed pool's guard counts them: a quarter of an hour later it still says so."""
    memory, slow = Memory(), profile(objective=Objective(target_s=10.0))
    for tick in range(180):
        jobs, at_s = 0 if tick % 60 else 30, NOW_S + tick * 5.0
        rate_per_s = 30 / 60 if tick % 60 < 12 else 0.0  # over the last minute
        seen = queue(
            sampled_at_s=at_s,
            arrived_jobs=jobs,
            arrived_until_s=at_s,
            arrival_rate_per_s=rate_per_s,
            service_time_s=0.4,
        )
        _, memory = decide(replace(view(seen, start_up_s=8.0), profile=slow), memory, now_s=at_s)
    guard = HybridState.of(memory.strategy_state).guard
    assert guard is not None
    burst_jobs = guard.burst_jobs(99.0)
    assert burst_jobs == pytest.approx(29.7, abs=0.01)  # all but 0.9 of 90
    assert guard.burst_jobs(50.0) == pytest.approx(15.0, abs=0.1)
    assert SafetyStock(began_at_s=NOW_S, at_s=NOW_S).burst_jobs(99.0) is None
    quiet = replace(view(queue(sampled_at_s=at_s, service_time_s=0.4), start_up_s=8.0), profile=slow)
    assert texts(circumstances(reading_of(quiet, Memory(), now_s=at_s), burst_jobs=burst_jobs)) == (
        f"keep 2 workers warm (workers_min):{SLOW}, and 30 jobs arrive together",
    )
    (note,) = circumstances(reading_of(quiet, Memory(), now_s=at_s))
    assert note.text == f"keep 1 worker warm (workers_min):{SLOW}"


def test_workers_that_a_demand_pre_warms_are_not_asked_for_once_more() -> None:
    """One explanation once said "6 slots must be pre-warmed" and, by another sum, "keep 3 workers warm"."""
    slow = view(queue(service_time_s=0.7, arrival_rate_per_s=4.0), start_up_s=8.0)
    (asked,) = circumstances(reading_of(slow, Memory(), now_s=NOW_S))
    assert asked.text == f"keep 3 workers warm (workers_min):{SLOW}"
    assert circumstances(reading_of(slow, Memory(), now_s=NOW_S), standing_workers=2) == (asked,)
    assert circumstances(reading_of(slow, Memory(), now_s=NOW_S), standing_workers=3) == ()


def test_what_people_and_clocks_have_set_is_named_in_the_decision() -> None:
    """At 1970-01-12 13:46:40 UTC."""
    wanted = profile(
        pause=Pause(mode=Mode.PAUSE_UP, until_s=NOW_S + 60, reason="deploying, says Bob"),
        override=Override(workers=12, until_s=NOW_S + 3600, reason="sale, says Ada"),
        schedules=(Schedule(starts="13:00", ends="14:00", workers_min=4, name="lunch"),),
        cost_per_worker_hour=0.5,
        budget_per_day=100.0,
    )
    decision, _ = decide(replace(view(), profile=wanted), Memory(), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (8, "budget")  # 200 h over 24 h
    assert decision.notes == (
        "paused upwards until 1970-01-12T13:47Z: deploying, says Bob",
        "override of 12 workers until 1970-01-12T14:46Z: sale, says Ada",
        "workers 4..100 by schedule: lunch",
        "what the pool has run today is not known: the day's budget is spread evenly",
    )


def test_a_fallback_is_reported_once_it_holds() -> None:
    seen = replace(view(queue(sampled_at_s=NOW_S - 400.0)), profile=profile(fallback_workers=4))
    (note,) = circumstances(reading_of(seen, Memory(), now_s=NOW_S))
    assert note.text == "no metrics for more than 300 s: the profile falls back on 4 workers"
    assert circumstances(reading_of(seen, Memory(), now_s=NOW_S - 200.0)) == ()


def test_a_start_that_takes_for_ever_counts_as_one_that_takes_a_day() -> None:
    """What may come during it is summed evaluation by evaluation: a host may report three hundred years."""
    endless = view(queue(arrival_rate_per_s=1.0), start_up_s=1e10)
    assert times_of(endless).start_up_s == START_UP_MAX_S
    days = replace(endless, start_up_s=START_UP_MAX_S)
    (decided, _), (of_days, _) = (decide(each, Memory(), now_s=NOW_S) for each in (endless, days))
    assert decided == of_days
