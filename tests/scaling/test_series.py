"""A series of a queue or pool: what each point holds, and what it does not know."""

import pytest

from headway.scaling.history.weekly import WEEK_HOURS, Season
from headway.scaling.measure import BucketRow, sketch_index
from headway.scaling.metrics.reports.series import (
    Axis,
    DecidedSpan,
    QueueReading,
    axis_of,
    ceilings,
    forecast_columns,
    queue_columns,
    worker_columns,
)
from headway.scaling.model import Objective
from headway.scaling.profile import Profile

DAY_S = 86_400.0
HALF_HOUR = Axis(first=0, points=6, step_s=300.0)
MAIL, NEWS = {"mail": Objective(target_s=5, window_s=60)}, {"news": Objective(target_s=50, window_s=60)}


def row(
    at_s: float, *, queue: str = "mail", span_s: float = 60.0, waits_s: tuple[float, ...] = (), **values
) -> BucketRow:
    sketch: dict[int, int] = {}
    for wait_s in waits_s:
        sketch[sketch_index(wait_s)] = sketch.get(sketch_index(wait_s), 0) + 1
    return BucketRow(queue=queue, bucket_s=at_s, span_s=span_s, sampled_at_s=at_s, pickup_sketch=sketch, **values)


def decided(at_s: float, *, workers: int = 1, **readings: QueueReading) -> DecidedSpan:
    counts = {"running_workers": workers, "target_workers": workers + 1}
    return DecidedSpan(at_s=at_s // 300 * 300, last_at_s=at_s, greatest=counts, last=counts, readings=readings)


EMPTY = QueueReading(waiting_max_jobs=0, oldest_age_max_s=0.0, is_empty_last=True)


@pytest.mark.parametrize(
    ("range_s", "points", "span_s", "step_s"),
    [
        (900.0, 180, 5.0, 5.0),
        (900.0, 100, 5.0, 10.0),  # 9 s a point, in whole buckets
        (400 * DAY_S, 1000, 3600.0, 10 * 3600.0),  # 9.6 h a point, in whole hours
        (60.0, 1000, 60.0, 60.0),
    ],
)
def test_an_axis_is_as_fine_as_its_points_and_rows_allow(range_s, points, span_s, step_s) -> None:
    axis = axis_of(from_s=720_000.0, until_s=720_000.0 + range_s, points=points, span_s=span_s)
    assert (axis.step_s, axis.from_s <= 720_000.0, axis.until_s >= 720_000.0 + range_s) == (step_s, True, True)


@pytest.mark.parametrize("from_s", [1_799_999_999.0, 1_800_000_000.0, 1_234_567.8])
@pytest.mark.parametrize("points", [2, 7, 300, 1000])
@pytest.mark.parametrize("range_s", [60.0, 900.0, 7 * DAY_S, 400 * DAY_S])
def test_an_axis_covers_what_is_asked_for_with_no_more_points(from_s, points, range_s) -> None:
    axis = axis_of(from_s=from_s, until_s=from_s + range_s, points=points, span_s=5.0)
    assert axis.from_s <= from_s
    assert axis.until_s >= from_s + range_s
    assert axis.points <= points


def test_a_point_has_the_greatest_wait_and_depth_of_its_minutes() -> None:
    """A slow minute among four quick ones, which a merged sketch would hide."""
    rows = [row(60.0 * n, waits_s=(1.0,) * 500, waiting_jobs=1, oldest_age_s=1.0) for n in range(4)]
    rows.append(row(240.0, waits_s=(30.0,) * 5, waiting_jobs=400, oldest_age_s=29.0, pickup_max_s=31.0))
    columns = queue_columns(rows, [], HALF_HOUR, objectives=MAIL, now_s=1800.0)
    assert columns["p50_s"][0] == columns["p95_s"][0] == columns["pickup_s"][0] == pytest.approx(30.0, rel=0.01)
    assert (columns["pickup_max_s"][0], columns["backlog_jobs"][0], columns["oldest_age_s"][0]) == (31.0, 400, 29.0)


def test_the_percentile_is_of_the_objectives_window() -> None:
    """Two buckets of 5 s within its minute: one slow job of eleven is no median, but it is the 95th percentile."""
    axis = Axis(first=0, points=2, step_s=5.0)
    rows = [row(0.0, span_s=5.0, waits_s=(1.0,) * 10), row(5.0, span_s=5.0, waits_s=(9.0,))]
    columns = queue_columns(rows, [], axis, objectives=MAIL, now_s=10.0)
    assert columns["p50_s"] == pytest.approx([1.0, 1.0], rel=0.01)
    assert columns["p95_s"] == pytest.approx([1.0, 9.0], rel=0.01)


def test_without_a_row_or_a_decision_nothing_is_known() -> None:
    columns = queue_columns([row(0.0, arrived_jobs=3, waiting_jobs=2)], [], HALF_HOUR, objectives=MAIL, now_s=1800.0)
    assert columns["enqueued"] == [3, None, None, None, None, None]
    assert columns["backlog_jobs"] == [2, None, None, None, None, None]


@pytest.mark.parametrize(
    ("now_s", "counts"),
    [
        (304.9, [None, None]),  # its last events may be on their way for 5 s
        (305.0, [6, None]),
        (604.9, [6, None]),  # 20 of a span that goes on would be read as a rate, and that as too low
        (605.0, [6, 20]),
    ],
)
def test_events_are_counted_once_their_span_has_ended(now_s: float, counts: list[int | None]) -> None:
    rows = [row(0.0, arrived_jobs=6, started_jobs=6, waiting_jobs=4), row(300.0, arrived_jobs=20, started_jobs=20)]
    columns = queue_columns(rows, [decided(1.0, mail=EMPTY)], HALF_HOUR, objectives=MAIL, now_s=now_s)
    assert columns["enqueued"][:2] == columns["started"][:2] == counts
    assert columns["backlog_jobs"][0] == 4


def test_a_queue_that_decisions_saw_empty_had_nothing() -> None:
    """A minute in which nothing happened has no row. The decision at 310 s holds 390 s, and no longer."""
    columns = queue_columns(
        [row(0.0, arrived_jobs=3)], [decided(310.0, mail=EMPTY)], HALF_HOUR, objectives=MAIL, now_s=1800.0
    )
    assert columns["enqueued"] == [3, 0, 0, None, None, None]
    assert columns["backlog_jobs"] == [None, 0, 0, None, None, None]


def test_a_backlog_that_decisions_saw_is_no_lower_for_the_sample_at_the_minutes_end() -> None:
    known = QueueReading(waiting_max_jobs=70, oldest_age_max_s=12.0)
    columns = queue_columns(
        [row(240.0, waiting_jobs=2, arrived_jobs=90)],
        [decided(20.0, mail=known)],
        HALF_HOUR,
        objectives=MAIL,
        now_s=1800.0,
    )
    assert (columns["backlog_jobs"][0], columns["oldest_age_s"][0]) == (70, 12.0)
    assert columns["enqueued"][1] is None  # it waited when the decision was made: whether it went on is not known


def test_a_sample_of_5_s_holds_until_the_next_and_for_15_s() -> None:
    axis = Axis(first=0, points=6, step_s=5.0)
    rows = [row(0.0, span_s=5.0, waiting_jobs=5), row(5.0, span_s=5.0, waiting_jobs=3)]
    columns = queue_columns(rows, [], axis, objectives=MAIL, now_s=30.0)
    assert columns["backlog_jobs"] == [5, 3, 3, 3, None, None]


def test_a_pool_adds_counts_and_takes_the_greatest_wait_of_its_queues() -> None:
    rows = [
        row(0.0, waits_s=(1.0,), arrived_jobs=1, waiting_jobs=1),
        row(0.0, queue="news", waits_s=(20.0,), arrived_jobs=2, waiting_jobs=2),
        row(300.0, arrived_jobs=4, waiting_jobs=4),  # of news nothing is known then
    ]
    columns = queue_columns(rows, [], HALF_HOUR, objectives={**MAIL, **NEWS}, now_s=1800.0)
    assert columns["enqueued"] == [3, None, None, None, None, None]
    assert columns["backlog_jobs"] == [3, None, None, None, None, None]
    assert columns["pickup_s"][0] == pytest.approx(20.0, rel=0.01)


def test_the_wait_of_a_pool_is_the_greatest_part_of_a_queues_own_objective() -> None:
    rows = [
        row(0.0, waits_s=(4.0,)),  # of 5 s
        row(0.0, queue="news", waits_s=(20.0,)),  # of 50 s
        row(300.0, waits_s=(0.5,)),
        row(300.0, queue="news", waits_s=(60.0,)),
    ]
    columns = queue_columns(rows, [], HALF_HOUR, objectives={**MAIL, **NEWS}, now_s=1800.0)
    assert columns["pickup_ratio"][:3] == [pytest.approx(0.8, rel=0.01), pytest.approx(1.2, rel=0.01), None]
    unmanaged = queue_columns(rows, [], HALF_HOUR, objectives={"mail": None}, now_s=1800.0)
    assert unmanaged["pickup_ratio"] == [None] * 6


def test_a_queue_that_was_never_seen_hides_no_other() -> None:
    columns = queue_columns([row(0.0, arrived_jobs=4)], [], HALF_HOUR, objectives={**MAIL, **NEWS}, now_s=1800.0)
    assert columns["enqueued"][0] == 4


def test_events_that_nobody_reports_are_unknown_and_not_none() -> None:
    columns = queue_columns(
        [row(0.0, waiting_jobs=4)], [], HALF_HOUR, objectives=MAIL, unknown={"reports_ends"}, now_s=1800.0
    )
    assert (columns["finished"][0], columns["failed"][0], columns["started"][0]) == (None, None, 0)


def test_workers_hold_from_one_decision_to_the_next_and_end_with_the_decisions() -> None:
    """At 700 s 5 run; nobody decides after that, and 390 s later nothing is known."""
    columns = worker_columns([decided(-100.0, workers=2), decided(700.0, workers=5)], HALF_HOUR, now_s=1800.0)
    assert columns["running_workers"] == [2, None, 5, 5, None, None]
    assert columns["target_workers"] == [3, None, 6, 6, None, None]
    assert columns["draining_workers"] == [None] * 6


def test_nothing_is_known_of_the_time_to_come_but_the_forecast() -> None:
    seasons = {"mail": Season(mean_jobs=(60.0,) * WEEK_HOURS, high_jobs=(120.0,) * WEEK_HOURS, weeks=(3,) * WEEK_HOURS)}
    expected, high = forecast_columns(seasons, ["mail"], HALF_HOUR)
    assert (expected, high) == ([1.0] * 6, [2.0] * 6)
    assert forecast_columns(seasons, ["mail", "news"], HALF_HOUR) == ([None] * 6, [None] * 6)
    assert worker_columns([decided(100.0)], HALF_HOUR, now_s=310.0)["running_workers"][2:] == [None] * 4


def test_the_ceiling_is_known_since_the_profile_was_changed() -> None:
    profile = Profile(pool="mail", queues=("mail",), template="rq", workers_max=9)
    assert ceilings(profile, {}, HALF_HOUR, known_from_s=700.0) == [None, None, 9, 9, 9, 9]
