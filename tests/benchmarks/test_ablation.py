"""The patches of `benchmarks/ablation.py` fit the functions that they replace, and change something."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = """
SHARE = 0.5
SETTING = 1.0
READ_ON_IMPORT = SETTING

def cost(workers, *, start_s=0.0):
    return workers * SHARE + start_s

def never_called(): ...

def total(workers):
    return cost(workers, start_s=1.0)
"""


@pytest.fixture
def patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "patched_module.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "patched_module", raising=False)  # each test patches one of its own
    monkeypatch.delitem(sys.modules, "patched_module", raising=False)
    return import_module("patched_module")


def test_every_patch_fits() -> None:
    terms = import_module("closed_loop.terms")
    patches = [patch for term in terms.TERMS.values() for patch in term.patches]
    assert patches  # each is checked as it is made
    assert set(terms.CANDIDATES) <= terms.TERMS.keys()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("gone", 0.0, "not there any more"),
        ("SETTING", 0.0, "read by no function"),
        ("never_called", lambda: 0, "read by no function"),
        ("SHARE", lambda: 0.0, "is 0.5, and the patch is"),
        ("cost", 0.0, "is <function cost"),
        ("cost", lambda workers: 0.0, "start_s"),
        ("cost", lambda workers, hosts, *, start_s=0.0: 0.0, "missing a required argument: 'hosts'"),
        ("cost", lambda workers, *, start_s: 0.0, "missing a required argument: 'start_s'"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(patched: ModuleType, name: str, value: object, says: str) -> None:
    patches = import_module("closed_loop.patches")
    with pytest.raises(patches.PatchMisfit, match=says):
        patches.Patch(patched, name, value)


@pytest.mark.parametrize(
    ("name", "value", "total"),
    [
        ("SHARE", 2.0, 7.0),  # 3 × 2 + 1
        ("cost", lambda _workers, *, start_s=0.0: start_s, 1.0),
        ("cost", lambda *_, **__: 9.0, 9.0),
    ],
)
def test_a_patch_that_fits_changes_what_the_module_does(
    patched: ModuleType, name: str, value: float | Callable[..., float], total: float
) -> None:
    import_module("closed_loop.patches").Patch(patched, name, value).apply()
    assert patched.total(3) == total
