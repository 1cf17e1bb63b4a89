"""A command of `headway` in the test's own process: to start a Python and load the command takes half a second more."""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from headway.__main__ import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """How a command ended and what it printed, as ``subprocess.CompletedProcess`` has it."""

    returncode: int
    stdout: str
    stderr: str


def called(*words: str, folder: Path, env: Mapping[str, str]) -> Called:
    """Run a command in ``folder`` with this environment and no other."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), _environment(env), redirect_stdout(out), redirect_stderr(err):
        status = main([*words])
    return Called(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


@contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
