"""Values in the cells of a terminal's tables. What is not known is called unknown and is never 0."""

import time
from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

UNKNOWN = "unknown"


def table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, empty: str) -> Table | str:
    """Rows under their names; ``empty`` where there are none."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        shown.add_column(name, overflow="fold")
    for row in rows:
        # As text: names come from outside, and square brackets in one are no markup.
        shown.add_row(*(Text(cell, style="dim" if cell == UNKNOWN else "") for cell in row))
    return shown if shown.row_count else empty


def count(value: int | None) -> str:
    """A number of things."""
    return UNKNOWN if value is None else str(value)


def rate(value: float | None) -> str:
    """Of jobs."""
    return UNKNOWN if value is None else f"{value:.1f}/s"


def duration(seconds: float | None) -> str:
    """In the unit that a reader thinks in."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def ago(at_s: float) -> str:
    """How long before now a moment was."""
    return f"{duration(float(max(0, round(time.time() - at_s))))} ago"


def mib(value: int) -> str:
    """Bytes of memory."""
    return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"
