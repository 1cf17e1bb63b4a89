"""Rhythms of bursts: found in what came, believed by what comes after, and given up when bursts stay away."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.forecasts.rhythm import (
    RHYTHM_BELIEVED,
    RHYTHM_SURE,
    Rhythm,
    brought,
    expected_jobs,
    found,
    judged,
    with_burst,
)
from headway.scaling.forecasts.rhythm_detection import Periods, expected, periods_of, seen, steady_per_s

TICK_S = 5.0
AHEAD_S = 3.5  # what an objective of 10 s is exposed for with a start-up of 8 s
BEGAN_S = 1.7e9
HOUR_S = 3600.0


def counted(arrivals_s: Iterable[float], *, for_s: float) -> list[int]:
    """Jobs by tick."""
    counts = [0] * round(for_s / TICK_S)
    for at_s in arrivals_s:
        if 0 <= at_s < for_s:
            counts[int(at_s // TICK_S)] += 1
    return counts


def watched(counts: Iterable[int], before: Periods | None = None, *, from_s: float = BEGAN_S) -> Iterator[Periods]:
    """What is known after each tick that follows the first arrival."""
    for tick, jobs in enumerate(counts, start=1):
        before = seen(before, jobs, at_s=from_s + tick * TICK_S, tick_s=TICK_S)
        if before is not None:
            yield before


def learned(counts: Iterable[int]) -> Periods:
    *_, last = watched(counts)
    return last


def predictions(counts: list[int]) -> list[float | None]:
    """Before each tick, what is expected of its first seconds."""
    known, ahead = None, []
    for tick, jobs in enumerate(counts):
        now_s = BEGAN_S + tick * TICK_S
        ahead.append(expected(known, now_s=now_s, ahead_s=AHEAD_S, tick_s=TICK_S))
        known = seen(known, jobs, at_s=now_s + TICK_S, tick_s=TICK_S)
    return ahead


def cron(every_s: float, *, jobs: int = 50, for_s: float = HOUR_S, stray_s: float = 0.0, off_s: float = 7.0):
    chance = Random(f"{every_s}/{stray_s}")
    beats = int((for_s - off_s) / every_s) + 1
    return [
        off_s + beat * every_s + stray for beat in range(beats) for stray in [chance.uniform(-stray_s, stray_s)] * jobs
    ]


def wave(length_s: float, *, per_s: float = 20.0, for_s: float = HOUR_S) -> list[float]:
    return [at_s for at_s in poisson(per_s, for_s=for_s) if at_s % (2 * length_s) < length_s]


def poisson(per_s: float, *, for_s: float, seed: int = 1) -> list[float]:
    chance, at_s, found_s = Random(f"{per_s}/{seed}"), 0.0, []
    while (at_s := at_s + chance.expovariate(per_s)) < for_s:
        found_s.append(at_s)
    return found_s


@pytest.mark.parametrize(
    ("arrivals", "period_s", "by_beat", "burst_jobs"),
    [
        (partial(cron, 65.0, jobs=1), 65.0, 7, 1),
        (partial(cron, 61.3, jobs=1), 61.3, 7, 1),  # no multiple of a tick
        (partial(cron, 82.0, jobs=7), 82.0, 6, 7),
        (partial(cron, 300.0), 300.0, 5, 50),
        (partial(cron, 300.0, stray_s=3.0), 300.0, 6, 50),
        (partial(cron, 65.0, jobs=20, stray_s=3.0), 65.0, 14, 20),
        (partial(wave, 15.0), 30.0, 9, 300),  # 20/s × 15 s
        (
            partial(wave, 20.0, per_s=1.0),
            40.0,
            12,
            20,
        ),  # no tick stands out of the mean, but each wave follows a silence
        (partial(wave, 20.0), 40.0, 8, 400),
        (partial(wave, 30.0), 60.0, 7, 600),
        (partial(wave, 40.0), 80.0, 7, 800),
    ],
)
def test_a_rhythm_is_believed_after_some_beats_and_predicts_the_next(
    arrivals: Callable[[], list[float]], period_s: float, by_beat: int, burst_jobs: int
) -> None:
    counts = counted(arrivals(), for_s=HOUR_S)
    ahead = predictions(counts)
    first = next(tick for tick, jobs in enumerate(ahead) if jobs is not None)
    assert first * TICK_S <= by_beat * period_s
    rhythm = learned(counts).rhythms[0]
    assert rhythm.period_s == pytest.approx(period_s, abs=1.0)
    assert rhythm.jobs[-1] == pytest.approx(burst_jobs, rel=0.15)
    assert rhythm.right >= 0.9 * rhythm.predicted


@pytest.mark.parametrize("every_s", [45.0, 60.0, 65.0, 82.0, 119.9, 300.0, 1116.0])
@pytest.mark.parametrize("stray_s", [0.0, 3.0])
def test_once_it_is_believed_nearly_every_burst_is_expected_and_little_in_vain(every_s: float, stray_s: float) -> None:
    counts = counted(cron(every_s, jobs=10, for_s=6 * HOUR_S, stray_s=stray_s), for_s=6 * HOUR_S)
    ahead = [(jobs, came) for jobs, came in zip(predictions(counts), counts, strict=True) if jobs is not None]
    came = sum(jobs for _, jobs in ahead)
    assert len(ahead) > len(counts) / 2
    assert sum(min(jobs, came) for jobs, came in ahead) >= 0.9 * came
    # A burst that strays by 3 s either way is due in one tick or the next: one of them is in vain.
    assert sum(max(0.0, jobs - came) for jobs, came in ahead) <= (1.2 if stray_s else 0.6) * came


@pytest.mark.parametrize("per_s", [0.001, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_independent_jobs_have_no_rhythm(per_s: float, seed: int) -> None:
    ahead = predictions(counted(poisson(per_s, for_s=24 * HOUR_S, seed=seed), for_s=24 * HOUR_S))
    assert sum(jobs is not None for jobs in ahead) <= 0.05 * len(ahead)
    assert sum(bool(jobs) for jobs in ahead) <= 0.002 * len(ahead)


def test_bursts_that_come_by_chance_have_no_rhythm() -> None:
    at_once = [at_s for at_s in poisson(1 / 300, for_s=24 * HOUR_S) for _ in range(20)]
    assert not any(predictions(counted(at_once, for_s=24 * HOUR_S)))


def test_a_rhythm_is_found_beside_other_work_which_is_counted_apart() -> None:
    rush = counted(cron(300.0, for_s=2 * HOUR_S), for_s=2 * HOUR_S)
    other = counted(poisson(0.4, for_s=2 * HOUR_S), for_s=2 * HOUR_S)
    known = learned([a + b for a, b in zip(rush, other, strict=True)])
    assert known.rhythms[0].period_s == pytest.approx(300.0)
    assert known.rhythms[0].jobs[0] == pytest.approx(52, abs=4)
    steady = steady_per_s(known, now_s=known.at_s, tick_s=TICK_S)
    assert steady == pytest.approx(0.4, rel=0.3)
    # A clock that was set back says of no time that it has passed.
    assert steady_per_s(known, now_s=known.at_s - 13 * HOUR_S, tick_s=TICK_S) == steady


def test_a_single_job_just_before_a_rush_neither_begins_it_nor_hides_it() -> None:
    counts = counted([*cron(300.0, off_s=7.0), *cron(300.0, jobs=1, off_s=4.0)], for_s=HOUR_S)
    rush = next(each for each in learned(counts).rhythms if each.jobs[0] > 1)
    assert rush.jobs == (50,)
    assert rush.evidence >= RHYTHM_BELIEVED


def test_two_rhythms_of_one_queue_are_both_predicted() -> None:
    counts = counted(
        [*cron(300.0, for_s=4 * HOUR_S), *cron(420.0, jobs=30, for_s=4 * HOUR_S, off_s=100.0)], for_s=4 * HOUR_S
    )
    half = len(counts) // 2
    ahead = predictions(counts)
    missed = sum(max(0, came - (jobs or 0)) for jobs, came in zip(ahead[half:], counts[half:], strict=True))
    assert missed <= 0.1 * sum(counts[half:])


def test_nothing_else_is_expected_where_all_jobs_have_a_rhythm() -> None:
    known = learned(counted(cron(65.0, jobs=1), for_s=HOUR_S))
    assert steady_per_s(known, now_s=known.at_s, tick_s=TICK_S) == 0.0
    assert known.unexplained_s == ()


def test_a_burst_is_expected_from_before_its_beat_until_it_is_too_late() -> None:
    known = learned(counted(cron(300.0, off_s=2.0), for_s=HOUR_S - 250.0))  # the last came 50 s ago
    last_s = known.at_s
    nearly_s, due_s = last_s + 285.0, last_s + 295.0

    def ahead(now_s: float) -> float | None:
        return expected(known, now_s=now_s, ahead_s=AHEAD_S, tick_s=TICK_S)

    assert ahead(last_s + 100.0) == 0.0
    assert ahead(nearly_s) == 0.0
    assert ahead(due_s) == 50.0
    assert ahead(due_s + TICK_S) == 50.0  # it strays for once
    assert ahead(due_s + 2 * TICK_S) == 0.0


def test_what_a_burst_has_brought_is_no_longer_expected() -> None:
    counts = counted(cron(300.0, off_s=2.0), for_s=HOUR_S)
    tick = max(tick for tick, jobs in enumerate(counts) if jobs)
    before, half = (
        learned(counts[:tick]),
        seen(learned(counts[:tick]), 30, at_s=BEGAN_S + (tick + 1) * TICK_S, tick_s=TICK_S),
    )
    assert expected(before, now_s=BEGAN_S + tick * TICK_S, ahead_s=AHEAD_S, tick_s=TICK_S) == 50.0
    assert expected(half, now_s=BEGAN_S + (tick + 1) * TICK_S, ahead_s=AHEAD_S, tick_s=TICK_S) == 20.0  # 50 − 30


def test_bursts_that_stay_away_end_the_belief_without_anything_being_stored() -> None:
    known = learned(counted(cron(300.0), for_s=HOUR_S))
    beats = [
        expected(known, now_s=known.at_s + number * 300.0 + 20.0, ahead_s=400.0, tick_s=TICK_S) for number in range(6)
    ]
    assert beats[0] is not None
    assert beats[-1] is None
    assert beats == sorted(beats, key=lambda jobs: jobs is None)  # once it is given up, it stays so


def test_a_rhythm_that_changed_is_given_up_and_the_new_one_is_found() -> None:
    old = counted(cron(300.0, for_s=2 * HOUR_S), for_s=2 * HOUR_S)
    new = counted(cron(170.0, for_s=2 * HOUR_S), for_s=2 * HOUR_S)
    known = learned(old + new)
    best = max(known.rhythms, key=lambda each: each.evidence)
    assert best.period_s == pytest.approx(170.0, abs=1.0)
    assert best.evidence == pytest.approx(RHYTHM_SURE)


def test_a_clock_that_drifts_is_followed() -> None:
    at_s, beats = 7.0, []
    for beat in range(60):
        beats += [at_s] * 20
        at_s += 100.0 + beat * 0.05  # 3 s in a hundred minutes
    known = learned(counted(beats, for_s=at_s))
    assert known.rhythms[0].right >= 0.9 * known.rhythms[0].predicted


def test_where_nothing_arrives_and_where_a_span_comes_again_the_value_is_the_same() -> None:
    known = learned(counted(cron(65.0, jobs=1), for_s=HOUR_S))
    assert seen(known, 0, at_s=known.at_s + TICK_S, tick_s=TICK_S) is known
    assert seen(known, None, at_s=known.at_s + TICK_S, tick_s=TICK_S) is known
    assert seen(known, 3, at_s=known.at_s, tick_s=TICK_S) is known
    assert seen(known, 3, at_s=None, tick_s=TICK_S) is known
    assert seen(None, 0, at_s=BEGAN_S, tick_s=TICK_S) is None
    assert expected(None, now_s=BEGAN_S, ahead_s=AHEAD_S, tick_s=TICK_S) is None
    assert steady_per_s(None, now_s=BEGAN_S, tick_s=TICK_S) is None


def test_it_is_stored_as_json_and_goes_on_as_if_it_had_not_been() -> None:
    counts = counted([*wave(25.0), *cron(65.0, jobs=1)], for_s=HOUR_S)
    half = learned(counts[:400])
    text = json.dumps(asdict(half))
    assert len(text) < 8000
    back = periods_of(json.loads(text))
    assert back == half
    assert periods_of(half) is half
    assert periods_of(None) is None
    later_s = BEGAN_S + 400 * TICK_S
    assert [*watched(counts[400:], back, from_s=later_s)] == [*watched(counts[400:], half, from_s=later_s)]


# --- one rhythm -------------------------------------------------------------------------------------------------


def rhythm(**changes) -> Rhythm:
    values = {
        "period_s": 100.0,
        "at_s": 1000.0,
        "beat": 7,
        "hits": tuple((beat, 300.0 + beat * 100.0) for beat in range(8)),
        "stray_s": 0.0,
        "evidence": RHYTHM_SURE,
        "bursts": ((10,),),
        "jobs": (10,),
    }
    return Rhythm(**{**values, **changes})


@pytest.mark.parametrize(
    ("sums", "since_s", "jobs"),
    [
        ((50,), 0.0, 0.0),
        ((50,), 0.1, 50.0),  # it may have come at once
        ((20, 50), 0.1, 50.0),  # and have been cut in two by a tick
        ((100, 300, 500), 1.25, 50.0),  # 200 a tick: the first 100 took half a tick
        ((100, 300, 500), 2.5, 100.0),
        ((100, 300, 500), 5.0, 200.0),
        ((100, 300, 500), 60.0, 500.0),
        ((), 5.0, 0.0),
    ],
)
def test_what_a_burst_has_brought_after_so_long(sums: tuple[int, ...], since_s: float, jobs: float) -> None:
    assert brought(sums, since_s, tick_s=TICK_S) == pytest.approx(jobs)


@pytest.mark.parametrize(("jobs", "is_its_own"), [(1, False), (12, False), (13, True), (500, True)])
def test_a_quarter_of_the_usual_jobs_is_the_least_that_begins_a_burst(jobs: int, is_its_own: bool) -> None:
    assert rhythm(jobs=(50, 60)).is_as_great(jobs) == is_its_own
    assert rhythm(jobs=()).is_as_great(jobs)  # nothing is usual yet


@pytest.mark.parametrize(
    ("bursts", "counts", "jobs"),
    [
        (((),), [20, 30], (20, 50)),
        (((10,), ()), [20, 30], (20, 50)),  # of two the most
        (((10,), (12, 40), ()), [500], (12, 40)),  # of three the second most: one odd burst proves nothing
        (((30, 50), (50,), ()), [10, 40], (30, 50)),  # cut in two by a tick, each elsewhere
        (((10, 20, 20), ()), [10, 10], (10, 20)),  # without its idle end
    ],
)
def test_what_a_burst_brings_is_what_most_of_the_newest_brought(
    bursts: tuple[tuple[int, ...], ...], counts: list[int], jobs: tuple[int, ...]
) -> None:
    assert with_burst(rhythm(bursts=bursts), counts).jobs == jobs


@given(
    now_s=st.floats(1000.0, 1090.0),
    ahead_s=st.floats(0.0, 500.0),
    more_s=st.floats(0.0, 500.0),
    sums=st.lists(st.integers(0, 100), min_size=1, max_size=12),
)
def test_a_longer_time_ahead_never_expects_less(now_s: float, ahead_s: float, more_s: float, sums: list[int]) -> None:
    jobs = tuple(sum(sums[: at + 1]) for at in range(len(sums)))
    known = rhythm(bursts=(jobs,), jobs=jobs) if jobs[-1] else rhythm()
    near = expected_jobs(known, now_s=now_s, ahead_s=ahead_s, tick_s=TICK_S)
    far = expected_jobs(known, now_s=now_s, ahead_s=ahead_s + more_s, tick_s=TICK_S)
    assert 0 <= near <= far + 1e-6


def test_each_beat_without_a_burst_speaks_against_a_rhythm() -> None:
    def evidence(until_s: float) -> float:
        return judged(rhythm(), until_s=until_s, after_s=3.0, tick_s=TICK_S, bursts_per_s=0.01).evidence

    assert evidence(1100.0) == RHYTHM_SURE
    assert RHYTHM_SURE > evidence(1104.0) == evidence(1200.0) > evidence(1204.0)
    assert evidence(1404.0) < RHYTHM_BELIEVED  # three or four in a row


def test_three_bursts_are_the_fewest_that_a_rhythm_is_found_in() -> None:
    def of(*bursts_s: float) -> Rhythm | None:
        return found(bursts_s, tick_s=TICK_S, period_min_s=20.0, bursts_per_s=len(bursts_s) / bursts_s[-1])

    assert of(100.0, 400.0) is None
    assert of(100.0, 400.0, 1100.0) is None
    sure = of(100.0, 400.0, 700.0)
    assert sure is not None
    assert 0 < sure.evidence < RHYTHM_BELIEVED  # it has predicted nothing yet
    assert (sure.period_s, sure.right, sure.predicted) == (pytest.approx(300.0), 0, 0)


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0, 1, 5, 50, 10_000])), max_size=60))
def test_whatever_comes_it_stays_small_finite_and_expects_no_negative(spans: list[tuple[int, int]]) -> None:
    known, at_s = None, BEGAN_S
    for ticks, jobs in spans:
        at_s += ticks * TICK_S
        known = seen(known, jobs, at_s=at_s, tick_s=TICK_S)
        ahead = expected(known, now_s=at_s, ahead_s=AHEAD_S, tick_s=TICK_S)
        assert ahead is None or 0 <= ahead < 1e9
    assert len(json.dumps(asdict(known), allow_nan=False) if known else "") < 8000
