"""The file of variables that a template names: passwords and addresses that ``host.toml`` shall not hold.

It is read at each start of a worker, and nothing of its content is kept, logged or reported: a mistake is named by the
number of its line. A line that systemd's ``EnvironmentFile`` and dotenv read differently is refused: a password with
another meaning than its owner's would show at a login much later. ``${`` is taken in single quotes alone, where shells
and systemd leave it as it is.

    NAME=value          the rest of the line, without spaces at its ends; no quote, backslash, ` #` or ${ in it
    NAME='value'        the text between the quotes; no backslash in it
    NAME="value"        the same, with a backslash before each quote and each backslash; no ${ in it
    # or ; …            a remark
    export NAME=value   as without the first word
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from headway.agent.config.folder_permissions import movers
from headway.agent.config.templates import MARKS, Template
from headway.errors import Unavailable
from headway.scaling.model import StartFailure

FILE_BYTES_MAX = 64 * 1024  # the kernel takes about as much for one variable, and files of variables have a few KB

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SINGLE = re.compile(r"'([^'\\]*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPE = re.compile(r"\\(.)")
_AMBIGUOUS = re.compile(r"['\"\\]|\s#|\$\{")


class UnusableEnvironmentFile(Unavailable):
    """A worker cannot start, for its template's file of variables cannot be used. No message repeats its content."""

    def __init__(self, template: Template, why: str, cause: StartFailure) -> None:
        super().__init__(f"template {template.name!r}: environment_file {template.environment_file} {why}")
        self.cause = cause


def variables_of(template: Template) -> dict[str, str]:
    """The variables in the file that the template names, read now; none if it names no file.

    Raises:
        UnusableEnvironmentFile: the file is not there, is not private, or has a line with a mistake.
    """
    if template.environment_file is None:
        return {}
    body = _private_bytes(template, Path(template.environment_file))
    try:
        return dict(_variables(body))
    except ValueError as error:
        raise UnusableEnvironmentFile(template, str(error), StartFailure.ENVIRONMENT_FILE_INVALID) from None


def _private_bytes(template: Template, path: Path) -> bytes:
    """The content of the file, if only root and the agent's user can read it, change it, or put another in its place.

    Links are followed, as Kubernetes mounts secrets behind them: what is checked is the file that is open.
    """
    try:
        # Not blocking: the path may lead to a pipe.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if why := _why_not_private(os.fstat(file.fileno())):
                raise UnusableEnvironmentFile(template, why, StartFailure.ENVIRONMENT_FILE_UNSAFE)
            body = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise UnusableEnvironmentFile(template, why, StartFailure.ENVIRONMENT_FILE_MISSING) from error
    for user, folder in movers(path, [template]):
        # The user could lead the path to another file of the agent's, and have its secrets in a job.
        why = f"can be replaced by the worker's user {user}, who may change {folder}: keep it elsewhere"
        raise UnusableEnvironmentFile(template, why, StartFailure.ENVIRONMENT_FILE_UNSAFE)
    return body


def _why_not_private(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "is no regular file"
    if found.st_uid not in {0, os.geteuid()}:
        return (
            f"belongs to uid {found.st_uid}, which is neither root nor the agent's user (uid {os.geteuid()}): give it "
            "to one of the two with chown"
        )
    if found.st_mode & 0o077:
        return f"is open to others (mode {stat.S_IMODE(found.st_mode):04o}): close it with `chmod 600`"
    return None


def _variables(body: bytes) -> Iterator[tuple[str, str]]:
    """The variables, in the order of the file. Raises ``ValueError`` with a mistake, which repeats nothing of it."""
    if len(body) > FILE_BYTES_MAX:
        raise ValueError(f"has more than {FILE_BYTES_MAX // 1024} KB")
    lines_of: dict[str, int] = {}
    for number, raw in enumerate(body.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            line = raw.decode().strip(" \t\r")
        except UnicodeDecodeError:
            raise ValueError(f"line {number} is not UTF-8") from None
        if not line or line[0] in "#;":
            continue
        found = _LINE.fullmatch(line)
        if found is None or "\0" in line:
            raise ValueError(f"line {number} is not NAME=value, without spaces around the '='")
        name, written = found.groups()
        if name in MARKS:
            raise ValueError(f"line {number} sets a variable that is the agent's own mark")
        if name in lines_of:
            raise ValueError(f"line {number} sets the variable of line {lines_of[name]} again")
        lines_of[name] = number
        value = _value(written)
        if value is None:
            raise ValueError(
                f"line {number} has a value that programs read differently: put it in single quotes, or, with a "
                "backslash or a quote in it, in double quotes with a backslash before each of these"
            )
        yield name, value


def _value(written: str) -> str | None:
    """The value as it is written after the ``=``; ``None`` if it has more than one meaning."""
    if quoted := _SINGLE.fullmatch(written):
        return quoted[1]
    if quoted := _DOUBLE.fullmatch(written):
        return None if "${" in quoted[1] else _ESCAPE.sub(r"\1", quoted[1])
    return None if _AMBIGUOUS.search(written) or written[:1] in {" ", "\t"} else written
