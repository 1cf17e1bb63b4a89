"""The day's budget: what was paid is counted on whatever happens to clocks, and no target commits more than is left."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.decide import decide
from headway.scaling.decisions.change_detection import is_new
from headway.scaling.decisions.finite_figures import non_finite_decided
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.explain import explained
from headway.scaling.model import DayPaid, Decision, Memory, Mode
from headway.scaling.policy.day_budget import account_of, payable_workers, remembered
from headway.scaling.profile import Override
from headway.scaling.profile_keys.pauses import Pause
from headway.scaling.profile_keys.schedule import day_of, span_s
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.view import PoolView
from support.pools import profile, queue, view

HOUR_S, DAY_S = 3600.0, 86_400.0
BERLIN = ZoneInfo("Europe/Berlin")
MIDNIGHT_S = datetime(2026, 11, 23, tzinfo=UTC).timestamp()
NOON_S = MIDNIGHT_S + 12 * HOUR_S


def paid(**values: Any) -> DayPaid:
    """Ten worker-hours by noon, nobody there."""
    plain = {"day": "2026-11-23", "at_s": NOON_S, "paid_worker_s": 10 * HOUR_S, "workers": 0, "since_s": MIDNIGHT_S}
    return DayPaid(**{**plain, **values})


def budgeted(**values: Any) -> PoolView:
    """A pool of 48 worker-hours a day with forty jobs of ``service_time_s`` that wait."""
    of_profile = {"cost_per_worker_hour": 0.5, "budget_per_day": 24.0, **values.pop("profile", {})}
    service_time_s = values.pop("service_time_s", 2 * HOUR_S)
    at_s = values.pop("at_s", NOON_S)
    waiting = queue(
        sampled_at_s=at_s, waiting_jobs=40, oldest_age_s=9.0, in_flight_jobs=0, service_time_s=service_time_s
    )
    return replace(view(waiting, **values), profile=profile(**of_profile))


def counted(seen: PoolView, before: DayPaid | None, at_s: float) -> DayPaid:
    account = account_of(seen, pooled(seen.queues), before, now_s=at_s)
    assert account is not None
    return account.paid


def hours(paid_: DayPaid) -> float:
    return paid_.paid_worker_s / HOUR_S


# --- what is counted -------------------------------------------------------------------------------------------------


def test_workers_are_paid_from_one_evaluation_to_the_next_and_over_a_restart() -> None:
    """What is remembered is the count and when it began: after an hour without anybody deciding it was paid as well."""
    seen = budgeted(running_workers=3, starting_workers=1)
    assert hours(counted(seen, paid(workers=4), NOON_S + HOUR_S)) == pytest.approx(10 + 4)


def test_the_days_budget_pays_workers_that_leave_and_those_of_unreachable_hosts() -> None:
    seen = budgeted(running_workers=1, leaving_workers=2, unknown_workers=3)
    assert counted(seen, paid(), NOON_S).workers == 6


def test_who_is_seen_for_the_first_time_is_paid_for_one_evaluation_before() -> None:
    seen = budgeted(running_workers=5)
    assert counted(seen, paid(workers=2), NOON_S + HOUR_S).paid_worker_s == 10 * HOUR_S + 2 * HOUR_S + 3 * 5.0


def test_while_time_alone_passes_the_memory_is_the_same() -> None:
    """A memory that changed with every evaluation would be written with every evaluation."""
    seen, before = budgeted(running_workers=2), paid(workers=2, service_s=2 * HOUR_S)
    for at_s, is_same in ((NOON_S + 5, True), (NOON_S - 5, False), (NOON_S + DAY_S, False)):
        assert (remembered(before, account_of(seen, pooled(seen.queues), before, now_s=at_s)) is before) is is_same
    more = account_of(budgeted(running_workers=3), pooled(budgeted(running_workers=3).queues), before, now_s=NOON_S + 5)
    assert remembered(before, more) == counted(budgeted(running_workers=3), before, NOON_S + 5)


def test_a_new_day_is_paid_from_its_midnight_on() -> None:
    """Two workers from noon to one o'clock of the next day: one hour of two."""
    found = counted(budgeted(running_workers=2), paid(workers=2), MIDNIGHT_S + DAY_S + HOUR_S)
    assert (found.day, hours(found), found.since_s) == ("2026-11-24", pytest.approx(2.0), MIDNIGHT_S + DAY_S)


def test_a_clock_that_steps_back_pays_nothing_twice_and_forgets_nothing() -> None:
    back = counted(budgeted(running_workers=2), paid(workers=2), NOON_S - HOUR_S)
    assert (hours(back), back.at_s) == (10.0, NOON_S - HOUR_S)
    assert hours(counted(budgeted(running_workers=2), back, NOON_S)) == 12.0


def test_a_clock_that_steps_back_over_midnight_stays_in_the_later_day() -> None:
    """Else each step would bring a budget of its own."""
    seen, before = budgeted(running_workers=2), paid(at_s=MIDNIGHT_S + 60.0, workers=2)
    account = account_of(seen, pooled(seen.queues), before, now_s=MIDNIGHT_S - 60.0)
    assert account is not None
    assert (account.paid.day, hours(account.paid)) == ("2026-11-23", 10.0)
    assert account.left_of_day_s == DAY_S + 60.0
    assert hours(counted(seen, account.paid, MIDNIGHT_S + HOUR_S)) == pytest.approx(10 + 2 * (HOUR_S + 60) / HOUR_S)


def test_what_a_clock_counted_that_was_days_ahead_is_not_believed() -> None:
    """The rest of the day is then known, and spends evenly: two workers of 48 hours."""
    seen, before = budgeted(running_workers=0), paid(day="2038-01-19", at_s=NOON_S + 4_000 * DAY_S)
    account = account_of(seen, pooled(seen.queues), before, now_s=NOON_S)
    assert account is not None
    assert (account.is_whole, account.paid.day, account.paid.since_s) == (False, "2026-11-23", NOON_S)
    assert account.budget_worker_s == 24 * HOUR_S
    decision, _ = decide(seen, Memory(day_paid=before), now_s=NOON_S)
    assert decision.target_workers == 2


@pytest.mark.parametrize(
    ("unknown", "leaving", "target"),
    [
        (0, 0, 2),  # 48 worker-hours for 24 hours
        (1, 0, 1),
        (3, 0, 0),  # they may run unseen: nobody is started in their place
        (0, 1, 1),
    ],
)
def test_of_a_day_that_is_not_known_those_unseen_and_those_that_leave_take_their_even_part(
    unknown: int, leaving: int, target: int
) -> None:
    decision, _ = decide(budgeted(unknown_workers=unknown, leaving_workers=leaving), Memory(), now_s=NOON_S)
    assert (decision.target_workers, decision.binding) == (target, "budget")


def test_counting_begins_with_what_stored_decisions_hold() -> None:
    seen = budgeted(worker_hours_today=7.0)
    assert hours(counted(seen, None, NOON_S)) == 7.0
    assert counted(seen, None, NOON_S).since_s == MIDNIGHT_S
    assert hours(counted(seen, paid(), NOON_S)) == 10.0  # whose memory has a count of its own


@pytest.mark.parametrize(
    ("day", "length_h"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-11-23", 24)]
)  # clocks set forward, back, and left alone
def test_a_day_is_as_long_as_the_clock_on_the_wall_makes_it(day: str, length_h: int) -> None:
    began_s, ends_s = span_s(day, BERLIN)
    assert ends_s - began_s == length_h * HOUR_S
    assert (day_of(began_s, BERLIN), day_of(ends_s - 1, BERLIN)) == (day, day)
    assert day_of(began_s - 1, BERLIN) < day < day_of(ends_s, BERLIN)


def test_the_day_of_the_budget_is_that_of_its_time_zone() -> None:
    """23:30 UTC is half past midnight in Berlin: a new day there, with its whole budget."""
    at_s = MIDNIGHT_S + 23.5 * HOUR_S
    berlin = replace(
        budgeted(running_workers=1, zones={"Europe/Berlin": BERLIN}),
        profile=profile(cost_per_worker_hour=0.5, budget_per_day=24.0, budget_time_zone="Europe/Berlin"),
    )
    assert counted(budgeted(running_workers=1), paid(workers=1), at_s).day == "2026-11-23"
    found = counted(berlin, paid(workers=1), at_s)
    assert (found.day, hours(found)) == ("2026-11-24", pytest.approx(0.5))


def test_a_time_zone_that_is_not_known_is_named() -> None:
    seen = replace(
        budgeted(), profile=profile(cost_per_worker_hour=1.0, budget_per_day=1.0, budget_time_zone="Mars/Olympus")
    )
    with pytest.raises(Invalid, match="budget_time_zone 'Mars/Olympus' is not known"):
        account_of(seen, pooled(seen.queues), None, now_s=NOON_S)


# --- what it still pays for ------------------------------------------------------------------------------------------

LATE_S = MIDNIGHT_S + 23 * HOUR_S


def most(*, at_s: float = NOON_S, floor: int = 0, busy: int = 0, before: DayPaid | None = None, **values: Any) -> int:
    seen = budgeted(at_s=at_s, start_up_s=0.0, tick_s=0.0, **values)
    before = paid(at_s=at_s) if before is None else before
    account = account_of(seen, pooled(seen.queues), before, now_s=at_s)
    assert account is not None
    return payable_workers(account, seen, floor_workers=floor, busy_workers=busy)


@pytest.mark.parametrize(
    ("workers", "values"),
    [
        # 48 worker-hours a day, 10 of them paid: 38 are left
        (19, {}),  # jobs of 2 h
        (38, {"service_time_s": 1.0}),  # an hour ahead at least
        (38, {"at_s": LATE_S}),  # nothing is paid beyond midnight
        (14, {"floor": 1}),  # 12 h for the floor until midnight, 26 h for 13 others
        (3, {"service_time_s": None}),  # not known: until midnight
        (9, {"service_time_s": None, "profile": {"service_time_guess_s": 4 * HOUR_S}}),
        (14, {"leaving_workers": 10}),  # each has an hour left on average: 28 h
        (9, {"unknown_workers": 10}),  # each is expected to take one more job
        (18, {"busy": 20}),  # 38 = 18 × 2 h + 2 × 1 h
        (0, {"busy": 40}),  # those at work finish their jobs, and that is more than there is
        (9, {"unknown_workers": 10, "busy": 5}),
        (5, {"unknown_workers": 30, "busy": 5}),  # no busy worker is asked to leave for what may run unseen
    ],
)
def test_a_start_costs_its_job_until_midnight(workers: int, values: dict[str, Any]) -> None:
    assert most(**values) == workers


def test_start_up_and_the_wait_for_the_next_evaluation_are_paid_as_well() -> None:
    """38 h for jobs of 1 h 54 min, with 5 min of start-up and 1 min of tick: 2 h each."""
    seen = budgeted(service_time_s=1.9 * HOUR_S, start_up_s=300.0, tick_s=60.0)
    account = account_of(seen, pooled(seen.queues), paid(), now_s=NOON_S)
    assert account is not None
    assert payable_workers(account, seen, floor_workers=0, busy_workers=0) == 19


def test_one_worker_is_started_to_learn_how_long_jobs_take() -> None:
    """Six hours do not pay for one until midnight; without any nobody would ever know that jobs take a second."""
    small = {"budget_per_day": 3.0}
    unknown = {"at_s": MIDNIGHT_S, "before": paid(at_s=MIDNIGHT_S, paid_worker_s=0.0), "service_time_s": None}
    assert most(profile=small, **unknown) == 1
    assert most(profile=small, busy=1, **unknown) == 1
    assert most(profile={"budget_per_day": 0.4}, **unknown) == 0


def test_a_service_time_is_remembered_while_no_job_ends() -> None:
    """Of jobs of hours none may end for long; what is remembered counts more than a guess and less than a new one."""
    known = counted(budgeted(service_time_s=2.04 * HOUR_S), paid(), NOON_S)
    assert known.service_s == 7300.0
    nobody = {"service_time_s": None, "profile": {"service_time_guess_s": 60.0}, "before": known}
    assert most(**nobody) == 18
    assert counted(budgeted(service_time_s=None), known, NOON_S + 5).service_s == 7300.0
    assert counted(budgeted(service_time_s=None), known, NOON_S + DAY_S).service_s == 7300.0
    assert most(**{**nobody, "service_time_s": 3 * HOUR_S}) == 12


def test_the_longer_jobs_of_a_group_count_only_while_they_wait() -> None:
    short = queue(queue="redis/a", waiting_jobs=3, sampled_at_s=NOON_S, service_time_s=1.0, completion_rate_per_s=9.0)
    long = queue(queue="redis/b", waiting_jobs=0, sampled_at_s=NOON_S, service_time_s=2 * HOUR_S)
    of_profile = profile(queues=("redis/a", "redis/b"), cost_per_worker_hour=0.5, budget_per_day=24.0)
    found = []
    for waiting in (0, 5):
        members = (replace(short, waiting_jobs=3 - 3 * bool(waiting)), replace(long, waiting_jobs=waiting))
        seen = replace(view(*members, start_up_s=0.0, tick_s=0.0), profile=of_profile)
        account = account_of(seen, pooled(seen.queues), paid(), now_s=NOON_S)
        assert account is not None
        found.append(payable_workers(account, seen, floor_workers=0, busy_workers=0))
    assert found == [38, 19]


@given(
    budget_h=st.floats(0.1, 500.0),
    paid_h=st.floats(0.0, 500.0),
    at_h=st.floats(0.0, 23.99),
    service_h=st.none() | st.floats(1e-6, 30.0),
    floor=st.integers(0, 40),
    busy=st.integers(0, 60),
    leaving=st.integers(0, 30),
    unknown=st.integers(0, 30),
)
def test_a_target_never_commits_more_than_the_budget_has_left(
    budget_h: float,
    paid_h: float,
    at_h: float,
    service_h: float | None,
    floor: int,
    busy: int,
    leaving: int,
    unknown: int,
) -> None:
    """The expected cost of the target until midnight, worked out apart; and one worker more would be too many."""
    at_s = MIDNIGHT_S + at_h * HOUR_S
    left_h, day_h = max(0.0, budget_h - paid_h), 24.0 - at_h
    job_h = min(day_h, math.inf if service_h is None else max(1.0, service_h))
    rest_h = min(day_h, service_h or 1.0) / 2
    found = most(
        at_s=at_s,
        before=paid(at_s=at_s, paid_worker_s=paid_h * HOUR_S),
        profile={"budget_per_day": budget_h / 2},
        service_time_s=None if service_h is None else service_h * HOUR_S,
        leaving_workers=leaving,
        unknown_workers=unknown,
        floor=floor,
        busy=busy,
    )

    def cost_h(workers: int) -> float:
        standing = min(workers, floor)
        unseen = 0 if workers <= busy else unknown * job_h
        asked_h = (max(0, busy - workers) + leaving) * rest_h
        return standing * day_h + (workers - standing) * job_h + asked_h + unseen

    is_first_job = service_h is None and found == 1
    if found and not is_first_job:
        assert cost_h(found) <= left_h + 1e-6
    if not is_first_job:
        assert cost_h(found + 1) > left_h - 1e-6


# --- in a decision ---------------------------------------------------------------------------------------------------


def decided(before: DayPaid, at_s: float = NOON_S, **values: Any) -> Decision:
    seen = budgeted(at_s=at_s, start_up_s=1.0, **values)
    last = seen.running_workers
    return decide(replace(seen, assigned_workers=last), Memory(target_workers=last, day_paid=before), now_s=at_s)[0]


def test_a_budget_that_is_raised_or_lowered_during_the_day_holds_at_once() -> None:
    """10 h are paid: of 48 there are 38 left, of 96 there are 86, of 9 none."""
    found = {budget: decided(paid(), profile={"budget_per_day": budget}).target_workers for budget in (24.0, 48.0, 4.5)}
    assert found == {24.0: 18, 48.0: 40, 4.5: 0}


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (18, {"override": Override(workers=90, until_s=NOON_S + 60, reason="sale")}),
        (18, {"mode": Mode.PAUSE}),
        (18, {"pause": Pause(mode=Mode.PAUSE_DOWN, reason="deploying")}),
        (18, {"pinned": 90}),
        (3, {"workers_min": 90}),  # each until midnight
    ],
)
def test_whatever_a_person_says_the_day_pays_for_no_more(workers: int, said: dict[str, Any]) -> None:
    """38 h are left at noon for jobs of 2 h and some seconds; forty workers are there, without a job."""
    found = decided(paid(), profile=said, running_workers=40)
    assert (found.target_workers, found.binding) == (workers, "budget")


def test_what_runs_on_beyond_the_budget_is_shown_as_overrun() -> None:
    """50 of 48 worker-hours: nobody is kept, those at work finish, and the decision says so."""
    found = decided(paid(paid_worker_s=50 * HOUR_S), running_workers=3)
    assert (found.target_workers, found.binding) == (0, "budget")
    assert found.day_budget is not None
    assert found.day_budget.overrun_worker_s == 2 * HOUR_S
    note = "the budget of 2026-11-23 is spent, overrun 2.00 worker-hours: 3 workers may finish the jobs at hand"
    assert note in found.notes
    text = " ".join(explained(found))
    assert "Of the 48 worker-hours that the budget of 2026-11-23 pays for, 50.00 are paid." in text
    assert "The budget of 2026-11-23 is spent, overrun 2.00 worker-hours" in text


def test_an_overrun_that_grows_is_no_news() -> None:
    """Else each evaluation would store a row."""
    first = decided(paid(paid_worker_s=50 * HOUR_S, workers=3), running_workers=3)
    later = decided(paid(paid_worker_s=50 * HOUR_S, workers=3), at_s=NOON_S + 600, running_workers=3)
    assert first.notes != later.notes
    assert not is_new(later, first)


def test_a_pool_without_a_budget_of_the_day_counts_nothing() -> None:
    decision, memory = decide(view(), Memory(day_paid=paid()), now_s=NOON_S)
    assert (decision.day_budget, memory.day_paid) == (None, None)


def test_workers_that_cost_all_but_nothing_are_paid_for_and_no_figure_is_infinite() -> None:
    cheap = budgeted(profile={"cost_per_worker_hour": 5e-324, "budget_per_day": 1e9, "workers_max": 40})
    decision, memory = decide(cheap, Memory(), now_s=NOON_S)
    assert decision.target_workers == 40
    assert decision.day_budget is not None
    assert math.isfinite(decision.day_budget.budget_worker_s)
    assert non_finite_decided(Outcome(view=cheap, before=Memory(), decision=decision, memory=memory)) is None
