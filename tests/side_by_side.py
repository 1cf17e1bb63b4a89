"""How the slow tests run several at once, with ``--dist loadgroup``: what stays together, and what begins first.

Tests that share something dear are a group, one after another in one process. Every other test stands alone: servers
are a process's own, and so are folders, ports (``ports.py``), namespaces and cgroups (``lab/``). Groups begin first,
and then what may take longest, so that the last to end is a short one.

The groups are xdist's, but not its mark: that one is written into the name of a test, where pytest 9 looks no more.
"""

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
    if config.getoption("loadgroup", default=False):  # what xdist makes of --dist loadgroup in its processes
        items.sort(key=_turn)


def group_of(nodeid: str) -> str | None:
    """Tests of one group run in one process; ``None`` where the test is a group by itself."""
    return next((group for begin, group in GROUPS.items() if nodeid.startswith(begin)), None)


def _turn(item: pytest.Item) -> tuple[int, float]:
    groups = [group for group in GROUPS.values() if group]
    group, timeout = group_of(item.nodeid), item.get_closest_marker("timeout")
    if group is not None:
        return groups.index(group), 0.0
    return len(groups), -timeout.args[0] if timeout else 0.0
