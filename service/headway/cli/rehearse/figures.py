"""What a rehearsal came to, for a program: its figures, the files that they are written to, and the exit status."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from headway.cli.process.shutdown import ENDED_BY_CTRL_C
from headway.cli.terminal.screen import Text, errors
from headway.errors import Misconfigured
from headway.simulate.report.rows import Row


def figures_of(row: Row) -> dict[str, Any]:
    """Everything of one rehearsal but its plots, by names that carry their units."""
    return (
        {"workload": row.workload, "strategy": row.strategy, "risk": row.risk, "is_kept": row.is_kept}
        | {name: value for name, value in asdict(row.result).items() if name != "points"}
        | {"work_multiple": row.result.work_multiple}
    )


def write(file: Path, text: str) -> None:
    """Write ``text`` to ``file`` and say so on standard error."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"{file} cannot be written: {error.strerror}") from error
    errors().print(Text(f"wrote {file}"), soft_wrap=True)


def end(is_whole: bool, *, done: int, asked: int, what: str = "rehearsals") -> None:  # noqa: FBT001 - all it is asked
    """Say so where Ctrl-C came before all was done, with the exit status of it."""
    if not is_whole:
        errors().print(f"interrupted: {done} of {asked} {what} were done")
        raise typer.Exit(ENDED_BY_CTRL_C)
