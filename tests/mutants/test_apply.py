"""Mistakes that no longer apply to the code show nothing: the lists are kept to it."""

from pathlib import Path

import pytest

from mutants.by_hand import MUTANTS, Mutant
from mutants.guards import GUARDS, Guard
from mutants.harms import MISTAKES, Mistake

ROOT = Path(__file__).parents[2]
HEADWAY = ROOT / "service" / "headway"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.module}: {mutant.right[:40]}")
def test_every_mistake_of_the_core_can_be_made(mutant: Mutant) -> None:
    assert mutant.right in (HEADWAY / "scaling" / mutant.module).read_text(encoding="utf-8")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: f"{guard.module}: {guard.right.strip()[:40]}")
def test_every_guard_can_be_taken_away(guard: Guard) -> None:
    assert (ROOT / guard.root / guard.module).read_text(encoding="utf-8").count(guard.right) == 1


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_every_fault_can_be_injected(mistake: Mistake) -> None:
    assert (HEADWAY / mistake.module).read_text(encoding="utf-8").count(mistake.right) == 1
