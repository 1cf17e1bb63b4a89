"""A pytest plugin: tests that have not begun at a moment are left out, and counted by their folders at the end.

The moment is in the environment, ``TESTS_BEGIN_UNTIL_S``, in Unix seconds: processes of pytest-xdist share it.
"""

import os
import time
from collections import Counter

import pytest

LEFT_OUT = "left out: there was no more time"


def pytest_runtest_setup(item: pytest.Item) -> None:  # noqa: ARG001 - what a test is does not matter
    """Leave the test out where it is too late to begin."""
    if time.time() > float(os.environ["TESTS_BEGIN_UNTIL_S"]):
        pytest.skip(LEFT_OUT)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was left out."""
    skipped = terminalreporter.stats.get("skipped", [])
    late = [report for report in skipped if LEFT_OUT in str(report.longrepr)]
    counts = Counter("/".join(report.nodeid.split("/")[:2]).split("::")[0] for report in late)
    if counts:
        folders = ", ".join(f"{count} of {folder}" for folder, count in sorted(counts.items()))
        terminalreporter.write_line(f"{LEFT_OUT} for {len(late)} tests: {folders}")
