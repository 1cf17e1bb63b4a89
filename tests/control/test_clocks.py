"""Times from clocks that may be wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.control.ingest.clock_skew import (
    CLOCK_AHEAD_S,
    CLOCK_OFFSET_TRUSTED_S,
    LATENESS_S,
    Offsets,
    corrected,
    corrected_enqueued,
)

RECEIVED_S = 100_000.0


@pytest.mark.parametrize(
    ("at_s", "offset_s", "expected_s"),
    [
        # Inside the span nothing is touched, whatever the clock.
        (RECEIVED_S, 0.0, RECEIVED_S),
        (RECEIVED_S - 600.0, 0.0, RECEIVED_S - 600.0),
        (RECEIVED_S + 1.0, 0.0, RECEIVED_S + 1.0),
        (RECEIVED_S - 300.0, 300.0, RECEIVED_S - 300.0),
        # A right clock: late or early events go to the span's end.
        (RECEIVED_S - 601.0, 0.0, RECEIVED_S - 600.0),
        (RECEIVED_S - 601.0, 1.9, RECEIVED_S - 600.0),
        (RECEIVED_S + 2.0, -1.9, RECEIVED_S + 1.0),
        # A clock an hour behind, 5 s before it was sent: moved to 5 s ago.
        (RECEIVED_S - 3605.0, 3600.0, RECEIVED_S - 5.0),
        # A clock an hour ahead.
        (RECEIVED_S + 3595.0, -3600.0, RECEIVED_S - 5.0),
        # Moved and still outside: an event an hour old from a clock an hour behind, and one from further ahead.
        (RECEIVED_S - 7200.0, 3600.0, RECEIVED_S - 600.0),
        (RECEIVED_S + 7200.0, -3600.0, RECEIVED_S + 1.0),
        # A clock at 1970.
        (5.0, 99_995.0, RECEIVED_S),
    ],
)
def test_a_time_outside_the_span_is_moved_by_the_offset_or_to_the_end(
    at_s: float, offset_s: float, expected_s: float
) -> None:
    assert corrected(at_s, received_at_s=RECEIVED_S, offset_s=offset_s) == expected_s


@given(
    at_s=st.floats(min_value=1e-3, max_value=1e11),
    received_at_s=st.floats(min_value=1e9, max_value=4e9),
    offset_s=st.floats(min_value=-1e11, max_value=1e11),
)
def test_no_clock_moves_a_time_out_of_the_span_and_a_second_pass_changes_nothing(
    at_s: float, received_at_s: float, offset_s: float
) -> None:
    once = corrected(at_s, received_at_s=received_at_s, offset_s=offset_s)
    assert received_at_s - LATENESS_S <= once <= received_at_s + CLOCK_AHEAD_S
    assert corrected(once, received_at_s=received_at_s, offset_s=offset_s) == once


@given(shift_s=st.floats(min_value=-1e6, max_value=1e6), ages_s=st.lists(st.floats(min_value=0, max_value=500)))
def test_whoever_has_one_wrong_clock_is_corrected_to_what_a_right_one_had_said(
    shift_s: float, ages_s: list[float]
) -> None:
    offset_s = Offsets().observe("app", sent_at_s=RECEIVED_S + shift_s, received_at_s=RECEIVED_S)
    for age_s in ages_s:
        right_s = RECEIVED_S - age_s
        reported_s = right_s + shift_s
        seen_s = corrected(reported_s, received_at_s=RECEIVED_S, offset_s=offset_s)
        if abs(shift_s) <= CLOCK_OFFSET_TRUSTED_S:  # so little is no wrong clock: at most the span's end is nearer
            assert abs(seen_s - right_s) <= abs(shift_s) + 1e-3
            continue
        assert seen_s in (reported_s, pytest.approx(right_s, abs=1e-3))  # unless nobody could see that it was wrong
        if seen_s == reported_s:
            assert RECEIVED_S - LATENESS_S <= reported_s <= RECEIVED_S + CLOCK_AHEAD_S


@pytest.mark.parametrize(
    ("enqueued_at_s", "at_s", "moved_s", "expected_s"),
    [
        # One machine, an hour behind: both move, the wait of 10 s stays.
        (RECEIVED_S - 3610.0, RECEIVED_S - 3600.0, 3600.0, RECEIVED_S - 10.0),
        # The worker an hour behind, who enqueued is right: it was enqueued "after" it started.
        (RECEIVED_S - 10.0, RECEIVED_S - 3600.0, 3600.0, RECEIVED_S - 10.0),
        # One machine, an hour ahead: a time still to come.
        (RECEIVED_S + 3590.0, RECEIVED_S + 3600.0, -3600.0, RECEIVED_S - 10.0),
        # The worker an hour ahead, who enqueued is right.
        (RECEIVED_S - 10.0, RECEIVED_S + 3600.0, -3600.0, RECEIVED_S - 10.0),
    ],
)
def test_the_time_of_enqueueing_moves_only_if_the_same_clock_gave_it(
    enqueued_at_s: float, at_s: float, moved_s: float, expected_s: float
) -> None:
    seen_s = corrected_enqueued(enqueued_at_s, at_s=at_s, moved_s=moved_s, received_at_s=RECEIVED_S)
    assert seen_s == expected_s


def observe(offsets: Offsets, *seen_s: float, producer: str = "app") -> float:
    return [offsets.observe(producer, sent_at_s=RECEIVED_S - each, received_at_s=RECEIVED_S) for each in seen_s][-1]


def test_an_offset_is_smoothed_because_the_way_takes_now_longer_now_less() -> None:
    assert observe(Offsets(), 100.0, 101.0) == pytest.approx(100.2)  # 100 + 0.2 × 1
    assert observe(Offsets(), 100.0, 101.0, 101.0) == pytest.approx(100.36)  # 100.2 + 0.2 × 0.8


def test_a_clock_that_was_set_is_believed_at_once() -> None:
    assert observe(Offsets(), 3600.0, 3600.5, 0.1) == pytest.approx(0.1)


def test_each_producer_has_its_own_clock() -> None:
    offsets = Offsets()
    assert observe(offsets, 100.0, producer="app") == 100.0
    assert observe(offsets, 0.0, producer="web") == 0.0
    assert observe(offsets, 100.0, producer="app") == 100.0


def test_producers_that_are_long_silent_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr("headway.control.ingest.clock_skew._PRODUCERS_MAX", 2)
    offsets = Offsets()
    for producer in ("a", "b", "a", "c"):
        observe(offsets, 100.0, producer=producer)
    assert observe(offsets, 100.5, producer="a") == pytest.approx(100.1)  # still known
    assert observe(offsets, 100.5, producer="b") == 100.5  # anew
