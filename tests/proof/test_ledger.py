"""That rounds of proofs are summary rightly, and that a proof goes on where it was broken off."""

from pathlib import Path

from proof.conftest import Proof
from proof.ledger import summary


def line(seed: int, **figures: object) -> dict[str, object]:
    return {"seed": seed, "load_1m": 2.0 * seed, "cores": 2, **figures}


def test_counts_are_added_and_seconds_are_shown_from_the_least_to_the_most() -> None:
    rounds = [
        line(
            1, jobs_done=600, hosts=4, by_kind={"agent killed": 2}, settled_s={"max": 4.5}, took_over_s={"hung": [9.0]}
        ),
        line(
            2, jobs_done=500, hosts=4, by_kind={"agent killed": 1}, settled_s={"max": 9.5}, took_over_s={"hung": [7.5]}
        ),
    ]
    assert [" ".join(each.split()) for each in summary("faults", rounds)] == [
        "faults: rounds ended: 2 (seeds 1, 2; load 2–4)",
        "jobs done 1,100",
        "hosts 4",
        "by kind agent killed 3",
        "settled s max 4.5–9.5",
        "took over s hung 7.5–9",
    ]


def test_what_is_no_number_is_not_reported() -> None:
    rounds = [line(1, namespaces=True, settled_s={"max_after": "agent killed"}, took_over_s={})]
    assert summary("faults", rounds) == ["faults: rounds ended: 1 (seeds 1; load 2)"]


def test_a_round_that_was_broken_off_is_drawn_again(tmp_path: Path) -> None:
    ledger = tmp_path / "storm.jsonl"
    seeds = Proof(ledger=ledger, minutes=1.0).seeds()
    first = next(seeds)
    Proof(ledger=ledger, minutes=1.0).record(first, kills=3)
    assert next(seeds) == first + 1  # which is broken off
    assert next(Proof(ledger=ledger, minutes=1.0).seeds()) == first + 1


def test_no_round_is_left_out(tmp_path: Path) -> None:
    proof = Proof(ledger=tmp_path / "storm.jsonl", minutes=1.0)
    for seed in (1, 3):
        proof.record(seed, kills=3)
    assert [seed for seed, _ in zip(proof.seeds(), range(3), strict=False)] == [2, 4, 5]


def test_a_line_that_a_crash_cut_short_does_not_count(tmp_path: Path) -> None:
    ledger = tmp_path / "storm.jsonl"
    Proof(ledger=ledger, minutes=1.0).record(1, kills=3)
    with ledger.open("a") as lines:
        lines.write('{"seed": 2, "kil')
    after = Proof(ledger=ledger, minutes=1.0)
    assert next(after.seeds()) == 2
    after.record(2, kills=4)
    assert [each["kills"] for each in after.lines()] == [3, 4]


def test_whoever_wants_to_know_receives_each_round(tmp_path: Path) -> None:
    received: list[dict[str, object]] = []
    Proof(ledger=tmp_path / "storm.jsonl", minutes=1.0, log=received.append).record(7, kills=3)
    assert [(each["seed"], each["kills"]) for each in received] == [(7, 3)]
