"""The rounds of the proof have every case, and its page is made of its ledger."""

import random

from field.cases import whole_matrix
from field.matrix_rounds import BATCH, batch_of, batches, last_seed, story_of
from field.page import page_text, rounds_of
from support.tree import ROOT


def test_each_pass_has_each_case_once() -> None:
    for number in range(2):
        seeds = range(number * batches() + 1, (number + 1) * batches() + 1)
        cases = [case for seed in seeds for case in batch_of(seed)]
        assert sorted(case.name for case in cases) == sorted(case.name for case in whole_matrix())
    assert batch_of(1) != batch_of(1 + batches()), "each pass has an order of its own"
    assert max(len(batch_of(seed)) for seed in range(1, batches() + 1)) == BATCH


def test_a_pass_goes_on_where_it_was_broken_off() -> None:
    rounds = batches()
    assert last_seed([]) == rounds
    assert last_seed([1, 2]) == rounds
    assert last_seed([each for each in range(1, rounds + 1) if each != 3]) == rounds
    assert last_seed(range(1, rounds + 1)) == 2 * rounds


def test_all_of_a_story_happens_while_the_long_jobs_run() -> None:
    for seed in range(200):
        story = story_of(random.Random(seed))
        assert story.long_s[0] > 60
        moments_s = (story.agent_killed_at_s, story.short_jobs_at_s, story.control_killed_at_s)
        assert story.shrinks_at_s <= max(moments_s) < story.long_s[0] - 10


def test_the_page_has_a_row_for_each_kind_of_worker() -> None:
    cases = [
        {"case": case.name, "jobs": 4, "workers": 3, "asked_with_a_job": 0, "fell_in_s": 5.0} for case in whole_matrix()
    ]
    text = page_text([{"load_1m": 2.0, "cores": 2, "commit": "abc", "cases": cases}])
    rows = [line for line in text.splitlines() if line.startswith("| prefork-1 | redis | no | yes | direct |")]
    assert rows == ["| prefork-1 | redis | no | yes | direct | 6 | 24 | 18 | 0 | 5–5 |"]  # 2 acks × 3 kinds of queues


def test_the_page_is_made_of_the_ledger() -> None:
    assert (ROOT / "docs/proofs/field.md").read_text() == page_text(rounds_of(ROOT / "tests/proof/results/field.jsonl"))
