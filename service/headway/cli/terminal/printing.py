"""What a command prints without a screen: a line is one line, whatever it names, and JSON is the value as it is."""

import json
import re
import struct
import sys
from enum import StrEnum
from typing import Any

from headway.errors import printable

_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")
_UNIT = struct.Struct(">H")  # JSON escapes a character as one or two of these


class TextForm(StrEnum):
    """How a command prints what is no table."""

    TEXT = "text"
    JSON = "json"


def say(line: str = "", *, is_error: bool = False) -> None:
    """Print a line, on standard error where ``is_error``."""
    print(printable(line), file=sys.stderr if is_error else sys.stdout)


def say_text(text: str) -> None:
    """Print the lines of a whole text."""
    for line in text.removesuffix("\n").split("\n"):
        say(line)


def say_json(value: Any, *, indent: int | None = 2) -> None:
    """Print ``value`` as JSON that a terminal can show and that a program reads as the same value.

    Without ``indent`` in one line.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    print(_BEYOND_ASCII.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    if found[0].isprintable():
        return found[0]
    return "".join(f"\\u{unit:04x}" for (unit,) in _UNIT.iter_unpack(found[0].encode("utf-16-be", "surrogatepass")))
