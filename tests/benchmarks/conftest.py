"""What benchmarks are made of, imported as their scripts do: from their own folder, which only these tests see."""

import sys

import pytest

from support.tree import ROOT


@pytest.fixture(autouse=True)
def benchmarks_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the tests' own folders of such names, a benchmark's would be taken for theirs."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
