"""The parser of the commands that bring no typer along."""

import argparse
from typing import NoReturn

from headway.errors import Refused


class Arguments(argparse.ArgumentParser):
    """A parser that says in one sentence what it does not understand, as every other refusal is said."""

    def error(self, message: str) -> NoReturn:
        """Refuse the call; argparse would print the usage over several lines and end the process."""
        raise Refused(f"{self.prog.removeprefix('headway ')}: {message}; `{self.prog} --help` lists its options")
