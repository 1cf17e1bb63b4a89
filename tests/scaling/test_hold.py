import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.hold import HOLDS_TICKS, MEMORY_S, START_UP_SHARE, START_WORKER_S, cheapest_s, longest_s, tried
from headway.scaling.model import HoldTrial, Memory, Wanted
from scaling.pools import NOW_S, profile, queue, view

TICK_S = 5.0
HOUR_AGO = math.exp(-TICK_S / MEMORY_S)  # what is left of a cost after a tick
START = START_WORKER_S + START_UP_SHARE * 4.0  # 40 worker-seconds: a start-up of 4 s


def played(*wants: int) -> HoldTrial:
    """What each hold has cost a pool of which ``wants`` were wanted, a tick apart."""
    trial, recent = None, list[Wanted]()
    for tick, workers in enumerate(wants):
        now_s = NOW_S + tick * TICK_S
        trial = tried(trial, recent, workers=workers, now_s=now_s, tick_s=TICK_S, start_up_s=4.0)
        recent.append(Wanted(at_s=now_s, workers=workers))
    assert trial is not None
    return trial


def costs(*wants: int) -> list[float]:
    """With every cost as it was, none of it forgotten."""
    total = [0.0] * len(HOLDS_TICKS)
    before = [0.0] * len(HOLDS_TICKS)
    for looks in range(1, len(wants) + 1):
        now = played(*wants[:looks]).costs
        total = [sum_s + cost - was * HOUR_AGO for sum_s, cost, was in zip(total, now, before, strict=True)]
        before = list(now)
    return total


def test_a_hold_costs_the_worker_seconds_it_keeps_and_the_starts_it_does_not_spare() -> None:
    assert HOLDS_TICKS == (0, 1, 2, 3, 6)
    # Two workers, none for two looks, two again.
    assert costs(2, 0, 0, 2) == pytest.approx(
        [
            4 * START,  # let go at once: two starts, and two more
            4 * START + 2 * 5,  # kept for one look, let go, and started again
            2 * START + 2 * 10,  # kept over the gap
            2 * START + 2 * 10,
            2 * START + 2 * 10,
        ]
    )


def test_only_the_workers_that_are_missing_are_started_again() -> None:
    # Five, then three, then four: letting go at once starts one of them anew.
    assert costs(5, 3, 4)[:3] == pytest.approx([6 * START, 5 * START + 2 * 5, 5 * START + 2 * 5 + 1 * 5])


def test_what_a_hold_has_cost_is_forgotten_within_hours() -> None:
    once = played(1)
    assert once.costs == (START,) * 5
    later = tried(once, (), workers=1, now_s=once.at_s + MEMORY_S, tick_s=TICK_S, start_up_s=4.0)
    assert later.costs == pytest.approx((START / math.e,) * 5)


@pytest.mark.parametrize(
    ("wants", "ticks"),
    [
        ([3, 0, 0, 0, 0, 0, 0, 0], 0),  # it never comes back: whatever was kept idled
        ([3, 0] * 6, 1),  # it comes back after every look: 3 × 5 s are cheaper than three starts
        ([3, 0, 0, 0] * 4, 3),  # kept for 15 s, of which a start is 40
        ([3, 3, 3, 3], 0),  # nothing to hold: of equals the shortest
        ([0], 0),
    ],
)
def test_the_cheapest_hold_is_taken_and_of_equals_the_shortest(wants: list[int], ticks: int) -> None:
    assert cheapest_s(played(*wants), tick_s=TICK_S) == ticks * TICK_S


def test_a_pool_comes_down_after_the_hold_that_was_cheapest_for_it() -> None:
    """Six jobs at every third look: soon their workers are kept over the gap, and no longer than the gap."""
    learning = view(queue(), profile=profile(hold_down_s=None), start_up_s=4.0)
    memory, targets = Memory(), []
    for tick, jobs in enumerate([*[6, 0, 0] * 8, 0, 0, 0]):
        now_s = NOW_S + TICK_S * tick
        seen = view(
            queue(sampled_at_s=now_s, in_flight_jobs=jobs),
            profile=learning.profile,
            start_up_s=4.0,
            running_workers=6,
        )
        decision, memory = decide(seen, memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert targets[:3] == [6, 0, 0]  # nothing is known yet
    assert set(targets[9:24]) == {6}  # a gap of 10 s costs 6 × 10, six starts cost 6 × 40
    assert targets[24:] == [0, 0, 0]  # the third look without a job lets all go


def test_a_profile_that_sets_the_hold_learns_none() -> None:
    busy = view(queue(in_flight_jobs=4), running_workers=4, profile=profile(hold_down_s=15.0))
    assert decide(busy, Memory(), now_s=NOW_S)[1].hold is None


def test_a_quiet_pools_memory_does_not_change_from_look_to_look() -> None:
    quiet = profile(hold_down_s=None)
    memory, memories = Memory(), []
    for tick in range(20):
        now_s = NOW_S + TICK_S * tick
        jobs = 3 if tick < 2 else 0
        seen = view(queue(sampled_at_s=now_s, in_flight_jobs=jobs), profile=quiet, running_workers=jobs)
        _, memory = decide(seen, memory, now_s=now_s)
        memories.append(memory)
    at_rest_since = 2 + 6 + 1  # the longest hold has let go, and what it kept is gone
    assert all(each == memories[-1] for each in memories[at_rest_since:])
    never_busy = decide(view(profile=quiet), Memory(), now_s=NOW_S)[1]
    assert decide(view(profile=quiet), never_busy, now_s=NOW_S + TICK_S)[1] == never_busy


WANTS = st.lists(st.integers(0, 1000), min_size=1, max_size=30)


@given(wants=WANTS)
def test_a_longer_hold_never_keeps_fewer_and_each_keeps_what_is_wanted(wants: list[int]) -> None:
    trial = played(*wants)
    assert list(trial.levels) == sorted(trial.levels)
    assert trial.levels[0] == wants[-1]
    assert trial.levels[-1] == max(wants[-7:])


@given(wants=WANTS)
def test_costs_are_never_negative_and_the_hold_is_one_that_is_tried(wants: list[int]) -> None:
    trial = played(*wants)
    assert all(0.0 <= cost < math.inf for cost in trial.costs)
    hold_s = cheapest_s(trial, tick_s=TICK_S)
    assert hold_s in {ticks * TICK_S for ticks in HOLDS_TICKS}
    assert hold_s <= longest_s(TICK_S)
