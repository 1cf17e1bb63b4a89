"""Moments as other programs write them."""

import time

import pytest

from headway.local.iso_time import unix_s


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("1970-01-01T00:00:10+00:00", 10.0),
        ("1970-01-01T02:00:10.5+02:00", 10.5),
        ("1970-01-01T00:00:10", 10.0),
        ("tomorrow", None),
        ("", None),
        (None, None),
        (10, None),
    ],
)
def test_a_moment_without_a_zone_is_of_utc_wherever_this_machine_is(
    monkeypatch: pytest.MonkeyPatch, text: object, at_s: float | None
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert unix_s(text) == at_s
    finally:
        monkeypatch.undo()
        time.tzset()
