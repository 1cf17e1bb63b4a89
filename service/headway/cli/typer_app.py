"""Running a typer application as a command of ``headway``."""

import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any

import typer

from headway.errors import Refused
from headway.scaling.mapping import near

_QUOTED = re.compile("'([^']*)'")

# What a wrong call raises. It is click's, which typer brings along under a private name.
WrongCall: type[Exception] = typer.BadParameter.__base__  # type: ignore[assignment]


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` for typer: each parameter that is a dataclass stands there as its fields, and is handed over whole.

    So options that several commands share are declared once, with their defaults.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}
    fields = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @wraps(command)
    def flat(**given: Any) -> None:
        whole = {name: groups[name](**{key: given.pop(key) for key in keys}) for name, keys in fields.items()}
        command(**whole, **given)

    expanded = [part for each in own for part in (fields[each.name].values() if each.name in fields else (each,))]
    flat.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]
    return flat


def main_of(app: typer.Typer) -> Callable[[list[str]], int]:
    """The ``main`` of a command's module: it runs ``app`` with a command line's words and returns the exit status."""
    return lambda words: called(app, words[1:], name=f"headway {words[0]}")


def called(app: typer.Typer, arguments: list[str], *, name: str = "headway") -> int:
    """The exit status of ``app``, which goes by ``name`` and reads all of ``arguments``.

    Raises:
        Refused: The arguments are not understood; in one sentence instead of typer's box of five lines.
    """
    # Not its ``main``, which makes a failure of it where whoever reads, as `head`, has read enough.
    command = typer.main.get_command(app)
    try:
        with command.make_context(name, arguments) as context:
            command.invoke(context)
    except WrongCall as error:
        if said := _sentence(error):
            raise Refused(said) from error
        return 2  # called without arguments: the help has just been printed
    except typer.Exit as end:
        return end.exit_code
    return 0


def _sentence(error: Exception) -> str:
    """What typer prints over several lines, and where to find the right words; empty where it has printed the help."""
    message: str = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")  # type: ignore[attr-defined]
    if not message:
        return ""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "headway"
    where = command.removeprefix("headway").strip()
    said = f"{where}: {message[0].lower()}{message[1:]};{_meant(message)}".removeprefix(": ")
    return f"{said} `{command} --help` lists its options"


def _meant(message: str) -> str:
    """The choice that a wrong one looks like, where ``message`` lists the choices."""
    wrong, separator, choices = message.rpartition(" is not one of ")
    given = _QUOTED.findall(wrong)
    return near(given[-1], _QUOTED.findall(choices)) if separator and given else ""
