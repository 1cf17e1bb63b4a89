"""Who beats `hybrid` on a load has guessed: on the load that begins alike, it does worse."""

from dataclasses import replace

import pytest

from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.engine.results import Result
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.loads import LOADS, Load
from support.alike_loads import ALIKE, alike_s
from support.installed import INSTALLED

PERCENT_MIN = 99.5
STRATEGIES = ("hybrid", "jobs_per_worker", "time_of_day")


def shortened(load: Load, for_s: float) -> Load:
    return replace(load, parts=tuple(replace(part, for_s=for_s) for part in load.parts))


def rehearsed(load: Load, strategy: str, *, start_up_s: float) -> Result:
    profile = Profile(
        pool="alike",
        queues=("loads/alike",),
        template="simulated",
        objective=Objective(target_s=10.0, percentile=99.0),
        workers_max=load.workers_max,
        strategy=strategy,
    )
    return rehearse(load.jobs(), profile, Setting(start_up_s=start_up_s), strategies=INSTALLED)


@pytest.mark.parametrize(("name", "start_up_s", "for_s"), [("metronome", 8.0, 7200.0), ("over_ceiling", 2.0, 120.0)])
def test_who_beats_hybrid_on_a_load_does_not_on_the_one_that_begins_alike(
    name: str, start_up_s: float, for_s: float
) -> None:
    other = shortened(ALIKE[name], for_s)
    ours, *others = [rehearsed(other, each, start_up_s=start_up_s) for each in STRATEGIES]
    assert ours.attainment_percent >= PERCENT_MIN
    for theirs in others:
        assert theirs.attainment_percent < PERCENT_MIN or theirs.worker_hours > ours.worker_hours


@pytest.mark.parametrize(
    ("name", "start_up_s", "alike_for_s"),
    [
        ("metronome", 8.0, 632.1),  # then the first job comes that the metronome has not
        ("over_ceiling", 2.0, 2.01),  # a job of 10 ms in the first worker that can be up
        ("over_ceiling", 8.0, 8.01),
    ],
)
def test_they_are_alike_for_so_long(name: str, start_up_s: float, alike_for_s: float) -> None:
    assert alike_s(LOADS[name], ALIKE[name], start_up_s=start_up_s) == pytest.approx(alike_for_s, abs=0.05)
