"""How tests run several at once, and what stays together and begins first.

Slow tests wait for whole systems to start, and fast ones keep the cores busy meanwhile: a whole run gives both at once
(``--dist loadgroup``). All but one take slow ones first: once the fast ones are done, the cores would idle beside
those. A run of the fast part has them alone (``--dist loadfile``). It collects no folder that has slow tests only, and
a fast test there ends every run that finds it.

The fast tests of a file run in one process, and so does a group: tests that share something dear, and those of a file
with a fixture of the module's, which each further process would make once more. Every other slow test stands alone:
servers are a process's own, and so are folders, ports (``support/ports.py``), namespaces and cgroups (``lab/``). Groups
begin first, and then what may take longest, so that the last to end is a short one.

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
from xdist.workermanage import WorkerController

GROUPS = {
    "tests/spark/test_process.py": None,  # with a JVM of its own for each test
    "tests/spark/": "a session of Spark",  # a quarter of a minute to start, and a gigabyte
    "tests/install/": "a wheel",  # with an environment for each of its extras
    "tests/proof/test_exactness.py": "a scene",
    "tests/collect/test_rabbitmq_4.py": None,  # of a later release
    "tests/collect/test_rabbitmq": "a RabbitMQ",  # four seconds of a processor to start
    "tests/collect/test_celery_on_rabbitmq.py": "a RabbitMQ",
}
"""How a test's name begins -> its group, or ``None`` where it stands alone. The first that fits is it."""

SLOW = ("spark", "e2e", "install", "browser", "field")
NAMES_SLOW = re.compile(rf"mark\.({'|'.join(SLOW)})\b|\bIN_A_BROWSER\b")
SHARED = re.compile(r'scope="module"|\bshared_plane\b')  # what its tests have a fixture of the module's by
TESTS = Path(__file__).parent
ONLY_SLOW = ("browser", "e2e", "install")  # which `make fast` ignores
WITHOUT_NAMING = (*ONLY_SLOW, "spark")  # whose conftest.py marks them
PROCESSES_A_CORE = {"loadgroup": 3.0, "loadfile": 2.5}
"""By ``--dist``. One more would collect all tests and start servers once more, and gain no time."""
FAST_FIRST = 1
"""So many processes take fast tests while there are any, the others slow ones, of which each may hold 3 GB."""
WAITING = "tests/workers/"  # for seconds each: by their name they would be the last, with nothing left beside them
KEPT_READY = 1
"""So many tests a process knows beside the one that runs, for it begins none before it knows the next. With xdist's own
two, a long one may wait behind another at the end."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes ``--numprocesses auto`` is."""
    return math.ceil(PROCESSES_A_CORE.get(config.getvalue("dist"), 1.0) * len(os.sched_getaffinity(0)))


@cache
def can_hold_slow(file: Path) -> bool:
    """Whether a file of tests may have slow ones, by its text."""
    return _is_in(WITHOUT_NAMING, file) or NAMES_SLOW.search(file.read_text()) is not None


class InFiles(LoadScopeScheduling):
    """Gives each file to one process, and each group of files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or _file_of(nodeid)


class SlowBesideFast(LoadScopeScheduling):
    """Gives each group and each slow test to one process, and each file of fast ones, both kinds at once.

    Here are names only, so that each test of a file that can hold slow ones is taken for one of them.
    """

    def _split_scope(self, nodeid: str) -> str:
        alone = nodeid if _may_be_slow(nodeid) else _file_of(nodeid)
        return group_of(nodeid) or alone

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and self._pending_of(self.assigned_work[node]) > KEPT_READY:
            return
        super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self._next_for(node), last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str:
        """What a process takes next, of what waits."""
        is_slow = self.nodes.index(node) >= FAST_FIRST
        of_kind = (scope for scope, tests in self.workqueue.items() if _may_be_slow(next(iter(tests))) is is_slow)
        return next(of_kind, next(iter(self.workqueue)))


@cache
def _may_be_slow(nodeid: str) -> bool:
    return can_hold_slow(TESTS.parent / _file_of(nodeid))


def _file_of(nodeid: str) -> str:
    return nodeid.split("::")[0]


SCHEDULERS = {"loadgroup": SlowBesideFast, "loadfile": InFiles}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> LoadScopeScheduling | None:
    scheduler = SCHEDULERS.get(config.getvalue("dist"))
    if scheduler is None:
        return None
    config.option.loadscopereorder = False
    return scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    kinds = {(item.path, _is_slow(item)) for item in items}  # of eight thousand tests some six hundred
    hidden = {str(path) for path, is_slow in kinds if not is_seen(path, is_slow=is_slow)}
    if hidden:  # before marks that are not asked for take items away
        raise pytest.UsageError(f"`make fast` would not collect tests of {', '.join(sorted(hidden))}")
    yield
    if hasattr(config, "workerinput"):  # one process of several
        items.sort(key=_turn)


def is_seen(file: Path, *, is_slow: bool) -> bool:
    """Whether the part of the tests that a test belongs to collects its file."""
    return is_slow or not _is_in(ONLY_SLOW, file)


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in SLOW)


def _is_in(folders: tuple[str, ...], file: Path) -> bool:
    return any(file.is_relative_to(TESTS / folder) for folder in folders)


def group_of(nodeid: str) -> str | None:
    """Tests of one group run in one process; ``None`` where the test is a group by itself."""
    file = _file_of(nodeid)
    own = file if _is_shared(file) else None
    return next((group for begin, group in GROUPS.items() if nodeid.startswith(begin)), own)


@cache
def _is_shared(file: str) -> bool:
    return SHARED.search((TESTS.parent / file).read_text()) is not None


def _turn(item: pytest.Item) -> tuple[int, float]:
    groups = [group for group in GROUPS.values() if group]
    group, timeout = group_of(item.nodeid), item.get_closest_marker("timeout")
    if not _is_slow(item):
        return len(groups) + 2, 0.0 if item.nodeid.startswith(WAITING) else 1.0
    if group is not None:
        return groups.index(group) if group in groups else len(groups), 0.0
    return len(groups) + 1, -timeout.args[0] if timeout else 0.0
