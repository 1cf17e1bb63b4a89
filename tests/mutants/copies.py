"""A copy of the tree in which mistakes are made, one at a time, and what is run on it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEED = ROOT / "tests" / "control" / "http" / "seed.py"  # of a fixture that tests of every folder may use
LIVED, GONE = "lived", "does not apply"


def copied(folders: Iterable[str], copy: Path) -> None:
    """Copy these folders of the tree, and what every test needs beside its own folder."""
    for folder in folders:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (ROOT / "pyproject.toml", SEED, *(ROOT / "tests").glob("*.py")):
        (copy / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy / file.relative_to(ROOT))


@contextmanager
def mistaken(file: Path, right: str, wrong: str) -> Iterator[None]:
    """Have ``wrong`` in the first place of ``right`` for the block."""
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(right, wrong, 1), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(before, encoding="utf-8")


def run_on(copy: Path, words: Sequence[str], *, within_s: float) -> subprocess.CompletedProcess[str] | None:
    """Run Python on the copy's modules and tests. Returns how it ended; ``None``: not within that time."""
    paths = {"PYTHONPATH": f"{copy / 'service'}:{copy / 'sparkjobs'}:{copy / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(
            [sys.executable, *words],
            cwd=copy,
            env={**os.environ, **paths},
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
