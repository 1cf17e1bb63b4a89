"""The parser of the commands that bring no typer along."""

import argparse
from collections.abc import Iterator
from typing import Any, NoReturn

from headway.errors import Refused
from headway.scaling.mapping import near

UNKNOWN = "unrecognized arguments: "  # as argparse begins its message


class Arguments(argparse.ArgumentParser):
    """A parser that says in one sentence what it does not understand, as every other refusal is said.

    An option is taken by its whole name only: a part of it would mean another option once there are two that begin so.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Refuse the call; argparse would print the usage over several lines and end the process."""
        prog = self.prog.removeprefix("headway ")
        raise Refused(f"{prog}: {message};{self._meant(message)} `{self.prog} --help` lists its options")

    def _meant(self, message: str) -> str:
        given, _, _ = message.removeprefix(UNKNOWN).partition(" ")
        if not (message.startswith(UNKNOWN) and given.startswith("--")):
            return ""
        # Without what all have in common, which would make every two of them look alike.
        return near(given.partition("=")[0][2:], _options(self)).replace("'", "'--", 1)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of ``parser``, without their dashes, and of its own commands, whose unknown words it reports."""
    for action in parser._actions:  # noqa: SLF001 - argparse shows them nowhere else
        yield from (each[2:] for each in action.option_strings if each.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                yield from _options(command)
