"""A day with a budget, rehearsed: what is paid stays within it, and what is beyond is shown and was already running."""

from contextlib import suppress
from random import Random

import pytest

from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.model import Decision, Objective
from headway.scaling.profile import Profile
from headway.simulate.engine.simulated_pool import RunningPool
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.studies.single_pool import Setting, controller_of, plan_of
from headway.simulate.workloads.jobs import Jobs

HOUR_S, DAY_S = 3600.0, 86_400.0
BUDGET_H = 48.0
TICK_S = 60.0
LIVE = Behaviour(
    start_up=Spread(p50_s=2.0, p95_s=4.0),
    exit=Spread(p50_s=0.7, p95_s=1.2),
    sample_lag=Spread(p50_s=0.7, p95_s=1.1),
    worker_lag=Spread(p50_s=0.1, p95_s=0.3),
)


def profile(**values: object) -> Profile:
    plain = {"queues": ("redis/long",), "template": "rq", "workers_max": 100, "objective": Objective(target_s=60.0)}
    priced = {"cost_per_worker_hour": 1.0, "budget_per_day": BUDGET_H}
    return Profile(pool="long", **{**plain, **priced, **values})


class Day:
    """A day of ``jobs``, with the decision and what was really paid at each evaluation."""

    def __init__(self, wanted: Profile, jobs: Jobs, setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decisions: list[Decision] = []
        self.paid_h: list[float] = []
        controller, plan = controller_of(wanted, setting), plan_of(jobs, wanted, setting)
        pools: list[RunningPool] = []
        begin = RunningPool.__init__

        def begun(pool: RunningPool, *args: object, **values: object) -> None:
            begin(pool, *args, **values)
            pools.append(pool)

        def on_tick(now_s: float) -> None:
            if now_s >= DAY_S:
                raise TimeoutError  # what happens on the next day is another budget's
            assert controller.outcome is not None
            self.decisions.append(controller.outcome.decision)
            self.paid_h.append(pools[0].crew.paid_s(now_s) / HOUR_S)

        monkeypatch.setattr(RunningPool, "__init__", begun)
        rehearsal = Rehearsal(tick_s=setting.tick_s, behaviour=setting.behaviour or Behaviour())
        with suppress(TimeoutError):
            simulate([plan], [controller], rehearsal=rehearsal, on_tick=on_tick)


def long_jobs(*, every_s: float, jobs: int, service_s: float = 2 * HOUR_S) -> Jobs:
    return Jobs(at_s=[number * every_s for number in range(jobs)], service_s=[service_s] * jobs)


@pytest.mark.parametrize("behaviour", [None, LIVE])
@pytest.mark.parametrize(
    ("every_s", "guess_s"),
    [(0.0, None), (0.0, 2 * HOUR_S), (400.0, 2 * HOUR_S), (600.0, None)],
    ids=["at once, length unknown", "at once", "every 400 s", "every 10 min, length unknown"],
)
def test_a_day_of_two_hour_jobs_stays_within_its_budget(
    every_s: float, guess_s: float | None, behaviour: Behaviour | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred jobs of 2 h and 48 worker-hours: 117 were paid while a start cost only what was paid until then."""
    setting = Setting(tick_s=TICK_S, behaviour=behaviour)
    day = Day(profile(service_time_guess_s=guess_s), long_jobs(every_s=every_s, jobs=200), setting, monkeypatch)
    shown = [decision.day_budget for decision in day.decisions]
    last = shown[-1]
    assert last is not None
    # Of a job in its middle half is expected to be left: of few jobs, chance leaves a little more.
    assert last.overrun_worker_s <= 0.25 * HOUR_S
    assert BUDGET_H - 4 < day.paid_h[-1] <= BUDGET_H + last.overrun_worker_s / HOUR_S
    # What the pool counts is what is paid: never less, and an evaluation more for each worker that left at most.
    counted_h = [spent.paid_worker_s / HOUR_S for spent in shown if spent is not None]
    late_h = 33 * TICK_S / HOUR_S
    assert all(real - 0.05 <= counted <= real + late_h for counted, real in zip(counted_h, day.paid_h, strict=True))


def test_what_is_beyond_the_budget_is_shown_and_was_already_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that were said to take a minute take 5 h: those at work are finished, and nobody else is started."""
    wanted = profile(service_time_guess_s=60.0)
    jobs = long_jobs(every_s=0.0, jobs=200, service_s=5 * HOUR_S)
    day = Day(wanted, jobs, Setting(tick_s=TICK_S), monkeypatch)
    last = day.decisions[-1].day_budget
    assert last is not None
    assert day.paid_h[-1] > BUDGET_H
    assert day.paid_h[-1] <= BUDGET_H + last.overrun_worker_s / HOUR_S
    spent_at = next(
        index for index, found in enumerate(day.decisions) if found.day_budget and found.day_budget.finishing_workers
    )
    at_work = day.decisions[spent_at].day_budget
    assert at_work is not None
    assert last.overrun_worker_s <= at_work.finishing_workers * 5 * HOUR_S
    assert all(found.target_workers == 0 for found in day.decisions[spent_at:])
    assert "overrun" in " ".join(day.decisions[spent_at + 1].notes)


def test_short_jobs_may_spend_the_whole_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs of 20 s a second for an hour, forty workers' worth, and a floor that is kept until midnight."""
    chance = Random(7)
    at_s = sorted(chance.uniform(0.0, 1.5 * HOUR_S) for _ in range(10_800))
    day = Day(profile(workers_min=1), Jobs(at_s=at_s, service_s=[20.0] * 10_800), Setting(tick_s=TICK_S), monkeypatch)
    assert BUDGET_H - 2 < day.paid_h[-1] <= BUDGET_H
    assert min(decision.target_workers for decision in day.decisions) == 1
