"""A pytest plugin: a run of tests ends by a moment, and names at its end what did not run.

The moment is in the environment, ``TESTS_END_BY_S``, in Unix seconds: processes of pytest-xdist share it. A test that
would not end by then does not begin, and a test that runs at that moment is cut off. Neither has passed: a path of
``TESTS_DUE`` (separated by ``:``) with such a test makes the exit status ``NOT_ALL_RAN`` where nothing failed.

How long a test takes is what it took the last time, which every run writes into pytest's cache. What the cache does not
know is in ``durations.json`` beside this file, so that a new clone begins no long test that it would have to cut off:
``python tools/in_time.py`` writes it again, from the cache, after a run of the fast tests.
"""

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from functools import cache
from pathlib import Path

import pytest

SLOW_FOLDERS = ("tests/browser/", "tests/e2e/", "tests/install/", "tests/proof/", "tests/spark/", "tests/upgrade/")
NOT_RUN = "not run: there was no more time"
CUT_OFF = "cut off: there was no more time"
NOT_ALL_RAN = 8  # pytest's own statuses are 0 to 5
CACHED = "headway/durations"
SHORT_S = 0.5  # what takes less is not worth a line of the cache
FIRST_S = 15.0
LONG_S = 6.0  # nor, in a minute, of the table
CUT_OFF_S_MIN = 0.05  # zero would mean to pytest-timeout that there is no bound
TABLE = Path(__file__).with_name("durations.json")


class Durations:
    """What tests took the last time, by their names, and take now."""

    def __init__(self, known_s: Mapping[str, float]) -> None:
        self._known_s = known_s
        self._taken_s: dict[str, float] = {}
        self._begun: set[str] = set()
        self._longest_s: dict[str, float] = {}
        for name, took_s in known_s.items():
            file = _file(name)
            self._longest_s[file] = max(self._longest_s.get(file, 0.0), took_s)

    def begin(self, name: str, *, left_s: float) -> bool:
        """Whether a test may begin, for it ends within ``left_s``.

        What the tests of a file share counts as the time of the first one, and would be that of any other which is the
        first this time: until one has begun, each is taken to last as long as the longest.
        """
        file = _file(name)
        expected_s = self._known_s.get(name, 0.0) if file in self._begun else self._longest_s.get(file, 0.0)
        if expected_s > left_s:
            return False
        self._begun.add(file)
        return True

    def took(self, name: str, part_s: float) -> None:
        """A part of a test took so long: its set-up, its call or its end."""
        self._taken_s[name] = self._taken_s.get(name, 0.0) + part_s

    def known(self) -> dict[str, float]:
        """What is known from now on."""
        both = {**self._known_s, **self._taken_s}
        return {name: round(took_s, 2) for name, took_s in sorted(both.items()) if took_s >= SHORT_S}


class InTime:
    """The plugin of one run."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)  # not with `-p no:cacheprovider`
        self._durations = Durations({**table(), **(self._cache.get(CACHED, {}) if self._cache else {})})
        self._end_by_s = float(os.environ.get("TESTS_END_BY_S", "inf"))
        self._due = [path for path in os.environ.get("TESTS_DUE", "").split(":") if path]
        self._is_first = not hasattr(config, "workerinput")  # of several processes the one that the others report to
        self._collected: list[str] = []
        self._ran: set[str] = set()
        self._cut_off: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Begin with the files of the longest tests, where all shall run: begun last, they run on alone."""
        if math.isinf(self._end_by_s):
            longest_s = {file: first(file) for file in {_file(item.nodeid) for item in items}}
            items.sort(key=lambda item: -longest_s[_file(item.nodeid)])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the tests of this process."""
        self._collected = [item.nodeid for item in session.items] or self._collected

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the tests of all processes, which each of them has collected."""
        self._collected = ids

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Pass over the test where the time is over: two thousand that are skipped would take many seconds more."""
        return True if time.time() >= self._end_by_s else None

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Leave the test out where it would end too late."""
        if not self._durations.begin(item.nodeid, left_s=self._end_by_s - time.time()):
            pytest.skip(NOT_RUN)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Have pytest-timeout end the call at the moment when all end, unless a bound of its own comes first.

        No more than the call: what is raised between the parts of a test, while reports are made, ends the process.
        """
        left_s = self._end_by_s - time.time()
        own = item.get_closest_marker("timeout")
        if left_s < float(own.args[0] if own and own.args else item.config.getini("timeout") or "inf"):
            item.add_marker(pytest.mark.timeout(max(CUT_OFF_S_MIN, left_s), func_only=True), append=False)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """What fails once the time is over was cut off, or has lost what it shares with a test that was."""
        report = yield
        if report.failed and time.time() >= self._end_by_s:
            report.outcome, report.longrepr = "skipped", (*report.location[:2], CUT_OFF)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a part of a test took."""
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if CUT_OFF in reason:
            self._cut_off.add(report.nodeid)
        elif NOT_RUN not in reason and (report.when == "call" or not report.passed):
            self._ran.add(report.nodeid)
        if not report.skipped:
            self._durations.took(report.nodeid, report.duration)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep what is known for the next run, and call none good that leaves out what is due."""
        if not self._is_first:
            return
        if self._cache:
            self._cache.set(CACHED, self._durations.known())
        is_good = session.exitstatus == pytest.ExitCode.OK
        if is_good and any(_is_in(name, path) for name in self._late() for path in self._due):
            session.exitstatus = NOT_ALL_RAN

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what did not run."""
        late = self._late()
        counts = Counter("/".join(name.split("/")[:2]).split("::")[0] for name in late)
        if counts:
            folders = ", ".join(f"{count} of {folder}" for folder, count in sorted(counts.items()))
            terminalreporter.write_line(f"{NOT_RUN} for {len(late)} tests: {folders}")
        for name in sorted(self._cut_off):
            terminalreporter.write_line(f"{CUT_OFF}: {name}")

    def _late(self) -> list[str]:
        """What there was no time for: to begin, or to end."""
        if math.isinf(self._end_by_s):
            return []
        return [name for name in self._collected if name not in self._ran or name in self._cut_off]


def is_there(name: str) -> bool:
    """Whether the file of a test exists and has its function."""
    file, function = Path(__file__).parents[1] / _file(name), name.split("[")[0].split("::")[-1]
    return file.exists() and f"def {function}(" in file.read_text()


def first(name: str) -> float:
    """How long the longest test of the file takes by the table, if that is ``FIRST_S`` or longer; else 0."""
    found = max((s for each, s in table().items() if _file(each) == _file(name)), default=0.0)
    return found if found >= FIRST_S else 0.0


@cache
def table() -> dict[str, float]:
    """How long the tests that take long took, in seconds, when the table was written."""
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def pytest_configure(config: pytest.Config) -> None:
    """Add the plugin to a run."""
    config.pluginmanager.register(InTime(config))


def _file(name: str) -> str:
    return name.split("::")[0]


def _is_in(name: str, path: str) -> bool:
    return _file(name) == path or name.startswith(f"{path}/")


def main() -> int:
    """Write the table from pytest's cache. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Write how long the tests take that take long.")
    cache = Path(__file__).parents[1] / ".pytest_cache" / "v" / CACHED
    parser.add_argument("--cache", type=Path, default=cache, help="JSON: test -> seconds; default: pytest's own")
    parser.add_argument("--table", type=Path, default=TABLE, help="is written; default: the one that runs read")
    given = parser.parse_args()
    if not given.cache.exists():
        print("headway: no run of the tests is recorded here; `make fast` records one", file=sys.stderr)
        return 1
    taken_s = json.loads(given.cache.read_text()).items()
    fast = {name: s for name, s in taken_s if not name.startswith(SLOW_FOLDERS) and is_there(name)}
    long = {name: round(s) for name, s in fast.items() if s >= LONG_S}
    given.table.write_text(f"{json.dumps(long, indent=1, ensure_ascii=False, sort_keys=True)}\n")
    print(f"{given.table.name}: {len(long)} tests take {LONG_S:g} s or longer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
