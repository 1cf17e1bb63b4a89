"""Where the project's files are, for the tests that read them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "service" / "headway"
SPARK = ROOT / "sparkjobs" / "headway_spark"
ON_PYTHONPATH = (SERVICE / "workers" / "celery_reporter",)
"""Folders that worker processes import from. As a package, such a folder would make ``__init__`` importable there."""


def modules(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file below ``folder`` with its syntax tree, generated code left out."""
    for path in sorted(folder.rglob("*.py")):
        if "v1" not in path.parts:
            yield path, ast.parse(path.read_text(), filename=str(path))
