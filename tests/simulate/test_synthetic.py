"""Synthetic workloads: drawn, repeatable, and of the shape that their name says."""

from collections import Counter
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.simulate.workloads.synthetic import KINDS, Cron, Diurnal, Flash, OnOff, Poisson, Square, Synthetic, Weekly


def arrivals(shape, **changes) -> list[float]:
    return [at_s for at_s, _ in Synthetic(arrivals=shape, **changes).jobs()]


@given(
    shape=st.sampled_from([kind() for kind in KINDS.values()]),
    tail=st.sampled_from(Synthetic.TAILS),
    seed=st.integers(0, 10),
    for_s=st.floats(1.0, 1000.0),
)
def test_the_same_workload_is_the_same_jobs_in_order_and_within_its_time(shape, tail, seed, for_s) -> None:
    workload = Synthetic(arrivals=shape, tail=tail, seed=seed, for_s=for_s)
    jobs = list(workload.jobs())
    assert jobs == list(workload.jobs())
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(jobs))
    assert all(0 <= at_s < for_s and service_s >= 0.001 for at_s, service_s in jobs)


def test_another_seed_is_other_jobs() -> None:
    assert arrivals(Poisson(), seed=1) != arrivals(Poisson(), seed=2)


def test_the_spread_of_service_times_leaves_the_arrivals_alone() -> None:
    assert arrivals(Poisson(), tail="pareto") == arrivals(Poisson(), tail="none")


@pytest.mark.parametrize("shape", [Poisson(rate_per_s=2.0), Diurnal(rate_per_s=2.0, period_s=3600.0)])
def test_jobs_come_at_the_mean_rate(shape) -> None:
    assert len(arrivals(shape, for_s=7200.0)) == pytest.approx(14_400, rel=0.05)  # 2/s × 7200 s; 3 sigma are 2.5 %


def test_a_day_has_its_trough_at_the_start_and_its_peak_half_a_period_later() -> None:
    hours = Counter(int(at_s // 600) for at_s in arrivals(Diurnal(rate_per_s=2.0, period_s=3600.0), for_s=3600.0))
    assert hours[0] + hours[5] < 0.4 * (hours[2] + hours[3])


def test_a_crowd_comes_at_its_time_at_its_rate_and_leaves() -> None:
    at_s = arrivals(Flash(rate_per_s=1.0, peak=50.0, at_s=1800.0, decay_s=300.0))
    before, crowd, after = (sum(start <= each < start + 300 for each in at_s) for start in (1200, 1800, 6000))
    assert crowd > 20 * before
    assert after < 2 * before


def test_bursts_and_silence_take_turns() -> None:
    gaps_s = [later - earlier for earlier, later in pairwise(arrivals(OnOff(), for_s=36_000.0))]
    assert max(gaps_s) > 300
    assert mean(gaps_s) < 5


def test_cron_jobs_come_at_full_periods() -> None:
    at_s = arrivals(Cron(jobs=7, every_s=60.0, within_s=2.0), for_s=600.0)
    assert len(at_s) == 70
    assert all(each % 60 <= 2 for each in at_s)


def test_square_waves_are_on_and_off_by_the_clock() -> None:
    at_s = arrivals(Square(rate_per_s=10.0, on_s=20.0, off_s=40.0), for_s=6000.0)
    assert all(each % 60 < 20 for each in at_s)
    assert len(at_s) == pytest.approx(20_000, rel=0.05)  # 10/s × 6000 s × 20/60


@pytest.mark.parametrize("tail", Synthetic.TAILS)
def test_service_times_have_their_mean(tail: str) -> None:
    drawn = [service_s for _, service_s in Synthetic(service_s=3.0, tail=tail, for_s=50_000.0).jobs()]
    assert mean(drawn) == pytest.approx(3.0, rel=0.2)  # the heaviest tail's mean settles slowly


def test_heavy_tails_are_heavy() -> None:
    def greatest(tail: str) -> float:
        return max(service_s for _, service_s in Synthetic(tail=tail, for_s=20_000.0).jobs())

    assert greatest("none") < greatest("exponential") < greatest("lognormal") < greatest("pareto")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"arrivals": Poisson(rate_per_s=0)}, "rate_per_s=0 must be above 0"),
        ({"arrivals": Diurnal(swing=2)}, "swing=2 must lie in 0..1"),
        ({"arrivals": Flash(at_s=-1)}, "at_s=-1 must not be negative"),
        ({"service_s": float("nan")}, "service_s=nan must be above 0"),
        ({"tail": "fat"}, "tail 'fat' is not known; known: exponential, none, lognormal, pareto"),
        ({"arrivals": Poisson(rate_per_s=1e9)}, "jobs; up to 20,000,000 can be drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, says: str) -> None:
    with pytest.raises(Invalid, match=says.replace(".", r"\.")):
        Synthetic(**wrong)


def test_a_week_has_days_of_work_that_open_with_a_rush_and_days_off() -> None:
    week_s = 7 * 86_400.0
    shape = Weekly(rate_per_s=0.05, rush=40.0)
    days = Counter(int(at_s // 86_400) for at_s in arrivals(shape, for_s=2 * week_s))
    assert min(days[day] for day in (0, 4, 7, 11)) > 1000  # 8 h × 180 jobs
    assert max(days[day] for day in (5, 6, 12, 13)) < 200  # 24 h × 3.6 jobs
    opening = [at_s for at_s in arrivals(shape, for_s=week_s) if 9 * 3600 <= at_s % 86_400 < 9 * 3600 + 5]
    assert Counter(int(at_s // 86_400) for at_s in opening).keys() == set(range(5))
    assert len(opening) == pytest.approx(200, abs=10)
    assert len(arrivals(Weekly(rush=0.0, closed=0.0, opens_s=0.0, closes_s=60.0), for_s=60.0)) > 10
