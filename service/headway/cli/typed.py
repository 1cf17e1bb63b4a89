"""Running a typer application as a command of ``headway``."""

import typer


def run(app: typer.Typer, words: list[str]) -> int:
    """The exit status of ``app``, called with ``words``; a command that ends early says with which."""
    try:
        typer.main.get_command(app).main(args=words[1:], prog_name=f"headway {words[0]}")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
