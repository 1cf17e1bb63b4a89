"""How tests run several at once, and what of the slow ones, with ``--dist loadgroup``, stays together and begins first.

Fast tests wait about as long as they compute, for processes, calls and time limits: two run at once on each core.

The slow part collects only the files that can hold slow tests, by their text: that all slow tests are in such files is
seen to wherever everything is collected.

Tests that share something dear are a group, one after another in one process. Every other test stands alone: servers
are a process's own, and so are folders, ports (``ports.py``), namespaces and cgroups (``lab/``). Groups begin first,
and then what may take longest, so that the last to end is a short one.

The groups are xdist's, but not its mark: that one is written into the name of a test, where pytest 9 looks no more.
"""

import os
import re
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/spark/test_process.py": None,  # with a JVM of its own for each test
    "tests/spark/test_cluster.py::test_a_backtest": None,
    "tests/spark/": "a session of Spark",  # a quarter of a minute to start, and a gigabyte
    "tests/install/": "a wheel",  # with an environment for each of its extras
    "tests/proof/test_exactness.py": "a scene",
}
"""How a test's name begins -> its group, or ``None`` where it stands alone. The first that fits is it."""

SLOW = ("spark", "e2e", "install", "browser")
NAMES_SLOW = re.compile(rf"mark\.({'|'.join(SLOW)})\b|\bIN_A_BROWSER\b")
SPARK = Path(__file__).parent / "spark"  # marked by its conftest.py
PROCESSES_A_CORE = 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many processes ``--numprocesses auto`` is."""
    return PROCESSES_A_CORE * len(os.sched_getaffinity(0))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without slow tests to the fast part."""
    is_fast = _is_slow_part(config) and collection_path.match("test_*.py") and not can_hold_slow(collection_path)
    return True if is_fast else None


def can_hold_slow(file: Path) -> bool:
    """Whether a file of tests may have slow ones, by its text."""
    return file.is_relative_to(SPARK) or NAMES_SLOW.search(file.read_text()) is not None


class InGroups(LoadScopeScheduling):
    """Gives each group to one process, in the order in which tests are collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> LoadScopeScheduling | None:
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return InGroups(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _is_slow_part(config):
        items.sort(key=_turn)
        return
    slow = {item.path for item in items if any(item.get_closest_marker(mark) for mark in SLOW)}
    if hidden := sorted(str(file) for file in slow if not can_hold_slow(file)):
        raise pytest.UsageError(f"slow tests, of which the slow part would not know: {', '.join(hidden)}")


def _is_slow_part(config: pytest.Config) -> bool:
    return bool(config.getoption("loadgroup", default=False))  # what xdist makes of --dist loadgroup in its processes


def group_of(nodeid: str) -> str | None:
    """Tests of one group run in one process; ``None`` where the test is a group by itself."""
    return next((group for begin, group in GROUPS.items() if nodeid.startswith(begin)), None)


def _turn(item: pytest.Item) -> tuple[int, float]:
    groups = [group for group in GROUPS.values() if group]
    group, timeout = group_of(item.nodeid), item.get_closest_marker("timeout")
    if group is not None:
        return groups.index(group), 0.0
    return len(groups), -timeout.args[0] if timeout else 0.0
