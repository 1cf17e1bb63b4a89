"""Options that commands share are declared once, and stand where the command names their group."""

import errno
import sys
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer

from headway.cli.typer_app import called, takes_groups


@dataclass(frozen=True, kw_only=True)
class Sized:
    slots: Annotated[int, typer.Option(metavar="COUNT", help="How many.")] = 1
    from_: Annotated[str | None, typer.Option("--from")] = None


def test_a_group_is_handed_over_whole_with_its_defaults():
    seen = []
    app = typer.Typer(add_completion=False)

    @app.command()
    @takes_groups
    def command(*, first: Annotated[str, typer.Option()] = "a", sized: Sized, last: bool = False) -> None:
        seen.append((first, sized, last))

    assert called(app, ["--slots", "3", "--first", "b"]) == 0
    assert called(app, ["--from", "1h", "--last"]) == 0
    assert seen == [("b", Sized(slots=3), False), ("a", Sized(from_="1h"), True)]


def test_the_options_of_a_group_stand_where_the_command_names_it(capsys):
    app = typer.Typer(add_completion=False)

    @app.command()
    @takes_groups
    def command(*, first: str = "a", sized: Sized, last: bool = False) -> None:
        """What it does."""

    called(app, ["--help"])
    text = capsys.readouterr().out
    assert text.index("--first") < text.index("--slots") < text.index("--from") < text.index("--last")
    assert "What it does." in text
    assert "COUNT" in text


def test_a_reader_who_has_read_enough_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """`headway get profiles -o yaml | head -1`: the status is 141, and not that of a mistake."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def command() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", sys.stdout)  # typer leaves another one in its place
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    with pytest.raises(BrokenPipeError):
        called(app, [])
