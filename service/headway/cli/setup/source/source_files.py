"""The Python files of an application's folder: bounded in number, size and time, and read as text."""

import ast
import os
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headway.local.files import read_regular

DEPTH_MAX = 5
FILES_MAX = 2_000
FILE_BYTES_MAX = 500_000
BYTES_MAX = 20_000_000  # of all files; Django itself has 15 MB
WITHIN_S = 2.0  # of the 5 s that the whole command may take
_PASSED_OVER = frozenset(
    {"__pycache__", "build", "dist", "docs", "examples", "migrations", "node_modules", "site-packages", "test", "tests"}
)
_OF_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of Python."""

    path: Path
    module: str
    """Its dotted name for a worker that is started in ``folder``."""
    folder: Path
    source: bytes = field(repr=False)

    def tree(self) -> ast.Module | None:
        """Its statements; ``None`` if it is no Python of this version, or in no encoding that it names."""
        try:
            with warnings.catch_warnings(action="ignore"):  # of odd escapes, which are the application's
                return ast.parse(self.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@dataclass(slots=True, kw_only=True)
class Sources:
    """What was read below a folder."""

    files: list[SourceFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why there may be more, a sentence each."""


def read_sources(folder: Path) -> Sources:
    """The files below ``folder``, those nearest to it first, without tests and what others have written."""
    found = Sources()
    left_bytes, until_s = BYTES_MAX, time.monotonic() + WITHIN_S
    for path in _paths(folder):
        if len(found.files) >= FILES_MAX or left_bytes <= 0 or time.monotonic() > until_s:
            found.problems.append(
                f"of the source below {folder}, {len(found.files)} files were read, and no more: type `headway init` "
                "in the folder of the application itself"
            )
            break
        file = source_file(path, folder)
        if file is not None:
            found.files.append(file)
            left_bytes -= len(file.source)
    return found


def source_file(path: Path, folder: Path) -> SourceFile | None:
    """The file, as a worker that is started in ``folder`` or in its ``src`` imports it; ``None``: it cannot."""
    source_root = folder / "src"
    begins = source_root if path.is_relative_to(source_root) and not (source_root / "__init__.py").exists() else folder
    parts = [*path.relative_to(begins).with_suffix("").parts]
    if parts[-1] == "__init__":
        parts.pop()
    if not parts or not all(part.isidentifier() for part in parts):
        return None
    try:
        source = read_regular(path, FILE_BYTES_MAX + 1)
    except OSError:
        return None
    return (
        SourceFile(path=path, module=".".join(parts), folder=begins, source=source)
        if len(source) <= FILE_BYTES_MAX
        else None
    )


def _paths(folder: Path) -> Iterator[Path]:
    """Level by level, so that a deep folder does not use up what may be read. No link to a folder is followed."""
    level = deque([(folder, 0)])
    while level:
        here, depth = level.popleft()
        entries = _entries(here)
        yield from (Path(each.path) for each in entries if each.name.endswith(".py") and not _is_of_tests(each.name))
        if depth < DEPTH_MAX:
            level.extend((Path(each.path), depth + 1) for each in entries if _is_of_application(each))


def _entries(folder: Path) -> Sequence["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda each: each.name)
    except OSError:
        return ()  # somebody else's, or gone


def _is_of_application(entry: "os.DirEntry[str]") -> bool:
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
    if not is_folder or entry.name.startswith(".") or entry.name in _PASSED_OVER:
        return False
    return not any(Path(entry.path, name).exists() for name in _OF_ENVIRONMENTS)


def _is_of_tests(name: str) -> bool:
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
