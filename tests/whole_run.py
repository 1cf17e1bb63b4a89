"""What makes a run of the tests count: where everything can be had nothing is skipped, and every run draws alike.

With ``CI=true`` a skipped test fails: a machine that stands for all others may not be green because it lacks a browser,
a database or a user to switch to.
"""

import os
from collections.abc import Generator
from typing import TypeVar

import hypothesis
import pytest
from hypothesis import Phase

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None, max_examples=30)
hypothesis.settings.register_profile("searching", deadline=None, max_examples=2_000)
hypothesis.settings.register_profile(  # of tests/mutants: that a test fails is enough, whatever its smallest example
    "finding", hypothesis.settings.get_profile("repeatable"), phases=(Phase.explicit, Phase.generate)
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof-minutes", type=float, default=10.0, help="how long each proof looks for trouble (10)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _nothing_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _nothing_skipped((yield))


def _nothing_skipped(report: Report) -> Report:
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped where CI=true allows no skip: {reason}"
    return report
