"""More starts at once than help the jobs that wait are not requested."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.needs import Coming, Need, Supply
from headway.scaling.demands.start_contention import helpful_starts, without_vain_starts
from headway.scaling.explain import explained
from headway.scaling.model import Memory
from headway.scaling.reading.pool_times import times_of
from headway.scaling.view import PoolView
from support.pools import NOW_S, profile, queue, view


def burst(jobs: int = 150, *, service_s: float | None = 0.3, **values: object) -> PoolView:
    """Late jobs on two cores, of which each start takes 1.5 s."""
    late = queue(waiting_jobs=jobs, oldest_age_s=9.0, service_time_s=service_s)
    plain = {"start_up_s": 3.0, "start_up_cpu_s": 1.5, "host_cores": 2.0, "profile": profile(workers_max=1_000)}
    return view(late, **{**plain, **values})


def starts_of(pool: PoolView) -> float:
    """The starts at once that help ``pool``."""
    return helpful_starts(
        pool.queues, times_of(pool), host_cores=pool.host_cores, slots_per_worker=pool.slots_per_worker
    )


@pytest.mark.parametrize(
    ("pool", "starts"),
    [
        (burst(), 8),  # √(150 × 0.3 × 2 ÷ 1.5) = 7.7
        (burst(host_cores=64.0), 64),  # a core each
        (burst(slots_per_worker=4), 4),  # √(11.25 × 2 ÷ 1.5) = 3.9
        (burst(service_s=None), math.inf),  # each may take for ever
        (burst(host_cores=None), math.inf),
        (burst(host_cores=0.0), math.inf),  # no host has so few: its report says nothing
        (burst(start_up_cpu_s=None), math.inf),
        (burst(start_up_cpu_s=0.0009), math.inf),
        (burst(start_up_cpu_s=5e-324), math.inf),  # what is left of a mean whose starts report 0 for long
        (burst(0), 2),
    ],
)
def test_starts_help_until_they_delay_each_other_by_more_than_they_take_off(pool: PoolView, starts: float) -> None:
    assert starts_of(pool) == starts


@pytest.mark.parametrize(
    ("service_s", "starts"),
    [
        (60.0, 40),  # √(20 × 60 × 2 ÷ 1.5) = 40
        (None, math.inf),  # the other queue's jobs say nothing of these
    ],
)
@pytest.mark.parametrize("completions_per_s", [0.0, 10.0])
def test_waiting_jobs_take_as_long_as_those_of_their_own_queue(
    completions_per_s: float, service_s: float | None, starts: float
) -> None:
    """However many short jobs of another queue end meanwhile."""
    short = queue(queue="redis/short", service_time_s=0.2, completion_rate_per_s=completions_per_s)
    waiting = queue(waiting_jobs=20, service_time_s=service_s, completion_rate_per_s=0.01)
    assert starts_of(view(short, waiting, start_up_cpu_s=1.5, host_cores=2.0)) == starts


def test_a_decision_says_in_one_sentence_that_more_starts_would_not_help() -> None:
    decision, _ = decide(burst(), Memory(), now_s=NOW_S)
    assert decision.target_workers == 8
    sentence = (
        "On 2 cores, more starts at once would start the waiting jobs later, not sooner: "
        "8 of 22 new slots are requested."  # 150 ÷ (1 + ⌊2 ÷ 0.3⌋)
    )
    assert sentence in explained(decision)


def test_what_starts_already_counts() -> None:
    decision, _ = decide(burst(starting_workers=8), Memory(), now_s=NOW_S)
    assert decision.target_workers == 8


@settings(max_examples=max(200, settings.default.max_examples))
@given(
    jobs=st.integers(1, 5_000),
    service_s=st.floats(0.01, 600),
    cpu_s=st.floats(0.01, 30),
    cores=st.floats(0.5, 256),
    starts=st.integers(1, 5_000),
    rest_s=st.floats(0, 30),
)
def test_nothing_is_taken_away_that_could_start_jobs_in_time(
    jobs: int, service_s: float, cpu_s: float, cores: float, starts: int, rest_s: float
) -> None:
    """The last job starts no later than with every start that was asked for, so what was in time is in time."""

    def last_start_s(workers: int) -> float:
        return rest_s + max(cpu_s, workers * cpu_s / cores) + jobs * service_s / workers

    pool = burst(jobs, service_s=service_s, start_up_cpu_s=cpu_s, host_cores=cores)
    nobody = Supply(busy_slots=0, idle_slots=0, coming=(), completions_per_s=0.0, cycle_s=service_s, caution=0.0)
    left = without_vain_starts(Need(new_slots=starts), nobody, helpful_slots=starts_of(pool))
    assert 1 <= left.new_slots <= starts
    assert last_start_s(left.new_slots) <= last_start_s(starts) * (1 + 1e-9)


def test_those_that_start_already_are_among_the_starts_that_help() -> None:
    starting = Supply(
        busy_slots=0,
        idle_slots=0,
        coming=(Coming(slots=3, ready_in_s=1.0),),
        completions_per_s=0.0,
        cycle_s=1.0,
        caution=0.0,
    )
    assert without_vain_starts(Need(new_slots=10), starting, helpful_slots=8.0).new_slots == 5


@given(
    jobs=st.integers(0, 5_000),
    more=st.integers(0, 5_000),
    service_s=st.floats(0.01, 600),
    slower=st.floats(1, 100),
)
def test_more_or_slower_jobs_never_leave_fewer(jobs: int, more: int, service_s: float, slower: float) -> None:
    fewer = burst(jobs, service_s=service_s)
    worse = burst(jobs + more, service_s=service_s * slower)
    assert starts_of(worse) >= starts_of(fewer)
