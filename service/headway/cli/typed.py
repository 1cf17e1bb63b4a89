"""Running a typer application as a command of ``headway``, and where it prints."""

import typer
from rich.console import Console

PIPED_WIDTH = 200  # where no terminal says how wide it is


def run(app: typer.Typer, words: list[str]) -> int:
    """The exit status of ``app``, called with ``words``; a command that ends early says with which."""
    try:
        typer.main.get_command(app).main(args=words[1:], prog_name=f"headway {words[0]}")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def output() -> Console:
    """Standard output; piped to a program or a file, it is wide enough for any table."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)
