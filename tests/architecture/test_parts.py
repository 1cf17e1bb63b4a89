"""How the tests are run side by side, and that `make fast` has all that are fast."""

import re
from pathlib import Path

import pytest

from side_by_side import ONLY_SLOW, SLOW, TESTS, can_hold_slow, group_of, is_seen
from support.tree import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()


@pytest.mark.parametrize(
    ("file", "is_slow", "seen"),
    [
        (TESTS / "e2e/test_demo.py", True, True),
        (TESTS / "e2e/test_demo.py", False, False),  # a fast test that the fast part would not collect
        (TESTS / "spark/test_java.py", False, True),
        (TESTS / "agent/test_loop.py", False, True),
    ],
)
def test_a_fast_test_is_where_the_fast_part_collects_it(file: Path, is_slow: bool, seen: bool) -> None:
    assert is_seen(file, is_slow=is_slow) is seen


@pytest.mark.parametrize(
    ("file", "can"),
    [
        ("e2e/test_demo.py", True),
        ("spark/test_buckets.py", True),  # marked by its folder
        ("agent/test_loop.py", True),  # one of its tests is
        ("agent/test_fleet.py", False),  # nothing in it names a kind that is slow
    ],
)
def test_a_file_is_known_for_slow_tests_by_its_text(file: str, can: bool) -> None:
    assert can_hold_slow(TESTS / file) is can


def test_the_recipes_leave_out_what_is_known_here() -> None:
    assert re.search(r"^ONLY_SLOW := (.*)$", MAKEFILE, flags=re.MULTILINE)[1].split() == list(ONLY_SLOW)
    assert set(re.search(r"^SLOW := (.*)$", MAKEFILE, flags=re.MULTILINE)[1].split(" or ")) == set(SLOW)


@pytest.mark.parametrize(
    ("file", "group"),
    [
        ("tests/client/test_use_in_ci.py", "tests/client/test_use_in_ci.py"),  # its control plane is the module's
        ("tests/security/test_calls.py", "tests/security/test_calls.py"),  # so is this one's
        ("tests/spark/test_archive.py", "a session of Spark"),
        ("tests/spark/test_process.py", None),
        ("tests/e2e/test_demo.py", None),
    ],
)
def test_tests_that_share_something_dear_run_in_one_process(file: str, group: str | None) -> None:
    assert group_of(f"{file}::test_something") == group
