"""Values in the cells of a terminal's tables. What is not known is called unknown and is never 0."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from headway.cli.terminal.screen import Text, lined

UNKNOWN = "unknown"
Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], str]]
"""The columns of a table: their names, and how the cell of a row is read."""

EVENTS_FROM_S = 600.0  # who has reported no event for longer than others has given way to them


def table(names: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, empty: str) -> Table | str:
    """Rows under their names; ``empty`` where there are none."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell, style="dim" if cell == UNKNOWN else "") for cell in row))
    return shown if shown.row_count else empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table of rows that the API answers."""

    rows: str
    """Their key in the answer."""
    columns: Columns
    wide: Columns = field(default_factory=dict)
    """The columns that `-o wide` adds."""
    order: Callable[[Row], Any] = lambda _: 0
    """What rows are sorted by; the order of the answer unless said."""
    empty: str

    def __call__(self, answer: Row, *, is_wide: bool = False) -> Table | str:
        """The table of ``answer``; ``empty`` where it has no rows."""
        columns = {**self.columns, **self.wide} if is_wide else self.columns
        return listed(columns, sorted(answer[self.rows], key=self.order), empty=self.empty)


def listed(columns: Columns, rows: Iterable[Row], *, empty: str) -> Table | str:
    """A line per row; ``empty`` where there are none."""
    return table(tuple(columns), (tuple(read(row) for read in columns.values()) for row in rows), empty=empty)


def figures_table(first: Iterable[str], figures: Iterable[str]) -> Table:
    """An empty table: columns of text, then columns of figures.

    A figure's name that has several words is in two lines, so that eighty columns of a terminal are enough: a figure
    that is cut short is none.
    """
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in first:
        shown.add_column(name, overflow="fold")
    for name in figures:
        shown.add_column(lined(*name.replace("-", " ").split(" ", 1)), justify="right", no_wrap=True)
    return shown


def count(value: int | None) -> str:
    """A number of things."""
    return UNKNOWN if value is None else str(value)


def figure(value: float | None, form: str) -> str:
    """A number as ``form`` writes it."""
    return UNKNOWN if value is None else format(value, form)


def waiting(row: Mapping[str, Any]) -> str:
    """The jobs that wait in a queue or a pool, and beside them those that workers have reserved and not begun."""
    metrics = row["metrics"]
    text = count(metrics["waiting_jobs"])
    if metrics["reserved_jobs"]:
        text += f" +{metrics['reserved_jobs']} reserved"
    return text if is_wait_known(row) else f"{text} +{UNKNOWN} reserved"


def longest_wait(row: Mapping[str, Any]) -> str:
    """The age of the oldest job that waits, a lower bound where it is unknown how many jobs wait."""
    age_s = row["metrics"]["oldest_age_s"]
    if is_wait_known(row):
        return duration(age_s)
    return f"at least {duration(age_s)}" if age_s else UNKNOWN


def in_flight(metrics: Mapping[str, Any]) -> str:
    """The jobs that workers have."""
    least = metrics["in_flight_min_jobs"]
    return f"at least {least}" if metrics["in_flight_jobs"] is None and least else count(metrics["in_flight_jobs"])


def is_wait_known(row: Mapping[str, Any]) -> bool:
    """Whether all jobs of a queue or a pool that wait are known."""
    return bool(row.get("is_wait_known", True))  # a control plane of an earlier version does not say


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


def objective_text(objective: Mapping[str, Any]) -> str:
    """An objective in a cell: ``p99 10 s``."""
    return f"p{objective['percentile']:g} {duration(objective['target_s'])}"


def within(metrics: Mapping[str, Any], objective: Mapping[str, Any] | None) -> str:
    """The pickup time that the objective is about: its own percentile over its own window."""
    if objective is None:
        return duration(metrics["pickup_objective_s"])
    if metrics["pickup_objective_s"] is None:
        return UNKNOWN
    return f"p{objective['percentile']:g} {duration(metrics['pickup_objective_s'])}"


def events_from(sources: Iterable[Mapping[str, Any]]) -> str:
    """Who reports what happens to jobs, of those that reported last: emitters, agents, a collector, or several."""
    ages_s = {each["source"]: min(_known_ages(each), default=math.inf) for each in sources}
    newest_s = min(ages_s.values(), default=math.inf)
    latest = {source for source, age_s in ages_s.items() if age_s <= newest_s + EVENTS_FROM_S}
    return " + ".join(sorted({each if each in ("agents", "emitters") else "collector" for each in latest})) or "-"


def _known_ages(source: Mapping[str, Any]) -> list[float]:
    return [age_s for name, age_s in source.items() if name.endswith("_age_s") and age_s is not None]


def failed(failures: Mapping[str, Any] | None) -> str:
    """The share of jobs that failed, of how many, and attempts that are tried again: ``2 % of 376, 64 retried``."""
    if failures is None:
        return UNKNOWN
    retried = f", {failures['retried_jobs']} retried" if failures["retried_jobs"] else ""
    if not failures["ended_jobs"]:
        return f"none ended{retried}"
    # Down to the whole: what is shown as 100 % must be all, and as 0 % none.
    percent = 100 * failures["failed_jobs"] // failures["ended_jobs"]
    return f"{percent if percent or not failures['failed_jobs'] else '<1'} % of {failures['ended_jobs']}{retried}"


def ago(at_s: float | None) -> str:
    """How long before now a moment was; never, if there was none."""
    return age(None if at_s is None else float(max(0, round(time.time() - at_s))))


def age(age_s: float | None, *, unknown: str = "never") -> str:
    """How long before now something happened, which was ``age_s`` ago."""
    return unknown if age_s is None else f"{duration(age_s)} ago"


def moment(at_s: float) -> str:
    """A moment in UTC, to the second."""
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def mib(value: int | None) -> str:
    """Bytes of memory."""
    if value is None:
        return UNKNOWN
    return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"


def evidence(row: Row) -> str:
    """Who says whether a worker is busy, and how long ago that was so."""
    if row["is_busy"] is None or row["activity_source"] is None:
        return "none"
    if row["activity_known_at_s"] is None:
        return str(row["activity_source"])
    return f"{row['activity_source']}, {duration(max(0.0, time.time() - row['activity_known_at_s']))} ago"


def worker_state(row: Mapping[str, Any]) -> str:
    """The state of a worker, with what it is that a worker has left, and why it takes no jobs."""
    said = [str(row["state"]).replace("_", " ")]
    if row["is_left_behind"]:
        said.append("left behind" + (", in the background" if row["goes_to_background"] else ""))
    if row["inability"] is not None:
        said.append(f"takes no jobs: {INABILITIES.get(row['inability'], row['inability'])}")
    if row["moves_due_jobs"]:
        said.append("moves due jobs")
    if row["start_failure"] is not None:
        said.append(f"fails to start: {str(row['start_failure']).replace('_', ' ')}")
    return "; ".join(said)


INABILITIES = {
    "stopped": "its process is stopped",
    "zombie": "its main process has ended",
    "consumers_cancelled": "it consumes no queue",
    "pool_shrunk": "it runs fewer at once than its template says",
}


def group_use(row: Row) -> str:
    """What is used of a group's cap, as ``31 of 40 workers``."""
    group = row["group"]
    is_in_slots = group["workers_max"] is None
    cap = group["slots_max"] if is_in_slots else group["workers_max"]
    return _use(row["used"], cap, is_in_slots=is_in_slots)


def pool_group_use(row: Row) -> str:
    """The same of a group that a pool is in, after its name."""
    binding = ", its cap binds" if row["is_binding"] else ""
    return f"{row['name']}: {_use(row['used'], row['cap'], is_in_slots=row['is_in_slots'])}{binding}"


def _use(used: int, cap: int, *, is_in_slots: bool) -> str:
    return f"{used} of {cap} {'slot' if is_in_slots else 'worker'}{'' if cap == 1 else 's'}"
