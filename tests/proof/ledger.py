"""What rounds of a proof have found, in words that a stranger can read."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

ABOUT = frozenset({"seed", "ended_at", "commit", "cores", "load_1m", "python", "system"})
"""Of a line what says where its figures come from."""
SIZES = frozenset({"hosts", "controls", "workers_max_seen"})
"""Whole numbers that are no counts: they are not added up."""
WIDTH, NAME_WIDTH = 110, 28


def summary(name: str, rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of one proof's ledger: counts are added over ``rounds``, all else is from the least to the most."""
    seeds = ", ".join(str(each["seed"]) for each in rounds)
    loads = _spread([each["load_1m"] for each in rounds])
    figures = dict.fromkeys(key for each in rounds for key in each if key not in ABOUT)
    lines = [f"{name}: rounds ended: {len(rounds)} (seeds {seeds}; load {loads})"]
    for figure in figures:
        value = _summed(figure, [each[figure] for each in rounds if figure in each])
        if value:
            lines += textwrap.wrap(
                f"  {figure.replace('_', ' '):{NAME_WIDTH}} {value}",
                WIDTH,
                subsequent_indent=" " * (NAME_WIDTH + 3),
                break_on_hyphens=False,
            )
    return lines


def _summed(figure: str, values: Sequence[Any]) -> str:
    """One figure over all rounds; empty where there is nothing to add or compare."""
    if all(isinstance(value, Mapping) for value in values):
        keys = sorted({key for value in values for key in value})
        parts = {key: _summed(figure, [value[key] for value in values if key in value]) for key in keys}
        return ", ".join(f"{key.replace('_', ' ')} {part}" for key, part in parts.items() if part)
    numbers = [each for value in values for each in (value if isinstance(value, list) else [value])]
    if not numbers or any(isinstance(each, bool) or not isinstance(each, int | float) for each in numbers):
        return ""
    if figure not in SIZES and all(isinstance(each, int) for each in numbers):
        return f"{sum(numbers):,}"
    return _spread(numbers)


def _spread(numbers: Sequence[float]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:g}" if least == most else f"{least:g}–{most:g}"
