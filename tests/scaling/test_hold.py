import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import HoldCosts, Memory, Wanted
from headway.scaling.policy.stabilization import (
    HOLD_CORE_PRICE,
    HOLD_MEMORY_S,
    HOLD_START_UP_SHARE,
    HOLD_WEIGHT_MAX,
    HOLDS_TICKS,
    START_CORE_S,
    kept_workers,
    longest_s,
    start_cost_s,
    tried,
)
from headway.scaling.reading.pool_times import PoolTimes
from support.pools import NOW_S, profile, queue, view

TICK_S = 5.0
START = 40.0  # worker-seconds of a start
HOLDS = len(HOLDS_TICKS)


def played(*wants: int, start_cost: float = START) -> HoldCosts:
    """What each hold has cost a pool of which ``wants`` were wanted, a tick apart."""
    known, recent = None, list[Wanted]()
    for tick, workers in enumerate(wants):
        now_s = NOW_S + tick * TICK_S
        known = tried(known, recent, workers=workers, now_s=now_s, tick_s=TICK_S, start_cost=start_cost)
        recent.append(Wanted(at_s=now_s, workers=workers))
    assert known is not None
    return known


def costs(*wants: int) -> list[float]:
    """Of all bands together, as if nothing newer weighed more."""
    total, before = [0.0] * HOLDS, [0.0] * HOLDS
    for moments in range(1, len(wants) + 1):
        known = played(*wants[:moments])
        now = [sum(band[hold] for band in known.bands) for hold in range(HOLDS)]
        weight = math.exp((known.at_s - known.began_at_s) / HOLD_MEMORY_S)
        total = [sum_s + (cost - was) / weight for sum_s, cost, was in zip(total, now, before, strict=True)]
        before = now
    return total


def test_a_hold_costs_the_worker_seconds_it_keeps_and_the_starts_it_does_not_spare() -> None:
    assert HOLDS_TICKS == (0, 1, 2, 3, 6, 12, 24, 60, 120)
    # Two workers, none for two evaluations, two again.
    assert costs(2, 0, 0, 2) == pytest.approx(
        [
            4 * START,  # let go at once: two starts, and two more
            4 * START + 2 * 5,  # kept for one evaluation, let go, and started again
            *[2 * START + 2 * 10] * 7,  # kept over the gap
        ]
    )


def test_only_the_workers_that_are_missing_are_started_again() -> None:
    # Five, then three, then four: letting go at once starts one of them anew.
    assert costs(5, 3, 4)[:3] == pytest.approx([6 * START, 5 * START + 2 * 5, 5 * START + 2 * 5])


def test_each_band_pays_for_its_own_workers() -> None:
    # One worker always, three more once: the first band never starts again, the third holds two of the four.
    known = played(4, 1, 1, 4)
    assert [len(band) for band in known.bands] == [HOLDS] * 3
    assert known.bands[0] == (START,) * HOLDS
    weight = math.exp(3 * TICK_S / HOLD_MEMORY_S)
    assert known.bands[1][0] == pytest.approx(START + START * weight)  # the second worker
    assert known.bands[2][0] == pytest.approx(2 * (START + START * weight))  # the third and the fourth


def test_a_start_costs_its_time_and_its_processor_time() -> None:
    unmeasured = PoolTimes(known_start_up_s=4.0)
    measured = PoolTimes(known_start_up_s=4.0, exit_s=2.0, start_up_cpu_s=1.0)
    assert start_cost_s(unmeasured) == HOLD_CORE_PRICE * START_CORE_S + HOLD_START_UP_SHARE * 4.0 == 34.0
    assert start_cost_s(measured) == HOLD_CORE_PRICE + HOLD_START_UP_SHARE * 6.0 == 31.0


def test_newer_costs_weigh_more_and_no_weight_outgrows_its_bound() -> None:
    once = played(1)
    assert once.bands == ((START,) * HOLDS,)
    let_go = tried(once, (), workers=0, now_s=NOW_S + 5, tick_s=TICK_S, start_cost=START)
    later = tried(let_go, (), workers=1, now_s=NOW_S + HOLD_MEMORY_S, tick_s=TICK_S, start_cost=START)
    assert later.bands[0][0] == pytest.approx(START + START * math.e)
    ages_on_s = NOW_S + HOLD_MEMORY_S * math.log(2 * HOLD_WEIGHT_MAX)
    much_later = tried(let_go, (), workers=1, now_s=ages_on_s, tick_s=TICK_S, start_cost=START)
    assert much_later.began_at_s == ages_on_s
    assert much_later.bands[0][0] == pytest.approx(START, rel=1e-3)  # what was before weighs nothing any more


@pytest.mark.parametrize(
    ("wants", "kept"),
    [
        ([3, 0, 0, 0, 0, 0, 0, 0], 0),  # it never comes back: whatever was kept idled
        ([3, 0] * 6, 3),  # it comes back after every evaluation: 3 × 5 s are cheaper than three starts
        ([3, 0, 0, 0] * 4, 3),  # kept for 15 s, of which a start is 40
        ([3, *[0] * 10] * 4, 0),  # 50 s of each idle worker are dearer than a start
        ([3, 3, 3, 3, 0], 0),  # nothing is known of what a gap costs: of equals the shortest
        ([1, 1, 40, 1, 1, 1, 1, 0, 1, 1, 0], 1),  # the first comes back at once, the forty never
        ([0], 0),
    ],
)
def test_every_band_keeps_as_long_as_was_cheapest_for_it(wants: list[int], kept: int) -> None:
    assert kept_workers(played(*wants)) == kept


def test_a_pool_comes_down_after_the_hold_that_was_cheapest_for_it() -> None:
    """Six jobs at every third evaluation: soon their workers are kept over the gap, and no longer than the gap."""
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
    assert targets[24:] == [0, 0, 0]  # the third evaluation without a job lets all go


def test_a_burst_beyond_the_ceiling_does_not_price_the_workers_below_it() -> None:
    """One worker, needed at every other evaluation, is kept through the gap; also after 10,000 jobs at once."""
    steady = profile(workers_max=4, hold_down_s=None)
    memory, targets = Memory(), []
    for tick in range(120):
        now_s = NOW_S + TICK_S * tick
        burst = 10_000 if tick == 20 else 0
        jobs = 1 if tick % 2 else 0
        seen = view(
            queue(sampled_at_s=now_s, in_flight_jobs=jobs, waiting_jobs=burst, oldest_age_s=9.0 if burst else 0.0),
            profile=steady,
            running_workers=1,
            start_up_s=4.0,
        )
        decision, memory = decide(seen, memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert targets[20] == 4
    assert set(targets[30:]) == {1}


def test_wants_that_differ_beyond_the_ceiling_only_are_no_gap() -> None:
    """Eight and six wanted in turn are six all the time where six is the ceiling: no worker was ever missed again."""
    memory, targets = Memory(), []
    for tick, jobs in enumerate([*[8, 6] * 12, 0, 0]):
        now_s = NOW_S + TICK_S * tick
        seen = view(
            queue(sampled_at_s=now_s, in_flight_jobs=jobs),
            profile=profile(workers_max=6, hold_down_s=None),
            running_workers=6,
            start_up_s=4.0,
        )
        decision, memory = decide(seen, memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert targets == [*[6] * 24, 0, 0]


def test_a_profile_that_sets_the_hold_learns_none() -> None:
    busy = view(queue(in_flight_jobs=4), running_workers=4, profile=profile(hold_down_s=15.0))
    assert decide(busy, Memory(), now_s=NOW_S)[1].hold_costs is None


def test_while_every_wait_keeps_what_it_kept_nothing_is_written() -> None:
    known = played(3, 1, 1, 1, 1)
    assert known.levels == (1, 1, 1, 1, *[3] * 5)  # at 20 s the waits of 30 s and longer keep three
    recent = (Wanted(at_s=NOW_S, workers=3),)
    waits = [tried(known, recent, workers=1, now_s=NOW_S + each, tick_s=TICK_S, start_cost=START) for each in (25, 30)]
    assert all(each is known for each in waits)
    let_go = tried(known, recent, workers=1, now_s=NOW_S + 35, tick_s=TICK_S, start_cost=START)
    assert let_go.levels == (1, 1, 1, 1, 1, *[3] * 4)
    more = [sum(band[4] for band in each.bands) for each in (known, let_go)]
    assert more[1] - more[0] == pytest.approx(2 * 15, rel=0.01)  # two idled from the twentieth second on


def test_who_was_not_evaluated_for_long_has_kept_nothing_for_so_long() -> None:
    known = played(3, 1)
    later_s = NOW_S + 5 + 3 * 3600.0
    recent = (Wanted(at_s=NOW_S, workers=3), Wanted(at_s=NOW_S + 5, workers=1))
    later = tried(known, recent, workers=1, now_s=later_s, tick_s=TICK_S, start_cost=START)
    weight = math.exp((later_s - known.began_at_s) / HOLD_MEMORY_S)
    kept = sum(band[-1] for band in later.bands) - sum(band[-1] for band in known.bands)
    assert kept / weight == pytest.approx(2 * longest_s(TICK_S))


def test_a_quiet_pools_memory_does_not_change_from_evaluation_to_evaluation() -> None:
    quiet = profile(hold_down_s=None)
    memory, memories = Memory(), []
    for tick in range(140):
        now_s = NOW_S + TICK_S * tick
        jobs = 3 if tick < 2 else 0
        seen = view(queue(sampled_at_s=now_s, in_flight_jobs=jobs), profile=quiet, running_workers=jobs)
        _, memory = decide(seen, memory, now_s=now_s)
        memories.append(memory)
    at_rest_since = 2 + HOLDS_TICKS[-1] + 1  # the longest hold has let go, and what it kept is gone
    assert all(each == memories[-1] for each in memories[at_rest_since:])
    never_busy = decide(view(profile=quiet), Memory(), now_s=NOW_S)[1]
    assert decide(view(profile=quiet), never_busy, now_s=NOW_S + TICK_S)[1] == never_busy


WANTS = st.lists(st.integers(0, 1000), min_size=1, max_size=30)


@given(wants=WANTS)
def test_a_longer_hold_never_keeps_fewer_and_each_keeps_what_is_wanted(wants: list[int]) -> None:
    known = played(*wants)
    assert list(known.levels) == sorted(known.levels)
    assert known.levels[0] == wants[-1]
    assert known.levels[4] == max(wants[-7:])
    assert wants[-1] <= kept_workers(known) <= max(wants)


@given(wants=WANTS)
def test_costs_are_finite_and_never_negative(wants: list[int]) -> None:
    assert all(0.0 <= cost < math.inf for band in played(*wants).bands for cost in band)
    assert longest_s(TICK_S) == HOLDS_TICKS[-1] * TICK_S


def priced_in_full(wants: list[int]) -> tuple[list[list[float]], int]:
    """What ``tried`` and ``kept_workers`` come to where every band is priced for every wait, as defined."""

    def part(workers: int, band: int) -> int:
        return sum(worker.bit_length() == band for worker in range(workers))

    known: list[list[float]] = []
    before = [0] * HOLDS
    before_at = 0
    for tick, workers in enumerate(wants):
        levels = [max([workers, *wants[max(0, tick - hold) : tick]]) for hold in HOLDS_TICKS]
        if levels == before:
            continue
        weight = math.exp(tick * TICK_S / HOLD_MEMORY_S)
        known += [[0.0] * HOLDS for _ in range((levels[-1] - 1).bit_length() + 1 - len(known))] if levels[-1] else []
        for band, costs in enumerate(known):
            for hold, (was, level) in enumerate(zip(before, levels, strict=True)):
                had = part(was, band)
                idle = (had - part(before[0], band)) * (weight * ((tick - before_at) * TICK_S))
                costs[hold] += idle + max(0, part(level, band) - had) * (weight * START)
        before, before_at = levels, tick
    kept = sum(part(before[costs.index(min(costs))], band) for band, costs in enumerate(known))
    return known, kept


@given(wants=st.lists(st.integers(min_value=0, max_value=70), min_size=1, max_size=40))
def test_bands_that_no_wait_parts_are_passed_over_and_cost_what_they_would(wants: list[int]) -> None:
    """Bands that every wait keeps whole, and those that none reaches, are left out: not a digit differs."""
    known, kept = priced_in_full(wants)
    assert [list(band) for band in played(*wants).bands] == known
    assert kept_workers(played(*wants)) == kept
