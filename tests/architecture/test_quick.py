"""`make quick` finds the tests of what was changed, and leaves out what there is no time for by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import quick
from in_time import Durations
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
        (["tests/agent/test_that_was_deleted.py"], []),
        (["LICENSE"], []),
    ],
)
def test_what_was_changed_is_judged_by_its_tests(changed: list[str], tests: list[str]) -> None:
    assert quick.tests_of(changed) == tests


def test_every_package_has_tests() -> None:
    packages = {folder.parent.name for folder in SERVICE.glob("*/__init__.py")}
    assert [package for package in packages if not quick.tests_of([f"service/headway/{package}/a.py"])] == []


def test_what_cannot_begin_in_time_is_left_out_by_name(tmp_path: Path) -> None:
    file = tmp_path / "tests" / "test_late.py"
    file.parent.mkdir()
    file.write_text("def test_one(): assert False\ndef test_two(): assert False\n")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "in_time",
        "--rootdir",
        tmp_path,
    ]
    environment = {**os.environ, "TESTS_END_BY_S": "0", "PYTHONPATH": str(ROOT / "tools"), "CI": ""}
    done = subprocess.run([*words, file], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "there was no more time for 2 tests: 2 of tests/test_late.py" in done.stdout


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
