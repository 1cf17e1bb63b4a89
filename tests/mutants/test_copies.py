"""A copy of the tree is one in which its tests run: else every mistake would be found, by an import."""

from pathlib import Path

import pytest

from mutants import copies

pytestmark = pytest.mark.e2e

COLLECT = ("--collect-only", "-q", "-p", "no:cacheprovider")


def test_the_core_s_tests_find_all_they_import_in_a_copy(tmp_path: Path) -> None:
    copies.copied(copies.CORE_FOLDERS, tmp_path)
    done = copies.tested_on(tmp_path, [*COLLECT, *copies.OF_CORE, copies.CORE_TESTS], within_s=120.0)
    assert done is not None
    assert done.returncode == 0, done.stdout


def test_a_guard_s_tests_find_conftest_and_its_plugins_in_a_copy(tmp_path: Path) -> None:
    copies.copied(copies.GUARD_FOLDERS, tmp_path)
    done = copies.run_on(tmp_path, ["-m", "pytest", *COLLECT, "tests/store/test_leadership.py"], within_s=120.0)
    assert done is not None
    assert done.returncode == 0, done.stdout + done.stderr
