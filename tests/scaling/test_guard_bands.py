"""What a guard learns of what comes on top of the jobs that are there already."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.safety_stock import SafetyStock, learned, spare_jobs
from headway.scaling.forecasts.in_use import BANDS
from headway.scaling.forecasts.shortfalls import STOCK_BAND_TIME_S, Shortfalls
from headway.scaling.model import Memory
from headway.scaling.view import PoolView
from scaling.bands import changed, parts, reloaded, watched
from support.pools import NOW_S, exposed_of, profile, queue, view

TICK_S = 5.0


def pool() -> PoolView:
    """A pool with an objective of 10 s that starts in 8 s: it is exposed for 3.5 s."""
    return view(profile=profile(), start_up_s=8.0)


def spare(used_jobs: int | None, *by_use: Shortfalls, by_rate: float = 6.0) -> float:
    guard = changed(
        SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=watched(*[by_rate] * 20)), by_use=by_use, used_jobs=used_jobs
    )
    return spare_jobs(guard, exposed_of(queue(), pool(), now_s=NOW_S))


ALONE = watched(1.0, 1.0)  # one comes where none is
CLOSED = watched()  # nothing comes
NEW = Shortfalls()
PLAIN = pytest.approx(5.95)  # what the rate alone guards with: one in a hundred jobs may come beyond


@pytest.mark.parametrize(
    ("used_jobs", "by_use", "expected"),
    [
        (0, (ALONE, CLOSED), 1.0),  # the one job that may come
        (1, (ALONE, CLOSED), 0.0),  # it has come
        (0, (watched(3.0, 3.0), CLOSED), 3.0),
        (1, (watched(3.0, 3.0), CLOSED), 2.0),  # three come together: the others are on their way
        (1, (ALONE, NEW), PLAIN),  # with one it was not watched for long
        (1, (ALONE, watched(for_s=STOCK_BAND_TIME_S - 1)), PLAIN),
        (7, (watched(7.0), NEW, NEW, NEW, CLOSED), 0.0),  # seven at once, and then none: what is between was never seen
        (1, (ALONE, NEW, CLOSED), 1.0),  # with two nothing came, so with one no more than the second
        (None, (ALONE, CLOSED), PLAIN),  # it is not known what is there
        (0, (), PLAIN),
        (10_000, (ALONE, *[CLOSED] * (BANDS - 1)), 0.0),  # the last band has no end
    ],
)
def test_a_band_guards_with_what_came_on_top_of_as_many(
    used_jobs: int | None, by_use: tuple[Shortfalls, ...], expected: float
) -> None:
    assert spare(used_jobs, *by_use) == expected


def test_no_band_guards_with_more_than_the_rate() -> None:
    assert spare(0, watched(50.0, 50.0)) == PLAIN


def test_a_span_teaches_the_band_in_which_it_began() -> None:
    guard, seen = None, pool()
    for tick, (used, came) in enumerate([(0, 0), (2, 2), (2, 0), (0, 0)]):
        now_s = NOW_S + TICK_S * tick
        evaluated = queue(sampled_at_s=now_s, arrived_until_s=now_s, arrived_jobs=came, in_flight_jobs=used)
        guard = learned(guard, exposed_of(evaluated, seen, now_s=now_s))
    assert guard is not None
    assert [round(band.jobs / band.scale) for band in parts(guard).by_use] == [2, 0, 0]  # two came where none was
    assert [round(band.time_s / band.scale) for band in parts(guard).by_use] == [5, 0, 10]
    assert parts(guard).used_jobs == 0


def test_bands_come_back_as_they_were_stored() -> None:
    guard = changed(SafetyStock(began_at_s=0.0, at_s=NOW_S), by_use=(ALONE, NEW, CLOSED), used_jobs=2)
    assert SafetyStock.of(reloaded(guard)) == guard
    before_bands = {name: value for name, value in reloaded(guard).items() if name not in {"by_use", "used_jobs"}}
    assert parts(SafetyStock.of(before_bands)).by_use == ()


BAND = st.builds(
    lambda jobs, for_s: watched(*jobs, for_s=for_s),
    st.lists(st.floats(0.1, 60.0), max_size=4),
    st.sampled_from([0.0, 100.0, STOCK_BAND_TIME_S, 1e5]),
)


@given(
    bands=st.lists(BAND, max_size=BANDS), used=st.integers(0, 300), more=st.integers(1, 50), rate=st.floats(0.0, 9.0)
)
def test_jobs_there_and_jobs_to_be_ready_for_never_fall_as_jobs_rise(
    bands: list[Shortfalls], used: int, more: int, rate: float
) -> None:
    totals = []
    for jobs in (used, used + more):
        guard = SafetyStock(began_at_s=0.0, at_s=NOW_S, by_rate=watched(*[12.0] * 20), expected_jobs=rate)
        guard = changed(guard, by_use=tuple(bands), used_jobs=jobs)
        totals.append(jobs + spare_jobs(guard, exposed_of(queue(), pool(), now_s=NOW_S)))
    assert totals[0] <= totals[1] + 1e-9


def test_one_worker_stands_where_one_job_at_a_time_comes() -> None:
    """A job of 20 s each 65 s, and a start-up that is too long to react: after an hour one worker is there, always."""
    memory, targets = Memory(), []
    seen_profile = profile(hold_down_s=None)
    for tick in range(3 * 720):
        now_s = NOW_S + TICK_S * tick
        phase = tick % 13
        came = int(phase == 0)
        evaluated = queue(
            sampled_at_s=now_s,
            arrived_until_s=now_s,
            arrived_jobs=came,
            arrival_rate_per_s=1 / 60,
            start_rate_per_s=1 / 60,
            in_flight_jobs=int(phase < 4),
            service_time_s=20.0,
        )
        pool_view = view(evaluated, profile=seen_profile, start_up_s=8.0, running_workers=max(1, (targets or [0])[-1]))
        decision, memory = decide(pool_view, memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert max(targets[:240]) > 1  # at first a second one is ready while the first works
    assert set(targets[2 * 720 :]) == {1}
