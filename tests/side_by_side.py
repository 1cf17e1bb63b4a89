"""How tests run several at once, and what stays together and begins first.

Fast tests wait about as long as they compute, for processes, calls and time limits: five run at once on two cores. A
sixth would collect all tests and start servers once more, and gains no time. Those of a file run in one process
(``--dist loadfile``); of slow ones each may run in another (``--dist loadgroup``).

The fast part collects no folder that has slow tests only, and the slow part only files that can hold slow ones, by
their text. A test that neither would collect ends every run that finds it.

Tests that share something dear are a group, one after another in one process, and so are those of a file with a fixture
of the module's, which each further process would make once more. Every other file or test stands alone: servers are a
process's own, and so are folders, ports (``support/ports.py``), namespaces and cgroups (``lab/``). Groups begin first,
and then what may take longest, so that the last to end is a short one.

The groups are xdist's, but not its mark: that one is written into the name of a test, where pytest 9 no longer reads
it.
"""

import math
import os
import re
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/spark/test_process.py": None,  # with a JVM of its own for each test
    "tests/spark/test_cluster.py::test_a_backtest": None,
    "tests/spark/": "a session of Spark",  # a quarter of a minute to start, and a gigabyte
    "tests/install/": "a wheel",  # with an environment for each of its extras
    "tests/proof/test_exactness.py": "a scene",
    "tests/collect/test_rabbitmq_4.py": None,  # of a later release
    "tests/collect/test_rabbitmq": "a RabbitMQ",  # four seconds of a processor to start
    "tests/collect/test_celery_on_rabbitmq.py": "a RabbitMQ",
}
"""How a test's name begins -> its group, or ``None`` where it stands alone. The first that fits is it."""

SLOW = ("spark", "e2e", "install", "browser")
NAMES_SLOW = re.compile(rf"mark\.({'|'.join(SLOW)})\b|\bIN_A_BROWSER\b")
SHARED = re.compile(r'scope="module"|\bshared_plane\b')  # what its tests have a fixture of the module's by
TESTS = Path(__file__).parent
ONLY_SLOW = ("browser", "e2e", "install")  # which `make fast` ignores
WITHOUT_NAMING = (*ONLY_SLOW, "spark")  # whose conftest.py marks them
PROCESSES_A_CORE = 2.5


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many processes ``--numprocesses auto`` is."""
    return math.ceil(PROCESSES_A_CORE * len(os.sched_getaffinity(0)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without slow tests to the fast part."""
    is_fast = _is_slow_part(config) and collection_path.match("test_*.py") and not can_hold_slow(collection_path)
    return True if is_fast else None


def can_hold_slow(file: Path) -> bool:
    """Whether a file of tests may have slow ones, by its text."""
    return _is_in(WITHOUT_NAMING, file) or NAMES_SLOW.search(file.read_text()) is not None


class InGroups(LoadScopeScheduling):
    """Gives each group to one process, in the order in which tests are collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid


class InFiles(LoadScopeScheduling):
    """Gives each file to one process, and each group of files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid.split("::")[0]


SCHEDULERS = {"loadgroup": InGroups, "loadfile": InFiles}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> LoadScopeScheduling | None:
    scheduler = SCHEDULERS.get(config.getvalue("dist"))
    if scheduler is None:
        return None
    config.option.loadscopereorder = False
    return scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    kinds = {(item.path, _is_slow(item)) for item in items}  # of seven thousand tests some five hundred
    hidden = {str(path) for path, is_slow in kinds if not is_seen(path, is_slow=is_slow)}
    if hidden:  # before marks that are not asked for take items away
        raise pytest.UsageError(f"the part that should run them would not collect tests of {', '.join(sorted(hidden))}")
    yield
    if _is_slow_part(config):
        items.sort(key=_turn)


def is_seen(file: Path, *, is_slow: bool) -> bool:
    """Whether the part of the tests that a test belongs to collects its file."""
    return can_hold_slow(file) if is_slow else not _is_in(ONLY_SLOW, file)


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in SLOW)


def _is_in(folders: tuple[str, ...], file: Path) -> bool:
    return any(file.is_relative_to(TESTS / folder) for folder in folders)


def _is_slow_part(config: pytest.Config) -> bool:
    return bool(config.getoption("loadgroup", default=False))  # what xdist makes of --dist loadgroup in its processes


def group_of(nodeid: str) -> str | None:
    """Tests of one group run in one process; ``None`` where the test is a group by itself."""
    file = nodeid.split("::")[0]
    own = file if _is_shared(file) else None
    return next((group for begin, group in GROUPS.items() if nodeid.startswith(begin)), own)


@cache
def _is_shared(file: str) -> bool:
    return SHARED.search((TESTS.parent / file).read_text()) is not None


def _turn(item: pytest.Item) -> tuple[int, float]:
    groups = [group for group in GROUPS.values() if group]
    group, timeout = group_of(item.nodeid), item.get_closest_marker("timeout")
    if group is not None:
        return groups.index(group) if group in groups else len(groups), 0.0
    return len(groups) + 1, -timeout.args[0] if timeout else 0.0
