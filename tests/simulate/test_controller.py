from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.simulate import Controller, Observation
from support.installed import INSTALLED

TICK_S = 5.0


def test_the_stepping_interface_is_the_one_that_is_documented() -> None:
    controller = Controller(
        target_s=10.0,
        percentile=99.0,
        workers_min=0,
        workers_max=100,
        start_up_s=2.0,
        tick_s=5.0,
        strategy="hybrid",
    )
    decision = controller.step(
        Observation(
            at_s=1_000_000.0,
            waiting=3,
            oldest_age_s=4.0,
            arrived=3,
            started=0,
            finished=0,
            service_sum_s=0.0,
            workers=0,
            busy=0,
            idle=0,
            starting=0,
            pickup_max_s=None,
        )
    )
    # 10 − 4 − 1.5 = 4.5 s left, too little for the next evaluation; the service time is unknown: one worker a job
    assert (decision.target_workers, decision.binding) == (3, "backlog_drain")


class World:
    """A pool that obeys at once: jobs start at the next evaluation with a free worker, and end one later."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self.waiting = self.busy = self.workers = 0

    def observe(self, arrived: int) -> Observation:
        self.at_s += TICK_S
        finished, self.busy = self.busy, 0
        self.waiting += arrived
        started = min(self.waiting, self.workers)
        self.waiting -= started
        self.busy = started
        return Observation(
            at_s=self.at_s,
            waiting=self.waiting,
            oldest_age_s=TICK_S if self.waiting else 0.0,
            arrived=arrived,
            started=started,
            finished=finished,
            service_sum_s=TICK_S * finished,
            workers=self.workers,
            busy=self.busy,
            idle=self.workers - self.busy,
            pickup_max_s=TICK_S if started else None,
        )


class Restless(Controller):
    """A controller that decides at every evaluation."""

    def _is_still(self) -> bool:
        return False


# Long silences, in which decisions stand, between short bursts.
WORKLOADS = st.lists(st.tuples(st.lists(st.integers(0, 6), max_size=4), st.integers(0, 60)), min_size=1, max_size=6)


@pytest.mark.parametrize("name", sorted(INSTALLED))
@settings(max_examples=12)
@given(workload=WORKLOADS, start_up_s=st.sampled_from([1.0, 8.0]))
def test_a_decision_that_is_passed_over_is_the_one_that_would_have_been_made(
    name: str, workload: list[tuple[list[int], int]], start_up_s: float
) -> None:
    world = World()
    passing, restless = (
        kind(strategy=name, strategies=INSTALLED, start_up_s=start_up_s, workers_max=9)
        for kind in (Controller, Restless)
    )
    for burst, silence in workload:
        for arrived in [*burst, *[0] * silence]:
            seen = world.observe(arrived)
            decision, expected = passing.step(seen), restless.step(seen)
            assert replace(decision, at_s=0.0, metrics=()) == replace(expected, at_s=0.0, metrics=())
            world.workers = decision.target_workers


def test_the_same_observation_twice_counts_once() -> None:
    once, twice = Controller(), Controller()
    first = Observation(at_s=5.0, waiting=2, oldest_age_s=4.0, arrived=2)
    once.step(first)
    twice.step(first)
    twice.step(first)
    later = Observation(at_s=10.0, waiting=2, oldest_age_s=9.0)
    assert twice.step(later).metrics == once.step(later).metrics
