"""Celery applications in files of source, found by reading: nothing is imported."""

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headway.cli.setup.source.source_files import SourceFile, source_file
from headway.cli.setup.source.source_values import Values, called_name, keyword

_MARK = b"Celery("


@dataclass(frozen=True, slots=True, kw_only=True)
class CeleryApp:
    """An application: a name at the top of a module that a call of ``Celery`` is assigned to."""

    app: str
    """As ``--app`` takes it."""
    folder: Path
    """Where its worker is started."""
    file: Path
    broker: str | None = field(default=None, repr=False)
    """The URL that the call names, where it is written out there."""
    broker_variable: str | None = None
    """The environment variable that the call reads instead, if that is set."""

    def given_url(self, variables: Mapping[str, str]) -> str:
        """The URL in the variable that the call reads; empty where it reads none, or that is not set."""
        return variables.get(self.broker_variable or "", "")

    def broker_url(self, variables: Mapping[str, str]) -> str:
        """The URL of its broker where ``variables`` are set; empty where the call names none."""
        return self.given_url(variables) or self.broker or ""


def find(files: Iterable[SourceFile]) -> list[CeleryApp]:
    """The applications in ``files``, those nearest to the folder first."""
    found = [app for file in files for app in _apps(file)]
    return sorted(found, key=lambda each: (len(each.file.parts), str(each.file)))


def named(app: str, folder: Path) -> CeleryApp | None:
    """The application that ``--app`` names in ``folder``, if its source is in one of the usual files."""
    _, _, name = app.partition(":")
    for path in _usual_files(app, folder):
        file = source_file(path, folder)
        for found in _apps(file) if file else ():
            if not name or found.app.endswith(f":{name}"):
                return found
    return None


def module_file(app: str, folder: Path) -> Path | None:
    """The file of the module that ``--app`` names in ``folder``, whatever is in it."""
    return next((path for path in _usual_files(app, folder) if os.path.isfile(path)), None)  # noqa: PTH113 - never raises


def _usual_files(app: str, folder: Path) -> list[Path]:
    parts = app.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):  # it is a word of anybody's command line
        return []
    # `--app shop.app` may name the application of the module `shop`.
    ends = [Path(*parts).with_suffix(".py"), Path(*parts, "celery.py"), Path(*parts, "__init__.py")]
    ends += [Path(*parts[:-1]).with_suffix(".py")] if parts[1:] else []
    return [folder / each for each in ends]


def factory(files: Iterable[SourceFile]) -> tuple[Path, int] | None:
    """The file and line of a call of ``Celery`` in a function, where ``--app`` cannot name what it makes."""
    for file in files:
        tree = file.tree() if _MARK in file.source else None
        for statement in tree.body if tree else ():
            if isinstance(statement, ast.FunctionDef):
                for node in ast.walk(statement):
                    if isinstance(node, ast.Call) and called_name(node) == "Celery":
                        return file.path, node.lineno
    return None


def _apps(file: SourceFile) -> Iterator[CeleryApp]:
    tree = file.tree() if _MARK in file.source else None
    if tree is None:
        return
    values = Values(tree)
    for statement in tree.body:
        for name, call in _assigned(statement):
            broker, variable = values.url(keyword(call, "broker"))
            app = f"{file.module}:{name}"
            yield CeleryApp(app=app, folder=file.folder, file=file.path, broker=broker, broker_variable=variable)


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.Call]]:
    """The names that a call of ``Celery`` is assigned to."""
    if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if called_name(statement.value) == "Celery":
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
