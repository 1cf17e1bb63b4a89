"""Mistakes that no longer apply to the code show nothing: the lists are kept to it."""

import ast
from functools import cache
from pathlib import Path

import pytest

from mutants.by_hand import MUTANTS, Mutant
from mutants.guards import GUARDS, Guard
from mutants.harms import MISTAKES, Mistake
from mutants.places import Change, place_of

ROOT = Path(__file__).parents[2]
HEADWAY = "service/headway"


def can_be_made(change: Change, module: str) -> bool:
    """Whether it changes the module. Raises ``NotOnce`` where its place is not known."""
    place_of(change, tree_of(module))
    return change.right != change.wrong


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.module}: {mutant.right[:40]}")
def test_every_mistake_of_the_core_can_be_made(mutant: Mutant) -> None:
    assert can_be_made(mutant, f"{mutant.root}/{mutant.module}")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: f"{guard.module}: {guard.right[:40]}")
def test_every_guard_can_be_taken_away(guard: Guard) -> None:
    assert can_be_made(guard, f"{guard.root}/{guard.module}")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_every_fault_can_be_injected(mistake: Mistake) -> None:
    assert can_be_made(mistake, f"{HEADWAY}/{mistake.module}")
