"""A rehearsal at several tick phases: which they are, and what is said of all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.profile import Profile
from headway.simulate.engine.results import Result
from headway.simulate.report.fleet import totals
from headway.simulate.report.past import total_cells, total_extremes
from headway.simulate.report.rows import Row
from headway.simulate.studies.phases import middle, phased
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs

PROFILE = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_max=30)
JOBS = Jobs(
    at_s=[float(number // 6 * 11) for number in range(120)], service_s=[1.0 + number % 5 for number in range(120)]
)


def results(setting: Setting, phases: int) -> list[Result]:
    return [rehearse(JOBS, PROFILE, each) for each in phased(setting, phases)]


def test_phases_are_spread_evenly_over_a_tick_and_begin_with_the_setting_itself() -> None:
    setting = Setting(tick_s=4.0, seed=7)
    found = phased(setting, 4)
    assert found[0] == setting
    assert [each.tick_phase_s for each in found] == [0.0, 1.0, 2.0, 3.0]
    assert len({each.seed for each in found}) == 4
    assert [each.tick_phase_s for each in phased(replace(setting, tick_phase_s=3.0), 2)] == [3.0, 1.0]


@pytest.mark.parametrize("phases", [0, -1, 65])
def test_a_number_of_phases_that_is_none_is_refused(phases: int) -> None:
    with pytest.raises(Invalid, match="--phases"):
        phased(Setting(), phases)


def test_a_single_phase_is_the_very_result() -> None:
    (only,) = results(Setting(), 1)
    assert middle([only], phased(Setting(), 1)) is only
    assert only.phases == ()


def test_every_figure_is_the_median_and_each_phase_is_kept() -> None:
    """Ticks that are 5 s apart meet these bursts of 11 s apart at any moment: no two phases cost the same."""
    settings = phased(Setting(), 5)
    found = results(Setting(), 5)
    one = middle(found, settings)
    for name in ("attainment_percent", "worker_hours", "pickup_p95_s", "spawns", "flips"):
        assert getattr(one, name) == sorted(getattr(each, name) for each in found)[2]
    assert [phase.worker_hours for phase in one.phases] == [each.worker_hours for each in found]
    assert [phase.tick_phase_s for phase in one.phases] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert len({each.worker_hours for each in found}) > 1
    assert one.jobs == len(JOBS)
    assert any(one.points == each.points for each in found)


@given(st.integers(0, 50), st.integers(2, 4))
def test_phases_are_the_same_by_seed(seed: int, phases: int) -> None:
    behaviour = Behaviour(start_up=Spread(p50_s=1.0, p95_s=4.0), exit=Spread(p50_s=0.5, p95_s=1.0))
    setting = Setting(behaviour=behaviour, seed=seed)
    jobs = Jobs(at_s=[0.0, 0.0, 20.0], service_s=[3.0, 3.0, 3.0])
    first, second = ([rehearse(jobs, PROFILE, each) for each in phased(setting, phases)] for _ in range(2))
    assert first == second


def test_totals_add_up_at_each_phase() -> None:
    settings = phased(Setting(), 3)
    rows = {
        pool: [
            Row(workload=pool, strategy="as it is", result=middle(results(Setting(start_up_s=start_up_s), 3), settings))
        ]
        for pool, start_up_s in (("mail", 1.0), ("news", 3.0))
    }
    (total,) = totals(rows)
    sums = [sum(rows[pool][0].result.phases[phase].worker_hours for pool in rows) for phase in range(3)]
    assert [each.worker_hours for each in total.by_phase] == pytest.approx(sums)
    (least, least_cells), (most, most_cells) = total_extremes(total)
    assert (least, most) == ("least", "most")
    assert len(least_cells) == len(most_cells) == len(total_cells(total))
    assert float(least_cells[2]) == pytest.approx(min(sums), abs=0.0051)
    assert float(most_cells[2]) == pytest.approx(max(sums), abs=0.0051)
