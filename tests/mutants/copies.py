"""A copy of the tree in which mistakes are made, one at a time, and what is run on it."""

import compileall
import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

ROOT = Path(__file__).parents[2]
LIVED, GONE = "lived", "does not apply"
PROFILE = "finding"  # of tests/whole_run.py
CORE_TESTS = "tests/scaling"
CORE_FOLDERS = ("service", CORE_TESTS, "tests/support")
GUARD_FOLDERS = ("service", "sparkjobs", "migrations", "tools", "tests")
TEST_S_MAX = 300.0  # of one test of the core: a mutant that never comes to an end is found, too
# The core needs none of the servers of conftest, whose imports take longer than most of its tests.
OF_CORE = ("--noconftest", "-p", "whole_run", f"--timeout={TEST_S_MAX:.0f}")


def copied(folders: Iterable[str], copy: Path) -> None:
    """Copy these folders of the tree, those of tests among them, and what pytest reads beside them."""
    for folder in folders:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (ROOT / "pyproject.toml", *(ROOT / "tests").glob("*.py")):
        shutil.copy(file, copy / file.relative_to(ROOT))
    # By what is in the file, not by its time: a mistake may be as long as what is right, and made within its second.
    compileall.compile_dir(copy / "service", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)


def tested_on(copy: Path, words: Sequence[str], *, within_s: float) -> subprocess.CompletedProcess[str] | None:
    """Run pytest on the copy's modules and tests in a fork of a process that knows pytest, and nothing of Headway.

    Without servers a test file takes less than starting Python and pytest. Returns how it ended; ``None``: not within
    that time.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(PRELOADED)
    process = forks.Process(target=_tested, args=(copy, words))
    process.start()
    process.join(within_s)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    said = (copy / SAID).read_text(encoding="utf-8")
    return subprocess.CompletedProcess(words, process.exitcode or 0, said, "")


PRELOADED = ["pytest", "hypothesis.strategies", "_hypothesis_pytestplugin", "pytest_asyncio", "pytest_timeout", "xdist"]
SAID = "said.txt"


def _tested(copy: Path, words: Sequence[str]) -> None:
    os.chdir(copy)
    # A test that imports what the copy lacks must not find it in the tree, or every mistake would seem found.
    others = [each for each in sys.path if not Path(each).is_relative_to(ROOT / "tests")]
    sys.path[:] = [str(copy / "service"), str(copy / "tests"), *others]
    os.environ["HYPOTHESIS_PROFILE"] = PROFILE
    with (copy / SAID).open("w", encoding="utf-8") as said, contextlib.redirect_stdout(said):
        ended = pytest.main([*words])
    sys.exit(int(ended))


@contextmanager
def mistaken(file: Path, mistake: Callable[[str], str]) -> Iterator[None]:
    """Have what ``mistake`` makes of a module in its place for the block."""
    before = file.read_text(encoding="utf-8")
    file.write_text(mistake(before), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(before, encoding="utf-8")


def run_on(copy: Path, words: Sequence[str], *, within_s: float) -> subprocess.CompletedProcess[str] | None:
    """Run Python on the copy's modules and tests. Returns how it ended; ``None``: not within that time."""
    paths = {"PYTHONPATH": f"{copy / 'service'}:{copy / 'sparkjobs'}:{copy / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    paths |= {"HYPOTHESIS_PROFILE": PROFILE}
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
