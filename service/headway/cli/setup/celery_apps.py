"""Celery applications in a folder of source, found by reading: nothing is imported."""

import ast
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headway.local.files import read_regular

DEPTH_MAX = 3
FILES_MAX = 2_000
SOURCE_BYTES_MAX = 500_000
_PASSED_OVER = {"node_modules", "site-packages", "tests", "test", "migrations", "__pycache__", "build", "dist"}


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


def find(folder: Path) -> list[CeleryApp]:
    """The applications below ``folder``, those nearest to it first."""
    found = [app for file in _sources(folder) for app in _apps(file, folder)]
    return sorted(found, key=lambda each: (len(each.file.parts), str(each.file)))


def named(app: str, folder: Path) -> CeleryApp | None:
    """The application that ``--app`` names in ``folder``, if its source is in one of the usual files."""
    module, _, name = app.partition(":")
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):  # it is a word of anybody's command line
        return None
    for path in (Path(*parts).with_suffix(".py"), Path(*parts, "celery.py"), Path(*parts, "__init__.py")):
        for found in _apps(folder / path, folder):
            if not name or found.app.endswith(f":{name}"):
                return found
    return None


def _sources(folder: Path) -> Iterator[Path]:
    seen = 0
    for here, folders, files in os.walk(folder):
        depth = len(Path(here).relative_to(folder).parts)
        folders[:] = sorted(
            each
            for each in folders
            if depth < DEPTH_MAX
            and not each.startswith(".")
            and each not in _PASSED_OVER
            and not Path(here, each, "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            if name.endswith(".py"):
                seen += 1
                if seen > FILES_MAX:
                    return
                yield Path(here, name)


def _apps(file: Path, folder: Path) -> Iterator[CeleryApp]:
    try:
        source = read_regular(file, SOURCE_BYTES_MAX + 1)
        with warnings.catch_warnings(action="ignore"):  # of odd escapes, which are the application's
            tree = ast.parse(source if b"Celery(" in source and len(source) <= SOURCE_BYTES_MAX else b"")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    begins = (
        folder / "src" if file.is_relative_to(folder / "src") and not (folder / "src/__init__.py").exists() else folder
    )
    parts = [*file.relative_to(begins).with_suffix("").parts]
    if parts[-1] == "__init__":
        parts.pop()
    if not parts or not all(part.isidentifier() for part in parts):
        return
    for statement in tree.body:
        for name, call in _assigned(statement):
            broker, variable = _broker(call)
            app = f"{'.'.join(parts)}:{name}"
            yield CeleryApp(app=app, folder=begins, file=file, broker=broker, broker_variable=variable)


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.Call]]:
    """The names that a call of ``Celery`` is assigned to."""
    if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if name == "Celery":
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value


def _broker(call: ast.Call) -> tuple[str | None, str | None]:
    """The URL that is written out in ``call``, and the variable that goes before it: ``os.getenv("NAME", "URL")``."""
    value = next((each.value for each in call.keywords if each.arg == "broker"), None)
    match value:
        case ast.Constant(value=str(url)):
            return url, None
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
            return None, name
        case ast.Call(
            func=ast.Attribute(attr="getenv") | ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
            args=[ast.Constant(value=str(name)), *rest],
        ):
            default = rest[0].value if rest and isinstance(rest[0], ast.Constant) else None
            return default if isinstance(default, str) else None, name
        case _:
            return None, None
