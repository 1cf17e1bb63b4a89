"""Rehearsals as a table for a terminal, and what is said beside it."""

from collections.abc import Sequence

from rich.table import Table

from headway.cli.terminal.cells import figures_table
from headway.cli.terminal.screen import Screen, Text
from headway.scaling.explanations.phrases import duration
from headway.simulate.report.page import COLUMNS, cells, extremes
from headway.simulate.report.rows import Row
from headway.simulate.studies.single_pool import Setting

SPREADS_SHOWN = 12  # rows of which the least and the most of all tick phases are shown: of more, nobody reads them


def phases_text(rows: Sequence[Row], *, shown: int | None = None) -> str:
    """What the figures of several tick phases are; nothing of a single one."""
    phases = len(rows[0].result.phases)
    if not phases:
        return ""
    is_short = (len(rows) if shown is None else shown) <= SPREADS_SHOWN
    where = "" if is_short else "; --json and --report have the least and the most of each"
    return f"Medians of {phases} rehearsals that differ in when their ticks are{where}."


def table(rows: Sequence[Row], *, what: str = "workload") -> Table:
    """A row a rehearsal; ``what`` names that which several rows may be of."""
    has_workloads = len({row.workload for row in rows}) > 1
    shown = figures_table([*([what] if has_workloads else []), "strategy"], (name for name, _ in COLUMNS))
    last = None
    for row in rows:
        first = [Text(row.workload if row.workload != last else "")] if has_workloads else []
        in_time, *rest = cells(row)
        verdict = Text(in_time, style="green" if row.is_kept else "red")
        shown.add_row(*first, Text(row.label), verdict, *rest)
        for name, figures_ in extremes(row) if len(rows) <= SPREADS_SHOWN else ():
            shown.add_row(*([""] if has_workloads else []), f"  {name}", *figures_, style="dim")
        last = row.workload
    return shown


def print_table(console: Screen, rows: Sequence[Row], setting: Setting, *, what: str = "workload") -> None:
    """The table; before it how workers behave, where that was measured, and after it what the figures are."""
    if setting.behaviour is not None:
        note = f"Workers and control plane behave as measured: start-up {start_up_text(setting)}."
        console.print(Text(note, style="dim"))
    console.print(table(rows, what=what))
    if note := phases_text(rows):
        console.print(Text(note, style="dim"))


def start_up_text(setting: Setting) -> str:
    """How long workers take to start, in words."""
    if setting.behaviour is not None and setting.behaviour.start_up is not None:
        measured = setting.behaviour.start_up
        return f"{duration(round(measured.p50_s, 2))}, p95 {duration(round(measured.p95_s, 2))}"
    spread = f", spread {setting.start_up_spread:g}" if setting.start_up_spread else ""
    return f"{duration(setting.start_up_s)}{spread}"
