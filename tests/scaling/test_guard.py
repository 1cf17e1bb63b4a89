import math
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.demands.safety_stock import (
    BEYOND_LEAST,
    BEYOND_MOST,
    LATE_JOB_WORKER_S,
    STOCK_BEYOND_FIRST,
    STOCK_FIRST_DAY_WORKER_S,
    STOCK_FIRST_JOBS,
    STOCK_LEARNING_STEP,
    STOCK_MEMORY_S,
    SafetyStock,
    learned,
    spare_jobs,
)
from headway.scaling.forecasts.earlier_days import STOCK_RECALL_TIME_S
from headway.scaling.forecasts.shortfalls import Shortfalls
from headway.scaling.model import Objective, QueueMetrics
from headway.scaling.profile import Forecast
from headway.scaling.view import PoolView
from scaling.bands import changed, parts, reloaded
from support.pools import NOW_S, exposed_of, profile, queue, view

TICK_S = 5.0
WINDOW_S = 60.0


def pool(*, recalled_jobs: float | None = None, recalled_weeks: int | None = None, **of_profile: Any) -> PoolView:
    """A pool that promises 10 s and starts in 8 s: it is exposed for 3.5 s."""
    return view(
        profile=profile(**of_profile), start_up_s=8.0, recalled_jobs=recalled_jobs, recalled_weeks=recalled_weeks
    )


def evaluated(*, tick: int = 0, arrived_jobs: int = 0, **values: Any) -> QueueMetrics:
    """A queue at the end of a tick."""
    now_s = NOW_S + TICK_S * tick
    return queue(sampled_at_s=now_s, arrived_until_s=now_s, arrived_jobs=arrived_jobs, **values)


def after(
    *evaluations: dict[str, Any], at: PoolView | None = None, guard: SafetyStock | None = None, first: int = 0
) -> SafetyStock:
    """What has been learned after so many evaluations."""
    for tick, values in enumerate(evaluations, start=first):
        guard = learned(guard, exposed_of(evaluated(tick=tick, **values), at or pool(), now_s=NOW_S + TICK_S * tick))
    assert guard is not None
    return guard


def spare_now(guard: SafetyStock, *, at: PoolView | None = None, now_s: float | None = None, **values: Any) -> float:
    """The spare of a pool of which earlier days predict what ``guard`` has of them."""
    at = at or pool(recalled_jobs=parts(guard).recalled_jobs)
    return spare_jobs(guard, exposed_of(queue(**values), at, now_s=guard.at_s if now_s is None else now_s))


def short(jobs: float, *, spans: int = 1, of_jobs: int = 1000, watched_s: float = TICK_S) -> Shortfalls:
    """So many spans, each ``jobs`` short."""
    found = Shortfalls(jobs=of_jobs, time_s=watched_s)
    for _ in range(spans):
        found = found.seen(jobs, jobs=0, span_s=0.0)
    return found


# What is expected and what comes


def test_a_first_evaluation_guards_with_one_job_until_a_worker_could_be_up() -> None:
    guard = after({})
    assert spare_now(guard) == STOCK_FIRST_JOBS
    assert spare_now(guard, now_s=NOW_S + 13.0) == STOCK_FIRST_JOBS  # a look and a start-up of 8 s
    assert spare_now(guard, now_s=NOW_S + 13.1) == 0.0


def test_what_came_beyond_the_recent_rate_is_learned() -> None:
    guard = after({"arrival_rate_per_s": 2.0})  # ten are expected by the next look
    assert guard.expected_jobs == 10.0
    assert after({"arrived_jobs": 13}, guard=guard, first=1).by_rate.least_spare(0.0) == 3.0
    assert after({"arrived_jobs": 9}, guard=guard, first=1).by_rate.least_spare(0.0) == 0.0


def test_jobs_that_come_back_teach_nothing_of_what_will_come() -> None:
    """Neither how far the rate fell short, nor a rhythm, nor what is expected next."""
    calm = [{"arrived_jobs": 2, "arrival_rate_per_s": 0.4} for _ in range(40)]
    storm = [
        {**each, "arrived_jobs": 2 + 12 * (tick % 4 == 0), "retried_jobs": 12 * (tick % 4 == 0)}
        for tick, each in enumerate(calm)
    ]
    raised = [{**each, "arrival_rate_per_s": 1.0, "retry_rate_per_s": 0.6} for each in storm]
    assert after(*raised).expected_jobs == pytest.approx(2.0)
    assert asdict(after(*storm)) == asdict(after(*calm))


def test_a_span_that_is_seen_twice_counts_once() -> None:
    once = after({"arrived_jobs": 3}, {"arrived_jobs": 4})
    again = learned(once, exposed_of(evaluated(tick=1, arrived_jobs=4), pool(), now_s=NOW_S + 7.0))
    assert again == once
    assert again.by_rate.jobs / again.by_rate.scale == pytest.approx(4 + 3 * math.exp(-TICK_S / STOCK_MEMORY_S))


def test_time_in_which_nothing_was_seen_is_counted_with_what_comes_next() -> None:
    guard = after({"arrived_jobs": 3})
    for tick in range(1, 10):
        quiet = queue(sampled_at_s=NOW_S + TICK_S * tick)  # nothing came within its window
        assert learned(guard, exposed_of(quiet, pool(), now_s=NOW_S + TICK_S * tick)) == guard
    woken = after({"arrived_jobs": 2}, guard=guard, first=10)
    assert woken.by_rate.time_s / woken.by_rate.scale == pytest.approx(50.0 + TICK_S * math.exp(-50.0 / STOCK_MEMORY_S))


def test_what_was_learned_fades_over_a_working_day() -> None:
    guard = after({"arrived_jobs": 100})
    next_day = replace(evaluated(), arrived_until_s=NOW_S + STOCK_MEMORY_S)
    later = learned(guard, exposed_of(next_day, pool(), now_s=NOW_S + STOCK_MEMORY_S))
    assert later.by_rate.jobs / later.by_rate.scale == pytest.approx(100 / math.e)


def test_standing_grows_dearer_while_nothing_comes() -> None:
    """A rush of ten in an hour is worth ten workers on the first day; in more than an hour it is not."""
    guard = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=short(10, of_jobs=10, watched_s=3600.0))
    assert spare_now(guard, service_time_s=None) == pytest.approx(9.9)  # 1 % of ten may come beyond
    assert spare_now(guard, service_time_s=None, now_s=NOW_S + 1.0) == 0.0


# How tight the guard is


def test_a_late_job_tightens_the_guard_by_a_quarter() -> None:
    guard = after(*[{"late_rate_per_s": 1 / WINDOW_S}] * 12)  # one job, as long as the window has it
    assert guard.beyond_log == pytest.approx(math.log(STOCK_BEYOND_FIRST) - STOCK_LEARNING_STEP)
    assert math.exp(guard.beyond_log) == pytest.approx(0.0074, abs=5e-5)  # 1 % × e^−0.3


def test_a_thousand_jobs_in_time_loosen_it_by_as_much() -> None:
    guard = after(*[{"start_rate_per_s": 1000 / WINDOW_S}] * 12)
    assert guard.beyond_log == pytest.approx(math.log(STOCK_BEYOND_FIRST) + STOCK_LEARNING_STEP)


def test_one_late_job_in_a_thousand_leaves_it_as_it_is() -> None:
    guard = after(*[{"start_rate_per_s": 1000 / WINDOW_S, "late_rate_per_s": 1 / WINDOW_S}] * 12)
    assert guard.beyond_log == pytest.approx(math.log(STOCK_BEYOND_FIRST))


@pytest.mark.parametrize("risk", [0.5, 1.0, 4.0])
def test_it_is_never_tighter_nor_looser_than_its_bounds(risk: float) -> None:
    risky = pool(risk=risk)
    tight = after({"late_rate_per_s": 1e6}, at=risky)
    loose = after({"start_rate_per_s": 1e9}, at=risky)
    assert math.exp(tight.beyond_log) == pytest.approx(BEYOND_LEAST * risk)
    assert math.exp(loose.beyond_log) == pytest.approx(BEYOND_MOST * risk)


def test_late_jobs_after_a_quiet_night_tighten_it_no_more_than_at_any_other_time() -> None:
    """Rates cover their window, not all the time since the last evaluation that taught anything."""
    guard = after({"arrived_jobs": 1})
    morning = replace(evaluated(arrived_jobs=1, late_rate_per_s=1 / WINDOW_S), arrived_until_s=NOW_S + 28_800.0)
    woken = learned(guard, exposed_of(morning, pool(), now_s=NOW_S + 28_800.0))
    assert woken.beyond_log >= guard.beyond_log - STOCK_LEARNING_STEP - 1e-9


def test_a_tighter_guard_keeps_more_spare_jobs() -> None:
    rushes = short(10, spans=3, of_jobs=1000)
    spares = [
        spare_now(SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=rushes, beyond_log=math.log(beyond)))
        for beyond in (0.0005, 0.01, 0.1)
    ]
    assert spares == pytest.approx([10 - 0.5 / 3, 10 - 10 / 3, 0.0])  # of 1,000 jobs: half a job, 10, 100 of 30


# What standing is worth


def test_until_a_day_has_been_seen_standing_must_pay_for_itself_sooner() -> None:
    rush = short(10, of_jobs=10, watched_s=8 * 3600.0)  # ten too many, once in eight hours
    first_day = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=rush)
    later = changed(first_day, by_recall=short(40, watched_s=STOCK_RECALL_TIME_S), recalled_jobs=0.0)
    assert (STOCK_FIRST_DAY_WORKER_S, LATE_JOB_WORKER_S) == (3600.0, 57_600.0)
    assert spare_now(first_day, service_time_s=None) == 0.0  # 8 h of a worker for one late job: more than 1 h
    assert spare_now(later, service_time_s=None) == pytest.approx(9.9)  # and less than 16 h; 1 % of ten may be late


def test_a_worker_that_takes_more_jobs_in_time_is_worth_more() -> None:
    rush = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=short(10, of_jobs=10, watched_s=7 * 3600.0))
    assert spare_now(rush, service_time_s=2.0) == 0.0  # 1 + 9.5 ÷ 2 = 5.75 jobs: less than seven
    assert spare_now(rush, service_time_s=1.5) == pytest.approx(9.9)  # 1 + 9.5 ÷ 1.5 = 7.3


def test_more_risk_pays_less_for_a_late_job() -> None:
    rush = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=short(10, of_jobs=10, watched_s=1800.0))
    spares = [spare_now(rush, at=pool(risk=risk), service_time_s=None) for risk in (1.0, 2.0, 2.1)]
    assert spares == pytest.approx([9.9, 9.9, 0.0])  # half an hour is what a late job is worth at a risk of 2


# What earlier days tell


def trained(*, recalled_jobs: float, mean_jobs: float) -> SafetyStock:
    """Twenty come at once now and then, and earlier days have predicted it each time."""
    guard = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=short(20, of_jobs=20), beyond_log=math.log(BEYOND_LEAST))
    by_recall = short(1, of_jobs=20, watched_s=STOCK_RECALL_TIME_S)
    return changed(guard, by_recall=by_recall, recalled_mean_jobs=mean_jobs, recalled_jobs=recalled_jobs)


@pytest.mark.parametrize(
    ("recalled_jobs", "mean_jobs", "spare"),
    [
        (0.0, 2.0, 0.99),  # none are due: only what even earlier days do not tell
        (20.0, 2.0, 20.99),  # twenty are due
        (20.0, 18.9, 20.99),  # 18.9 + 0.99 is fewer than 19.99
        (20.0, 19.1, 19.99),  # on average more would stand than without
        (0.0, 19.1, 19.99),
    ],
)
def test_earlier_days_count_only_while_they_ask_for_fewer_to_stand(
    recalled_jobs: float, mean_jobs: float, spare: float
) -> None:
    assert spare_now(trained(recalled_jobs=recalled_jobs, mean_jobs=mean_jobs)) == pytest.approx(spare)


def test_in_its_first_hour_what_earlier_days_predict_only_adds() -> None:
    """That they fell short of nothing yet proves nothing: what the rate teaches stands all the same."""
    judged = trained(recalled_jobs=0.0, mean_jobs=2.0)
    by_recall = replace(parts(judged).by_recall, time_s=STOCK_RECALL_TIME_S / 2)
    first_hour = changed(judged, by_recall=by_recall)
    assert [spare_now(guard) for guard in (judged, first_hour)] == pytest.approx([0.99, 19.99])
    assert spare_now(changed(first_hour, recalled_jobs=30.0)) == pytest.approx(30.99)
    assert spare_now(changed(first_hour, recalled_jobs=30.0, recalled_mean_jobs=50.0)) == pytest.approx(30.99)


def test_what_weeks_predict_has_been_judged_and_counts_also_where_standing_for_it_costs_more() -> None:
    guard = trained(recalled_jobs=20.0, mean_jobs=19.1)
    weekly = pool(recalled_jobs=20.0, recalled_weeks=3)
    assert spare_jobs(guard, exposed_of(queue(), weekly, now_s=NOW_S)) == pytest.approx(20.99)


def test_what_earlier_days_predict_counts_beyond_the_rate() -> None:
    guard = after({"arrival_rate_per_s": 2.0}, at=pool(recalled_jobs=10.0))
    assert parts(guard).recalled_jobs == pytest.approx(3.0)  # seven of the next ten come while the pool is exposed
    assert parts(after({"arrival_rate_per_s": 2.0}, at=pool(recalled_jobs=6.0))).recalled_jobs == 0.0
    short_of_both = after({"arrived_jobs": 15}, guard=guard, first=1, at=pool(recalled_jobs=0.0))
    known = parts(short_of_both)
    assert (known.by_rate.least_spare(0.0), known.by_recall.least_spare(0.0)) == (5.0, 2.0)


def test_what_standing_for_earlier_days_costs_is_averaged_over_time() -> None:
    guard = changed(after({}), recalled_jobs=10.0, recalled_mean_jobs=4.0)
    later = after({}, guard=guard, first=1, at=pool(recalled_jobs=0.0))
    kept = math.exp(-TICK_S / STOCK_MEMORY_S)
    assert parts(later).recalled_mean_jobs == pytest.approx(4.0 * kept + 10.0 * (1 - kept))


def test_a_profile_without_forecast_gets_no_prediction() -> None:
    deaf = after({"arrival_rate_per_s": 2.0}, at=pool(recalled_jobs=50.0, forecast=Forecast.OFF))
    assert parts(deaf).recalled_jobs is None


# Whatever is seen

EVALUATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "arrived_jobs": st.integers(0, 10_000),
            "arrival_rate_per_s": st.none() | st.floats(0, 1000),
            "start_rate_per_s": st.none() | st.floats(0, 1000),
            "late_rate_per_s": st.none() | st.floats(0, 10),
        }
    ),
    min_size=1,
    max_size=15,
)
RISKS = st.sampled_from([0.1, 1.0, 10.0])
RECALLED = st.none() | st.floats(0, 10_000)


@given(
    evaluations=EVALUATIONS,
    risk=RISKS,
    recalled_jobs=RECALLED,
    quiet_s=st.floats(0, 1e6),
    service_s=st.none() | st.floats(0.001, 1e4),
)
def test_the_spare_is_a_number_and_never_negative(
    evaluations: list[dict[str, Any]], risk: float, recalled_jobs: float | None, quiet_s: float, service_s: float | None
) -> None:
    at = pool(risk=risk, recalled_jobs=recalled_jobs)
    guard = after(*evaluations, at=at)
    spare = spare_now(guard, at=at, now_s=guard.at_s + quiet_s, service_time_s=service_s)
    assert 0.0 <= spare < math.inf


@given(evaluations=EVALUATIONS, risk=RISKS, recalled_jobs=RECALLED)
def test_what_has_been_learned_comes_back_from_json_as_it_was(
    evaluations: list[dict[str, Any]], risk: float, recalled_jobs: float | None
) -> None:
    guard = after(*evaluations, at=pool(risk=risk, recalled_jobs=recalled_jobs))
    assert SafetyStock.of(reloaded(guard)) == guard
    assert SafetyStock.of(guard.stored()) == guard


@given(evaluations=EVALUATIONS, late_jobs=st.floats(0, 100))
def test_more_late_jobs_never_loosen_the_guard(evaluations: list[dict[str, Any]], late_jobs: float) -> None:
    *earlier, last = evaluations
    later = {**last, "late_rate_per_s": (last["late_rate_per_s"] or 0.0) + late_jobs / WINDOW_S}
    assert after(*earlier, later).beyond_log <= after(*evaluations).beyond_log


@given(evaluations=EVALUATIONS, quiet_s=st.floats(0, 1e6))
def test_without_new_arrivals_the_spare_only_falls(evaluations: list[dict[str, Any]], quiet_s: float) -> None:
    guard = after(*evaluations)
    assert spare_now(guard, now_s=guard.at_s + quiet_s) <= spare_now(guard)


# Beyond the ceiling


def startable(workers_max: int) -> int:
    """Jobs of 1 s that so many workers, all there, start within the 9.5 s that a job may wait."""
    return int(workers_max * (1 + 9.5))


@pytest.mark.parametrize(
    ("jobs", "service_time_s", "is_learned"),
    [
        (startable(4), 1.0, True),
        (startable(4), None, True),  # nobody knows yet what the ceiling can start
        (startable(4) + 1, 1.0, False),  # one of 43 is more than one in a hundred
        (startable(4), 1.2, False),
        (20_000, 1.0, False),
    ],
)
def test_a_burst_that_no_permitted_pool_could_start_in_time_is_none_to_be_ready_for(
    jobs: int, service_time_s: float | None, is_learned: bool
) -> None:
    few = pool(workers_max=4)
    evaluations = [{"arrived_jobs": 1, "service_time_s": service_time_s}] * 10
    guard = after(*evaluations, {"arrived_jobs": jobs, "service_time_s": service_time_s}, at=few)
    most = len(guard.by_rate.spans)
    assert (most > 1) == is_learned
    assert guard.by_rate.jobs / guard.by_rate.scale == pytest.approx(jobs + 10, rel=0.01)  # jobs, they are


def test_room_on_hosts_is_a_ceiling_and_a_generous_percentile_lets_more_be_late() -> None:
    burst = {"arrived_jobs": startable(4) + 1, "service_time_s": 1.0}
    full = replace(pool(), capacity_workers=4)
    assert len(after(burst, at=full).by_rate.spans) == 0
    generous = replace(full, profile=profile(objective=Objective(target_s=10.0, percentile=90.0)))
    assert len(after(burst, at=generous).by_rate.spans) > 1


def test_a_rhythm_is_not_wrong_about_a_burst_that_nobody_could_have_started() -> None:
    few = pool(workers_max=4)
    known = changed(after({"arrived_jobs": 1}, at=few), rhythmic_jobs=2.0)
    for jobs, spans in ((startable(4), 1), (20_000, 0)):
        burst = {"arrived_jobs": jobs, "service_time_s": 1.0}
        assert bool(parts(after(burst, at=few, guard=known, first=1)).by_rhythm.spans) == spans


def test_an_hour_after_a_burst_beyond_the_ceiling_costs_what_one_before_it_does() -> None:
    """Sixty jobs of 10 ms a second keep one worker busy at most; 20,000 at once say nothing about the hour after."""
    evaluations = [{"arrived_jobs": 300, "arrival_rate_per_s": 60.0, "service_time_s": 0.01}] * 120
    burst = {"arrived_jobs": 20_300, "arrival_rate_per_s": 60.0, "service_time_s": 0.01}
    few = pool(workers_max=4)
    before, since = after(*evaluations, at=few), after(*evaluations, burst, *evaluations, at=few)
    assert spare_now(since, at=few, service_time_s=0.01) == pytest.approx(
        spare_now(before, at=few, service_time_s=0.01), abs=1.0
    )
