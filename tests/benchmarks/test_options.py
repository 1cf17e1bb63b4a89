"""A benchmark of nothing is refused before it begins."""

import subprocess
import sys

import pytest

from support.tree import ROOT


@pytest.mark.parametrize("runs", ["0", "-1", "some"])
def test_a_demo_is_run_at_least_once(runs: str) -> None:
    words = [sys.executable, ROOT / "benchmarks/demo.py", "--runs", runs]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert "argument --runs: " in refused.stderr
    assert refused.stdout == ""
