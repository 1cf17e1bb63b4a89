"""A ``.env`` file, read as text: nothing in it is executed, and no variable is put in the place of its name."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from headway.local.files import read_regular

DOTENV_BYTES_MAX = 1024 * 1024
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_EXPANDS = re.compile(r"(?<!\\)(?:\$[{(]|`)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dotenv:
    """The variables of a file."""

    variables: dict[str, str] = field(default_factory=dict, repr=False)
    expanding: frozenset[str] = frozenset()
    """The names whose values a shell would make of other variables or of a command. They have no value here."""
    problem: str | None = None
    """Why a file that is there was not read."""


def read(path: Path) -> Dotenv:
    """The file at ``path``; nothing where there is none."""
    try:
        text = read_regular(path, DOTENV_BYTES_MAX + 1)
        if len(text) > DOTENV_BYTES_MAX:
            return Dotenv(problem=f"it has more than {DOTENV_BYTES_MAX} bytes")
        return _parsed(text.decode())
    except (FileNotFoundError, IsADirectoryError):  # that is an environment of Python's
        return Dotenv()
    except OSError as error:
        return Dotenv(problem=error.strerror)
    except UnicodeDecodeError:
        return Dotenv(problem="it is no text")


def _parsed(text: str) -> Dotenv:
    variables: dict[str, str] = {}
    expanding: set[str] = set()
    for line in text.splitlines():
        found = _LINE.fullmatch(line.strip())
        if found is None:
            continue
        name, given = found.groups()
        variables.pop(name, None)  # as in a shell, the last line counts
        expanding.discard(name)
        value = _value(given)
        if value is None:
            expanding.add(name)
        else:
            variables[name] = value
    return Dotenv(variables=variables, expanding=frozenset(expanding))


def _value(given: str) -> str | None:
    """What the text behind ``=`` stands for; ``None``: something that only a shell knows."""
    if given.startswith("'"):
        return given[1:].partition("'")[0]
    quoted = _DOUBLE.match(given)
    value = quoted[1] if quoted else re.split(r"\s#|^#", given)[0].rstrip()
    if _EXPANDS.search(value):
        return None
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value) if quoted else value
