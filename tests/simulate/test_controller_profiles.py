"""A rehearsed pool goes by its whole profile: schedules, options of its strategy, the budget of the day."""

from zoneinfo import ZoneInfo

from headway.scaling.model import QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView
from headway.simulate import Controller, Observation
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from support.pools import profile


def controller(wanted: Profile, **values: object) -> Controller:
    return Controller(profile=wanted, **values)


def observed(at_s: float, workers: int = 0) -> Observation:
    return Observation(at_s=at_s, waiting=0, workers=workers, idle=workers)


def test_schedules_go_by_the_clock_of_the_rehearsal() -> None:
    noon = Schedule(starts="12:00", ends="13:00", time_zone="Asia/Kolkata", workers_min=3)  # 06:30 to 07:30 UTC
    rehearsed = controller(profile(schedules=(noon,)), zones={"Asia/Kolkata": ZoneInfo("Asia/Kolkata")})
    targets = [rehearsed.step(observed(hour * 3600.0)).target_workers for hour in (6.0, 6.5, 7.4, 7.5)]
    assert targets == [0, 3, 3, 0]


def test_a_schedule_may_raise_the_ceiling() -> None:
    """Forty jobs at once and two workers at most, but for an hour in which there may be nine."""
    noon = Schedule(starts="12:00", ends="13:00", workers_max=9)
    wanted = profile(workers_min=0, workers_max=2, schedules=(noon,))
    for hour, workers in ((11.0, 2), (12.0, 9)):
        seen = Observation(at_s=hour * 3600.0, waiting=40, oldest_age_s=9.0, arrived=40)
        assert controller(wanted).step(seen).target_workers == workers
        jobs = Jobs(at_s=[1.0] * 40, service_s=[60.0] * 40)
        result = rehearse(jobs, wanted, Setting(), begins_at_s=hour * 3600.0)
        assert max(point.present_workers for point in result.points) == workers


def test_a_budget_of_the_day_counts_what_was_rehearsed_since_midnight() -> None:
    """A floor of four, 40 a day at 1 each: one or two at a time, so that it lasts until midnight."""
    rehearsed = controller(profile(workers_min=4, cost_per_worker_hour=1.0, budget_per_day=40.0))
    workers, spent_hours, by_day = 0, 0.0, []
    for minute in range(2 * 24 * 60):
        decision = rehearsed.step(observed(minute * 60.0, workers))
        workers = decision.target_workers
        spent_hours += workers / 60
        if minute % 1440 == 1439:
            by_day.append(spent_hours)
            spent_hours = 0.0
    assert all(39.0 <= spent <= 40.1 for spent in by_day)


def test_a_strategy_reads_its_numbers_from_the_profile_and_from_who_drives_it() -> None:
    def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
        seen.append(dict(view.options))
        return BUILT_IN["hybrid"].advise(queue, view, state, now_s)

    seen: list[dict[str, float]] = []
    strategies = {"mine": Strategy(name="mine", advise=advise, options={"a": 1.0, "b": 1.0, "c": 1.0})}
    wanted = profile(strategy="mine", strategy_options={"b": 2.0, "c": 2.0})
    controller(wanted, strategies=strategies, options={"c": 3.0}).step(observed(0.0))
    assert seen == [{"a": 1.0, "b": 2.0, "c": 3.0}]
