"""`headway plan`: the sum by hand, and every line of it shown."""

import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.__main__ import main
from headway.cli.rehearse.sizing import Load, late_fraction, sized
from headway.cli.terminal.units import bytes_, count, fraction, seconds
from headway.errors import Invalid

MILLION_A_DAY = ["plan", "--jobs-per-day", "1M", "--peak", "10", "--service", "200ms"]


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/plan-capacity.md").read_text()
    command = re.findall(r"^```sh\nheadway (.*?)\n```", page, flags=re.DOTALL | re.MULTILINE)[0]
    shown = re.findall(r"^```text\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)[0]
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == shown


def load(**changes) -> Load:
    usual = {
        "jobs_per_day": 1e6,
        "peak_factor": 10.0,
        "service_s": 0.2,
        "target_s": 10.0,
        "percentile": 99.0,
        "busy_fraction_max": 0.95,
        "slots_per_worker": 1,
        "memory_per_worker_bytes": 128 * 2**20,
        "connections_per_worker": 2,
    }
    return Load(**{**usual, **changes})


@pytest.mark.parametrize(
    ("changes", "workers"),
    [
        ({}, 25),  # 1e6 ÷ 86,400 × 10 × 0.2 s = 23.1 busy slots; ÷ 0.95 = 24.4
        ({"busy_fraction_max": 0.8}, 29),  # 23.1 ÷ 0.8 = 28.9
        ({"target_s": 0.2}, 27),  # now the objective asks for more than the headroom does
        ({"slots_per_worker": 4}, 7),  # 25 slots ÷ 4
        ({"peak_factor": 1.0}, 3),  # 2.3 busy slots ÷ 0.95 = 2.4
        ({"jobs_per_day": 86_400.0, "peak_factor": 1.0, "service_s": 95.0, "target_s": 9e4}, 100),  # 95 ÷ 0.95
    ],
)
def test_workers_are_the_peak_s_busy_slots_with_headroom_and_for_the_objective(changes, workers: int) -> None:
    assert sized(load(**changes)).workers == workers


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        ({}, 0),
        ({"burst_jobs": 1000.0}, 44),  # 1 + ⌊10 ÷ 0.2⌋ = 51 a slot: 1000 ÷ 51 = 19.6, beside the peak's 23.1
        ({"burst_jobs": 40.0, "service_s": 30.0, "jobs_per_day": 86.4, "peak_factor": 1.0}, 41),  # 40 beside 0.03
    ],
)
def test_a_burst_needs_slots_beside_those_of_the_peak(changes, slots: int) -> None:
    sizing = sized(load(**changes))
    assert sizing.slots_for_burst == slots
    assert sizing.workers >= slots


def test_the_line_of_a_burst_is_shown_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MILLION_A_DAY, "--at-once", "1k"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (" ".join(line.split()) for line in lines if line.startswith("for a burst"))
    assert line == "for a burst 1,000 at once ÷ 51 a slot within 10 s, beside the peak's 44 slots"


def test_memory_and_connections_are_those_of_all_workers() -> None:
    sizing = sized(load())
    assert (sizing.memory_bytes, sizing.connections) == (25 * 128 * 2**20, 50)
    assert sizing.work_hours_per_day == pytest.approx(55.6, abs=0.05)  # 1e6 × 0.2 s ÷ 3600
    assert sizing.standing_hours_per_day == 600.0  # 25 × 24 h


@given(
    jobs_per_day=st.floats(1.0, 1e7),
    peak_factor=st.floats(1.0, 20.0),
    service_s=st.floats(0.01, 10.0),
    target_s=st.floats(0.1, 60.0),
)
def test_the_workers_planned_keep_the_objective_and_one_slot_less_breaks_a_rule(
    jobs_per_day: float, peak_factor: float, service_s: float, target_s: float
) -> None:
    planned = load(jobs_per_day=jobs_per_day, peak_factor=peak_factor, service_s=service_s, target_s=target_s)
    slots = sized(planned).slots
    assert late_fraction(planned, slots=slots) <= 0.01 + 1e-9
    assert planned.peak_slots <= 0.95 * slots * (1 + 1e-9)
    is_short = planned.peak_slots > 0.95 * (slots - 1) or late_fraction(planned, slots=slots - 1) > 0.01
    assert is_short


def test_every_line_of_the_sum_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(MILLION_A_DAY) == 0
    said = " ".join(capsys.readouterr().out.split())
    for line in (
        "1,000,000 ÷ 86,400 s × 10 115.7 a second",
        "115.7 a second × 0.2 s 23.1 slots",
        "23.1 ÷ 0.95: none is busier than 95 % 25 slots",
        "99 % within 10 s, random arrivals (Erlang C) 24 slots",
        "workers 25 ÷ 1 slot a worker 25",
        "memory 25 × 128 MiB 3.1 GiB",
        "connections 25 × 2 50",
        "600 worker-hours for 55.6 of work",
    ):
        assert line in said


def test_figures_for_a_program_carry_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MILLION_A_DAY, "--memory-per-worker", "1.5G", "--connections-per-worker", "3", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["workers"], figures["memory_bytes"], figures["connections"]) == (25, 25 * 3 * 2**29, 75)
    assert figures["load"]["service_s"] == 0.2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--service", "soon"], "--service='soon' is no duration, as in 200ms, 10s or 3m"),
        (["--peak", "0"], "peak_factor=0 must be above 0"),
        (["--utilisation", "100%"], "utilisation=1 must lie between 0 and 1, both excluded"),
        (["--slots", "0"], "slots_per_worker=0 must be above 0"),
        (["--jobs-per-day", "1e30"], "more than 200,000 are not planned"),
        (["--at-once", "-1"], "--at-once='-1' is no number"),
        (["--at-once", "1e30"], "jobs at once; more than 200,000 are not planned"),
        (["--connections-per-worker", "-1"], "connections_per_worker=-1 must not be negative"),
    ],
)
def test_a_mistake_is_one_clear_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MILLION_A_DAY, *words]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (count, "1M", 1e6),
        (count, "250k", 250_000.0),
        (count, "1_000,000", 1e6),
        (count, "1e6", 1e6),
        (count, ".5", 0.5),
        (seconds, "200ms", 0.2),
        (seconds, "90s", 90.0),
        (seconds, "1.5h", 5400.0),
        (bytes_, "256M", 256 * 2**20),
        (bytes_, "1.5GiB", 3 * 2**29),
        (fraction, "95%", 0.95),
        (fraction, "0.95", 0.95),
    ],
)
def test_amounts_are_read_as_people_write_them(read, text: str, value: float) -> None:
    assert read(text, option="--x") == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "M", "-1", "1 2", "1x", "nan", "inf"])
@pytest.mark.parametrize("read", [count, seconds, bytes_, fraction])
def test_what_is_no_amount_is_refused(read, text: str) -> None:
    with pytest.raises(Invalid, match="--x="):
        read(text, option="--x")
