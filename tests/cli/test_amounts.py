"""How numbers, durations and descriptions are read from a command line."""

import pytest

from headway.cli.terminal.units import described, seconds
from headway.errors import Invalid


@pytest.mark.parametrize(
    ("text", "value_s"),
    [
        ("90s", 90),
        ("3m", 180),
        ("1h", 3600),
        ("30d", 2_592_000),
        ("0.5m", 30),
        (" 1.5s ", 1.5),
        ("200ms", 0.2),
    ],
)
def test_what_lasts_has_a_unit(text: str, value_s: float) -> None:
    assert seconds(text, option="--for", above_s=0) == pytest.approx(value_s)


def test_a_bare_number_that_may_be_meant_as_minutes_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^--for='10' has no unit: 10s, 10m or 10h$"):
        seconds("10", option="--for")


@pytest.mark.parametrize("text", ["", "-3s", "3w", "m", "inf", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^--for=.* is no duration, as in 200ms, 10s or 3m$"):
        seconds(text, option="--for")


def test_a_duration_may_have_to_be_longer_than_nothing() -> None:
    assert seconds("0", option="--tick") == 0
    with pytest.raises(Invalid, match="--for='0s' is no duration above 0, as in 200ms, 10s or 3m"):
        seconds("0s", option="--for", above_s=0)


@pytest.mark.parametrize(
    ("text", "kind", "pairs"),
    [
        ("flash:rate=2,peak=40", "flash", (("rate", "2"), ("peak", "40"))),
        ("flash: rate = 2 ,, peak=a=b", "flash", (("rate", "2"), ("peak", "a=b"))),
        ("flash:rate", "flash", (("rate", ""),)),
        ("flash", "flash", ()),
        ("", "", ()),
    ],
)
def test_a_description_is_a_kind_and_its_keys(text: str, kind: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert described(text) == (kind, pairs)
