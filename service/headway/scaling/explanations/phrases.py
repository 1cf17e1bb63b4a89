"""Numbers and names as people read them in sentences."""

from collections.abc import Sequence

from headway.scaling.arithmetic import HOUR_S, MINUTE_S


def counted(number: int, noun: str) -> str:
    """``number`` and ``noun``: ``1 worker``, ``2 workers``, ``no workers``."""
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """``seconds`` in the unit that a reader thinks in, in round numbers: two digits are enough."""
    if seconds < 0.9995:
        return f"{float(f'{seconds * 1000:.2g}'):.0f} ms"
    if seconds < 9.95:
        return f"{number_text(seconds)} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{number_text(seconds / MINUTE_S)} min" if seconds < 2 * HOUR_S else f"{number_text(seconds / HOUR_S)} h"


def number_text(value: float) -> str:
    """``value`` with one digit behind the point where it is below 100 and not whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def slots_text(slots: float) -> str:
    """``slots`` with their noun: ``1 slot``, ``8.8 slots``."""
    return f"{number_text(slots)} {'slot' if slots == 1 else 'slots'}"


def are(number: int) -> str:
    """The verb for ``number`` of something."""
    return "is" if number == 1 else "are"


def words(name: str) -> str:
    """``name`` with spaces: how something without a wording is shown."""
    return name.replace("_", " ")


def joined(parts: Sequence[str]) -> str:
    """``parts``, at least one, as an enumeration."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def sentence_of(text: str) -> str:
    """``text`` with a capital and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
