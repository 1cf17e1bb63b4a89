"""Real workers of every kind with long jobs, while pools shrink and agents and leaders are killed: `make proof-field`.

A round is one ``headway up`` with the cases of a batch. A round with a fault is not recorded; the others go on.
"""

import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from field.field_run import Outcome, play
from field.matrix_rounds import batch_of, last_seed, story_of
from field.page import write_page
from field.timeline import timeline
from proof.conftest import Proof
from support.tree import ROOT

pytestmark = [pytest.mark.proof, pytest.mark.timeout(0)]

PAGE = ROOT / "docs/proofs/field.md"
RULES = ("never_begun", "cut", "begun_twice", "busy_asked", "too_many_asked", "shown_idle", "slow_falls", "blind_spots")
OF_A_CASE = ("jobs", "workers", "asked_with_a_job", "fell_in_s")


def test_field(proof: Proof) -> None:
    last, failures = last_seed([line["seed"] for line in proof.lines()]), []
    for seed in proof.seeds():
        if seed > last:
            break
        folder = Path(tempfile.mkdtemp(prefix=f"headway-proof-field-{seed}-"))  # kept where the round fails
        began_s, rng = time.monotonic(), random.Random(seed)
        outcomes = play(batch_of(seed), folder, story=story_of(rng), rng=rng)
        wrong = {case.name: outcome for case, outcome in outcomes.items() if outcome.verdict.faults}
        if wrong:
            lines = [line for name in wrong for line in _story(name, wrong[name])]
            (folder / "faults.txt").write_text("\n".join(lines))
            failures += [f"round {seed}, {folder}:", *lines]
            continue
        sums: Counter[str] = Counter()
        for outcome in outcomes.values():
            sums.update({name: outcome.verdict.figures[name] for name in ("jobs", *RULES)})
        cases = [
            {"case": case.name, **{name: outcome.verdict.figures[name] for name in OF_A_CASE}}
            for case, outcome in outcomes.items()
        ]
        proof.record(seed, **sums, cases=cases, took_s=round(time.monotonic() - began_s, 1))
        write_page(proof.ledger, PAGE)
        shutil.rmtree(folder)
    assert not failures, "\n".join(failures)


def _story(name: str, outcome: Outcome) -> list[str]:
    lines = [*outcome.verdict.faults, *timeline(outcome.recording)]
    return [f"  {name}", *(f"    {line}" for line in lines)]
