import json
import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.forecast import Forecaster, Holt, Level, Naive, Point, Seasonal, Trend, state_of, with_state
from headway.scaling.trial import PENDING_MAX, Trial

EPOCH_S = 1_760_000_000.25  # Unix seconds of these years
KINDS: tuple[Forecaster, ...] = (Naive(), Level(), Trend(), Holt(), Holt(name="damped", damping_s=100.0), Seasonal())


def fed(forecaster, points):
    for at_s, value in points:
        forecaster = forecaster.updated(Point(at_s=at_s, value=value))
    return forecaster


def every_5_s(value_at, count, *, start_s=EPOCH_S):
    return [(start_s + 5.0 * tick, value_at(5.0 * tick)) for tick in range(count)]


@pytest.mark.parametrize("forecaster", [Trend(), Holt()])
@pytest.mark.parametrize("every_s", [1.0, 5.0])
@given(slope=st.floats(-10, 10), start=st.floats(3_000, 10_000), count=st.integers(2, 60), ahead_s=st.floats(0, 120))
def test_a_line_is_foreseen_exactly_at_unix_times(forecaster, every_s, slope, start, count, ahead_s):
    """The predecessor squared raw Unix times, and lost the slope."""
    points = [(EPOCH_S + every_s * tick, start + slope * every_s * tick) for tick in range(count)]
    expected = start + slope * (every_s * (count - 1) + ahead_s)
    assert fed(forecaster, points).forecast(ahead_s) == pytest.approx(expected, rel=1e-6)


@given(gaps_s=st.lists(st.floats(1, 60), min_size=2, max_size=40), slope=st.floats(-1, 1))
def test_uneven_times_do_not_bend_the_line(gaps_s, slope):
    times_s = [EPOCH_S + sum(gaps_s[:count]) for count in range(len(gaps_s) + 1)]
    trend = fed(Trend(), [(at_s, 5_000 + slope * (at_s - EPOCH_S)) for at_s in times_s])
    assert trend.forecast(30.0) == pytest.approx(5_000 + slope * (times_s[-1] + 30 - EPOCH_S), rel=1e-6)


def test_the_trend_is_the_weighted_least_squares_line():
    values = [3.0, 8.0, 1.0, 9.0, 7.0, 12.0]
    weights = [math.exp(-5.0 * (5 - tick) / 60.0) for tick in range(6)]
    mean_t = sum(w * 5.0 * t for t, w in enumerate(weights)) / sum(weights)
    mean_v = sum(w * v for v, w in zip(values, weights, strict=True)) / sum(weights)
    sum_tv = sum(w * (5.0 * t - mean_t) * (v - mean_v) for t, (v, w) in enumerate(zip(values, weights, strict=True)))
    slope = sum_tv / sum(w * (5.0 * t - mean_t) ** 2 for t, w in enumerate(weights))
    trend = fed(Trend(memory_s=60.0), [(EPOCH_S + 5.0 * tick, value) for tick, value in enumerate(values)])
    assert trend.forecast(10.0) == pytest.approx(mean_v + slope * (35.0 - mean_t))


def test_the_level_is_exponential_smoothing():
    level = fed(Level(memory_s=5.0 / math.log(2)), every_5_s({0.0: 8.0, 5.0: 4.0, 10.0: 12.0}.get, 3))
    assert level.forecast(7.0) == pytest.approx(9.0)  # half of each step: 8, (8 + 4) / 2 = 6, (6 + 12) / 2


def test_holt_is_the_textbook_recursion():
    """With shares of a half: level 10 → 12, slope 2; then 18 against 14 foreseen: level 16, slope (2 + 4) / 2."""
    halving_s = 1.0 / math.log(2)
    holt = Holt(memory_s=halving_s, slope_memory_s=halving_s)
    holt = fed(holt, [(EPOCH_S, 10.0), (EPOCH_S + 1, 12.0), (EPOCH_S + 2, 18.0)])
    assert (holt.level, holt.slope_per_s) == (pytest.approx(16.0), pytest.approx(3.0))
    assert holt.forecast(2.0) == pytest.approx(22.0)


def test_damping_is_the_textbook_recursion():
    """Gardner and McKenzie: foreseen is level + slope × a half; the old slope fades by a half before it is mixed."""
    halving_s = 1.0 / math.log(2)
    damped = Holt(memory_s=halving_s, slope_memory_s=halving_s, damping_s=halving_s)
    damped = fed(damped, [(EPOCH_S, 10.0), (EPOCH_S + 1, 12.0), (EPOCH_S + 2, 18.0)])
    level = (12.0 + 2.0 * halving_s / 2 + 18.0) / 2
    assert damped.level == pytest.approx(level)
    assert damped.slope_per_s == pytest.approx((2.0 / 2 + level - 12.0) / 2)


def test_a_damped_slope_comes_to_an_end():
    steep = every_5_s(lambda at_s: 10 * at_s, 20)
    damped, straight = fed(Holt(damping_s=50.0), steep), fed(Holt(), steep)
    assert damped.forecast(20.0) < straight.forecast(20.0)
    assert damped.forecast(1e6) == pytest.approx(damped.level + damped.slope_per_s * 50.0)


@given(hours=st.lists(st.floats(0, 1_000), min_size=24, max_size=24), ahead_s=st.floats(0, 86_400))
def test_a_season_is_foreseen_exactly_once_it_was_seen(hours, ahead_s):
    clock = Seasonal(bucket_s=3_600.0)
    midnight_s = 20_000 * 86_400.0
    clock = fed(clock, [(midnight_s + 900.0 * tick, hours[tick // 4 % 24]) for tick in range(2 * 96 + 1)])
    assert clock.forecast(ahead_s) == pytest.approx(hours[int(ahead_s // 3_600) % 24])


def test_a_first_day_has_no_season_and_says_so():
    clock = fed(Seasonal(), every_5_s(lambda at_s: 4.0, 100))
    assert clock.forecast(60.0) is None


def test_a_newer_day_weighs_more_than_an_older_one():
    days = [(20_000 * 86_400.0 + 3_600.0 * hour, 10.0 * (1 + hour // 24)) for hour in range(49)]
    assert fed(Seasonal(bucket_s=3_600.0), days).forecast(3_600.0) == 15.0  # 10, then half way to 20


def test_the_clock_of_a_season_can_be_set():
    points = [(20_000 * 86_400.0 + 3_600.0 * hour, float(hour % 24)) for hour in range(25)]
    assert fed(Seasonal(bucket_s=3_600.0), points).remembered[0] == 0.0
    assert fed(Seasonal(bucket_s=3_600.0, utc_offset_s=7_200.0), points).remembered[2] == 0.0


@pytest.mark.parametrize("forecaster", KINDS)
def test_nothing_is_foreseen_from_nothing(forecaster):
    assert forecaster.forecast(5.0) is None


@pytest.mark.parametrize("forecaster", KINDS)
def test_a_point_that_is_not_later_than_the_last_is_passed_over(forecaster):
    seen = fed(forecaster, [(EPOCH_S, 3.0), (EPOCH_S + 5, 4.0)])
    assert seen.updated(Point(at_s=EPOCH_S + 5, value=900.0)) is seen
    assert seen.updated(Point(at_s=EPOCH_S - 86_400, value=900.0)) is seen


@pytest.mark.parametrize("forecaster", [Trend(), Holt(), Level()])
def test_after_a_long_silence_what_was_known_is_forgotten(forecaster):
    steep = fed(forecaster, every_5_s(lambda at_s: at_s, 50))
    after = fed(steep, [(EPOCH_S + 100_000, 7.0), (EPOCH_S + 100_005, 7.0)])
    assert after.forecast(3_600.0) == pytest.approx(7.0)


TIMES_S = st.floats(0, 4e9) | st.floats(EPOCH_S, EPOCH_S + 1e-3) | st.floats(EPOCH_S, EPOCH_S + 100)
SERIES = st.lists(st.tuples(TIMES_S, st.floats(0, 1e12) | st.floats(0, 1)), max_size=40)


@pytest.mark.parametrize("forecaster", KINDS)
@given(points=SERIES, ahead_s=st.floats(0, 86_400))
def test_a_forecast_is_a_number_and_never_negative(forecaster, points, ahead_s):
    for ordered in (points, sorted(points)):
        foreseen = fed(forecaster, ordered).forecast(ahead_s)
        assert foreseen is None or 0 <= foreseen < math.inf


@pytest.mark.parametrize("forecaster", KINDS)
@given(points=SERIES, later=SERIES)
def test_a_forecaster_goes_on_from_its_stored_state(forecaster, points, later):
    seen = fed(forecaster, sorted(points))
    restored = with_state(forecaster, json.loads(json.dumps(state_of(seen))))
    assert restored == seen
    assert fed(restored, later) == fed(seen, later)


def test_a_state_of_another_shape_starts_afresh():
    assert with_state(Trend(), {"at_s": 5.0, "slope": 2.0}) == Trend()


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, 1e13])
def test_what_is_no_value_is_refused(value):
    with pytest.raises(Invalid, match="value="):
        Point(at_s=EPOCH_S, value=value)


def test_what_is_no_time_is_refused():
    with pytest.raises(Invalid, match="no time"):
        Point(at_s=math.nan, value=1.0)


# --- on trial ---------------------------------------------------------------------------------------------------------


def tried(points, **values):
    return fed(Trial(**{"lead_s": 15.0, **values}), points)


def saw(at_s):
    """A ramp up and down, half an hour each way."""
    return 100.0 + abs(at_s % 3_600 - 1_800)


def test_ramps_switch_the_trends_on():
    trial = tried(every_5_s(saw, 720))
    assert {"trend", "holt"} <= set(trial.trusted)
    assert trial.forecasts(15.0)["trend"] == pytest.approx(saw(719 * 5.0 + 15.0), rel=0.05)


@pytest.mark.parametrize("seed", range(8))
def test_noise_switches_every_forecast_off(seed):
    """Around a mean, and as a random walk: in neither is there anything to foresee."""
    chance = random.Random(seed)
    around_mean = every_5_s(lambda at_s: chance.uniform(50, 150), 720)
    assert tried(around_mean).trusted == ()
    steps = [(at_s, chance.choice((-5.0, 5.0))) for at_s, _ in around_mean]
    walk = [
        (at_s, max(0.0, 2_000 + sum(step for _, step in steps[: tick + 1]))) for tick, (at_s, _) in enumerate(steps)
    ]
    assert tried(walk).trusted == ()


def test_a_clock_switches_the_season_on_from_the_second_day():
    """A burst of ten minutes at every full hour: no slope tells of it, yesterday does."""

    def bursts(at_s):
        return 80.0 if at_s % 3_600 < 600 else 4.0

    day = [(20_000 * 86_400.0 + 20.0 * tick, bursts(20.0 * tick)) for tick in range(2 * 4_320)]
    assert tried(day[:4_320], lead_s=40.0).trusted == ()
    assert tried(day, lead_s=40.0).trusted == ("seasonal",)


def test_what_stops_beating_the_naive_forecast_is_switched_off():
    trial = tried(every_5_s(saw, 720))
    assert "trend" in trial.trusted
    chance = random.Random(1)
    after = every_5_s(lambda at_s: chance.uniform(50, 150), 720, start_s=EPOCH_S + 3_600)
    assert fed(trial, after).trusted == ()


def test_a_few_lucky_samples_are_no_skill():
    trial = tried(every_5_s(saw, 25))
    assert trial.skill("trend") is None
    assert trial.forecasts(15.0) == {}


def test_where_nothing_changes_there_is_nothing_to_foresee():
    trial = tried(every_5_s(lambda at_s: 7.0, 300))
    assert trial.trusted == ()


def test_skill_is_the_share_of_the_best_baselines_loss_that_is_saved():
    """On a ramp the last value errs by slope × lead at every look, and the level by more; the trend does not err."""
    trial = tried(every_5_s(lambda at_s: at_s, 300))
    assert trial.skill("trend") == pytest.approx(1.0)
    score = trial.scores[0]
    assert min(score.baseline_losses) / score.samples == pytest.approx(15.0 / 2)  # pinball at a half


def test_a_gap_in_the_points_blames_nobody():
    before = tried(every_5_s(saw, 300))
    after = before.updated(Point(at_s=EPOCH_S + 86_400, value=0.0))
    assert after.scores == before.scores
    assert len(after.pending) == 1


def test_too_little_costs_more_where_the_quantile_is_high():
    def losses(quantile):
        score = tried(every_5_s(lambda at_s: at_s, 100), quantile=quantile).scores[0]
        return score.baseline_losses[0] / score.samples

    assert losses(0.9) == pytest.approx(9 * losses(0.1))


@given(points=SERIES, lead_s=st.floats(0.1, 100))
def test_a_trial_keeps_its_size_and_forecasts_numbers(points, lead_s):
    trial = tried(sorted(points), lead_s=lead_s)
    assert len(trial.pending) <= PENDING_MAX + 1
    assert all(earlier.due_at_s < later.due_at_s for earlier, later in pairwise(trial.pending))
    assert all(0 <= value < math.inf for value in trial.forecasts(lead_s).values())


def test_a_trial_goes_on_from_its_stored_state():
    trial = tried(every_5_s(saw, 500))
    restored = Trial(lead_s=15.0).with_state(json.loads(json.dumps(trial.state())))
    assert restored == trial
    assert len(json.dumps(trial.state())) < 4_000


def test_a_trial_of_another_version_starts_afresh():
    state = {**tried(every_5_s(saw, 500)).state(), "version": 0}
    assert Trial(lead_s=15.0).with_state(state) == Trial(lead_s=15.0)


@pytest.mark.parametrize(("name", "value"), [("lead_s", 0.0), ("lead_s", math.nan), ("quantile", 1.0)])
def test_a_trial_without_sense_is_refused(name, value):
    with pytest.raises(Invalid, match=name):
        tried([], **{name: value})
