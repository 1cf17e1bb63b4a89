"""`make quick` finds the tests of what was changed, and leaves out what there is no time for by name."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import in_time
import quick
from in_time import NOT_ALL_RAN, Durations
from support.tree import ROOT, SERVICE


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["service/headway/agent/loop.py"], ["tests/agent"]),
        (["service/headway/control/http/app.py", "service/headway/control/scheduler/ticker.py"], ["tests/control"]),
        (["tests/agent/test_loop.py"], ["tests/agent/test_loop.py"]),
        (["tests/agent/test_loop.py", "service/headway/agent/loop.py"], ["tests/agent"]),  # the folder has the file
        (["tests/collect/rq_jobs.py"], ["tests/collect"]),
        (["tests/support/ports.py", "tests/conftest.py"], ["tests/architecture"]),
        (["tests/test_loading_strategies.py"], ["tests/test_loading_strategies.py"]),
        (["docs/how-to/install.md", "Makefile", ".ci/run"], ["tests/architecture"]),
        (["sparkjobs/headway_spark/stream/buckets.py"], ["tests/spark"]),
        (["benchmarks/many_agents/http2.py"], ["tests/benchmarks"]),
        (["tests/agent/test_that_was_deleted.py"], []),
        (["LICENSE"], []),
    ],
)
def test_what_was_changed_is_judged_by_its_tests(changed: list[str], tests: list[str]) -> None:
    assert quick.tests_of(changed) == tests


def test_every_package_has_tests() -> None:
    packages = {folder.parent.name for folder in SERVICE.glob("*/__init__.py")}
    assert [package for package in packages if not quick.tests_of([f"service/headway/{package}/a.py"])] == []


BEGINS_WITHIN_S = 10.0  # a pytest, on a machine that has much else to do
LATE = "def test_one(): assert False\ndef test_two(): assert False\n"
HANGS = """
import time, pytest
@pytest.mark.skip
def test_skipped(): ...
def test_quick(): pass
def test_hangs(): time.sleep(600)
def test_later(): ...
"""


@pytest.mark.parametrize(("due", "status"), [("tests/others", 0), ("tests/others:tests/test_timed.py", NOT_ALL_RAN)])
def test_what_cannot_begin_in_time_is_left_out_by_name(tmp_path: Path, due: str, status: int) -> None:
    done = timed_run(tmp_path, LATE, end_by_s=0.0, due=due)
    assert done.returncode == status, done.stdout
    assert "there was no more time for 2 tests: 2 of tests/test_timed.py" in done.stdout


def test_what_runs_when_the_time_is_over_is_cut_off_by_name(tmp_path: Path) -> None:
    done = timed_run(tmp_path, HANGS, end_by_s=time.time() + BEGINS_WITHIN_S, due="tests")
    assert done.returncode == NOT_ALL_RAN, done.stdout
    assert "not run: there was no more time for 2 tests: 2 of tests/test_timed.py" in done.stdout
    assert "cut off: there was no more time: tests/test_timed.py::test_hangs" in done.stdout
    assert "1 passed, 2 skipped" in done.stdout


def test_a_failure_is_one_although_others_did_not_run(tmp_path: Path) -> None:
    done = timed_run(
        tmp_path, f"{HANGS}def test_quick(): assert False\n", end_by_s=time.time() + BEGINS_WITHIN_S, due="tests"
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout


def timed_run(folder: Path, tests: str, *, end_by_s: float, due: str) -> "subprocess.CompletedProcess[str]":
    file = folder / "tests" / "test_timed.py"
    file.parent.mkdir()
    file.write_text(tests)
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "in_time"]
    words = [sys.executable, "-m", "pytest", "-q", *plugins, "--rootdir", folder, file]
    own = {
        "TESTS_END_BY_S": str(end_by_s),
        "TESTS_DUE": due,
        "PYTHONPATH": str(ROOT / "tools"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CI": "",
    }
    return subprocess.run(words, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("statuses", "together"),
    [((0, 0), 0), ((0, 1), 1), ((NOT_ALL_RAN, 0), NOT_ALL_RAN), ((NOT_ALL_RAN, 2), 1), ((-15,), 1)],
)
def test_what_did_not_run_is_neither_passed_nor_failed(statuses: tuple[int, ...], together: int) -> None:
    assert quick.status_of_all(statuses) == together


def test_what_does_not_end_by_itself_is_killed() -> None:
    process = quick.begun("sleep", "600")
    with quick.killed_in_time([process], time.monotonic() + 0.2):
        assert quick.status_of(process) == NOT_ALL_RAN


def test_the_files_of_the_longest_tests_begin_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_time, "table", lambda: {"b.py::long": 20.0, "c.py::longest": 30.0, "a.py::short": 9.0})
    names = ["a.py::short", "b.py::other", "b.py::long", "c.py::longest"]
    assert sorted(names, key=lambda name: -in_time.first(name)) == [*names[3:], *names[1:3], "a.py::short"]


def test_the_table_names_tests_that_exist() -> None:
    assert [name for name in in_time.table() if not in_time.is_there(name)] == []


def test_what_would_not_end_in_time_does_not_begin() -> None:
    durations = Durations({"a.py::shared": 9.0, "a.py::long": 4.0})
    assert not durations.begin("a.py::short", left_s=5.0), "it would be the first, and make what is shared"
    assert durations.begin("a.py::shared", left_s=10.0)
    assert durations.begin("a.py::short", left_s=1.0)
    assert not durations.begin("a.py::long", left_s=3.0)
    assert durations.begin("b.py::unknown", left_s=0.1)
    assert not durations.begin("b.py::unknown", left_s=-0.1)


def test_what_took_long_is_kept_for_the_next_run() -> None:
    durations = Durations({"faster::now": 3.0, "not::run": 1.0})
    for name, part_s in (("in::parts", 0.3), ("in::parts", 0.4), ("short", 0.1), ("faster::now", 0.2)):
        durations.took(name, part_s)
    assert durations.known() == {"in::parts": 0.7, "not::run": 1.0}
