"""What the README of the lab prints runs as printed."""

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).with_name("README.md")
TESTS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("code", TESTS)
def test_the_test_that_is_printed_is_one(code: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(code, str(README), "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(tmp_path)
