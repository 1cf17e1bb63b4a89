"""A pytest plugin: tests that would not end by a moment are left out, and counted by their folders at the end.

The moment is in the environment, ``TESTS_END_BY_S``, in Unix seconds: processes of pytest-xdist share it. How long a
test takes is what it took the last time it ran, which every run writes into pytest's cache; no longer than
``SHORT_S`` where the cache does not say.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping

import pytest

LEFT_OUT = "left out: there was no more time"
CACHED = "headway/durations"
SHORT_S = 0.5  # what takes less is not worth a line of the cache


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
        self._durations = Durations(self._cache.get(CACHED, {}) if self._cache else {})
        self._end_by_s = float(os.environ.get("TESTS_END_BY_S", "inf"))
        self._is_first = not hasattr(config, "workerinput")  # of several processes the one that the others report to

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Leave the test out where it would end too late."""
        if not self._durations.begin(item.nodeid, left_s=self._end_by_s - time.time()):
            pytest.skip(LEFT_OUT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a part of a test took."""
        if not report.skipped:
            self._durations.took(report.nodeid, report.duration)

    def pytest_sessionfinish(self) -> None:
        """Keep what is known for the next run."""
        if self._cache and self._is_first:
            self._cache.set(CACHED, self._durations.known())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was left out."""
        skipped = terminalreporter.stats.get("skipped", [])
        late = [report for report in skipped if LEFT_OUT in str(report.longrepr)]
        counts = Counter("/".join(report.nodeid.split("/")[:2]).split("::")[0] for report in late)
        if counts:
            folders = ", ".join(f"{count} of {folder}" for folder, count in sorted(counts.items()))
            terminalreporter.write_line(f"{LEFT_OUT} for {len(late)} tests: {folders}")


def pytest_configure(config: pytest.Config) -> None:
    """Add the plugin to a run."""
    config.pluginmanager.register(InTime(config))


def _file(name: str) -> str:
    return name.split("::")[0]
