"""`headway completion`: the script that lets a shell complete, and the answers to what that script asks.

A script calls `headway` with a variable that says for which shell. Of all commands only the one that is completed is
loaded.
"""

import importlib
import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.completion import shell_complete
from typer.core import TyperCommand, TyperGroup

from headway.cli.typer_app import main_of
from headway.errors import HeadwayError

COMPLETION_VARIABLE = "_HEADWAY_COMPLETE"  # the entry point reads it
TYPED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Where a script puts the words of the line, as one text."""

app = typer.Typer(add_completion=False)
main = main_of(app)


class Shell(StrEnum):
    """Which shell completes."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command("completion")
def completion(
    shell: Annotated[Shell, typer.Argument(help="For which shell.")],
) -> None:
    """Print the script that lets a shell complete commands, options and names of pools, queues and hosts."""
    raise typer.Exit(answer(f"source_{shell}", {}, ()))


def answer(instruction: str, commands: Mapping[str, tuple[str, str]], words: tuple[str, ...]) -> int:
    """Print what a shell's script asks for by ``instruction``, as ``complete_bash``. Returns the exit status.

    ``commands`` are those of the first word: name -> (module, summary). ``words`` are those of the line so far.
    """
    typer.main.get_install_completion_arguments()  # it makes the shells known
    asked = words[1] if len(words) > 1 else None
    members = {name: _command(name, *about, is_loaded=name == asked) for name, about in commands.items()}
    return shell_complete(TyperGroup(name="headway", commands=members), {}, "headway", COMPLETION_VARIABLE, instruction)


def answer_shell(instruction: str, commands: Mapping[str, tuple[str, str]]) -> int:
    """The same for the line that the environment holds; nothing is said of what goes wrong: somebody is typing."""
    line = next((os.environ[name] for name in TYPED if name in os.environ), "")
    try:
        return answer(instruction, commands, tuple(line.split()))
    except HeadwayError:
        return 1


def _command(name: str, module: str, summary: str, *, is_loaded: bool) -> Any:
    """A command as typer knows it; without its options where it is not what is completed, or has no typer."""
    bare = TyperCommand(name=name, help=summary, add_help_option=False)
    if not is_loaded:
        return bare
    try:
        app = getattr(importlib.import_module(module), "app", None)
    except ModuleNotFoundError:  # its extra is not installed
        return bare
    if app is None:
        return bare
    command = typer.main.get_command(app)
    return command.commands.get(name, command) if isinstance(command, TyperGroup) else command
