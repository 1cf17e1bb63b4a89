"""How the slow tests run several at once: what stays together, and what begins first.

Tests that share something dear are a group, one after another in one process. Every other test stands alone: servers
are a process's own, and so are folders, ports (``ports.py``), namespaces and cgroups (``lab/``). Groups begin first,
and then what may take longest, so that the last to end is a short one.
"""

import pytest

SHARED = {
    "spark": "a session of Spark",  # twelve seconds to start, and a quarter of the memory
    "wheel": "a wheel",  # with an environment for each of its extras
    "two_ingests": "a scene",
}
"""Fixture -> the group of those who use it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("loadgroup", default=False):  # what xdist tells its processes of --dist loadgroup
        return
    for item in items:
        if (group := _group(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str | None:
    fixtures = getattr(item, "fixturenames", ())
    return next((group for fixture, group in SHARED.items() if fixture in fixtures), None)


def _turn(item: pytest.Item) -> tuple[int, float]:
    group, timeout = _group(item), item.get_closest_marker("timeout")
    if group is not None:
        return list(SHARED.values()).index(group), 0.0
    return len(SHARED), -timeout.args[0] if timeout else 0.0
