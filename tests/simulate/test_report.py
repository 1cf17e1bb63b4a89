"""The report of a rehearsal: one file, everything in it, nothing loaded."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.simulate.engine.results import Point, Result
from headway.simulate.report.charts import frontier, waits_over_time, workers_over_time
from headway.simulate.report.page import cells, page, percent, seconds
from headway.simulate.report.rows import Row, offered_load
from headway.simulate.report.svg import WIDTH, clock, frame, round_steps, time_ticks
from headway.simulate.workloads.jobs import Jobs

POINTS = tuple(
    Point(
        at_s=5.0 * index,
        target_workers=index % 4,
        present_workers=index % 3,
        busy_workers=1,
        waiting_jobs=index,
        pickup_max_s=None if index % 5 == 0 else float(index % 14),
    )
    for index in range(100)
)
RESULT = Result(
    pool="mail",
    jobs=1000,
    unserved_jobs=0,
    objective_s=10.0,
    attainment_percent=99.5,
    attainment_by_day_percent=(99.5,),
    pickup_p50_s=0.5,
    pickup_p95_s=4.0,
    pickup_p99_s=9.0,
    pickup_max_s=13.0,
    worker_hours=3.0,
    work_hours=2.0,
    spawns=1200,
    kills=0,
    flips=7,
    bad_windows=1,
    windows=12,
    ticks=100,
    ended_s=500.0,
    points=POINTS,
)
ROW = Row(workload="mail", strategy="hybrid", result=RESULT)
JOBS = Jobs(at_s=[0.0, 10.0, 100.0], service_s=[30.0, 30.0, 60.0])
OFFERED = offered_load("mail", JOBS)


def drawn(svg: str) -> ET.Element:
    """The picture, which must be well-formed, with every place inside it."""
    picture = ET.fromstring(svg)
    for part in picture.iter("path"):
        # An arc's own numbers are not places.
        places = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", part.attrib["d"])
        assert all(-4 <= float(x) <= WIDTH and 0 <= float(y) <= 340 for x, y in places)
    return picture


def rows() -> list[Row]:
    cheap = replace(RESULT, attainment_percent=96.0, worker_hours=2.2)
    return [
        ROW,
        Row(workload="mail", strategy="fixed", result=replace(RESULT, worker_hours=40.0, attainment_percent=100.0)),
        *(Row(workload="mail", strategy="swept", result=cheap, risk=risk, is_drawn=False) for risk in (0.5, 1.0)),
    ]


def test_the_report_loads_nothing_and_holds_every_rehearsal() -> None:
    text = page(rows(), [OFFERED], title="Rehearsal of mail", settings={"tick": "5 s"})
    assert re.findall(r"(?:src|href|url|@import|<script|<link)\b", text) == []
    assert "http" not in text.replace("http-equiv", "")
    for label in ("hybrid", "fixed", "swept, risk 0.5", "swept, risk 1"):
        assert label in text
    assert text.count("<details") == 2  # those that are drawn over time
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        drawn(svg)


def test_names_from_outside_are_text() -> None:
    row = replace(ROW, workload="<b>mail</b>", strategy='a"b&c')
    text = page([row], [replace(OFFERED, workload="<b>mail</b>")], title="<i>", settings={})
    assert "<b>mail" not in text
    assert "<title>&lt;i&gt;</title>" in text
    assert "a&quot;b&amp;c" in text


def test_late_waits_stand_out_and_the_objective_is_a_line() -> None:
    parts = {part.attrib.get("class"): part for part in drawn(waits_over_time(ROW))}
    late = [point for point in POINTS if point.pickup_max_s is not None and point.pickup_max_s > 10]
    assert parts["late"].attrib["d"].count("M") == len(late) > 0
    assert "objective" in parts


def test_workers_target_and_the_offered_work_are_drawn() -> None:
    assert {"present", "target", "offered"} <= {
        part.attrib.get("class") for part in drawn(workers_over_time(ROW, OFFERED))
    }


def test_a_swept_knob_is_a_line_and_every_rehearsal_a_dot_with_its_figures() -> None:
    picture = drawn(frontier(rows(), ["hybrid", "fixed", "swept"]))
    dots = list(picture.iter("circle"))
    assert len(dots) == 4
    assert [part.attrib["class"] for part in picture.iter("path")] == ["frontier c2"]
    assert dots[0].findtext("title") == "hybrid: 99.50 % in time, 1.50 × the work"
    # The dear one lies to the right of the cheap one, and above it.
    assert float(dots[1].attrib["cx"]) > float(dots[0].attrib["cx"])
    assert float(dots[1].attrib["cy"]) < float(dots[0].attrib["cy"])


def test_a_rehearsal_without_work_or_service_is_shown_with_dashes() -> None:
    idle = replace(RESULT, work_hours=0.0, pickup_p50_s=None, pickup_p95_s=None, pickup_p99_s=None, points=())
    row = replace(ROW, result=idle)
    assert cells(row)[1:6] == ("–", "–", "–", "3.00", "–")
    assert frontier([row], ["hybrid"]) == ""
    assert "<svg" in page([row], [OFFERED], title="t", settings={})


def test_the_offered_load_is_the_work_that_arrives_over_its_span() -> None:
    # Spans of 30 s: 60 s of work arrive in the first, none in the next two, 60 s in the fourth.
    assert OFFERED.points == ((0.0, 2.0), (30.0, 0.0), (60.0, 0.0), (90.0, 2.0))
    assert offered_load("mail", JOBS, slots=2).points[0] == (0.0, 1.0)


@given(st.floats(0.001, 1e6), st.integers(2, 8))
def test_an_axis_has_round_steps_that_cover_its_values(most: float, about: int) -> None:
    steps = round_steps(0.0, most, about=about)
    assert steps[0] == 0.0
    assert steps[-1] >= most * (1 - 1e-6)
    assert 2 <= len(steps) <= about + 2


@given(st.floats(1.0, 1e8))
def test_a_time_axis_is_not_crowded(until_s: float) -> None:
    ticks = time_ticks(until_s)
    assert 1 <= len(ticks) <= 10
    assert all(0 <= tick.value <= until_s for tick in ticks)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1e4)), min_size=1, max_size=20))
def test_whatever_is_drawn_stays_in_its_frame(points: list[tuple[float, float]]) -> None:
    box = frame(until=100.0, most=50.0, height=200.0)
    for draw in (box.line, box.steps, box.area, box.dots):
        draw(sorted(points), "any")
    drawn(box.svg("any"))


@pytest.mark.parametrize(
    ("at_s", "text"), [(0, "0"), (90, "90 s"), (600, "10 min"), (5400, "90 min"), (7200, "2 h"), (172_800, "2 d")]
)
def test_moments_are_as_short_as_they_can_be(at_s: float, text: str) -> None:
    assert clock(at_s) == text


def test_a_hundred_per_cent_is_said_only_of_all_jobs() -> None:
    assert [percent(value) for value in (100.0, 99.9999, 99.5)] == ["100.00 %", "99.99 %", "99.50 %"]
    assert [seconds(value) for value in (None, 0.004, 9.999, 1234.5)] == ["–", "0.00 s", "10.0 s", "1,234.5 s"]
