"""A decision keeps what its demands follow from: each is calculated again from its terms alone."""

import json
from bisect import bisect_left
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.needs import Deadline
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision, DelayedJobs, Memory, Objective, QueueOrder
from headway.scaling.strategies import BUILT_IN
from headway.scaling.view import PoolView
from headway.simulate.controller import Controller, Observation
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.workloads.jobs import Jobs
from headway.simulate.workloads.loads import LOADS
from headway.store.pools.decisions import decision_to_json
from scaling.laws.drawn import LAW, MEMORIES, by, views
from support.pools import NOW_S


def calculated_again(decision: Decision, strategy: str) -> dict[str, float]:
    """The slots of each demand out of what is stored of the decision."""
    stored = from_mapping(Decision, json.loads(json.dumps(decision_to_json(decision), allow_nan=False)))
    return {each.name: BUILT_IN[strategy].formulas[each.name](each.terms) for each in stored.demands}


def slots_of(decision: Decision) -> dict[str, float]:
    return {each.name: each.slots for each in decision.demands}


@st.composite
def pools(draw: st.DrawFn) -> PoolView:
    """Pools with due jobs, members' objectives and workers of every order beside all that the laws draw."""
    view = draw(views())
    delayed = draw(st.lists(st.builds(DelayedJobs, jobs=st.integers(1, 500), due_in_s=st.floats(0, 90)), max_size=3))
    first = replace(view.queues[0], delayed=tuple(sorted(delayed, key=lambda each: each.due_in_s)))
    objectives = draw(st.sampled_from(({}, {first.queue: Objective(target_s=3.0)})))
    return replace(
        view,
        queues=(first, *view.queues[1:]),
        queue_order=draw(st.sampled_from((None, *QueueOrder))),
        strict_queues=("mail", "news"),
        start_up_cpu_s=draw(st.sampled_from((None, 1.5))),
        host_cores=draw(st.sampled_from((None, 2.0))),
        profile=replace(view.profile, member_objectives=objectives),
    )


@LAW
@given(view=pools(), memory=MEMORIES, strategy=st.sampled_from(sorted(BUILT_IN)))
def test_every_demand_follows_from_its_terms(view: PoolView, memory: Memory, strategy: str) -> None:
    view = by(strategy, view)
    for _ in range(2):  # the second evaluation has what the first has learned
        decision, memory = decide(view, memory, now_s=NOW_S)
        assert calculated_again(decision, strategy) == slots_of(decision)


class Kept(Controller):
    """Keeps each decision that differs from the one before."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.decisions: list[Decision] = []

    def step(self, observation: Observation, /) -> Decision:
        decision = super().step(observation)
        if not self.decisions or decision is not self.decisions[-1]:
            self.decisions.append(decision)
        return decision


def decisions_of(load: str, start_up_s: float) -> list[Decision]:
    """Those of its first half-hour."""
    drawn, keeper = LOADS[load].jobs(), Kept(start_up_s=start_up_s)
    until = bisect_left(drawn.at_s, 1800.0)
    jobs = Jobs(at_s=drawn.at_s[:until], service_s=drawn.service_s[:until], dispatch_s=drawn.dispatch_s)
    plan = PoolPlan(jobs=jobs, start_up_s=start_up_s, workers_max=100)
    simulate([plan], [keeper], rehearsal=Rehearsal(tick_s=5.0, objective_s=10.0))
    return keeper.decisions


@pytest.mark.parametrize("start_up_s", [2.0, 8.0])
@pytest.mark.parametrize("load", ["square_wave_15", "giants", "cron_burst"])
def test_the_decisions_of_a_load_are_calculated_again(load: str, start_up_s: float) -> None:
    names = set()
    for decision in decisions_of(load, start_up_s):
        assert calculated_again(decision, "hybrid") == slots_of(decision)
        names |= {each.name for each in decision.demands if each.slots}
    assert "backlog_drain" in names
    assert ("standing" in names) == (start_up_s > 5.0)


def test_slots_for_jobs_in_front_are_needed_beside_a_deadlines_own() -> None:
    own = Deadline(
        jobs=2.0,
        within_s=1.0,
        from_s=0.0,
        start_up_s=1.0,
        late_s=2.0,
        completions_per_s=0.0,
        reserved_jobs=0,
        caution=0.0,
        coming_jobs=0.0,
        idle_slots=4,
        cycle_s=10.0,
    )
    assert own.needed_slots == (2, 0)
    assert own._replace(front_idle_slots=3, front_new_slots=1).needed_slots == (5, 1)
