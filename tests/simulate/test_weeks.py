"""Hours of the week in a rehearsal: nothing until two weeks are known, then what they are worth."""

from random import Random
from typing import Any

from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.engine.results import Result
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs

DAY_S, HOUR_S = 86_400.0, 3600.0
MONDAY_S = 1_772_409_600.0  # 2 March 2026


def mondays(*, days: int, rush: int = 30) -> Jobs:
    """A rush every Monday at nine, and six jobs a day by chance; each takes almost as long as another may wait."""
    chance = Random(1)
    at_s = [chance.random() * days * DAY_S for _ in range(6 * days)]
    at_s += [day * DAY_S + 9 * HOUR_S + chance.random() * 5 for day in range(0, days, 7) for _ in range(rush)]
    return Jobs(at_s=sorted(at_s), service_s=[50.0] * len(at_s))


def outcome(jobs: Jobs, *, recalls_weeks: bool, tick_s: float = 120.0, **of_profile: Any) -> Result:
    """What came of a pool whose jobs may wait for a minute: whoever is asked for when a job comes is late."""
    plain = {"queues": ("redis/mail",), "template": "rq", "workers_max": 100, "objective": Objective(target_s=60.0)}
    profile = Profile(pool="mail", **{**plain, **of_profile})
    setting = Setting(tick_s=tick_s, start_up_s=120.0, recalls_weeks=recalls_weeks)
    return rehearse(jobs, profile, setting, begins_at_s=MONDAY_S)


def test_until_two_weeks_are_known_weeks_change_nothing() -> None:
    jobs = mondays(days=14)
    with_weeks, without = (outcome(jobs, recalls_weeks=weeks, tick_s=300.0) for weeks in (True, False))
    assert with_weeks == without


def test_a_pool_that_is_not_exposed_is_as_it_was() -> None:
    with_weeks, without = (
        outcome(mondays(days=16), recalls_weeks=weeks, tick_s=300.0, objective=Objective(target_s=600.0))
        for weeks in (True, False)
    )
    assert with_weeks == without


def test_workers_stand_ready_for_what_comes_once_a_week_from_the_third_time_on() -> None:
    jobs = mondays(days=15)
    with_weeks, without = (outcome(jobs, recalls_weeks=weeks) for weeks in (True, False))
    third = 14
    assert with_weeks.attainment_by_day_percent[:third] == without.attainment_by_day_percent[:third]
    ready, late = (each.attainment_by_day_percent[third] for each in (with_weeks, without))
    assert ready is not None
    assert late is not None
    assert ready > 70 > 30 > late  # of some 36 jobs, of which thirty come with the rush
    assert with_weeks.worker_hours < without.worker_hours  # which stands for what it saw in the last days
