import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.planning.queueing import (
    allen_cunneen_wait_s,
    beta_for,
    delay_probability,
    erlang_b,
    erlang_c,
    mean_wait_s,
    slots_for,
    slots_for_burst,
    square_root_staffing,
    wait_exceeds_probability,
)

SLOTS = st.integers(1, 60)
LOADS = st.floats(0.01, 50)
SERVICE_S = st.floats(0.01, 100)


@pytest.mark.parametrize(
    ("slots", "offered_load", "blocked"),
    [  # the Erlang B table of every telephone engineer: the load that so many lines carry at this grade of service
        (1, 0.0101, 0.01),
        (5, 1.657, 0.02),
        (10, 4.461, 0.01),
        (20, 12.03, 0.01),
        (30, 21.93, 0.02),
        (50, 37.90, 0.01),
        (100, 84.06, 0.01),
    ],
)
def test_erlang_b_is_what_the_tables_say(slots, offered_load, blocked):
    assert erlang_b(slots, offered_load) == pytest.approx(blocked, rel=2e-3)


@pytest.mark.parametrize(
    ("jobs", "service_s", "target_s", "slots"),
    [
        (50, 0.2, 9.5, 2),  # 1 + ⌊9.5 ÷ 0.2⌋ = 48 a slot
        (48, 0.2, 9.5, 1),
        (40, 30.0, 10.0, 40),  # a slot starts one at once and none after
        (40, 10.0, 10.0, 20),  # and one more where it is done just in time
        (40, 2.5, 10.0, 8),  # 5 a slot
        (0.4, 1.0, 10.0, 1),
        (0, 1.0, 10.0, 0),
        (7, 1.0, 0.0, 7),
    ],
)
def test_a_burst_needs_a_slot_for_as_many_jobs_as_one_starts_in_time(jobs, service_s, target_s, slots):
    assert slots_for_burst(jobs, service_s, target_s) == slots


def test_erlang_c_is_what_the_tables_say():
    """200 calls an hour of 180 s each, 14 agents: 17.4 % wait, 88.8 % are answered in 20 s, 7.8 s on average."""
    assert erlang_c(14, 10.0) == pytest.approx(0.174, abs=5e-4)
    assert 1 - wait_exceeds_probability(14, 10.0, 180.0, 20.0) == pytest.approx(0.888, abs=5e-4)
    assert mean_wait_s(14, 10.0, 180.0) == pytest.approx(7.8, abs=0.05)
    assert slots_for(10.0, 180.0, 20.0, 80.0) == 14  # 80 % in 20 s, the rule of call centres


@pytest.mark.parametrize(("beta", "delayed"), [(0.0, 1.0), (0.5, 0.505), (1.0, 0.223), (2.0, 0.027)])
def test_halfin_and_whitt_give_the_chance_of_waiting(beta, delayed):
    assert delay_probability(beta) == pytest.approx(delayed, abs=1e-3)


@given(load=st.floats(0.001, 0.999), service_s=SERVICE_S, target_s=st.floats(0, 100))
def test_one_slot_is_the_textbook_queue(load, service_s, target_s):
    """M/M/1: a job waits with chance a, on average a/(1 − a) services, longer than t with a·exp(−(1 − a)·t/service)."""
    assert erlang_b(1, load) == pytest.approx(load / (1 + load))
    assert erlang_c(1, load) == pytest.approx(load)
    assert mean_wait_s(1, load, service_s) == pytest.approx(load / (1 - load) * service_s)
    exceeds = load * math.exp(-(1 - load) * target_s / service_s)
    assert wait_exceeds_probability(1, load, service_s, target_s) == pytest.approx(exceeds)


@given(slots=SLOTS, load=LOADS)
def test_erlang_b_is_the_ratio_of_its_sum(slots, load):
    """a^c/c! over the sum of a^k/k!, in logarithms."""
    terms = [count * math.log(load) - math.lgamma(count + 1) for count in range(slots + 1)]
    total = math.fsum(math.exp(term) for term in terms)
    assert erlang_b(slots, load) == pytest.approx(math.exp(terms[-1]) / total, rel=1e-9)


@given(slots=st.integers(1, 8), busy=st.floats(0.05, 0.9), service_s=st.floats(0.1, 10), target_s=st.floats(0, 20))
def test_the_closed_forms_agree_with_the_birth_and_death_of_jobs(slots, busy, service_s, target_s):
    """The chances of 0, 1, 2 … jobs from balance alone, cut where the rest weighs nothing."""
    load = slots * busy
    weights = [1.0]
    while len(weights) <= slots or weights[-1] > 1e-14 * weights[slots]:
        weights.append(weights[-1] * load / min(len(weights), slots))
    total = math.fsum(weights)
    waiting = [weight / total for weight in weights[slots:]]  # found by a job that must wait for 1, 2 … ends
    assert erlang_c(slots, load) == pytest.approx(math.fsum(waiting), rel=1e-9)
    ends_per_s = slots / service_s
    mean_s = math.fsum(chance * (ahead + 1) / ends_per_s for ahead, chance in enumerate(waiting))
    assert mean_wait_s(slots, load, service_s) == pytest.approx(mean_s, rel=1e-6)
    fewer_ends = poisson_sums(ends_per_s * target_s, len(waiting))
    exceeds = math.fsum(chance * fewer for chance, fewer in zip(waiting, fewer_ends, strict=True))
    assert wait_exceeds_probability(slots, load, service_s, target_s) == pytest.approx(exceeds, rel=1e-6, abs=1e-12)


def poisson_sums(mean: float, count: int) -> list[float]:
    """The chances of at most 0, 1, 2 … events where ``mean`` are expected."""
    sums, term = [], math.exp(-mean)
    for number in range(count):
        sums.append((sums[-1] if sums else 0.0) + term)
        term *= mean / (number + 1)
    return sums


@given(slots=SLOTS, load=LOADS, more=st.floats(0, 10), service_s=SERVICE_S, target_s=st.floats(0, 100))
def test_more_load_never_helps_and_another_slot_never_hurts(slots, load, more, service_s, target_s):
    for form in (
        erlang_b,
        erlang_c,
        lambda slots, load: wait_exceeds_probability(slots, load, service_s, target_s),
        lambda slots, load: mean_wait_s(slots, load, service_s),
    ):
        assert form(slots, load + more) >= form(slots, load) * (1 - 1e-12)
        assert form(slots + 1, load) <= form(slots, load) * (1 + 1e-12)


@given(slots=st.integers(0, 60), load=st.floats(0, 50))
def test_chances_are_chances_and_who_waits_is_not_fewer_than_who_is_sent_away(slots, load):
    assert 0 <= erlang_b(slots, load) <= erlang_c(slots, load) <= 1 or load == 0


@pytest.mark.parametrize("load", [0.5, 10.25, 999.9, 10_000.0])
def test_great_loads_stay_numbers(load):
    slots = slots_for(load, 1.0, 0.0, 95.0)
    assert wait_exceeds_probability(slots, load, 1.0, 0.0) <= 0.05 < wait_exceeds_probability(slots - 1, load, 1.0, 0.0)


@given(load=LOADS, service_s=SERVICE_S, target_s=st.floats(0, 100), percentile=st.floats(1, 99.9))
def test_the_least_slots_are_enough_and_one_fewer_is_not(load, service_s, target_s, percentile):
    slots, may_exceed = slots_for(load, service_s, target_s, percentile), 1 - percentile / 100
    assert slots > load
    assert wait_exceeds_probability(slots, load, service_s, target_s) <= may_exceed
    assert wait_exceeds_probability(slots - 1, load, service_s, target_s) > may_exceed


def test_loads_that_no_pool_has_are_answered_too():
    """By the limit, without a step a slot: a service time that was read wrongly must not stop the loop."""
    exact, limit = slots_for(100_000.0, 1.0, 0.0, 99.0), slots_for(100_000.1, 1.0, 0.0, 99.0)
    assert exact <= limit <= exact + 2
    assert slots_for(1e300, 1.0, 0.0, 99.0) >= 1e300


def test_no_load_needs_no_slot():
    assert slots_for(0.0, 1.0, 10.0, 99.0) == 0
    assert erlang_b(3, 0.0) == erlang_c(3, 0.0) == mean_wait_s(3, 0.0, 1.0) == 0.0


@pytest.mark.parametrize("slots", [0, 3, 5])
def test_without_a_steady_state_the_wait_has_no_end(slots):
    assert erlang_c(slots, 5.0) == wait_exceeds_probability(slots, 5.0, 1.0, 60.0) == 1.0
    assert mean_wait_s(slots, 5.0, 1.0) == allen_cunneen_wait_s(slots, 5.0, 1.0, 0.0, 0.0) == math.inf


@given(delayed=st.floats(1e-9, 1))
def test_beta_gives_back_the_chance_it_was_asked_for(delayed):
    assert delay_probability(beta_for(delayed)) == pytest.approx(delayed)


def test_square_root_staffing_nears_erlang_c_as_the_load_grows():
    errors = []
    for load in (100.0, 10_000.0):
        slots = math.ceil(square_root_staffing(load, beta_for(0.2)))
        errors.append(abs(erlang_c(slots, load) - delay_probability((slots - load) / math.sqrt(load))))
    assert errors[1] < errors[0] < 0.02
    assert errors[1] < 0.002


def test_square_root_staffing_is_the_load_and_its_margin():
    assert square_root_staffing(100.0, 1.5) == 115.0  # 100 + 1.5 × 10
    assert square_root_staffing(0.0, 1.5) == 0.0


@given(slots=SLOTS, busy=st.floats(0.01, 0.99), service_s=SERVICE_S)
def test_allen_and_cunneen_meet_the_forms_that_are_exact(slots, busy, service_s):
    load = slots * busy
    markov_s = mean_wait_s(slots, load, service_s)
    assert allen_cunneen_wait_s(slots, load, service_s, 1.0, 1.0) == pytest.approx(markov_s)
    assert allen_cunneen_wait_s(slots, load, service_s, 0.0, 0.0) == 0.0  # a clock feeding clocks
    # Pollaczek and Khinchine, M/D/1: half the wait of M/M/1
    assert allen_cunneen_wait_s(1, busy, service_s, 1.0, 0.0) == pytest.approx(busy / (1 - busy) * service_s / 2)


@given(slots=SLOTS, busy=st.floats(0.01, 0.99), cv2=st.floats(0, 50), more=st.floats(0, 50))
def test_what_varies_more_waits_longer(slots, busy, cv2, more):
    assume(busy * slots < slots)
    for first, second in (((cv2, 1.0), (cv2 + more, 1.0)), ((1.0, cv2), (1.0, cv2 + more))):
        assert allen_cunneen_wait_s(slots, busy * slots, 1.0, *second) >= allen_cunneen_wait_s(
            slots, busy * slots, 1.0, *first
        )


@pytest.mark.parametrize("nonsense", [-1.0, math.nan, math.inf])
def test_what_no_queue_has_is_refused_by_name(nonsense):
    for named, call in (
        ("offered_load", lambda: erlang_c(3, nonsense)),
        ("service_time_s", lambda: mean_wait_s(3, 1.0, nonsense)),
        ("target_s", lambda: slots_for(1.0, 1.0, nonsense, 99.0)),
        ("percentile", lambda: slots_for(1.0, 1.0, 1.0, nonsense)),
        ("beta", lambda: square_root_staffing(1.0, nonsense)),
        ("arrival_cv2", lambda: allen_cunneen_wait_s(1, 0.5, 1.0, nonsense, 1.0)),
        ("delay_probability_max", lambda: beta_for(nonsense)),
    ):
        with pytest.raises(Invalid, match=named):
            call()
    with pytest.raises(Invalid, match="service_time_s=0"):
        mean_wait_s(3, 1.0, 0.0)
    with pytest.raises(Invalid, match="percentile=100"):
        slots_for(1.0, 1.0, 1.0, 100)
